package manifest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Read reads the manifest that counts for r: of the work tree's root, in a linked worktree
// of its own, and without a work tree that of HEAD. The error is [meta.ErrNotFound] if
// there is none, and [meta.ErrInvalid] if it cannot be used. With a work tree it takes one
// system call where there is no file.
func Read(ctx context.Context, r *gitdb.Repo) (*File, error) {
	if r.WorkTree == "" {
		return readHead(ctx, r)
	}
	path := filepath.Join(r.WorkTree, FileName)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, missing(path)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", path, errors.Unwrap(err))
	case !info.Mode().IsRegular():
		return nil, meta.Invalid(path, "not a regular file", "")
	case info.Size() > maxBytes:
		return nil, (&File{Name: FileName}).tooLarge()
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, errors.Unwrap(err))
	}
	return Parse(FileName, data)
}

func missing(where string) error {
	return meta.NotFound(where, "no such file", "")
}

// readHead reads the manifest in the commit that HEAD names.
func readHead(ctx context.Context, r *gitdb.Repo) (*File, error) {
	const name = "HEAD:" + FileName
	id, _, err := r.ResolveCommit(ctx, "HEAD")
	if errors.Is(err, gitdb.ErrNoCommits) {
		return nil, missing(name)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	rd, err := r.Objects(ctx)
	if err != nil {
		return nil, err
	}
	commit, err := rd.Commit(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	tree, err := rd.Tree(ctx, commit.Tree)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	for _, e := range tree {
		if e.Name != FileName {
			continue
		}
		if e.Mode != gitdb.ModeFile && e.Mode != gitdb.ModeExec {
			return nil, meta.Invalid(name, "not a regular file", "")
		}
		_, size, err := rd.Header(ctx, e.Hash)
		if err == nil && size > maxBytes {
			return nil, (&File{Name: name}).tooLarge()
		}
		_, data, err := rd.Read(ctx, e.Hash)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		return Parse(name, data)
	}
	return nil, missing(name)
}
