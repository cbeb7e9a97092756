package serialize

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// retentionSubject starts the message of a commit that only drops what a collection's
// retention no longer keeps.
const retentionSubject = "git-meta: retention"

func isRetentionCommit(msg string) bool {
	return len(msg) >= len(retentionSubject) && msg[:len(retentionSubject)] == retentionSubject
}

// retentionMessage returns the message of a retention commit, which has the form of an
// auto-prune's (format.md §7.3): that line makes the Rust program take it for a prune. A
// negative number of keys left is not known, and left out.
func retentionMessage(dropped, left int64) string {
	msg := fmt.Sprintf("%s\n\n%s\nreason: a collection's retention\nkeys-dropped: %d", retentionSubject, prunedLine, dropped)
	if left >= 0 {
		msg += fmt.Sprintf("\nkeys-retained: %d", left)
	}
	return msg
}

// Retained is what retention took out of the published trees: the keys that a sweep has
// deleted here.
type Retained struct {
	Ref, Commit string // of main or, where only others held such keys, of the first of them
	KeysDropped int64
	// KeysRetained is how many keys are left there, those of the project included: as
	// measured for the auto-prune, else as many as this store holds and does not
	// withhold. -1: not known.
	KeysRetained int64
	Refs         []RefResult // every ref that was cut; Changes are the keys dropped
}

// cutting is what retention makes of one output.
type cutting struct {
	out     *output
	root    gitdb.Hash
	commit  gitdb.Hash
	delta   Delta
	dropped int64
	left    int64
	stats   map[string]store.Stats
	checked bool
}

// sweptCut returns the tree without keys: their values, entries and members, and their
// tombstones of any kind.
func (r *run) sweptCut(ctx context.Context, w *gitdb.Writer, out *output, tree gitdb.Hash, keys []store.SweptKey) (*cutting, error) {
	b := newBuilder(ctx, r.rd, w, tree)
	for _, k := range keys {
		if k.Again {
			continue
		}
		if err := b.add(change{KeyRef: k.KeyRef, leave: true}); err != nil {
			return nil, err
		}
	}
	c := &cutting{out: out, left: -1}
	var err error
	if c.root, err = b.finish(); err != nil || c.root == tree {
		return nil, err
	}
	for i := range b.ed.keys {
		if b.ed.keys[i].had {
			c.dropped++
		}
	}
	c.delta = b.ed.delta
	return c, nil
}

// retain drops what was swept from the published trees, in one commit on top of each, and
// then forgets that it was swept. It comes after the serialize commits, whose trees still
// hold those keys, and before the auto-prune, which would otherwise cut back a tree that
// is about to shrink.
func (r *run) retain(ctx context.Context) error {
	var keys []store.SweptKey
	left := int64(-1)
	err := r.env.DB.View(ctx, func(tx *store.Tx) (err error) {
		if keys, err = tx.SweptKeys(); err == nil && len(keys) > 0 {
			left, err = shownKeys(tx)
		}
		return err
	})
	if err != nil || len(keys) == 0 {
		return err
	}
	w, err := r.env.Repo.NewWriter(ctx)
	if err != nil {
		return err
	}
	defer w.Abort()
	var cuts []*cutting
	for _, out := range r.outs {
		tip := out.newTip()
		if tip == zero {
			continue
		}
		c, err := r.sweptCut(ctx, w, out, out.newTree, keys)
		if err != nil {
			return fmt.Errorf("retention in %s: %w", out.ref, err)
		}
		if c == nil {
			continue
		}
		if err := r.measureCut(ctx, c, left); err != nil {
			return err
		}
		data, err := r.env.PruneCommit(ctx, c.root, tip, retentionMessage(c.dropped, c.left))
		if err != nil {
			return err
		}
		c.commit = gitdb.HashObject(commitObject, data)
		if err := w.Put(commitObject, c.commit, data); err != nil {
			return err
		}
		cuts = append(cuts, c)
	}
	if len(cuts) > 0 {
		if err := w.Finish(ctx); err != nil {
			return err
		}
		if err := r.moveCuts(ctx, cuts); err != nil {
			if errors.Is(err, gitdb.ErrRefMoved) {
				return nil // the next serialize finds the entries
			}
			return err
		}
		if err := w.Release(); err != nil {
			return err
		}
		r.res.Retention = retained(cuts)
	}
	return r.endSwept(ctx, keys)
}

// newTip returns the commit that the output's ref is at after the run so far.
func (out *output) newTip() gitdb.Hash {
	if out.commit != zero {
		return out.commit
	}
	return out.tip
}

// shownKeys returns how many keys of this store are in main's tree, from its counters:
// keys that filter rules keep out of it are counted too.
func shownKeys(tx *store.Tx) (int64, error) {
	rows, _, err := tx.Counts()
	if err != nil {
		return 0, err
	}
	hidden, err := tx.CountWithheld(store.Pruned, store.TooBig, store.Unclear, store.Retained)
	if err != nil {
		return 0, err
	}
	local, err := tx.CountWithheld(store.LocalPruned)
	return max(0, rows-hidden+local), err
}

// measureCut measures main's new tree by what differs from the old one, so that the next
// check of the auto-prune rules is as cheap as ever.
func (r *run) measureCut(ctx context.Context, c *cutting, left int64) error {
	c.checked = c.out.checked
	if c.out.dest != meta.MainDestination {
		return nil
	}
	c.left = left
	if r.o.Pruner == nil {
		return nil
	}
	return r.env.DB.View(ctx, func(tx *store.Tx) error {
		exceeded, known, stats, err := r.o.Pruner.Check(ctx, r.env, tx, Measured{Old: c.out.newTree, New: c.root, Delta: c.delta})
		if err != nil {
			return err
		}
		c.stats = stats
		if known {
			c.checked = !exceeded
		}
		if s, ok := stats[c.root.String()]; ok && s.HasKeys {
			c.left = s.Keys
		}
		return nil
	})
}

// moveCuts writes the cursors of the new commits, then moves the refs.
func (r *run) moveCuts(ctx context.Context, cuts []*cutting) error {
	err := r.env.DB.Update(ctx, func(tx *store.Tx) error {
		for _, c := range cuts {
			cur := c.out.base
			if err := tx.TrimCursors(c.out.ref, cur.Commit); err != nil {
				return err
			}
			cur.Commit, cur.PruneChecked = c.commit.String(), c.checked
			if err := tx.PutCursor(cur); err != nil {
				return err
			}
			if err := tx.PutTreeStats(c.stats); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, c := range cuts {
		out := c.out
		if err := r.env.Repo.UpdateRef(ctx, out.ref, c.commit, out.newTip(), fmt.Sprintf("git-meta: retention dropped %d keys", c.dropped)); err != nil {
			return err
		}
		out.commit, out.newTree, out.checked = c.commit, c.root, c.checked
		out.base.Commit, out.base.PruneChecked = c.commit.String(), c.checked
		r.env.logf("wrote %s (retention: %d keys)", out.ref, c.dropped)
	}
	return nil
}

func retained(cuts []*cutting) *Retained {
	res := &Retained{KeysRetained: -1}
	for i, c := range cuts {
		if i == 0 || c.out.dest == meta.MainDestination {
			res.Ref, res.Commit, res.KeysDropped, res.KeysRetained = c.out.ref, hexOf(c.commit), c.dropped, c.left
		}
		res.Refs = append(res.Refs, RefResult{Ref: c.out.ref, Commit: hexOf(c.commit), Changes: int(c.dropped)})
	}
	return res
}

// sweptFor is how long the store is locked at a time while entries are deleted.
const sweptFor = 30 * time.Millisecond

// endSwept deletes the entries of what has left the trees. Those of keys that were edited
// or swept anew meanwhile are others by now, and stay.
func (r *run) endSwept(ctx context.Context, keys []store.SweptKey) error {
	for len(keys) > 0 {
		n := 0
		err := r.env.DB.Update(ctx, func(tx *store.Tx) (err error) {
			n, err = tx.EndSwept(keys, sweptFor)
			return err
		})
		if err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// previewRetention says what a dry run would drop. The serialize commit, which is not
// written, would not have touched those keys.
func (r *run) previewRetention(ctx context.Context) error {
	var keys []store.SweptKey
	left := int64(-1)
	err := r.env.DB.View(ctx, func(tx *store.Tx) (err error) {
		if keys, err = tx.SweptKeys(); err == nil && len(keys) > 0 {
			left, err = shownKeys(tx)
		}
		return err
	})
	if err != nil || len(keys) == 0 {
		return err
	}
	var cuts []*cutting
	for _, out := range r.outs {
		if out.tip == zero {
			continue
		}
		c, err := r.sweptCut(ctx, r.w, out, out.tree, keys)
		if err != nil {
			return fmt.Errorf("retention in %s: %w", out.ref, err)
		}
		if c != nil {
			if out.dest == meta.MainDestination {
				c.left = left
			}
			cuts = append(cuts, c)
		}
	}
	if len(cuts) > 0 {
		r.res.Retention = retained(cuts)
	}
	return nil
}

// endWithheld ends the key's entry, unless it was swept since the row was read: then the
// tree holds what is to leave it.
func endWithheld(tx *store.Tx, k meta.KeyRef) error {
	w, ok, err := tx.Withheld(k)
	if err != nil || !ok {
		return err
	}
	if w.Why == store.Swept {
		if _, has, err := tx.Row(k); err != nil || !has {
			return err
		}
	}
	return tx.DeleteWithheld(k)
}
