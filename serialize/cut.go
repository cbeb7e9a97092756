package serialize

import (
	"context"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Cuts says what leaves a tree.
type Cuts struct {
	Keys    []meta.KeyRef // their values; tombstones stay
	Paths   []string      // single blobs
	Targets []meta.Target // with everything below them
}

// Cut returns the tree without what cuts names, writing the folders that change to w. The
// delta does not cover Targets, which are not read.
func Cut(ctx context.Context, rd *gitdb.Reader, w *gitdb.Writer, tree gitdb.Hash, cuts Cuts) (gitdb.Hash, Delta, error) {
	ops := make([]op, 0, 3*len(cuts.Keys)+len(cuts.Paths)+len(cuts.Targets))
	for _, k := range cuts.Keys {
		path := meta.KeyPath(k.Target.BasePath(), k.Key)
		ops = append(ops,
			op{path: meta.ValuePath(path), kind: opDelete, key: -1},
			op{path: meta.ListPath(path) + "/", kind: opClear, class: clearEntries, key: -1},
			op{path: meta.SetPath(path) + "/", kind: opClear, class: clearAll, key: -1})
	}
	for _, p := range cuts.Paths {
		ops = append(ops, op{path: p, kind: opDelete, key: -1})
	}
	for _, t := range cuts.Targets {
		ops = append(ops, op{path: t.BasePath(), kind: opPut, mode: modeTree, key: -1})
	}
	sortOps(ops)
	ed := editor{ctx: ctx, rd: rd, put: w.Put}
	root, err := ed.apply(tree, ops, 0)
	if err == nil && root == zero {
		root = gitdb.HashObject(treeObject, nil)
		err = w.Put(treeObject, root, nil)
	}
	return root, ed.delta, err
}

// WalkFolders calls leaf for every blob below the folder id of a metadata tree, which
// stands at prefix (with a final slash), in git's order, and folder for every entry of
// that folder and those below it.
func WalkFolders(ctx context.Context, rd *gitdb.Reader, id gitdb.Hash, prefix string, folder func(gitdb.TreeEntry), leaf func(Leaf) error) error {
	return walkFolders(ctx, rd, id, prefix, 0, folder, leaf)
}
