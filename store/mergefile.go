package store

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/git-meta/git-meta-go/meta"
)

// MergeFile takes over what the store at path holds, in one transaction: for each key
// the newer of the two, by the time of its row or tombstone; ours if they are equal. It
// is for the store that the peer keeps in a linked worktree; the caller renames the
// file afterwards. keys is the number of keys taken over. Values that cannot be read
// are left out and named in err; what else there is has then been merged all the same
// (keys ≥ 0). If nothing has been merged keys is -1.
func MergeFile(ctx context.Context, db *DB, path string) (keys int, err error) {
	if a, err := os.Stat(path); err == nil {
		if b, err := os.Stat(db.path); err == nil && os.SameFile(a, b) {
			return -1, fmt.Errorf("merge %s: it is the store itself", path)
		}
	}
	from, err := OpenRead(ctx, path, db.o)
	if err != nil {
		return -1, err
	}
	defer from.Close()
	m := merge{won: map[meta.KeyRef]bool{}}
	err = from.View(ctx, func(src *Tx) error {
		return db.Update(ctx, func(dst *Tx) error {
			m.src, m.dst = src, dst
			if err := m.rows(); err != nil {
				return err
			}
			return m.tombstones()
		})
	})
	if err != nil {
		return -1, err
	}
	return len(m.won), errors.Join(m.skipped...)
}

type merge struct {
	src, dst *Tx
	won      map[meta.KeyRef]bool // keys whose state now is that of src
	skipped  []error
}

// timeOf returns when the key last changed in dst, -1 if it never was there.
func (m *merge) timeOf(k meta.KeyRef) (int64, error) {
	t := int64(-1)
	row, ok, err := m.dst.Row(k)
	if err != nil {
		return 0, err
	}
	if ok && !row.Promised {
		t = row.Time
	}
	ms, err := m.dst.tombstoneTime(meta.KeyTombstone, k, "")
	if err != nil {
		return 0, err
	}
	if ms != 0 {
		t = max(t, ms)
	}
	if w, ok, err := m.dst.Withheld(k); err != nil {
		return 0, err
	} else if ok {
		t = max(t, w.EditTime)
	}
	return t, nil
}

func (m *merge) rows() error {
	for row, err := range m.src.Rows(Query{}) {
		if err != nil {
			return err
		}
		have, err := m.timeOf(row.KeyRef)
		if err != nil {
			return err
		}
		if row.Time <= have {
			continue
		}
		rec, err := m.src.Get(row.KeyRef)
		if err != nil {
			m.skipped = append(m.skipped, err)
			continue
		}
		email, _, err := m.src.Author(row.KeyRef)
		if err != nil {
			return err
		}
		err = m.dst.Put(row.KeyRef, rec.Value, Edit{Email: email, Time: row.Time}, PutOptions{SourceRef: row.SourceRef})
		if errors.Is(err, meta.ErrInvalid) {
			m.skipped = append(m.skipped, err)
			continue
		}
		if err != nil {
			return err
		}
		m.won[row.KeyRef] = true
	}
	return nil
}

func (m *merge) tombstones() error {
	for t, err := range m.src.AllTombstones() {
		if err != nil {
			return err
		}
		row, ok, err := m.src.Row(t.KeyRef)
		if err != nil {
			return err
		}
		switch {
		case checkStorable(t.KeyRef, t.Name, t.Member) != nil:
			continue
		case t.Kind == meta.KeyTombstone:
			if ok && !row.Promised {
				continue // a value beside its tombstone counts
			}
			have, err := m.timeOf(t.KeyRef)
			if err != nil {
				return err
			}
			if t.Time <= have {
				continue
			}
			if err := m.dst.DeleteRow(t.KeyRef); err != nil {
				return err
			}
			if err := m.dst.DeleteWithheld(t.KeyRef); err != nil {
				return err
			}
			if err := m.dst.log(t.KeyRef, opRemove, "", "", t.Email, t.Time); err != nil {
				return err
			}
			m.won[t.KeyRef] = true
		case !m.won[t.KeyRef]:
			have, err := m.timeOf(t.KeyRef)
			if err != nil {
				return err
			}
			if have >= 0 {
				continue
			}
		}
		if err := m.dst.putTombstone(t); err != nil {
			return err
		}
	}
	return nil
}
