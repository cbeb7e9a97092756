// Package meta is the vocabulary of git-meta: targets, keys, values, entries,
// tombstones, the paths they have in a published tree, filter rules, sizes and
// windows. It does no I/O: no SQL, no git, no files, no clock.
//
// Terms. A target is what metadata hangs on (a commit, a branch, a path, …). A
// key names one value of a target; its segments are joined by ':'. A value is a
// string, a list of entries or a set of members. A tombstone records a removal.
//
// Times are milliseconds since 1970-01-01 UTC unless a name says otherwise.
//
// # Published paths
//
// With B the base path of a target (see [Target.BasePath]) and K = B + "/" + the
// key's segments joined by "/":
//
//	string             K/__value                          raw bytes
//	list entry         K/__list/<time>-<hash5>            raw bytes
//	set member         K/__set/<blob id of the member>    raw bytes
//	key tombstone      B/__tombstones/<segments>/__deleted   JSON
//	member tombstone   K/__tombstones/<blob id>           raw bytes of the member
//	entry tombstone    K/__list/__tombstones/<entry name> JSON
//
// An empty blob B/__target__ below branch/ or change-id/ says where the target's
// value ends, for the rare names that would otherwise be read as another target.
package meta
