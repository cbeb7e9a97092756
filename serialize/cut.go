package serialize

import (
	"context"

	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Cut returns the tree without the blobs at paths, writing the folders that change to w.
func Cut(ctx context.Context, rd *gitdb.Reader, w *gitdb.Writer, tree gitdb.Hash, paths []string) (gitdb.Hash, Delta, error) {
	ops := make([]op, len(paths))
	for i, p := range paths {
		ops[i] = op{path: p, kind: opDelete, key: -1}
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

// WalkSubtree calls fn for every blob below the folder id of a metadata tree, which
// stands at prefix (with a final slash), in git's order.
func WalkSubtree(ctx context.Context, rd *gitdb.Reader, id gitdb.Hash, prefix string, fn func(Leaf) error) error {
	return walkLeaves(ctx, rd, id, prefix, 0, fn)
}
