package prune

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
)

// LocalOptions says what to prune from the store.
type LocalOptions struct {
	Since    string // window; empty: meta:prune:since
	SkipDate bool   // every key, whatever its age; only with Force
	DryRun   bool
	Force    bool // also rows whose value is published nowhere
}

// LocalResult is what a local prune did, or in a dry run would do.
type LocalResult struct {
	Since, SinceFrom string
	Cutoff           time.Time // zero with SkipDate
	Keys, Remaining  int64     // droppable keys that go and that stay
	Tombstones       int64     // always 0: tombstones stay
	LogRecords       int64     // of the keys that go
	Dropped          []meta.KeyRef
	Unpublished      []meta.KeyRef // old, but the only copy: kept, or with Force dropped
}

// Local deletes rows from the store that were not edited since a date and whose value is
// published. It writes no tombstone and touches no ref: the published tree keeps the keys,
// and an edit starts from what is published. Project rows stay. env.DB may be nil: then there
// is no store, and nothing to prune.
func Local(ctx context.Context, env *serialize.Env, o LocalOptions) (*LocalResult, error) {
	res := &LocalResult{}
	if o.SkipDate && !o.Force {
		return nil, meta.Invalid("--skip-date", "every key of this store would go, whatever its age", "add --force if that is what you want")
	}
	if env.DB == nil {
		if o.SkipDate {
			return res, nil
		}
		w, err := readWindow(nil, o.Since, env.Clock(), o.Force)
		res.Since, res.SinceFrom, res.Cutoff = w.text, w.from, w.cutoff
		return res, err
	}
	rd, err := env.Repo.Objects(ctx)
	if err != nil {
		return nil, err
	}
	var at store.Position
	times, only := map[meta.KeyRef]int64{}, map[meta.KeyRef]bool{}
	err = env.DB.View(ctx, func(tx *store.Tx) error {
		cutoff := int64(0)
		if !o.SkipDate {
			w, err := readWindow(tx, o.Since, env.Clock(), o.Force)
			if err != nil {
				return err
			}
			res.Since, res.SinceFrom, res.Cutoff, cutoff = w.text, w.from, w.cutoff, w.cutoff.UnixMilli()
		}
		var old []store.Row
		for row, err := range tx.Rows(store.Query{Publishable: true}) {
			if err != nil {
				return err
			}
			switch {
			case row.Target.Type == meta.Project:
			case o.SkipDate || row.Time < cutoff:
				old = append(old, row)
			default:
				res.Remaining++
			}
		}
		published, pos, err := env.Published(ctx, rd, tx, old)
		if err != nil {
			return err
		}
		at = pos
		for _, row := range old {
			if !published[row.KeyRef] {
				res.Unpublished = append(res.Unpublished, row.KeyRef)
				if !o.Force {
					res.Remaining++
					continue
				}
				only[row.KeyRef] = true
			}
			res.Dropped = append(res.Dropped, row.KeyRef)
			times[row.KeyRef] = row.Time
		}
		res.LogRecords, err = countLog(tx, res.Dropped, only, at)
		return err
	})
	if err != nil {
		return nil, err
	}
	res.Keys = int64(len(res.Dropped))
	if o.DryRun || len(res.Dropped) == 0 {
		return res, nil
	}
	err = env.DB.Update(ctx, func(tx *store.Tx) error {
		// a row that somebody edited meanwhile is no longer old
		var published, rest []meta.KeyRef
		for _, k := range res.Dropped {
			row, ok, err := tx.Row(k)
			switch {
			case err != nil:
				return err
			case !ok || row.Time != times[k]:
			case only[k]:
				rest = append(rest, k)
			default:
				published = append(published, k)
			}
		}
		res.Dropped = append(slices.Clone(published), rest...)
		res.Keys = int64(len(res.Dropped))
		var err error
		if res.LogRecords, err = countLog(tx, res.Dropped, only, at); err != nil {
			return err
		}
		if _, err := tx.LocalPrune(published, store.LocalPruneOptions{UpTo: at.RowID}); err != nil {
			return err
		}
		_, err = tx.LocalPrune(rest, store.LocalPruneOptions{Unpublished: true})
		return err
	})
	return res, err
}

// countLog counts the log records that go with keys: of published ones up to the cursor,
// of those in only all.
func countLog(tx *store.Tx, keys []meta.KeyRef, only map[meta.KeyRef]bool, at store.Position) (n int64, err error) {
	for _, k := range keys {
		upTo := at.RowID
		if only[k] {
			upTo = math.MaxInt64
		}
		m, err := tx.CountLog(k, upTo)
		if err != nil {
			return 0, err
		}
		n += m
	}
	return n, nil
}
