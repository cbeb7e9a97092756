package prune

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
)

// ErrNoWindow: neither --since nor meta:prune:since says what is old.
var ErrNoWindow = &meta.Error{
	Err:  errors.New("no retention window given"),
	Hint: "git meta prune --since 6m, or set a default for the project: git meta config " + KeySince + " 6m",
}

// ManualOptions says what to prune from the published tree.
type ManualOptions struct {
	Since  string // window; empty: meta:prune:since
	DryRun bool
	Force  bool // also a window that is not in the past or drops everything
}

// DroppedKey is a key that leaves (or would leave) the published tree.
type DroppedKey struct {
	meta.KeyRef
	Bytes int64
	Time  int64 // edit time, ms
}

// ManualResult is what a prune did, or in a dry run would do.
type ManualResult struct {
	Ref, Commit       string // Commit is empty if nothing was written
	NoTree            bool   // nothing has been serialized yet
	NothingToPrune    bool   // everything lies inside the window
	Since, SinceFrom  string // the window, and where it came from: "--since" or the key
	Cutoff            time.Time
	Dropped, Retained int64 // droppable keys
	Tombstones, Bytes int64 // that go
	Keys              []DroppedKey
	ByType            map[meta.TargetType]int64
}

// window is a resolved retention window.
type window struct {
	text, from string
	cutoff     time.Time
}

// readWindow takes the window from the flag or from the project. One that does not lie
// in the past is refused unless force is set. tx is nil where there is no store.
func readWindow(tx *store.Tx, flag string, now time.Time, force bool) (window, error) {
	w := window{text: flag, from: "--since"}
	if flag == "" {
		if tx == nil {
			return w, ErrNoWindow
		}
		v, ok, err := tx.ProjectString(KeySince)
		if err != nil {
			return w, err
		}
		if !ok {
			return w, ErrNoWindow
		}
		w.text, w.from = v, KeySince
	}
	var err error
	if w.cutoff, err = meta.ParseWindow(w.text, now); err != nil {
		return w, err
	}
	if !w.cutoff.Before(now) && !force {
		return w, meta.Invalid(fmt.Sprintf("window %q", w.text),
			"the cutoff "+w.cutoff.UTC().Format(time.DateTime)+" UTC is not in the past: everything would go", "add --force if that is what you want")
	}
	return w, nil
}

// Manual drops from the published tree what was not edited since a date: keys, whole, and
// tombstones. Project keys stay, and keys with an edit that is not serialized yet. Errors:
// [ErrNoWindow]; meta.ErrInvalid for a window that makes no sense. env.DB may be nil: then
// there is no store, and nothing to prune.
func Manual(ctx context.Context, env *serialize.Env, o ManualOptions) (*ManualResult, error) {
	res := &ManualResult{Ref: env.LocalRef(meta.MainDestination), ByType: map[meta.TargetType]int64{}}
	if env.DB == nil {
		w, err := readWindow(nil, o.Since, env.Clock(), o.Force)
		res.Since, res.SinceFrom, res.Cutoff, res.NoTree = w.text, w.from, w.cutoff, true
		return res, err
	}
	rd, err := env.Repo.Objects(ctx)
	if err != nil {
		return nil, err
	}
	c := &cut{env: env, rd: rd, stats: map[string]store.Stats{}}
	err = env.DB.View(ctx, func(tx *store.Tx) error {
		w, err := readWindow(tx, o.Since, env.Clock(), o.Force)
		if err != nil {
			return err
		}
		res.Since, res.SinceFrom, res.Cutoff = w.text, w.from, w.cutoff
		from, pending, err := env.Tip(ctx, tx, res.Ref)
		if err != nil || from == nil {
			res.NoTree = err == nil
			return err
		}
		c.from = *from
		return c.planManual(ctx, tx, w.cutoff.UnixMilli(), pending)
	})
	if err != nil || res.NoTree {
		return res, err
	}
	p := c.plan
	res.Dropped, res.Retained, res.Tombstones, res.Bytes = int64(len(p.drop)), p.kept, int64(len(p.tombs)), p.bytes
	res.NothingToPrune = p.empty()
	for _, k := range p.drop {
		res.ByType[k.Target.Type]++
		res.Keys = append(res.Keys, DroppedKey{k.KeyRef, k.bytes, k.time})
	}
	if p.kept == 0 && len(p.drop) > 0 && !o.Force {
		return nil, meta.Invalid(fmt.Sprintf("window %q", res.Since), fmt.Sprintf("all %d keys that can be pruned would go", len(p.drop)),
			"look first with --dry-run --force, then add --force if that is what you want")
	}
	if o.DryRun || p.empty() {
		return res, nil
	}
	c.msg = fmt.Sprintf("git-meta: prune --since=%s\n\npruned: true\nsince: %s\n%s", res.Since, res.Since, p.counts())
	commit, err := c.execute(ctx)
	if err != nil {
		return nil, err
	}
	if !commit.IsZero() {
		res.Commit = commit.String()
	}
	return res, nil
}

// planManual drops what was edited before cutoff (ms).
func (c *cut) planManual(ctx context.Context, tx *store.Tx, cutoff int64, pending map[meta.KeyRef]bool) (err error) {
	if c.inv, err = datedInventory(ctx, c.rd, tx, c.from, cutoff, true); err != nil {
		return err
	}
	inv := c.inv
	p := &plan{}
	for i := range inv.keys {
		k := &inv.keys[i]
		switch {
		case k.Target.Type == meta.Project:
		case k.time < cutoff && !pending[k.KeyRef]:
			p.drop = append(p.drop, k)
		default:
			p.kept++
		}
	}
	p.dropTombstones(inv, func(t *tombstone) bool { return t.time < cutoff && !pending[t.KeyRef] })
	c.plan = p
	return nil
}
