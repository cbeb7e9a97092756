package serialize

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

func isNotFound(err error) bool { return errors.Is(err, meta.ErrNotFound) }

// loadBatch is the number of keys written in one transaction: others may write between.
const loadBatch = 5000

// loaded is a key with its blobs read.
type loaded struct {
	loadKey
	value  meta.Value
	ok     bool // has a value
	tombs  []meta.Tombstone
	quiet  bool // what it loads is no change: no log record
	judged bool // nobody has written since: the row is as it was judged
}

// carryOut writes a verdict to the store, in batches. It returns the log position that
// leaves its own records behind, and adds to v.publish the keys that others wrote
// meanwhile.
func carryOut(ctx context.Context, env *Env, rd *gitdb.Reader, v *verdict) (store.Position, error) {
	env.WarnOdd(v.odd, "left as it is")
	if v.lost > 0 {
		env.Warnf("%d keys had vanished from the published tree without a removal; they are published again", v.lost)
	}
	at := v.at
	todo := v.load
	if len(v.remove) > 0 {
		todo = slices.Concat(v.load, v.remove)
	}
	removed := map[meta.KeyRef]bool{}
	for _, r := range v.remove {
		removed[r.KeyRef] = true
	}
	bar := env.progress()
	if len(todo) > 1000 {
		bar.Start("Loading keys", len(todo))
		defer bar.Done()
	}
	err := env.DB.Load(ctx, len(todo), func() error {
		return ahead(ctx, slices.Chunk(todo, loadBatch), func(ctx context.Context, batch []loadKey) ([]loaded, error) {
			return readBatch(ctx, env, rd, v, batch)
		}, func(keys []loaded) error {
			bar.Add(len(keys))
			write := func(fresh bool) error {
				return env.DB.Update(ctx, func(tx *store.Tx) (err error) {
					if at, err = v.catchUp(tx, at); err != nil {
						return err
					}
					if err := writeBatch(tx, keys, v.overtaken, fresh, removed); err != nil {
						return err
					}
					at, err = tx.LogPosition()
					return err
				})
			}
			err := write(true)
			if errors.Is(err, store.ErrHasRow) { // of a side remote, or promised
				err = write(false)
			}
			return err
		})
	})
	if err != nil {
		return at, err
	}
	if len(v.prune)+len(v.unclear)+len(v.retained)+len(v.back) == 0 {
		return at, nil
	}
	err = env.DB.Update(ctx, func(tx *store.Tx) (err error) {
		if at, err = v.catchUp(tx, at); err != nil {
			return err
		}
		for i, k := range slices.Concat(v.unclear, v.retained) {
			why := store.Unclear
			if i >= len(v.unclear) {
				why = store.Retained
			}
			row, ok, err := tx.Row(k)
			if err == nil && ok {
				err = tx.PutWithheld(store.Withheld{KeyRef: k, EditTime: row.Time, Why: why})
			}
			if err != nil {
				return err
			}
		}
		for _, k := range v.back {
			if err := endWithheld(tx, k); err != nil {
				return err
			}
		}
		return tx.WithholdPruned(v.prune)
	})
	return at, err
}

// writeBatch writes keys to the store, many at a time where they are all new to it.
func writeBatch(tx *store.Tx, keys []loaded, overtaken, fresh bool, removed map[meta.KeyRef]bool) error {
	fresh = fresh && !overtaken
	for i := range keys {
		keys[i].judged = !overtaken
		fresh = fresh && keys[i].rowTime < 0 && keys[i].ok && len(keys[i].tombs) == 0
	}
	if fresh {
		all := make([]store.Loaded, len(keys))
		for i, l := range keys {
			all[i] = store.Loaded{KeyRef: l.KeyRef, Value: l.value, Edit: store.Edit{Email: l.org.email, Time: l.org.time}}
		}
		return tx.PutNew(all)
	}
	for i := range keys {
		if err := keys[i].write(tx, removed[keys[i].KeyRef]); err != nil {
			return fmt.Errorf("load %s: %w", keys[i].KeyRef, err)
		}
	}
	return nil
}

// ahead reads each of from and hands it to write, one after the other; the next is read
// while one is written.
func ahead[A, B any](ctx context.Context, from iter.Seq[A], read func(context.Context, A) (B, error), write func(B) error) error {
	g, gctx := errgroup.WithContext(ctx)
	batches := make(chan B)
	g.Go(func() error {
		defer close(batches)
		for a := range from {
			b, err := read(gctx, a)
			if err != nil {
				return err
			}
			select {
			case batches <- b:
			case <-gctx.Done():
				return gctx.Err()
			}
		}
		return nil
	})
	g.Go(func() error {
		for b := range batches {
			if err := write(b); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}

// catchUp notes what others wrote since at and returns the position behind it.
func (v *verdict) catchUp(tx *store.Tx, at store.Position) (store.Position, error) {
	now, err := tx.LogPosition()
	if err != nil || now == at {
		return at, err
	}
	v.overtaken = true
	changes, err := tx.ChangesSince(at)
	for _, c := range changes {
		v.publish[c.KeyRef] = true
	}
	return now, err
}

func readBatch(ctx context.Context, env *Env, rd *gitdb.Reader, v *verdict, batch []loadKey) ([]loaded, error) {
	out := make([]loaded, 0, len(batch))
	for _, k := range batch {
		l := loaded{loadKey: k}
		if !l.org.known {
			l.org = origin{email: "unknown"}
		}
		if k.state != nil {
			var err error
			l.value, err = readValue(ctx, rd, k.state)
			switch {
			case err == nil:
				l.ok = true
			case isNotFound(err):
			case errors.Is(err, gitdb.ErrObjectMissing) || ctx.Err() != nil:
				return nil, fmt.Errorf("read %s: %w", k.KeyRef, err)
			default:
				env.Warnf("%s: %v; left as it is in the tree", k.KeyRef, err)
				continue
			}
			if l.tombs, err = readTombstones(ctx, rd, k.KeyRef, k.state, l.org.time, l.org.email); err != nil {
				return nil, fmt.Errorf("read %s: %w", k.KeyRef, err)
			}
		}
		out = append(out, l)
	}
	return out, nil
}

// write puts one key into the store, unless somebody edited it since it was judged.
func (l *loaded) write(tx *store.Tx, removed bool) error {
	ok := l.rowTime >= 0
	if !l.judged {
		row, found, err := tx.Row(l.KeyRef)
		if err != nil {
			return err
		}
		if now := rowTime(row, found); now != l.rowTime {
			return nil
		}
		ok = found
	}
	if l.ok {
		if err := tx.Put(l.KeyRef, l.value, store.Edit{Email: l.org.email, Time: l.org.time}, store.PutOptions{NoLog: l.quiet}); err != nil {
			return err
		}
	} else if removed && ok {
		if err := tx.DropRow(l.KeyRef, store.Edit{Email: l.org.email, Time: l.org.time}); err != nil {
			return err
		}
	}
	for _, t := range l.tombs {
		if l.ok && t.Kind == meta.KeyTombstone {
			continue
		}
		if err := tx.PutTombstone(t); err != nil {
			return err
		}
	}
	return tx.DeleteWithheld(l.KeyRef)
}

// rowTime is what a loadKey remembers of a row; promised rows and rows of side remotes
// are no rows.
func rowTime(r store.Row, ok bool) int64 {
	if !ok || r.Promised || r.SourceRef != "" {
		return -1
	}
	return r.Time
}

// LoadForEdit loads the last published value of a key that is not in this store, so that
// an edit of a list or set starts from it (design §4): one that was pruned from this
// store only, or one that is known from the history of the tracking ref alone. For other
// keys it does nothing.
func LoadForEdit(ctx context.Context, env *Env, k meta.KeyRef) error {
	need, promised := false, false
	err := env.DB.View(ctx, func(tx *store.Tx) error {
		w, load, err := tx.EditStarts(k)
		if err != nil || !load {
			return err
		}
		row, have, err := tx.Row(k)
		promised = have && row.Promised && w.Why != store.LocalPruned
		need = !promised
		return err
	})
	switch {
	case err != nil:
		return err
	case promised:
		tip, err := env.tip(ctx, env.TrackingRef())
		if err == nil {
			_, err = LoadPromised(ctx, env, tip, []meta.KeyRef{k})
		}
		return err
	case !need:
		return nil
	}
	l, err := lastPublished(ctx, env, k)
	if err != nil {
		return fmt.Errorf("load the published value of %s: %w", k, err)
	}
	if l == nil {
		return nil
	}
	l.quiet = true // the tip holds it
	return env.DB.Update(ctx, func(tx *store.Tx) error { return l.write(tx, false) })
}

// lastPublished reads k from the tip of main, or from the newest commit before it that
// held it and was not followed by a removal; nil if there is none.
func lastPublished(ctx context.Context, env *Env, k meta.KeyRef) (*loaded, error) {
	rd, err := env.Repo.Objects(ctx)
	if err != nil {
		return nil, err
	}
	tip, err := env.tip(ctx, env.LocalRef(meta.MainDestination))
	if err != nil || tip == zero {
		return nil, err
	}
	var found *loaded
	err = history(ctx, rd, tip, zero, func(s step) (bool, error) {
		look := lookup{ctx: ctx, rd: rd, root: s.commit.Tree}
		state, err := readKey(&look, k)
		if err != nil {
			return false, err
		}
		if state != nil && state.tomb != zero {
			return false, nil
		}
		value, err := readValue(ctx, rd, state)
		if isNotFound(err) {
			if isRetentionCommit(s.commit.Message) {
				before := lookup{ctx: ctx, rd: rd, root: s.before}
				had, err := before.holds(k)
				return !had, err
			}
			return !slices.Contains(removals(s.commit.Message), k), nil
		}
		if err != nil {
			return false, err
		}
		org, err := origins(ctx, rd, s.id, map[meta.KeyRef]bool{k: true})
		if err != nil {
			return false, err
		}
		found = &loaded{loadKey: loadKey{k, state, -1, org[k]}, value: value, ok: true}
		found.tombs, err = readTombstones(ctx, rd, k, state, org[k].time, org[k].email)
		return false, err
	})
	return found, err
}
