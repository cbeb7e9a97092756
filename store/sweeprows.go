package store

import (
	"strconv"

	"github.com/git-meta/git-meta-go/meta"
)

// SweepRow is a row that retention may delete.
type SweepRow struct {
	Created
	ID       int64 // of the row; 0: it is not live after all, [Tx.Recount] it
	Leftover bool  // [Retained]: not live, not counted
}

const (
	sweepColumns = "x.target_type, x.target_value, x.key, x.collection, x.created, x.bytes, (SELECT m.rowid FROM metadata m WHERE" + liveCond +
		" AND m.target_type = x.target_type AND m.target_value = x.target_value AND m.key = x.key) FROM x_created x"
	// The index x_created_order backwards.
	oldestSQL = "SELECT " + sweepColumns + " WHERE x.collection = ? AND x.created < ? ORDER BY x.created, x.target_type DESC, x.target_value DESC, x.key DESC LIMIT ?"
	futureSQL = "SELECT " + sweepColumns + " WHERE x.collection = ? AND x.created >= ? ORDER BY x.target_type DESC, x.target_value DESC, x.key DESC LIMIT ?"
)

func (r *rows) sweepRow() SweepRow {
	return SweepRow{Created: Created{r.key(0), r.str(3), r.num(4), r.num(5)}, ID: r.num(6)}
}

// Oldest returns up to limit rows of a collection in the order in which retention deletes
// them: the oldest first, of equal times the last by type, value and key. Times from now
// (in ms) on count as now.
func (tx *Tx) Oldest(collection string, now int64, limit int) ([]SweepRow, error) {
	out, err := collect(tx, oldestSQL, []any{collection, now, limit}, (*rows).sweepRow)
	if err != nil || len(out) >= limit {
		return out, err
	}
	more, err := collect(tx, futureSQL, []any{collection, now, limit - len(out)}, (*rows).sweepRow)
	return append(out, more...), err
}

// BytesOfOldest returns the bytes of the first n rows of [Tx.Oldest].
func (tx *Tx) BytesOfOldest(collection string, now, n int64) (bytes int64, err error) {
	for _, q := range []string{
		"SELECT count(*), coalesce(sum(bytes), 0) FROM (SELECT x.bytes FROM x_created x WHERE x.collection = ? AND x.created < ? ORDER BY x.created, x.target_type DESC, x.target_value DESC, x.key DESC LIMIT ?)",
		"SELECT count(*), coalesce(sum(bytes), 0) FROM (SELECT x.bytes FROM x_created x WHERE x.collection = ? AND x.created >= ? ORDER BY x.target_type DESC, x.target_value DESC, x.key DESC LIMIT ?)",
	} {
		if _, err := tx.c.one(tx.ctx, q, []any{collection, now, n}, func(r *rows) { n, bytes = n-r.num(0), bytes+r.num(1) }); err != nil {
			return 0, err
		}
	}
	return bytes, nil
}

const retainedRowsSQL = "SELECT w.target_type, w.target_value, w.key, '', 0, 0, m.rowid" +
	" FROM x_withheld w CROSS JOIN metadata m ON m.target_type = w.target_type AND m.target_value = w.target_value AND m.key = w.key" +
	" WHERE w.why IN ('swept', 'retention') AND w.why = 'retention' AND (w.target_type, w.target_value, w.key) > (?, ?, ?)" +
	" AND w.edit_time = m.last_timestamp AND m.is_promised = 0 AND +m.source_ref IS NULL AND m.target_type <> 'project' ORDER BY w.target_type, w.target_value, w.key LIMIT ?"

// RetainedRows returns up to limit rows with an entry [Retained] in the order of their
// keys, from the one behind k on. One that the peer has edited since is live again.
func (tx *Tx) RetainedRows(k meta.KeyRef, limit int) ([]SweepRow, error) {
	if ok, err := tx.has("x_withheld"); !ok || err != nil {
		return nil, err
	}
	return collect(tx, retainedRowsSQL, append(keyArgs(k), limit), func(r *rows) SweepRow {
		s := r.sweepRow()
		s.Leftover = true
		return s
	})
}

// The parameter is a JSON array of rowids of metadata. CROSS JOIN keeps the order: each
// is looked up by its key.
const (
	ofRows = "FROM json_each(?) j CROSS JOIN metadata m ON m.rowid = j.value"
	ofKeys = "(target_type, target_value, key) IN (SELECT m.target_type, m.target_value, m.key " + ofRows + ")"
)

var sweepSQL = []string{
	"DELETE FROM metadata_log WHERE rowid IN (SELECT l.rowid " + ofRows + " CROSS JOIN metadata_log l ON l.target_type = m.target_type AND l.target_value = m.target_value AND l.key = m.key)",
	"INSERT OR REPLACE INTO x_withheld(target_type, target_value, key, edit_time, why) SELECT m.target_type, m.target_value, m.key, m.last_timestamp," +
		" CASE WHEN EXISTS (SELECT 1 FROM x_withheld w WHERE w.target_type = m.target_type AND w.target_value = m.target_value AND w.key = m.key AND w.why IN ('pruned', 'too-big')) THEN 'gone' ELSE 'swept' END " + ofRows,
	"DELETE FROM x_created WHERE " + ofKeys,
	"DELETE FROM list_values WHERE metadata_id IN (SELECT value FROM json_each(?))",
	"DELETE FROM set_values WHERE metadata_id IN (SELECT value FROM json_each(?))",
}

var sweepTombstonesSQL = []string{
	"DELETE FROM tombstones WHERE rowid IN (SELECT t.rowid " + ofRows + " CROSS JOIN tombstones t ON t.tombstone_type IN " + tombstoneKinds + " AND t.target_type = m.target_type AND t.target_value = m.target_value AND t.key = m.key)",
	"DELETE FROM x_explicit WHERE " + ofKeys,
}

// SweepRows deletes rows with their entries, members, tombstones and log records, and
// takes them off the counters. It leaves the entry [Swept], or [Gone], and no log record. The caller
// has [Tx.MoveCursors] call it. About 60 µs a row.
func (tx *Tx) SweepRows(list []SweepRow) error {
	if err := tx.writable(); err != nil {
		return err
	}
	if len(list) == 0 {
		return nil
	}
	if err := tx.knowEmpties(); err != nil {
		return err
	}
	d := usageChange{}
	ids := make([]byte, 0, 8*len(list))
	for i, s := range list {
		ids = append(ids, "[,"[min(i, 1)])
		ids = strconv.AppendInt(ids, s.ID, 10)
		if !s.Leftover {
			d.add(s.Collection, -1, -s.Bytes)
		}
	}
	arg := string(append(ids, ']'))
	texts := sweepSQL
	if !tx.noTombstones {
		texts = append(texts[:len(texts):len(texts)], sweepTombstonesSQL...)
	}
	for _, text := range append(texts[:len(texts):len(texts)], "DELETE FROM metadata WHERE rowid IN (SELECT value FROM json_each(?))") {
		if err := tx.run(text, arg); err != nil {
			return err
		}
	}
	tx.noWithheld = false
	return tx.changeUsage(d)
}

// Stamp counts a retention pass that deleted something: readers of the feed whose cursors
// are older read everything again.
func (tx *Tx) Stamp() error {
	s, err := tx.feedState()
	if err != nil {
		return err
	}
	return tx.PutFact(FactWatermark, strconv.FormatInt(s.watermark+1, 10))
}
