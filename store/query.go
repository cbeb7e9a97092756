package store

import (
	"iter"

	"github.com/git-meta/git-meta-go/meta"
)

// Row is a key without its value.
type Row struct {
	meta.KeyRef
	Type           meta.ValueType
	Time           int64  // ms of the last write
	ID             int64  // rowid; the children of a list or set name it
	SourceRef      string // the side remote's ref it came from; "" if ours
	Promised       bool   // known from history only: no value here
	PromisedCommit string // the commit whose tree holds a promised value
	GitRef         bool   // the value is in a git blob
}

// Record is a key with its value.
type Record struct {
	Row
	Value meta.Value
	// Cut: the string was longer than Query.NoLarge and at most its beginning is here.
	// Size is then the length in bytes of the text the row holds, else 0.
	Cut  bool
	Size int64
}

// Query chooses keys. The zero Query chooses every key that has a value.
type Query struct {
	Target      *meta.Target    // one target
	Subtree     bool            // with a path target: also the paths below it
	Type        meta.TargetType // all targets of one type
	Namespace   string          // the key itself, and the keys below it; byte by byte
	Publishable bool            // only rows of our own, not those of a side remote
	Promised    bool            // also promised rows, which have no value
	NoLarge     int             // >0: cut longer strings to this many bytes; above 1 MiB, or in a git blob, to nothing
}

// span is a part of a Query in the order of type, value, key; the spans of a query
// follow one another in that order.
type span struct {
	cond string // conditions on m, each with a leading AND
	args []any
}

// after returns the least text that is greater than every text with prefix p; ok is
// false where there is none.
func after(p string) (string, bool) {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] < 0xff {
			return p[:i] + string([]byte{p[i] + 1}), true
		}
	}
	return "", false
}

func (q Query) spans() []span {
	base := ""
	if !q.Promised {
		base = " AND m.is_promised = 0"
	}
	if q.Publishable {
		base += " AND +m.source_ref IS NULL"
	}
	var targets []span
	switch t := q.Target; {
	case t == nil && q.Type == "":
		targets = []span{{}}
	case t == nil:
		targets = []span{{" AND m.target_type = ?", []any{q.Type}}}
	default:
		targets = []span{{" AND m.target_type = ? AND m.target_value = ?", []any{t.Type, t.Value}}}
		if q.Subtree && t.Type == meta.Path {
			targets = append(targets, span{
				" AND m.target_type = ? AND m.target_value >= ? AND m.target_value < ?",
				[]any{t.Type, t.Value + "/", t.Value + "0"}, // '0' follows '/'
			})
		}
	}
	ns := q.Namespace
	var out []span
	for i, t := range targets {
		switch {
		case ns == "":
			out = append(out, t)
		case q.Target != nil && i == 0:
			// One target: two ranges of the index.
			out = append(out,
				span{t.cond + " AND m.key = ?", append(t.args[:len(t.args):len(t.args)], ns)},
				span{t.cond + " AND m.key >= ? AND m.key < ?", append(t.args[:len(t.args):len(t.args)], ns+":", ns+";")}) // ';' follows ':'
		default:
			out = append(out, span{
				t.cond + " AND (m.key = ? OR (m.key >= ? AND m.key < ?))",
				append(t.args[:len(t.args):len(t.args)], ns, ns+":", ns+";"),
			})
		}
	}
	for i := range out {
		out[i].cond += base
	}
	return out
}

const (
	rowColumns = "m.rowid, m.target_type, m.target_value, m.key, m.value_type, m.last_timestamp, m.source_ref, m.is_promised, m.promised_commit, m.is_git_ref"
	nRow       = 10
	keyOrder   = " ORDER BY m.target_type, m.target_value, m.key"
	// WHERE 1 lets every condition start with AND.
	rowsSelect = "SELECT " + rowColumns + " FROM metadata m WHERE 1"
	keyCond    = " AND m.target_type = ? AND m.target_value = ? AND m.key = ?"
)

func (r *rows) row() Row {
	return Row{
		ID: r.num(0), KeyRef: r.key(1), Type: valueType(r.str(4)), Time: r.num(5), SourceRef: r.str(6),
		Promised: r.num(7) != 0, PromisedCommit: r.str(8), GitRef: r.num(9) != 0,
	}
}

func valueType(s string) meta.ValueType {
	switch s {
	case string(meta.String):
		return meta.String
	case string(meta.List):
		return meta.List
	case string(meta.Set):
		return meta.Set
	}
	return meta.ValueType(s)
}

// keyArgs returns the values for keyCond.
func keyArgs(k meta.KeyRef) []any { return []any{k.Target.Type, k.Target.Value, k.Key} }

// Row returns a key's row without its value; false if there is none. Promised rows are
// returned, with Promised set.
func (tx *Tx) Row(k meta.KeyRef) (row Row, ok bool, err error) {
	ok, err = tx.c.one(bg, rowsSelect+keyCond, keyArgs(k), func(r *rows) { row = r.row() })
	return row, ok, err
}

// Rows yields the keys that q chooses, ordered by target type, target value, key, byte
// by byte. It ends after the first error.
func (tx *Tx) Rows(q Query) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for _, s := range q.spans() {
			if !each(tx, rowsSelect+s.cond+keyOrder, s.args, (*rows).row, yield) {
				return
			}
		}
	}
}

// each yields what read makes of every row; false if the consumer or an error ended it.
func each[T any](tx *Tx, text string, args []any, read func(*rows) T, yield func(T, error) bool) bool {
	var zero T
	r, err := tx.c.query(tx.ctx, text, args...)
	if err != nil {
		yield(zero, tx.db.wrap(tx.ctx, err))
		return false
	}
	defer r.close()
	for {
		ok, err := r.next()
		if err != nil {
			yield(zero, tx.db.wrap(tx.ctx, err))
			return false
		}
		if !ok {
			return true
		}
		if !yield(read(r), nil) {
			return false
		}
	}
}

// HasRows reports whether t has a key with a value.
func (tx *Tx) HasRows(t meta.Target) (bool, error) {
	return tx.c.one(bg, "SELECT 1 FROM metadata WHERE target_type = ? AND target_value = ? AND is_promised = 0 LIMIT 1", []any{t.Type, t.Value}, nil)
}

// TargetsWithPrefix returns the targets of type t that have a value and whose own value
// starts with prefix, byte by byte, in order; limit 0 means all.
func (tx *Tx) TargetsWithPrefix(t meta.TargetType, prefix string, limit int) ([]meta.Target, error) {
	return tx.targets(t, prefix, limit, " AND m.is_promised = 0")
}

func (tx *Tx) targets(t meta.TargetType, prefix string, limit int, cond string) ([]meta.Target, error) {
	q, args := "SELECT DISTINCT m.target_value FROM metadata m WHERE m.target_type = ?"+cond+" AND m.target_value >= ?", []any{t, prefix}
	if end, ok := after(prefix); ok {
		q, args = q+" AND m.target_value < ?", append(args, end)
	}
	q += " ORDER BY m.target_value LIMIT ?"
	if limit <= 0 {
		limit = -1
	}
	args = append(args, limit)
	return collect(tx, q, args, func(r *rows) meta.Target { return meta.Target{Type: t, Value: r.str(0)} })
}

// collect returns what read makes of every row of a query.
func collect[T any](tx *Tx, text string, args []any, read func(*rows) T) ([]T, error) {
	var out []T
	var failed error
	each(tx, text, args, read, func(v T, err error) bool {
		if err != nil {
			failed = err
			return false
		}
		out = append(out, v)
		return true
	})
	return out, failed
}

// Author returns who wrote the key's newest log record, and when; "unknown" and 0 if
// there is none.
func (tx *Tx) Author(k meta.KeyRef) (email string, ms int64, err error) {
	email = "unknown"
	_, err = tx.c.one(bg, "SELECT email, timestamp FROM metadata_log WHERE target_type = ? AND target_value = ? AND key = ? ORDER BY rowid DESC LIMIT 1", keyArgs(k), func(r *rows) {
		email, ms = r.str(0), r.num(1)
	})
	return email, ms, err
}

// Recency yields the keys that can be published, the newest first, then by type, value
// and key. Only KeyRef, Time and ID are set: the index holds no more, and reading the
// rows as well takes six times as long.
func (tx *Tx) Recency() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		each(tx, recencySQL, nil, func(r *rows) Row { return Row{KeyRef: r.key(0), Time: r.num(3), ID: r.num(4)} }, yield)
	}
}

// A promised row has the time 0 in every store the peer made.
const (
	notPublishable = "(SELECT m.rowid FROM metadata m WHERE m.source_ref IS NOT NULL UNION ALL SELECT rowid FROM metadata WHERE last_timestamp = 0 AND is_promised <> 0)"
	keyTimesSQL    = "SELECT m.target_type, m.target_value, m.key, m.last_timestamp, m.rowid FROM metadata m WHERE m.rowid NOT IN " + notPublishable
	recencySQL     = keyTimesSQL + " ORDER BY m.last_timestamp DESC, m.target_type, m.target_value, m.key"
)

// KeyTime is a key and the time of its last write in ms.
type KeyTime struct {
	meta.KeyRef
	Time int64
	ID   int64 // rowid
}

// KeyTimes yields the keys that can be published with their times, in no particular
// order, from the covering index.
func (tx *Tx) KeyTimes() iter.Seq2[KeyTime, error] {
	return func(yield func(KeyTime, error) bool) {
		each(tx, keyTimesSQL, nil, func(r *rows) KeyTime { return KeyTime{r.key(0), r.num(3), r.num(4)} }, yield)
	}
}

// each2 is [each] as an iterator.
func each2[T any](tx *Tx, text string, args []any, read func(*rows) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) { each(tx, text, args, read, yield) }
}
