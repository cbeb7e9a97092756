package serialize

import (
	"context"
	"errors"
	"fmt"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// firstLoad is what a tip holds, ready for a store that holds nothing: most of what
// [reconcile] asks is answered then.
type firstLoad struct {
	tip     gitdb.Hash
	fill    *store.Fill
	tombs   []meta.Tombstone
	publish map[meta.KeyRef]bool // what the filter keeps out of the tree
	odd     map[string]error     // paths of the tip that can't be read
	bad     []string             // warnings about values that can't be taken over
}

// errGeneralWay: [readFirst] can't tell; [reconcile] can.
var errGeneralWay = errors.New("not a plain tree")

// readFirst reads everything that tip holds. It returns nil where the general way has to
// be taken: a tree that is too large, or that spells a key in two ways. It fetches nothing:
// the error is [gitdb.ErrObjectMissing] where something is not here.
func readFirst(ctx context.Context, env *Env, rd *gitdb.Reader, tip gitdb.Hash, fil *meta.Filter) (*firstLoad, error) {
	f := &firstLoad{tip: tip, publish: map[meta.KeyRef]bool{}, odd: map[string]error{}}
	err := f.read(ctx, env, rd, fil)
	if err == nil {
		return f, nil
	}
	f.close()
	if errors.Is(err, errGeneralWay) || errors.Is(err, store.ErrTwice) {
		err = nil
	}
	return nil, err
}

// close removes the file of what was read.
func (f *firstLoad) close() {
	if f != nil && f.fill != nil {
		f.fill.Close()
		f.fill = nil
	}
}

// read fills f.
func (f *firstLoad) read(ctx context.Context, env *Env, rd *gitdb.Reader, fil *meta.Filter) (err error) {
	tree, err := treeOf(ctx, rd, f.tip)
	if err != nil {
		return err
	}
	org, err := readOrigins(ctx, rd, f.tip, tree)
	if err != nil {
		return err
	}
	if f.fill, err = env.DB.NewFill(ctx); err != nil {
		return err
	}
	// every tree is read once
	rd.SetCacheBytes(0)
	defer rd.SetCacheBytes(gitdb.DefaultCacheBytes)
	bar := env.progress()
	bar.Start("Reading keys", 0)
	defer bar.Done()
	last := ""
	err = eachKeys(ctx, rd.Local(), tree, func(some *firstKeys) error {
		bar.Add(len(some.keys))
		for _, o := range some.odd {
			f.odd[o.path] = o.why
		}
		for i := range some.keys {
			k := &some.keys[i]
			if k.path <= last {
				return errGeneralWay // it is not where it belongs, or it is there twice
			}
			last = k.path
			if !fil.Sends(k.Key, meta.MainDestination) {
				f.publish[k.KeyRef] = true // it leaves the tree
			}
			k.org = org.next(k.KeyRef, k.path, k.state.items())
			if f.publish[k.KeyRef] {
				continue
			}
			if err := f.add(ctx, rd, k); err != nil {
				return err
			}
		}
		if f.fill.Full() {
			return errGeneralWay
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !org.fit() {
		return errGeneralWay
	}
	return f.fill.Finish()
}

// add takes over a key and its tombstones.
func (f *firstLoad) add(ctx context.Context, rd *gitdb.Reader, k *firstKey) error {
	if k.bad != nil {
		f.bad = append(f.bad, fmt.Sprintf("%s: %v; left as it is in the tree", k.KeyRef, k.bad))
		return nil
	}
	_, has := k.state.kind()
	if has {
		if err := f.fill.Add(store.Loaded{KeyRef: k.KeyRef, Value: k.value, Edit: store.Edit{Email: k.org.email, Time: k.org.time}}); err != nil {
			return err
		}
	}
	if k.state.tomb == zero && len(k.state.popped)+len(k.state.gone) == 0 {
		return nil
	}
	tombs, err := readTombstones(ctx, rd.Local(), k.KeyRef, k.state, k.org.time, k.org.email)
	if err != nil {
		return fmt.Errorf("read %s: %w", k.KeyRef, err)
	}
	for _, t := range tombs {
		if !has || t.Kind != meta.KeyTombstone {
			f.tombs = append(f.tombs, t)
		}
	}
	return nil
}

// carryOut writes what was read to the store, which must still hold nothing, and returns
// the log position behind it. Nothing has changed if the error is [errStoreMoved], where it
// holds something, or [errGeneralWay].
func (f *firstLoad) carryOut(ctx context.Context, env *Env) (at store.Position, err error) {
	err = env.DB.PutFill(ctx, f.fill, func(tx *store.Tx) error {
		for _, t := range f.tombs {
			if err := tx.PutTombstone(t); err != nil {
				return err
			}
		}
		at, err = tx.LogPosition()
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotEmpty):
		err = errStoreMoved
	case errors.Is(err, store.ErrOtherTables):
		err = errGeneralWay
	case errors.Is(err, store.ErrFull): // the general way needs half of the room
		f.close()
		err = errGeneralWay
	}
	if err != nil {
		return at, err
	}
	env.WarnOdd(f.odd, "left as it is")
	for _, w := range f.bad {
		env.Warnf("%s", w)
	}
	return at, nil
}
