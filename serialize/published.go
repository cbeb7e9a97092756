package serialize

import (
	"context"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Clock returns the time that windows are counted from.
func (e *Env) Clock() time.Time { return e.now() }

// HasRemote reports whether a primary meta remote is configured.
func (e *Env) HasRemote(ctx context.Context) (bool, error) {
	cfg, err := e.Repo.Config(ctx)
	if err != nil {
		return false, err
	}
	for _, name := range cfg.Subsections("remote") {
		p := "remote." + name + "."
		_, url := cfg.Get(p + "url")
		if url && cfg.Bool(p+"meta", false) && !cfg.Bool(p+"metaside", false) {
			return true, nil
		}
	}
	return false, nil
}

// Tip returns what the store knows of ref's tip, and the keys with an edit that is not
// published yet; nil if there is no such ref. A tip that the store's cursor does not
// describe is an error: a serialize brings them together.
func (e *Env) Tip(ctx context.Context, tx *store.Tx, ref string) (*Committed, map[meta.KeyRef]bool, error) {
	tip, err := e.tip(ctx, ref)
	if err != nil || tip == zero {
		return nil, nil, err
	}
	rd, err := e.Repo.Objects(ctx)
	if err != nil {
		return nil, nil, err
	}
	c := Committed{Ref: ref, Commit: tip}
	if c.Tree, err = treeOf(ctx, rd, tip); err != nil {
		return nil, nil, err
	}
	cur, ok, err := tx.Cursor(ref, tip.String())
	if err != nil {
		return nil, nil, err
	}
	if ok {
		if ok, err = tx.LogHolds(cur.Log); err != nil {
			return nil, nil, err
		}
	}
	if !ok {
		return nil, nil, &meta.Error{Op: ref, Err: errUnseen, Hint: "git meta serialize"}
	}
	c.Cursor = cur
	changes, err := tx.ChangesSince(cur.Log)
	if err != nil {
		return nil, nil, err
	}
	pending := make(map[meta.KeyRef]bool, len(changes))
	for _, ch := range changes {
		pending[ch.KeyRef] = true
	}
	return &c, pending, nil
}

var errUnseen = unseen("this store has not seen what is published there")

type unseen string

func (u unseen) Error() string { return string(u) }

// DropHeld deletes from open (path → blob) what a commit of ref's history holds. A ref
// that does not exist holds nothing.
func (e *Env) DropHeld(ctx context.Context, rd *gitdb.Reader, ref string, open map[string]gitdb.Hash) error {
	tip, err := e.tip(ctx, ref)
	if err != nil || tip == zero {
		return err
	}
	return history(ctx, rd, tip, zero, func(s step) (bool, error) {
		err := diffLeaves(ctx, rd, s.before, s.commit.Tree, "", 0, func(d leafDiff) error {
			if id, ok := open[d.leaf.Path]; ok && id == d.new {
				delete(open, d.leaf.Path)
			}
			return nil
		})
		return len(open) > 0, err
	})
}

// Published tells which of rows have their present value in a commit that can be reached
// from the tracking ref of the primary remote or, without a remote, from the local ref;
// and up to which log record the local ref has been published.
func (e *Env) Published(ctx context.Context, rd *gitdb.Reader, tx *store.Tx, rows []store.Row) (map[meta.KeyRef]bool, store.Position, error) {
	out := map[meta.KeyRef]bool{}
	var at store.Position
	local, err := e.tip(ctx, e.LocalRef(meta.MainDestination))
	if err != nil {
		return nil, at, err
	}
	if cur, ok, err := tx.Cursor(e.LocalRef(meta.MainDestination), hexOf(local)); err != nil {
		return nil, at, err
	} else if ok {
		at = cur.Log
	}
	ref := e.LocalRef(meta.MainDestination)
	if has, err := e.HasRemote(ctx); err != nil {
		return nil, at, err
	} else if has {
		ref = e.TrackingRef()
	}
	tip, err := e.tip(ctx, ref)
	if err != nil || tip == zero {
		return out, at, err
	}
	tree, err := treeOf(ctx, rd, tip)
	if err != nil {
		return nil, at, err
	}
	look := lookup{ctx: ctx, rd: rd, root: tree}
	values := map[meta.KeyRef]meta.Value{}
	cand := map[meta.KeyRef]bool{}
	for _, row := range rows {
		if meta.IsLocal(row.Key) || row.Target.Publishable() != nil || meta.KeyPublishable(row.Key) != nil {
			continue
		}
		rec, err := tx.Get(row.KeyRef)
		if err != nil {
			return nil, at, err
		}
		state, err := readKey(&look, row.KeyRef)
		if err != nil {
			return nil, at, err
		}
		if sameRow(rec.Value, state) && state != nil {
			out[row.KeyRef] = true
			continue
		}
		values[row.KeyRef], cand[row.KeyRef] = rec.Value, true
	}
	j := &judge{ctx: ctx, env: e, rd: rd, tx: tx, tip: tip}
	past, err := j.past(cand, zero)
	if err != nil {
		return nil, at, err
	}
	for k, p := range past {
		if p.holds(values[k]) {
			out[k] = true
		}
	}
	return out, at, nil
}
