package prune

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// plan is a decision about one tree: what goes. It writes nothing until execute.
type plan struct {
	drop     []*item
	kept     int64 // droppable keys that stay
	tombs    []*tombstone
	bytes    int64 // bytes of drop and tombs
	tooBig   []*item
	oldest   int64 // edit time of the oldest survivor, ms
	survives bool  // anything does
}

// choose keeps the newest droppable keys up to the floors; a zero floor is none. Times
// must be filled in.
func choose(inv *inventory, minKeys, minSize int64) *plan {
	order := make([]*item, 0, len(inv.keys))
	for i := range inv.keys {
		if inv.keys[i].Target.Type != meta.Project {
			order = append(order, &inv.keys[i])
		}
	}
	slices.SortStableFunc(order, func(a, b *item) int { // ties: already by type, value, key
		switch {
		case a.time > b.time:
			return -1
		case a.time < b.time:
			return 1
		}
		return 0
	})
	p := &plan{}
	bytes, full := int64(0), false
	for _, k := range order {
		if minSize > 0 && k.bytes > minSize {
			p.tooBig = append(p.tooBig, k)
			p.drop = append(p.drop, k)
			continue
		}
		full = full || minKeys > 0 && p.kept+1 > minKeys || minSize > 0 && bytes+k.bytes > minSize
		if full {
			p.drop = append(p.drop, k)
			continue
		}
		p.kept++
		bytes += k.bytes
		p.oldest, p.survives = k.time, true
	}
	return p
}

// dropTombstones adds the tombstones that go, and the bytes of everything that does. A
// key takes those of its entries and members along: left alone they would be read as an
// empty collection.
func (p *plan) dropTombstones(inv *inventory, goes func(*tombstone) bool) {
	for _, k := range p.drop {
		p.bytes += k.bytes
	}
	if len(inv.tombs) == 0 {
		return
	}
	dropped := make(map[meta.KeyRef]bool, len(p.drop))
	for _, k := range p.drop {
		dropped[k.KeyRef] = true
	}
	for i := range inv.tombs {
		t := &inv.tombs[i]
		own := t.Kind != meta.PathTombstone && dropped[t.KeyRef]
		if t.Target.Type == meta.Project || !own && (t.value || !goes(t)) {
			continue
		}
		p.tombs = append(p.tombs, t)
		if !t.value {
			p.bytes += t.bytes
		}
	}
}

func (p *plan) empty() bool { return len(p.drop) == 0 && len(p.tombs) == 0 }

// cuts says how the plan is carried out on the tree: commits that lose all they hold go
// as a whole. The delta is what those hold.
func (p *plan) cuts(inv *inventory) (c serialize.Cuts, d serialize.Delta) {
	n := map[meta.Target]int{}
	for _, k := range p.drop {
		n[k.Target]++
	}
	for t, keys := range n {
		if inv.whole[t] == keys {
			c.Targets = append(c.Targets, t)
		} else {
			n[t] = 0
		}
	}
	for _, k := range p.drop {
		if n[k.Target] > 0 {
			d.Keys -= k.entries
			d.Gone += k.bytes
			continue
		}
		c.Paths = append(c.Paths, k.paths...)
		if k.paths == nil || k.entries > 0 {
			c.Keys = append(c.Keys, k.KeyRef)
		}
	}
	for _, t := range p.tombs {
		c.Paths = append(c.Paths, t.path)
	}
	return c, d
}

// cut is a prune commit to be made.
type cut struct {
	env   *serialize.Env
	rd    *gitdb.Reader
	from  serialize.Committed
	inv   *inventory
	plan  *plan
	msg   string
	stats map[string]store.Stats // measurements worth keeping, by tree
}

// execute writes the tree without what the plan drops, notes the dropped keys as withheld
// and moves the ref. It returns the zero id, and only marks the tip as checked, if the
// tree stays the same.
func (c *cut) execute(ctx context.Context) (gitdb.Hash, error) {
	w, err := c.env.Repo.NewWriter(ctx)
	if err != nil {
		return gitdb.Hash{}, err
	}
	defer w.Abort()
	cuts, whole := c.plan.cuts(c.inv)
	tree, delta, err := serialize.Cut(ctx, c.rd, w, c.from.Tree, cuts)
	if err != nil {
		return gitdb.Hash{}, err
	}
	if tree == c.from.Tree {
		return gitdb.Hash{}, c.checked(ctx)
	}
	data, err := c.env.PruneCommit(ctx, tree, c.from.Commit, c.msg)
	if err != nil {
		return gitdb.Hash{}, err
	}
	commit := gitdb.HashObject(plumbing.CommitObject, data)
	if err := w.Put(plumbing.CommitObject, commit, data); err != nil {
		return gitdb.Hash{}, err
	}
	if err := w.Finish(ctx); err != nil {
		return gitdb.Hash{}, err
	}
	delta.Keys, delta.Gone = delta.Keys+whole.Keys, delta.Gone+whole.Gone
	if s, err := addDelta(ctx, c.rd, c.inv.total, delta); err == nil {
		c.stats[tree.String()] = s
	}
	err = c.env.DB.Update(ctx, func(tx *store.Tx) error { return c.propose(tx, commit) })
	if err != nil {
		return gitdb.Hash{}, err
	}
	if err := c.env.Repo.UpdateRef(ctx, c.from.Ref, commit, c.from.Commit, "git-meta: prune"); err != nil {
		return gitdb.Hash{}, err
	}
	return commit, w.Release()
}

// propose writes the cursor of the prune commit and what it withholds.
func (c *cut) propose(tx *store.Tx, commit gitdb.Hash) error {
	cur := c.from.Cursor
	if err := tx.TrimCursors(c.from.Ref, c.from.Commit.String()); err != nil {
		return err
	}
	cur.Ref, cur.Commit, cur.PruneChecked = c.from.Ref, commit.String(), true
	if err := tx.PutCursor(cur); err != nil {
		return err
	}
	rows := make([]int64, 0, len(c.plan.drop))
	sorted := slices.Clone(c.plan.drop)
	slices.SortFunc(sorted, func(a, b *item) int { return a.KeyRef.Compare(b.KeyRef) })
	for _, k := range sorted {
		if k.row != 0 {
			rows = append(rows, k.row)
			continue
		}
		w, ok, err := tx.Withheld(k.KeyRef)
		if err == nil && ok && w.Why != store.Swept { // that ends when the tree is known to lack the key
			err = tx.DeleteWithheld(k.KeyRef) // local-pruned: it leaves the tree too
		}
		if err != nil {
			return err
		}
	}
	if err := tx.WithholdRows(rows); err != nil {
		return err
	}
	for _, k := range c.plan.tooBig {
		if k.row != 0 {
			if err := tx.PutWithheld(store.Withheld{KeyRef: k.KeyRef, EditTime: k.time, Why: store.TooBig}); err != nil {
				return err
			}
		}
	}
	return tx.PutTreeStats(c.stats)
}

// checked notes that the tip needs no prune.
func (c *cut) checked(ctx context.Context) error {
	return c.env.DB.Update(ctx, func(tx *store.Tx) error {
		cur := c.from.Cursor
		cur.Ref, cur.Commit, cur.PruneChecked = c.from.Ref, c.from.Commit.String(), true
		if err := tx.PutCursor(cur); err != nil || len(c.stats) == 0 {
			return err
		}
		return tx.PutTreeStats(c.stats)
	})
}

// counts returns the two lines that end every prune message.
func (p *plan) counts() string {
	return fmt.Sprintf("keys-dropped: %d\nkeys-retained: %d", len(p.drop), p.kept)
}
