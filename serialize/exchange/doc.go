// Package exchange connects a repository with the remotes that its metadata is shared
// through: which remotes there are, how one is added, checked, removed, and what is left
// when git-meta leaves a repository.
//
// The network is the git program's: transports, credentials, proxies and prompts are
// those of git fetch and git push. Nothing here prints; [Env.Say] receives what a user
// may want to see while it happens.
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
//
// Both are what the Rust git-meta reads and writes.
package exchange
