package serialize

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Promised is what became of promised keys.
type Promised struct {
	Loaded  []meta.KeyRef // they have a value now
	Removed []meta.KeyRef // the history says that they were removed; the rows went
	Unknown []meta.KeyRef // the history that is here does not hold them; the rows stay
}

// LoadPromised gives promised keys the last value that the history of tip, a commit of
// the tracking ref, has for them, with its time and author. Keys without a promised row
// are left alone. What the tree of the local ref does not hold is withheld from it, as
// after a prune: readable here, and published again only when it is edited.
//
// Missing blobs are fetched by [Env.Fetch], all at once.
func LoadPromised(ctx context.Context, env *Env, tip gitdb.Hash, keys []meta.KeyRef) (*Promised, error) {
	rows, err := promisedRows(ctx, env, keys)
	if err != nil || len(rows) == 0 {
		return &Promised{}, err
	}
	rd, err := env.Repo.Objects(ctx)
	if err != nil {
		return nil, err
	}
	found, err := locate(ctx, rd, tip, slices.SortedFunc(maps.Keys(rows), meta.KeyRef.Compare))
	if err != nil {
		return nil, err
	}
	if err := locateElsewhere(ctx, rd, rows, found); err != nil {
		return nil, err
	}
	if err := fetchMissing(ctx, env, rd, found); err != nil {
		return nil, err
	}
	p := &Promised{}
	for batch := range slices.Chunk(found, loadBatch) {
		if err := p.store(ctx, env, rd, batch); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// promisedRows returns the promised rows among keys. Those with a tombstone here were
// removed.
func promisedRows(ctx context.Context, env *Env, keys []meta.KeyRef) (map[meta.KeyRef]store.Row, error) {
	rows := map[meta.KeyRef]store.Row{}
	return rows, env.DB.View(ctx, func(tx *store.Tx) error {
		for _, k := range keys {
			row, ok, err := tx.Row(k)
			if err != nil {
				return err
			}
			if ok && row.Promised {
				rows[k] = row
			}
		}
		return nil
	})
}

// locateElsewhere looks for what the history of the tracking ref does not know in the
// commits that the rows name.
func locateElsewhere(ctx context.Context, rd *gitdb.Reader, rows map[meta.KeyRef]store.Row, found []*located) error {
	open := map[gitdb.Hash][]*located{}
	for _, f := range found {
		id, ok := gitdb.ParseHash(rows[f.KeyRef].PromisedCommit)
		if f.fate == fateUnknown && ok && rd.Has(ctx, id) {
			open[id] = append(open[id], f)
		}
	}
	for id, fs := range open {
		keys := make([]meta.KeyRef, len(fs))
		for i, f := range fs {
			keys[i] = f.KeyRef
		}
		there, err := locate(ctx, rd, id, keys)
		if err != nil {
			return err
		}
		for i, f := range fs {
			*f = *there[i]
		}
	}
	return nil
}

// fetchMissing fetches the blobs of the values found that are not here.
func fetchMissing(ctx context.Context, env *Env, rd *gitdb.Reader, found []*located) error {
	if env.Fetch == nil {
		return nil
	}
	seen := map[gitdb.Hash]bool{}
	var want []gitdb.Hash
	need := func(ids ...gitdb.Hash) {
		for _, id := range ids {
			if id != zero && !seen[id] && !rd.Has(ctx, id) {
				want = append(want, id)
			}
			seen[id] = true
		}
	}
	for _, f := range found {
		if f.fate != fateHeld {
			continue
		}
		need(f.state.value)
		for _, m := range []map[string]gitdb.Hash{f.state.entries, f.state.members, f.state.gone, f.state.popped} {
			need(slices.Collect(maps.Values(m))...)
		}
	}
	if len(want) == 0 {
		return nil
	}
	return env.Fetch(ctx, want)
}

// store writes what was found of some keys.
func (p *Promised) store(ctx context.Context, env *Env, rd *gitdb.Reader, found []*located) error {
	local, err := env.tip(ctx, env.LocalRef(meta.MainDestination))
	if err != nil {
		return err
	}
	tree, err := treeOf(ctx, rd, local)
	if err != nil {
		return err
	}
	look := lookup{ctx: ctx, rd: rd, root: tree}
	values := make([]*loaded, len(found))
	shown := make([]bool, len(found))
	for i, f := range found {
		if f.fate != fateHeld {
			continue
		}
		l := &loaded{loadKey: loadKey{KeyRef: f.KeyRef, state: f.state, org: f.org}}
		if l.value, err = readValue(ctx, rd, f.state); err != nil {
			if ctx.Err() != nil || errors.Is(err, gitdb.ErrObjectMissing) {
				return fmt.Errorf("read %s: %w", f.KeyRef, err)
			}
			env.Warnf("%s: %v; not taken over", f.KeyRef, err)
			continue
		}
		if l.tombs, err = readTombstones(ctx, rd, f.KeyRef, f.state, f.org.time, f.org.email); err != nil {
			return fmt.Errorf("read %s: %w", f.KeyRef, err)
		}
		s, err := readKey(&look, f.KeyRef)
		if err != nil {
			return err
		}
		_, shown[i] = s.kind()
		values[i] = l
	}
	return env.DB.Update(ctx, func(tx *store.Tx) error {
		for i, f := range found {
			if err := p.one(tx, f, values[i], shown[i]); err != nil {
				return fmt.Errorf("load %s: %w", f.KeyRef, err)
			}
		}
		return nil
	})
}

// one writes what was found of one key; l is its value, if it has one, and shown says
// whether the published tree holds it.
func (p *Promised) one(tx *store.Tx, f *located, l *loaded, shown bool) error {
	gone, err := removedIn(tx, f.KeyRef)
	if err != nil {
		return err
	}
	switch {
	case f.fate == fateRemoved || gone:
		p.Removed = append(p.Removed, f.KeyRef)
		_, err := tx.DropPromised(f.KeyRef)
		return err
	case l == nil:
		p.Unknown = append(p.Unknown, f.KeyRef)
		return nil
	}
	put, err := tx.PutFromHistory(f.KeyRef, l.value, store.Edit{Email: l.org.email, Time: l.org.time})
	if err != nil || !put {
		return err // somebody was faster
	}
	p.Loaded = append(p.Loaded, f.KeyRef)
	for _, t := range l.tombs {
		if t.Kind != meta.KeyTombstone {
			if err := tx.PutTombstone(t); err != nil {
				return err
			}
		}
	}
	if shown {
		return nil
	}
	return tx.PutWithheld(store.Withheld{KeyRef: f.KeyRef, EditTime: l.org.time, Why: store.Pruned})
}

// removedIn reports whether the store holds a tombstone of the key.
func removedIn(tx *store.Tx, k meta.KeyRef) (bool, error) {
	ts, err := tx.Tombstones(k)
	return slices.ContainsFunc(ts, func(t meta.Tombstone) bool { return t.Kind == meta.KeyTombstone }), err
}
