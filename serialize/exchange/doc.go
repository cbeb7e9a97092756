// Package exchange connects a repository with the remotes that its metadata is shared
// through: which remotes there are, how one is added, checked, removed, how metadata is
// fetched, merged and pushed, and what is left when git-meta leaves a repository.
//
// The network is the git program's: transports, credentials, proxies and prompts are
// those of git fetch and git push. Nothing here prints; [Env.Say] receives what a user
// may want to see while it happens. What git says is shown, and nothing is decided by
// it: refs, exit codes and git push --porcelain tell what has happened.
//
// # Fetch
//
// Commits and trees come first (--filter=blob:none, where the remote can do that; one
// that cannot sends everything). Then the values are fetched that a merge will read: of
// the new tip what the local ref does not have, and the tombstones of the commits in
// between. A tracking ref always follows the remote, also where history was rewritten
// there: the merge takes that as anybody's changes.
//
// # Push
//
// A push moves the remote's ref forward from a commit that has been merged here, by
// compare-and-swap (--force-with-lease=<ref>:<id>), and never otherwise. When it finds
// the ref elsewhere it waits a random time, fetches, merges and tries again, for half a
// minute at least. A remote that refuses without having moved has the last word.
//
// A side remote is read only: its values become rows that name their source and are not
// published, where there is no row of our own. The cursor of its tracking ref in the
// store says which commit was read. What filter rules send to another destination can be
// pushed to it ([Env.PushDestination]).
//
// Refs (ns is the remote's namespace, "meta" by default):
//
//	refs/ns/main                  on the remote
//	refs/ns/local/main            what is published here, and pushed
//	refs/ns/remotes/main          tracking ref of the primary remote
//	refs/ns/remotes/NAME/main     tracking ref of a side remote
//
// Configuration, in the order in which it is written:
//
//	remote.NAME.url                 as for git
//	remote.NAME.fetch               +refs/ns/main:<tracking ref>
//	remote.NAME.meta                true: this is a meta remote
//	remote.NAME.metaside            true, if a primary meta remote exists already
//	remote.NAME.promisor            true
//	remote.NAME.partialclonefilter  blob:none
//	remote.NAME.metanamespace       ns, if it was given with --namespace
//	remote.NAME.metadestination     only by hand: the destination to push to a side remote
//
// All but the last are what the Rust git-meta reads and writes.
package exchange
