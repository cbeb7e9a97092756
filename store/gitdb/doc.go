// Package gitdb is the git side of the store: it finds the repository, reads
// its configuration, identity, refs and objects, and writes objects and refs.
//
// What it reads it reads itself, without a process, as long as the layout is
// ordinary; whatever is unusual (an explicit GIT_DIR, an include in a config
// file, a repository of another owner, reftable refs, a partial clone) is put
// to the git program, whose answer is the answer. What it writes is one pack,
// or a few loose objects, made durable before a ref is moved; refs move only
// through git update-ref, with the old value given.
//
// Formats: gitformat-pack(5), gitrepository-layout(5), git-config(1)
// "CONFIGURATION FILE", git-commit-tree(1) for commit objects.
//
// Import cost is part of the contract: the package must not import go-git's
// top package, plumbing/object or storage/filesystem outside of tests.
package gitdb
