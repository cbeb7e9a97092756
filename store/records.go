package store

import (
	"fmt"
	"iter"
	"slices"

	"github.com/git-meta/git-meta-go/meta"
)

// Get returns the key's value; [meta.ErrNotFound] if it has none here (a promised row
// has none).
func (tx *Tx) Get(k meta.KeyRef) (Record, error) {
	var rec Record
	var value string
	ok, err := tx.c.one(bg, "SELECT "+rowColumns+", m.value FROM metadata m WHERE 1"+keyCond, keyArgs(k), func(r *rows) {
		rec.Row, value = r.row(), r.str(nRow)
	})
	switch {
	case err != nil:
		return Record{}, tx.db.wrap(tx.ctx, err)
	case !ok || rec.Promised:
		return Record{}, keyNotFound(k)
	}
	rec.Value.Type = rec.Type
	switch rec.Type {
	case meta.List:
		rec.Value.Entries, err = tx.entries(rec.Row)
	case meta.Set:
		rec.Value.Members, err = tx.members(rec.ID)
	default:
		rec.Value.String, err = tx.stringValue(rec.Row, value)
	}
	return rec, tx.db.wrap(tx.ctx, err)
}

// stringValue turns the value column of a string row into the string.
func (tx *Tx) stringValue(row Row, value string) (string, error) {
	if row.GitRef {
		return tx.db.blob(row.KeyRef, value)
	}
	return decodeString(value), nil
}

// blob reads a value that the peer has moved to a git blob.
func (db *DB) blob(k meta.KeyRef, oid string) (string, error) {
	op := fmt.Sprintf("key %q", k.Key)
	if db.o.Blob == nil {
		return "", &meta.Error{Op: op, Err: fmt.Errorf("its value is in git blob %s, which cannot be read here", oid)}
	}
	b, err := db.o.Blob(oid)
	if err != nil {
		return "", &meta.Error{
			Op: op, Err: fmt.Errorf("read its value from git blob %s: %w", oid, err),
			Hint: "if the blob is lost: git meta rm " + shellWord(k.Target.String()) + " " + shellWord(k.Key),
		}
	}
	return string(b), nil
}

const (
	entriesSQL = "SELECT value, timestamp, is_git_ref FROM list_values WHERE metadata_id = ? ORDER BY timestamp, rowid"
	membersSQL = "SELECT value FROM set_values WHERE metadata_id = ?"
)

func (tx *Tx) entries(row Row) ([]meta.Entry, error) {
	r, err := tx.c.query(tx.ctx, entriesSQL, row.ID)
	if err != nil {
		return nil, err
	}
	defer r.close()
	var out []meta.Entry
	for {
		ok, err := r.next()
		if !ok || err != nil {
			return out, err
		}
		e, err := tx.entry(row.KeyRef, r, 0)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
}

// entry reads value, timestamp and is_git_ref from column i on.
func (tx *Tx) entry(k meta.KeyRef, r *rows, i int) (e meta.Entry, err error) {
	e = meta.Entry{Value: r.str(i), Time: r.num(i + 1)}
	if r.num(i+2) != 0 {
		e.Value, err = tx.db.blob(k, e.Value)
	}
	return e, err
}

func (tx *Tx) members(id int64) ([]string, error) {
	out, err := collect(tx, membersSQL, []any{id}, func(r *rows) string { return r.str(0) })
	slices.Sort(out)
	return out, err
}

// Records yields the keys that q chooses with their values, ordered by target type,
// target value, key, byte by byte. Values are streamed: three ordered cursors are
// merged. It ends after the first error; an unreadable git blob is such an error.
func (tx *Tx) Records(q Query) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for _, s := range q.spans() {
			if !tx.records(q, s, yield) {
				return
			}
		}
	}
}

// maxPreview is the length from which a string to be cut is not looked into at all:
// SQLite would load the whole of it.
const maxPreview = 1 << 20

func (tx *Tx) records(q Query, s span, yield func(Record, error) bool) bool {
	value, args, limit := "m.value, 0", s.args, 0
	if q.NoLarge > 0 {
		// A byte of the string takes at most six in JSON. octet_length does not load
		// the value.
		limit = 6*q.NoLarge + 2
		value = fmt.Sprintf("CASE WHEN m.is_git_ref OR octet_length(m.value) <= ? THEN m.value WHEN octet_length(m.value) <= %d THEN substr(m.value, 1, ?) ELSE '' END, octet_length(m.value)", maxPreview)
		args = append([]any{limit, limit}, args...)
	}
	text := "SELECT " + rowColumns + ", " + value + " FROM metadata m WHERE 1" + s.cond + keyOrder
	lists := &children{tx: tx, span: s, text: listJoin}
	sets := &children{tx: tx, span: s, text: setJoin}
	defer lists.close()
	defer sets.close()
	fail := func(err error) bool {
		yield(Record{}, tx.db.wrap(tx.ctx, err))
		return false
	}
	r, err := tx.c.query(tx.ctx, text, args...)
	if err != nil {
		return fail(err)
	}
	defer r.close()
	for {
		ok, err := r.next()
		if err != nil {
			return fail(err)
		}
		if !ok {
			return true
		}
		rec := Record{Row: r.row()}
		rec.Value.Type = rec.Type
		switch {
		case rec.Promised:
		case rec.Type == meta.List:
			err = lists.take(rec.ID, func(r *rows) error {
				e, err := tx.entry(rec.KeyRef, r, 1)
				rec.Value.Entries = append(rec.Value.Entries, e)
				return err
			})
		case rec.Type == meta.Set:
			err = sets.take(rec.ID, func(r *rows) error {
				rec.Value.Members = append(rec.Value.Members, r.str(1))
				return nil
			})
			slices.Sort(rec.Value.Members)
		case q.NoLarge > 0:
			rec.preview(tx.db, r.str(nRow), r.num(nRow+1), q.NoLarge, limit)
		default:
			rec.Value.String, err = tx.stringValue(rec.Row, r.str(nRow))
		}
		if err != nil {
			return fail(err)
		}
		if !yield(rec, nil) {
			return false
		}
	}
}

// preview sets the beginning of a string from text, which is the first limit
// characters of a column of size bytes.
func (rec *Record) preview(db *DB, text string, size int64, n, limit int) {
	switch {
	case rec.GitRef:
		// the peer's large values: a blob that is lost leaves a listing possible
		s, err := db.blob(rec.KeyRef, text)
		rec.Value.String, rec.Cut, size = s, err != nil, int64(len(s))
	case size > int64(limit):
		rec.Value.String, rec.Cut = decodePrefix(text), true
	default:
		rec.Value.String = decodeString(text)
	}
	if s := rec.Value.String; len(s) > n {
		rec.Value.String, rec.Cut = cutAt(s, n), true
	}
	if rec.Cut {
		rec.Size = size
	}
}

// The children of lists and sets in the order of their keys; CROSS JOIN keeps the
// tables in this order, so that nothing is sorted.
const (
	listJoin = "SELECT l.metadata_id, l.value, l.timestamp, l.is_git_ref FROM metadata m CROSS JOIN list_values l ON l.metadata_id = m.rowid WHERE m.value_type = 'list'"
	setJoin  = "SELECT s.metadata_id, s.value FROM metadata m CROSS JOIN set_values s ON s.metadata_id = m.rowid WHERE m.value_type = 'set'"
)

func childOrder(join string) string {
	if join == listJoin {
		return keyOrder + ", l.timestamp, l.rowid"
	}
	return keyOrder
}

// children is the cursor over the entries or members of a span, opened when the first
// list or set is met.
type children struct {
	tx   *Tx
	span span
	text string
	r    *rows
	ok   bool // a row is waiting in r
}

// take calls f for every child of row id.
func (c *children) take(id int64, f func(*rows) error) (err error) {
	if c.r == nil {
		if c.r, err = c.tx.c.query(c.tx.ctx, c.text+c.span.cond+childOrder(c.text), c.span.args...); err != nil {
			c.r = nil
			return err
		}
		if c.ok, err = c.r.next(); err != nil {
			return err
		}
	}
	for c.ok && c.r.num(0) == id {
		if err := f(c.r); err != nil {
			return err
		}
		if c.ok, err = c.r.next(); err != nil {
			return err
		}
	}
	return nil
}

func (c *children) close() {
	if c.r != nil {
		c.r.close()
	}
}
