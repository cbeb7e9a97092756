package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNotEmpty: a store that is to be filled holds something.
var ErrNotEmpty = errors.New("the store is not empty")

// ErrOtherTables: the tables of a store are not as this program makes them.
var ErrOtherTables = errors.New("the tables have other columns")

// PutFill stores what f, which is finished, has collected, in one transaction, and calls
// then in it. The error is [ErrNotEmpty] if there is a row of any kind, [ErrOtherTables] if
// the tables are not those of f: nothing is changed then.
func (db *DB) PutFill(ctx context.Context, f *Fill, then func(*Tx) error) error {
	name, err := dsn(f.path, "mode=ro", "immutable=1")
	if err != nil {
		return err
	}
	if err := db.script(ctx, "ATTACH '"+strings.ReplaceAll(name, "'", "''")+"' AS load; PRAGMA load.mmap_size = 1073741824"); err != nil {
		return err
	}
	err = db.withoutLog(ctx, func() error {
		return db.Update(ctx, func(tx *Tx) error {
			if err := tx.fillable(); err != nil {
				return err
			}
			for _, t := range fillTables {
				// in this form, and no other, SQLite copies the entries of the tables and of
				// their indexes as they are
				if err := tx.c.script("INSERT INTO main." + t + " SELECT * FROM load." + t); err != nil {
					return err
				}
			}
			return then(tx)
		})
	})
	return errors.Join(err, db.script(bg, "DETACH load"))
}

// script runs statements outside of a transaction.
func (db *DB) script(ctx context.Context, text string) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.c == nil {
		return errors.New("store is closed")
	}
	return db.wrap(ctx, db.c.script(text))
}

// withoutLog runs f with a rollback journal instead of the write-ahead log, if nobody else
// has the store open. In the log every page of a large transaction is written twice; the
// journal holds only pages that were there before, of an empty store next to none. The
// mode is kept in the file: where this process dies, the next [Open] sets it right.
func (db *DB) withoutLog(ctx context.Context, f func() error) error {
	db.journal("DELETE")
	// with a journal NORMAL would be a little less safe than with the log
	err := db.script(ctx, "PRAGMA synchronous = FULL")
	if err == nil {
		err = f()
	}
	db.journal("WAL")
	if db.o.Bulk {
		err = errors.Join(err, db.script(bg, "PRAGMA synchronous = NORMAL"))
	}
	return err
}

// journal changes the journal mode, or does nothing if another connection is in the way.
func (db *DB) journal(mode string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.c != nil {
		db.c.journal(mode)
	}
}

// journal is [DB.journal].
func (c *conn) journal(mode string) {
	c.script("PRAGMA busy_timeout = 0")
	c.script("PRAGMA main.journal_mode = " + mode)
	c.script(fmt.Sprintf("PRAGMA busy_timeout = %d", busyTimeout.Milliseconds()))
}

var fillTables = []string{"metadata", "list_values", "set_values", "metadata_log"}

// Empty reports whether the store holds no key and nothing that remembers one.
func (tx *Tx) Empty() (bool, error) {
	for _, t := range slices.Concat(fillTables, []string{"tombstones", "x_withheld"}) {
		if have, err := tx.has(t); err != nil {
			return false, err
		} else if !have {
			continue
		}
		n, err := tx.c.int64(bg, "SELECT EXISTS (SELECT 1 FROM "+t+")")
		if err != nil || n != 0 {
			return false, err
		}
	}
	return true, nil
}

// fillable returns nil if the store is empty, and its tables have the columns that a Fill
// writes.
func (tx *Tx) fillable() error {
	if empty, err := tx.Empty(); err != nil || !empty {
		return cmp.Or(err, ErrNotEmpty)
	}
	columns := func(schema string) (out string, err error) {
		_, err = tx.c.one(bg, "SELECT group_concat(t.value || c.cid || c.name || c.type, ' ') FROM json_each(?) t, pragma_table_info(t.value, ?) c",
			[]any{`["` + strings.Join(fillTables, `","`) + `"]`, schema}, func(r *rows) { out = r.str(0) })
		return out, err
	}
	have, err := columns("main")
	if err != nil {
		return err
	}
	want, err := columns("load")
	if err == nil && have != want {
		err = ErrOtherTables
	}
	return err
}
