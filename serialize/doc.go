// Package serialize turns the store into git trees and git trees into rows.
//
// # From the store to a ref
//
// [Run] publishes what has changed since the ref's cursor, a position in the store's
// log (never a clock), as one commit on refs/<ns>/local/<destination>. The new tree is
// the tip's tree with the changed keys replaced, key by key; everything else in it,
// unknown entries included, stays byte for byte. A first serialize and ForceFull write
// every publishable row; they too only replace keys that a row or tombstone here owns.
//
// The work is done in these steps, each in a file of its own:
//
//	changes.go    which keys differ from the tip: by the cursor, or by comparison
//	reconcile.go  a tip this store has not seen: load it, or decide who is right
//	encode.go     a key → the paths and blobs it has in a tree
//	edit.go       edits applied to a tree, bottom up, unchanged subtrees reused by id
//	build.go      all changed keys → new tree, batches of targets at a time
//	commit.go     message, git-meta-times header, commit object
//	run.go        the order: objects, then the proposal in x_cursor, then the ref
//	retain.go     afterwards: what was swept here leaves the trees, in a commit on top
//
// # Crash safety
//
// Objects are durable before anything names them. Then the cursor for the new commit is
// written (a proposal: it counts only while the ref is at that commit), then the ref
// moves by compare-and-swap. A kill at any point leaves either the old tip with its
// cursor or the new tip with its cursor.
//
// # From a ref to the store
//
// walk.go reads a tree as keys, history.go finds out when and by whom each was last
// changed, load.go writes rows. births.go tells since when each key has been there.
//
// # Commits
//
// Message: "git-meta: serialize (N changes)", a blank line, then one line per changed
// key, "A|M|D<TAB>target<TAB>key", sorted; above 1000 keys "changes-omitted: true" and
// "count: N" instead; no final newline. The author date is the newest edit time among
// the changes, the committer date is now. The header git-meta-times carries the edit
// times in milliseconds (see [meta.EncodeTimes]): one per key that in the new tree has a
// value and of which any path differs from the first parent's, ordered by the bytes of
// its tree path + "/".
//
// A commit that only drops keys has a line "pruned: true" in its message: after one with
// the subject "git-meta: auto-prune" or "git-meta: prune --since=…" a key still counts
// with its last value, after "git-meta: retention" it has none any more.
package serialize
