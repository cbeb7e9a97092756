package store

import (
	"context"
	"errors"
	"time"

	"github.com/git-meta/git-meta-go/meta"
)

// Tx is a transaction on a store: one consistent snapshot, with the changes made in
// it. It is valid until the function it was given to returns, and for one goroutine.
// Rows must not be changed inside an iteration over them.
type Tx struct {
	db    *DB
	c     *conn
	ctx   context.Context
	write bool
	now   int64 // ms; one clock reading for the transaction, 0: not read yet

	lastMaterialized   int64 // valid if lastMaterializedOK
	lastMaterializedOK bool
	// Known to be empty: spares a statement for each of many loaded keys.
	noTombstones, noWithheld, emptiesKnown bool
	// The collections that x_created is kept for, valid if collectionsKnown.
	collections      meta.Namespaces
	collectionsKnown bool
}

// bg is for short statements: they are not worth a goroutine that watches a context.
var bg = context.Background()

// View runs f in a read transaction: all it sees is one state of the store.
func (db *DB) View(ctx context.Context, f func(*Tx) error) error {
	return db.run(ctx, "BEGIN", false, f)
}

// Update runs f in a write transaction, waiting for another writer for some seconds.
// The changes are stored if f returns nil, else nothing is changed.
func (db *DB) Update(ctx context.Context, f func(*Tx) error) error {
	if db.readOnly {
		return &FileError{Path: db.path, Err: ErrReadOnly, Hint: hintReadOnly}
	}
	return db.run(ctx, "BEGIN IMMEDIATE", true, f)
}

func (db *DB) run(ctx context.Context, begin string, write bool, f func(*Tx) error) (err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.c == nil {
		return errors.New("store is closed")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := db.c.exec(ctx, begin); err != nil {
		return db.wrap(ctx, err)
	}
	done := false
	defer func() {
		if !done { // f failed or panicked; SQLite may have rolled back by itself
			db.c.exec(bg, "ROLLBACK")
		}
	}()
	if err := f(&Tx{db: db, c: db.c, ctx: ctx, write: write}); err != nil {
		return db.wrap(ctx, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := db.c.exec(bg, "COMMIT"); err != nil {
		return db.wrap(ctx, err)
	}
	done = true
	return nil
}

// clock returns the transaction's time in ms.
func (tx *Tx) clock() int64 {
	if tx.now == 0 {
		now := tx.db.o.Now
		if now == nil {
			now = time.Now
		}
		tx.now = now().UnixMilli()
	}
	return tx.now
}

// writable must be the first call of each mutation.
func (tx *Tx) writable() error {
	if !tx.write {
		return &FileError{Path: tx.db.path, Err: ErrReadOnly, Hint: hintReadOnly}
	}
	return tx.ctx.Err()
}

// has reports whether a table exists that not every store has.
func (tx *Tx) has(table string) (bool, error) {
	if tx.db.tables[table] {
		return true, nil
	}
	have, err := tx.c.tables([]string{table})
	if err != nil {
		return false, err
	}
	if have[table] {
		tx.db.tables[table] = true
	}
	return have[table], nil
}

// ownWritable is writable for the tables of [DB.UpdateOwn].
func (tx *Tx) ownWritable() error {
	if tx.db.scratch {
		return tx.ctx.Err()
	}
	return tx.writable()
}

// run executes a short statement.
func (tx *Tx) run(text string, args ...any) error {
	_, err := tx.c.exec(bg, text, args...)
	return err
}

// changed executes a short statement and returns how many rows it changed.
func (tx *Tx) changed(text string, args ...any) (int64, error) {
	res, err := tx.c.exec(bg, text, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// LastMaterialized returns the peer's synchronisation mark in ms; ok is false where it
// has never been set.
func (tx *Tx) LastMaterialized() (ms int64, ok bool, err error) {
	_, err = tx.c.one(bg, "SELECT last_materialized FROM sync_state WHERE id = 1", nil, func(r *rows) {
		ms, ok = r.num(0), !r.null(0)
	})
	return ms, ok, err
}

// SetLastMaterialized sets the peer's synchronisation mark.
func (tx *Tx) SetLastMaterialized(ms int64) error {
	if err := tx.writable(); err != nil {
		return err
	}
	tx.lastMaterializedOK = false
	return tx.run("INSERT INTO sync_state(id, last_materialized) VALUES (1, ?) ON CONFLICT(id) DO UPDATE SET last_materialized = excluded.last_materialized", ms)
}

// Counts returns how many keys have a value and how many tombstones there are.
func (tx *Tx) Counts() (keys, tombstones int64, err error) {
	// A promised row has the time 0, so that the recency index finds them all.
	keys, err = tx.c.int64(tx.ctx, "SELECT (SELECT count(*) FROM metadata) - (SELECT count(*) FROM metadata WHERE last_timestamp = 0 AND is_promised <> 0)")
	if err != nil {
		return 0, 0, err
	}
	tombstones, err = tx.c.int64(tx.ctx, "SELECT count(*) FROM tombstones")
	return keys, tombstones, err
}

// ReadOnly reports whether the store is open for reading.
func (tx *Tx) ReadOnly() bool { return tx.db.readOnly }
