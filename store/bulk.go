package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
)

// loadIndexes are the indexes that a large load does without: built at the end they take
// a fraction of the time. What is left, the constraints, finds every row by its key.
var loadIndexes = []string{
	"idx_metadata_target", "idx_metadata_source_ref", "idx_metadata_recency",
	"idx_metadata_log_lookup", "idx_metadata_log_timestamp",
	"idx_list_values_metadata_timestamp", "idx_set_values_metadata",
}

// loadMany is the number of keys from which a load does without loadIndexes.
const loadMany = 10_000

// Load runs load, which puts about n keys into the store in transactions of its own. If
// they are many, and the store holds few, the indexes are built afterwards; a process
// that opens the store meanwhile builds them too, so that none is missing for long where
// this one dies.
func (db *DB) Load(ctx context.Context, n int, load func() error) (err error) {
	if n < loadMany {
		return load()
	}
	few := false
	err = db.View(ctx, func(tx *Tx) error {
		rows, err := tx.c.int64(ctx, "SELECT count(*) FROM metadata_log")
		few = rows < int64(n)/4
		return err
	})
	if err != nil {
		return err
	}
	if !few {
		return load()
	}
	err = db.Update(ctx, func(tx *Tx) error {
		for _, name := range loadIndexes {
			if err := tx.run("DROP INDEX IF EXISTS " + name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer func() {
		if ierr := db.buildIndexes(context.WithoutCancel(ctx)); err == nil {
			err = ierr
		}
	}()
	return load()
}

// buildIndexes creates the indexes that are missing, each in a transaction: others may
// write between.
func (db *DB) buildIndexes(ctx context.Context) error {
	for text := range strings.SplitSeq(indexesSQL, ";") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if err := db.Update(ctx, func(tx *Tx) error { return tx.run(text) }); err != nil {
			return err
		}
	}
	return nil
}

// Loaded is a value to be stored by [Tx.PutNew].
type Loaded struct {
	meta.KeyRef
	Value meta.Value
	Edit
}

// ErrHasRow: a key that was taken for new has a row. The transaction must not be stored.
var ErrHasRow = errors.New("there is a row of this key")

// PutNew stores values as [Tx.Put] does, of keys that have no row: several times as fast,
// above all in ascending order. The error is [ErrHasRow] if one has a row.
func (tx *Tx) PutNew(all []Loaded) error {
	if err := tx.writable(); err != nil {
		return err
	}
	id, err := tx.c.int64(bg, "SELECT coalesce(max(rowid), 0) FROM metadata")
	if err != nil {
		return err
	}
	rows := inserter{tx: tx, into: "metadata(rowid, target_type, target_value, key, value, value_type, last_timestamp)", columns: 7}
	records := inserter{tx: tx, into: logInto, columns: 8}
	entries := inserter{tx: tx, into: "list_values(metadata_id, value, timestamp)", columns: 3}
	members := inserter{tx: tx, into: "set_values(metadata_id, member_id, value, timestamp)", columns: 4}
	for n, l := range all {
		if n%1000 == 0 && tx.ctx.Err() != nil {
			return tx.ctx.Err()
		}
		k, v := l.KeyRef, l.Value
		encoded, logged, err := encodeValue(k, v)
		if err != nil {
			return fmt.Errorf("load %s: %w", k, err)
		}
		id++
		err = rows.add(id, k.Target.Type, k.Target.Value, k.Key, encoded, v.Type, l.Time)
		for _, e := range v.Entries {
			if err == nil {
				err = entries.add(id, e.Value, e.Time)
			}
		}
		for _, m := range v.Members {
			if err == nil {
				err = members.add(id, meta.MemberID(m), m, l.Time)
			}
		}
		if err == nil {
			err = records.add(k.Target.Type, k.Target.Value, k.Key, logged, v.Type, opSet, orUnknown(l.Email), l.Time)
		}
		if err == nil {
			err = tx.dropTombstones(k, meta.KeyTombstone)
		}
		if err == nil {
			err = tx.DeleteWithheld(k)
		}
		if err != nil {
			return err
		}
	}
	for _, i := range []*inserter{&rows, &entries, &members, &records} {
		if err := i.flush(); err != nil {
			return err
		}
	}
	return nil
}

// insertRows is the number of rows in one statement of an inserter.
const insertRows = 20

// inserter inserts rows many at a time: half the time of one at a time.
type inserter struct {
	tx      *Tx
	into    string // table(columns)
	columns int
	args    []any
	text    string
}

func (i *inserter) add(row ...any) error {
	i.args = append(i.args, row...)
	if len(i.args) < insertRows*i.columns {
		return nil
	}
	if i.text == "" {
		i.text = i.insert(insertRows)
	}
	err := i.run(i.text, i.args, insertRows)
	i.args = i.args[:0]
	return err
}

func (i *inserter) run(text string, args []any, rows int64) error {
	n, err := i.tx.changed(text, args...)
	if err == nil && n < rows {
		err = ErrHasRow
	}
	return err
}

// insert returns the statement for some rows. It ignores conflicts, and does not need a
// journal of its own for that; run finds them.
func (i *inserter) insert(rows int) string {
	row := "(?" + strings.Repeat(", ?", i.columns-1) + ")"
	return "INSERT OR IGNORE INTO " + i.into + " VALUES " + row + strings.Repeat(", "+row, rows-1)
}

// flush inserts the rest, row by row: one text, whatever is left.
func (i *inserter) flush() error {
	for ; len(i.args) > 0; i.args = i.args[i.columns:] {
		if err := i.run(i.insert(1), i.args[:i.columns], 1); err != nil {
			return err
		}
	}
	return nil
}
