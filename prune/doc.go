// Package prune keeps the published tree small, and the store where somebody asks for it.
//
// Auto-prune is a high-water/low-water rule. After a serialize has written a tree, its
// keys (each __value, __list and __set counts one, project keys too) and its bytes (the
// sizes of all blobs, every path counted) are compared with meta:prune:max-keys and
// max-size. If one is exceeded, the tree is cut back to min-keys and min-size by dropping
// whole keys, the least recently edited first, and committed on top.
//
//	rules.go      the rules, where they are read, what is refused when they are set
//	measure.go    keys and bytes of a tree, cached by tree id
//	inventory.go  what a tree holds: keys with their sizes, tombstones
//	plan.go       which keys stay (Plan), the new tree, commit and ref (Execute)
//	auto.go       the check after a serialize
//	manual.go     git meta prune --since
//	local.go      git meta local-prune
//
// Dropped rows stay in the store and stay readable; they are noted as withheld, so that
// no later serialize brings them back by itself.
package prune
