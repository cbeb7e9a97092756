package exchange

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// indexFile is where the Rust git-meta keeps how far it has indexed the history. Left
// over and marked complete, it would keep a later setup from indexing.
const indexFile = "git-meta-index.json"

// Teardown is what git-meta leaves of itself in a repository: refs/ns/local/*,
// refs/ns/remotes/*, the files of the store. Anything else below refs/ns/ is not its own.
type Teardown struct {
	Refs    []gitdb.Ref
	Files   []string // absolute
	Remotes []Remote // configured meta remotes; they stay

	// Unpublished lists the values that are nowhere but in the store: not in the history
	// of the tracking ref or, without a remote, of the local ref. The rules that setup
	// writes are left out.
	Unpublished []meta.KeyRef
	// StoreErr says why the store could not be read; then nobody knows what is
	// unpublished.
	StoreErr error
	// Unpushed: the local ref holds commits that the tracking ref has not.
	Unpushed bool
	// OnlyHere is the local ref where no remote is configured: its commit is all
	// there is of what was published.
	OnlyHere gitdb.Ref
}

// Loses reports whether something would be gone that exists nowhere else.
func (t *Teardown) Loses() bool {
	return len(t.Unpublished) > 0 || t.StoreErr != nil || t.Unpushed
}

// PlanTeardown finds out what a teardown would remove and what it would lose. read
// opens the store for reading, with [meta.ErrNotFound] if there is none. Nothing is
// written.
func (e *Env) PlanTeardown(ctx context.Context, read func(context.Context) (*serialize.Env, error)) (*Teardown, error) {
	t := &Teardown{}
	for _, part := range []string{"local", "remotes"} {
		refs, err := e.Repo.Refs(ctx, "refs/"+e.Namespace+"/"+part+"/")
		if err != nil {
			return nil, err
		}
		t.Refs = append(t.Refs, refs...)
	}
	cfg, err := e.Repo.Config(ctx)
	if err != nil {
		return nil, err
	}
	t.Remotes = Remotes(cfg, e.Namespace)
	if t.Files, err = e.storeFiles(); err != nil {
		return nil, err
	}
	if err := e.localTip(ctx, t); err != nil {
		return nil, err
	}
	env, err := read(ctx)
	if err == nil {
		t.Unpublished, err = unpublished(ctx, env)
	}
	switch {
	case errors.Is(err, meta.ErrNotFound):
	case ctx.Err() != nil:
		return nil, ctx.Err()
	default:
		t.StoreErr = err
	}
	return t, nil
}

// storeFiles returns the files that exist: the store that all worktrees share and the
// one that this worktree may have for itself, with what SQLite puts beside them.
func (e *Env) storeFiles() ([]string, error) {
	var out []string
	dirs := []string{e.Repo.CommonDir}
	if e.Repo.GitDir != e.Repo.CommonDir {
		dirs = append(dirs, e.Repo.GitDir)
	}
	for _, dir := range dirs {
		for _, name := range []string{store.FileName, store.FileName + "-wal", store.FileName + "-shm", store.FileName + "-journal", store.FileName + ".merged", indexFile} {
			path := filepath.Join(dir, name)
			if _, err := os.Lstat(path); err == nil {
				out = append(out, path)
			} else if !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
		out = append(out, store.FillFiles(dir)...)
	}
	return out, nil
}

// localTip compares the local ref with the tracking ref.
func (e *Env) localTip(ctx context.Context, t *Teardown) error {
	ref := serialize.LocalRef(e.Namespace, meta.MainDestination)
	local, err := e.tip(ctx, ref)
	if err != nil || local.IsZero() {
		return err
	}
	i := slices.IndexFunc(t.Remotes, func(r Remote) bool { return !r.Side })
	if i < 0 {
		t.OnlyHere = gitdb.Ref{Name: ref, Hash: local}
		return nil
	}
	tracking, err := e.tip(ctx, t.Remotes[i].TrackingRef())
	if err != nil {
		return err
	}
	known, err := e.contains(ctx, tracking, local)
	t.Unpushed = !known
	return err
}

// unpublished returns the keys whose values are only in the store.
func unpublished(ctx context.Context, env *serialize.Env) ([]meta.KeyRef, error) {
	rd, err := env.Repo.Objects(ctx)
	if err != nil {
		return nil, err
	}
	var out []meta.KeyRef
	err = env.DB.View(ctx, func(tx *store.Tx) error {
		var rows []store.Row
		for row, err := range tx.Rows(store.Query{}) {
			if err != nil {
				return err
			}
			if !row.Promised && row.SourceRef == "" {
				rows = append(rows, row)
			}
		}
		known, _, err := env.Published(ctx, rd, tx, rows)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if known[row.KeyRef] {
				continue
			}
			if meta.InNamespace(row.Key, "meta") {
				if rec, err := tx.Get(row.KeyRef); err == nil && IsDefaultRule(row.KeyRef, rec.Value) {
					continue
				}
			}
			out = append(out, row.KeyRef)
		}
		return nil
	})
	return out, err
}

// Execute removes what t lists, refs first: a ref that has moved since, or is locked,
// stops it with the store as it was. It calls done with each ref or file that is gone,
// and can be repeated.
func (t *Teardown) Execute(ctx context.Context, e *Env, done func(what, name string)) error {
	for _, ref := range t.Refs {
		err := e.Repo.DeleteRef(ctx, ref.Name, ref.Hash, "git-meta: teardown")
		if errors.Is(err, gitdb.ErrRefNotFound) {
			continue
		}
		if errors.Is(err, gitdb.ErrRefMoved) {
			return fmt.Errorf("%w: %s was written to meanwhile", meta.ErrConflict, ref.Name)
		}
		if err != nil {
			return err
		}
		done("ref", ref.Name)
	}
	// The log goes before the file that it belongs to: a new file of that name must
	// never meet an old log.
	for _, path := range slices.Backward(t.Files) {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return &store.FileError{Path: path, Err: errors.Unwrap(err), Hint: "remove it by hand: rm -r " + shellWord(path)}
		}
		done("file", path)
	}
	return nil
}
