package prune

import (
	"context"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Auto is the pruner that follows the project's rules.
type Auto struct{}

var _ serialize.Pruner = Auto{}

// rulesOf reads the policy; one that makes no sense is reported and prunes nothing.
func rulesOf(env *serialize.Env, tx *store.Tx) Rules {
	r, err := readRules(tx)
	if err != nil {
		env.Warnf("auto-prune rule %v; nothing is pruned", err)
		return Rules{}
	}
	return r
}

// Check implements [serialize.Pruner]: a tree is measured as the one it was made from,
// if that is in the cache, plus the difference.
func (Auto) Check(ctx context.Context, env *serialize.Env, tx *store.Tx, m serialize.Measured) (exceeded, known bool, stats map[string]store.Stats, err error) {
	r := rulesOf(env, tx)
	if !r.Active() {
		return false, true, nil, nil
	}
	rd, err := env.Repo.Objects(ctx)
	if err != nil {
		return false, false, nil, err
	}
	s := store.Stats{HasKeys: true, HasBytes: true}
	if !m.Old.IsZero() {
		var ok bool
		if s, ok, err = tx.TreeStats(m.Old.String()); err != nil || !ok {
			return false, false, nil, err
		}
	}
	if !s.HasKeys || r.MaxSize > 0 && !s.HasBytes {
		return false, false, nil, nil
	}
	s.HasBytes = s.HasBytes && r.MaxSize > 0
	if s, err = addDelta(ctx, rd, s, m.Delta); err != nil {
		return false, false, nil, err
	}
	me := newMeasurer(rd, tx, r)
	f, err := me.foreign(ctx, m.Old)
	if err != nil {
		return false, false, nil, err
	}
	me.found[m.New.String()] = s
	return r.exceeded(s.Keys-f.Keys, s.Bytes), true, me.found, nil
}

// addDelta returns the measurement of a tree from that of the one it was made from.
func addDelta(ctx context.Context, rd *gitdb.Reader, s store.Stats, d serialize.Delta) (store.Stats, error) {
	s.Keys += d.Keys
	if !s.HasBytes {
		s.Bytes = 0
		return s, nil
	}
	s.Bytes += d.Added - d.Gone
	for _, id := range d.Removed {
		_, n, err := rd.Header(ctx, id)
		if err != nil {
			return s, err
		}
		s.Bytes -= n
	}
	for _, id := range d.AddedBlobs {
		_, n, err := rd.Header(ctx, id)
		if err != nil {
			return s, err
		}
		s.Bytes += n
	}
	return s, nil
}

func (r Rules) exceeded(keys, bytes int64) bool {
	return r.MaxKeys > 0 && keys > r.MaxKeys || r.MaxSize > 0 && bytes > r.MaxSize
}

// Prune implements [serialize.Pruner].
func (Auto) Prune(ctx context.Context, env *serialize.Env, from serialize.Committed) (*serialize.Pruned, error) {
	rd, err := env.Repo.Objects(ctx)
	if err != nil {
		return nil, err
	}
	c := &cut{env: env, rd: rd, from: from, stats: map[string]store.Stats{}}
	var r Rules
	err = env.DB.View(ctx, func(tx *store.Tx) error {
		if r = rulesOf(env, tx); !r.Active() {
			return nil
		}
		return c.planAuto(ctx, tx, r)
	})
	if err != nil {
		return nil, err
	}
	if c.plan == nil {
		return nil, c.checked(ctx)
	}
	c.msg = r.message(c.plan)
	commit, err := c.execute(ctx)
	if err != nil || commit.IsZero() {
		return nil, err
	}
	for _, k := range c.plan.tooBig {
		env.Warnf("%s (%s) is larger than %s and is not published; it stays in this store", k.KeyRef, humanize.IBytes(uint64(k.bytes)), KeyMinSize)
	}
	return &serialize.Pruned{Ref: from.Ref, Commit: commit.String(), KeysDropped: int64(len(c.plan.drop)), KeysRetained: c.plan.kept}, nil
}

// message returns the commit message of an auto-prune (format.md §7.3).
func (r Rules) message(p *plan) string {
	var b strings.Builder
	b.WriteString("git-meta: auto-prune\n\npruned: true\nreason: exceeded configured maximum\n")
	if r.MaxKeys > 0 {
		fmt.Fprintf(&b, "min-keys: %d\n", r.MinKeys)
	}
	if r.MaxSize > 0 {
		fmt.Fprintf(&b, "min-size: %d\n", r.MinSize)
	}
	b.WriteString(p.counts())
	return b.String()
}

// planAuto measures the tree and, if it passes a maximum, decides what goes; without a
// plan nothing does.
func (c *cut) planAuto(ctx context.Context, tx *store.Tx, r Rules) error {
	over, err := c.over(ctx, tx, r)
	if err != nil || !over {
		return err
	}
	if c.inv, err = datedInventory(ctx, c.rd, tx, c.from, 0, r.MaxSize > 0); err != nil {
		return err
	}
	for id, s := range c.inv.stats {
		c.stats[id.String()] = s
	}
	c.stats[c.from.Tree.String()] = c.inv.total
	if !r.exceeded(c.inv.total.Keys-c.inv.alien, c.inv.total.Bytes) {
		return nil
	}
	p := choose(c.inv, r.MinKeys, r.MinSize)
	unpublished, err := unpublishedTombstones(ctx, c.env, c.rd, c.inv)
	if err != nil {
		return err
	}
	p.dropTombstones(c.inv, func(t *tombstone) bool {
		return !(p.survives && t.time >= p.oldest) && !unpublished[t.path]
	})
	if r.worthwhile(c.env, c.inv, p) && !p.empty() {
		c.plan = p
	}
	return nil
}

// over reports whether the tree may pass a maximum: surely not, by the cache or by a
// walk, or else the inventory tells. Where the store holds more keys than the maximum
// the walk is left out, since the inventory will be needed.
func (c *cut) over(ctx context.Context, tx *store.Tx, r Rules) (bool, error) {
	me := newMeasurer(c.rd, tx, r)
	s, ok := me.cached(c.from.Tree)
	if !ok {
		if r.MaxSize > 0 {
			return true, nil // sizes cost as much to measure as to take down
		}
		rows, _, err := tx.Counts()
		if err != nil {
			return false, err
		}
		hidden, err := tx.CountWithheld(store.Pruned, store.TooBig, store.Unclear, store.Retained)
		if err != nil || rows-hidden > r.MaxKeys {
			return true, err
		}
		if s, err = me.measure(ctx, c.from.Tree, 0); err != nil {
			return false, err
		}
		c.stats = me.found
	}
	f, err := me.foreign(ctx, c.from.Tree)
	return r.exceeded(s.Keys-f.Keys, s.Bytes), err
}

// worthwhile decides the case that what can't be pruned fills the room between floor and
// maximum: such a rule would prune at every serialize. Then the maximum is compared with
// what can be pruned, alone (design §6).
func (r Rules) worthwhile(env *serialize.Env, inv *inventory, p *plan) bool {
	project, droppable, droppableBytes := int64(0), int64(0), int64(0)
	for _, k := range inv.keys {
		if k.Target.Type == meta.Project {
			project++
			continue
		}
		droppable++
		droppableBytes += k.bytes
	}
	due := false
	if r.MaxKeys > 0 && project+droppable > r.MaxKeys {
		due = true
		if project+r.MinKeys >= r.MaxKeys {
			due = droppable > r.MaxKeys
			beside := "the project key, which is"
			if project > 1 {
				beside = fmt.Sprintf("%d project keys, which are", project)
			}
			env.Warnf("%s %d leaves no room above %s %d beside %s never pruned; the maximum is compared with the other keys alone",
				KeyMaxKeys, r.MaxKeys, KeyMinKeys, r.MinKeys, beside)
		}
	}
	if r.MaxSize > 0 && inv.total.Bytes > r.MaxSize {
		fixed := inv.total.Bytes - droppableBytes
		for _, t := range p.tombs {
			if !t.value {
				fixed -= t.bytes
			}
		}
		if fixed+r.MinSize < r.MaxSize {
			return true
		}
		env.Warnf("%s %d leaves no room above %s %d beside %d bytes that are never pruned; the maximum is compared with the other values alone",
			KeyMaxSize, r.MaxSize, KeyMinSize, r.MinSize, fixed)
		due = due || droppableBytes > r.MaxSize
	}
	return due
}

// unpublishedTombstones returns the paths of the tombstones that the primary meta remote
// has not seen: while one is configured they stay until its history has held them.
func unpublishedTombstones(ctx context.Context, env *serialize.Env, rd *gitdb.Reader, inv *inventory) (map[string]bool, error) {
	if len(inv.tombs) == 0 {
		return nil, nil
	}
	has, err := env.HasRemote(ctx)
	if err != nil || !has {
		return nil, err
	}
	open := map[string]gitdb.Hash{}
	for _, t := range inv.tombs {
		if t.Target.Type != meta.Project {
			open[t.path] = t.hash
		}
	}
	if err := env.DropHeld(ctx, rd, env.TrackingRef(), open); err != nil {
		return nil, err
	}
	out := make(map[string]bool, len(open))
	for p := range open {
		out[p] = true
	}
	return out, nil
}
