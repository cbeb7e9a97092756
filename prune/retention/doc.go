// Package retention keeps collections of keys at a size or an age (design §10).
//
// # Words
//
// A collection is a namespace of keys that the manifest (.git-meta) declares: whole
// segments, "ci" covers ci, ci:url and ci:log:x. The longest declared name owns a key. A
// row is one key on one target; it is kept or deleted whole, and rows are counted over
// all targets. Project metadata is exempt and not counted.
//
//	collections:
//	  ci:
//	    retention:
//	      maxRows: 500      # keep only the newest 500 rows
//	      maxAgeDays: 30    # keep only rows younger than 30 days
//
// This is the author's default. An override, a project string that travels with the
// metadata, replaces it per axis; what is enforced is override ?? default. A bound is a
// whole number from 1 up; no override can say "no bound". Where both bounds are set, a row
// over either goes. A maximum of rows is capped by meta:prune:max-keys.
//
// Newest and age go by creation: a published key's by the edit time in the commit that
// first brought it, an unpublished one's by its oldest log record since it was last
// removed. A day is 86,400 s; what is strictly older goes, and times in the future count as
// now.
//
// # Use
//
// Everything works on a [serialize.Env]: repository, store and namespace. Reading
// ([GetCollectionRetention], [List], [Sweep] with DryRun) needs no writable store.
// [SetCollectionRetention] changes overrides, and its result tells how many rows the next
// sweep would delete. [Sweep] deletes them: rows, their children and log records, without
// tombstone or log record; the next serialize takes the same keys out of the published
// tree.
//
// # Trust
//
// A manifest can come with anybody's branch, an override with anybody's push. [AutoSweep]
// therefore acts only on collections whose bounds have been confirmed in this repository
// as they are now, by [Accept] or by an explicit [Sweep]. Any change of the manifest's
// bounds, of an override, or of the collections declared below one takes that back.
package retention
