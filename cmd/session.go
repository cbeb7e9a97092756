package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// session is the repository and the store of a run, opened when first asked for.
type session struct {
	repository *gitdb.Repo
	db         *store.DB
	writable   bool
	bulk       bool // the run loads much that can be loaded again
}

func (s *session) close() error {
	var err error
	if s.db != nil {
		err = s.db.Close()
		s.db = nil
	}
	if s.repository != nil {
		err = errors.Join(err, s.repository.Close())
		s.repository = nil
	}
	return err
}

// repo returns the repository that the working directory belongs to.
func (a *app) repo(ctx context.Context) (*gitdb.Repo, error) {
	if a.repository != nil {
		return a.repository, nil
	}
	r, err := gitdb.Discover(ctx, a.dir())
	if err != nil {
		return nil, err
	}
	a.repository = r
	return r, nil
}

// readStore opens the store for reading; nothing is created. The error is
// meta.ErrNotFound if there is no store yet.
func (a *app) readStore(ctx context.Context) (*store.DB, error) {
	if a.db != nil {
		return a.db, nil
	}
	r, err := a.repo(ctx)
	if err != nil {
		return nil, err
	}
	if _, ok := ownStore(r); ok {
		if db, err := a.writeStore(ctx); err == nil {
			return db, nil
		}
	}
	db, err := store.OpenRead(ctx, storePath(r), a.storeOptions(ctx, r))
	if err != nil {
		return nil, err
	}
	a.db, a.writable = db, false
	return db, nil
}

// writeStore opens the store for writing and creates it if there is none.
func (a *app) writeStore(ctx context.Context) (*store.DB, error) {
	if a.db != nil && a.writable {
		return a.db, nil
	}
	r, err := a.repo(ctx)
	if err != nil {
		return nil, err
	}
	if a.db != nil {
		if err := a.db.Close(); err != nil {
			return nil, err
		}
		a.db = nil
	}
	db, err := store.Open(ctx, storePath(r), a.storeOptions(ctx, r))
	if err != nil {
		return nil, err
	}
	a.db, a.writable = db, true
	if own, ok := ownStore(r); ok {
		if err := a.adopt(ctx, db, own); err != nil {
			return nil, err
		}
	}
	return db, nil
}

// hasStore reports whether there is a store, without opening it.
func (a *app) hasStore(ctx context.Context) (bool, error) {
	r, err := a.repo(ctx)
	if err != nil {
		return false, err
	}
	if _, own := ownStore(r); own {
		return true, nil
	}
	info, err := os.Stat(storePath(r))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err != nil || info.Size() > 0, nil // whatever is wrong is for opening it to say
}

// loadsMuch prepares for a run that loads a whole tree: what a power cut takes is loaded
// again, and memory matters more than the last tenth of speed.
func (a *app) loadsMuch() {
	a.bulk = true
	debug.SetGCPercent(50)
}

func storePath(r *gitdb.Repo) string { return filepath.Join(r.CommonDir, store.FileName) }

func (a *app) storeOptions(ctx context.Context, r *gitdb.Repo) store.Options {
	return store.Options{Now: a.now, Bulk: a.bulk, Blob: func(oid string) ([]byte, error) { return readBlob(ctx, r, oid) }}
}

// ownStore returns the store that a linked worktree has for itself: the Rust program
// keeps one per worktree.
func ownStore(r *gitdb.Repo) (string, bool) {
	if r.GitDir == r.CommonDir {
		return "", false
	}
	path := filepath.Join(r.GitDir, store.FileName)
	info, err := os.Stat(path)
	return path, err == nil && info.Mode().IsRegular() && info.Size() > 0
}

// adopt merges a worktree's own store into the shared one, once.
func (a *app) adopt(ctx context.Context, db *store.DB, own string) error {
	keys, err := store.MergeFile(ctx, db, own)
	if err != nil {
		return fmt.Errorf("merge the worktree's own store %s: %w", own, err)
	}
	kept := own + ".merged"
	if err := os.Rename(own, kept); err != nil {
		if errors.Is(err, fs.ErrNotExist) { // another process was faster
			return nil
		}
		return err
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(own + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	a.note("merged %s of this worktree's own store into the shared one; the old file is %s", ui.Plural(keys, "key", "keys"), kept)
	return nil
}

// namespace returns the folder below refs/ that metadata lives in.
func (a *app) namespace(ctx context.Context) (string, error) {
	r, err := a.repo(ctx)
	if err != nil {
		return "", err
	}
	c, err := r.Config(ctx)
	if err != nil {
		return "", err
	}
	ns, ok := c.Get("meta.namespace")
	if !ok {
		return "meta", nil
	}
	return ns, serialize.CheckNamespace(ns)
}

// env returns what serialize and prune work on, with the store open for writing.
func (a *app) env(ctx context.Context) (*serialize.Env, error) {
	if _, err := a.namespace(ctx); err != nil {
		return nil, err
	}
	db, err := a.writeStore(ctx)
	if err != nil {
		return nil, err
	}
	return a.envOf(ctx, db)
}

// dryEnv is env; for a dry run an existing store is opened for reading only.
func (a *app) dryEnv(ctx context.Context, dryRun bool) (*serialize.Env, error) {
	if !dryRun {
		return a.env(ctx)
	}
	db, err := a.readStore(ctx)
	if errors.Is(err, meta.ErrNotFound) {
		return a.env(ctx)
	}
	if err != nil {
		return nil, err
	}
	return a.envOf(ctx, db)
}

func (a *app) envOf(ctx context.Context, db *store.DB) (*serialize.Env, error) {
	ns, err := a.namespace(ctx)
	if err != nil {
		return nil, err
	}
	e := &serialize.Env{Repo: a.repository, DB: db, Namespace: ns, Now: a.now, Warn: a.warn, Progress: meta.NoProgress{}}
	if !a.quiet && !a.json {
		e.Progress = a.Progress()
	}
	return e, nil
}

// target reads a target argument; a commit becomes its full id.
func (a *app) target(ctx context.Context, arg string) (meta.Target, error) {
	t, err := meta.ParseTarget(arg)
	if err != nil || t.Type != meta.Commit {
		return t, err
	}
	r, err := a.repo(ctx)
	if err != nil {
		return t, err
	}
	id, exists, err := r.ResolveCommit(ctx, t.Value)
	if err != nil {
		return t, &meta.Error{Op: fmt.Sprintf("target %q", arg), Err: err, Hint: hintOf(err)}
	}
	t.Value = id.String()
	if !exists {
		a.note("commit %s is not in this repository", t.Value)
	}
	return t, nil
}

// keyRef reads the target and key arguments of a command that writes.
func (a *app) keyRef(ctx context.Context, target, key string) (meta.KeyRef, error) {
	t, err := a.target(ctx, target)
	if err != nil {
		return meta.KeyRef{}, err
	}
	return meta.KeyRef{Target: t, Key: key}, meta.CheckKey(key)
}

// edit runs f in a write transaction with the author of the edit and its time, 0 for
// now.
func (a *app) edit(ctx context.Context, ms int64, f func(*store.Tx, store.Edit) error) error {
	db, err := a.writeStore(ctx)
	if err != nil {
		return err
	}
	e := store.Edit{Email: a.repository.AuthorEmail(ctx), Time: ms}
	return db.Update(ctx, func(tx *store.Tx) error { return f(tx, e) })
}

// loadForRemoval is load for a command that removes something. Without a store there is
// nothing to remove, and none is created.
func (a *app) loadForRemoval(ctx context.Context, k meta.KeyRef) error {
	if has, err := a.hasStore(ctx); err != nil || !has {
		if err == nil {
			err = a.getNothing(ctx, getOptions{key: k.Key, hasKey: true}, k.Target)
		}
		return err
	}
	return a.load(ctx, k)
}

// load brings the last published value of k back into the store if local-prune has
// dropped it there, or if it is known from history only.
func (a *app) load(ctx context.Context, k meta.KeyRef) error {
	db, err := a.writeStore(ctx)
	if err != nil {
		return err
	}
	var w store.Withheld
	var elsewhere bool
	if err := db.View(ctx, func(tx *store.Tx) error {
		w, elsewhere, err = tx.EditStarts(k)
		return err
	}); err != nil || !elsewhere {
		return err
	}
	if w.Why != store.LocalPruned {
		return a.loadPromised(ctx, k)
	}
	env, err := a.env(ctx)
	if err != nil {
		return err
	}
	return serialize.LoadForEdit(ctx, env, k)
}

// readBlob reads a value that the Rust program has put into a git blob.
func readBlob(ctx context.Context, r *gitdb.Repo, oid string) ([]byte, error) {
	id, ok := gitdb.ParseHash(oid)
	if !ok {
		return nil, fmt.Errorf("%q is not the id of a blob", oid)
	}
	objects, err := r.Objects(ctx)
	if err != nil {
		return nil, err
	}
	kind, data, err := objects.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	if kind != gitdb.BlobObject {
		return nil, fmt.Errorf("object %s is a %s, not a blob", oid, kind)
	}
	return data, nil
}
