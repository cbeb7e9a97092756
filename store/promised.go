package store

import (
	"iter"

	"github.com/git-meta/git-meta-go/meta"
)

// onlyPromised finds promised rows by the recency index: every program writes them with
// the time 0.
const onlyPromised = "m.last_timestamp = 0 AND m.is_promised <> 0"

const promisedSQL = "SELECT " + rowColumns + " FROM metadata m WHERE " + onlyPromised

// Promised yields the promised rows of the store, in no particular order.
func (tx *Tx) Promised() iter.Seq2[Row, error] {
	return each2(tx, promisedSQL, nil, (*rows).row)
}

// CountPromised returns how many keys are known from history only.
func (tx *Tx) CountPromised() (int64, error) {
	return tx.c.int64(tx.ctx, "SELECT count(*) FROM metadata m WHERE "+onlyPromised)
}

// HasPromised reports whether there is a promised row, in the time of a look-up.
func (tx *Tx) HasPromised() (bool, error) {
	return tx.c.one(bg, "SELECT 1 FROM metadata m WHERE "+onlyPromised+" LIMIT 1", nil, nil)
}

const insertPromised = `INSERT OR IGNORE INTO metadata(target_type, target_value, key, value, value_type, last_timestamp, is_git_ref, is_promised, promised_commit)
	VALUES (?, ?, ?, '', 'string', 0, 0, 1, ?)`

// PutPromised notes that the tree of commit holds k and no later one does. A key with a
// row keeps it; of a promised row the commit is replaced. Nothing is noted of a key that
// was removed here, or that store and tree differ in on purpose. It reports whether
// there is a new row. It writes no log record.
func (tx *Tx) PutPromised(k meta.KeyRef, commit string) (bool, error) {
	if err := tx.writable(); err != nil {
		return false, err
	}
	if err := checkStorable(k); err != nil {
		return false, err
	}
	ms, err := tx.tombstoneTime(meta.KeyTombstone, k, "")
	if err != nil || ms != 0 {
		return false, err
	}
	if _, held, err := tx.Withheld(k); err != nil || held {
		return false, err
	}
	n, err := tx.changed(insertPromised, append(keyArgs(k), commit)...)
	if err != nil || n > 0 {
		return n > 0, err
	}
	return false, tx.run("UPDATE metadata SET promised_commit = ? WHERE target_type = ? AND target_value = ? AND key = ? AND is_promised <> 0 AND promised_commit IS NOT ?",
		commit, k.Target.Type, k.Target.Value, k.Key, commit)
}

// DropPromised deletes k's row if it is a promised one, and reports whether it was. It
// leaves no tombstone and no log record.
func (tx *Tx) DropPromised(k meta.KeyRef) (bool, error) {
	if err := tx.writable(); err != nil {
		return false, err
	}
	row, ok, err := tx.Row(k)
	if err != nil || !ok || !row.Promised {
		return false, err
	}
	return true, tx.deleteRow(row.ID)
}

// PutFromHistory stores the value of a promised key as [Tx.Put] does, with the time and
// author of e, and as something that has been published before: its log record stands
// before those that a cursor may still have to publish. The caller says with
// [Tx.PutWithheld] whether the tree holds the key. Without a promised row nothing is
// done, and the result is false.
func (tx *Tx) PutFromHistory(k meta.KeyRef, v meta.Value, e Edit) (bool, error) {
	row, ok, err := tx.Row(k)
	if err != nil || !ok || !row.Promised {
		return false, err
	}
	if err := tx.Put(k, v, e, PutOptions{NoLog: true}); err != nil {
		return false, err
	}
	logged := emptyCollection
	if v.Type == meta.String {
		logged = logValue(v.String, encodeString(v.String))
	}
	return true, tx.logBefore(k, opSet, logged, v.Type, e.Email, e.Time)
}

// logBefore writes a log record that no cursor counts as a change. Rowids below 1 are
// behind no position; only an empty log begins as usual, and the cursors go along.
func (tx *Tx) logBefore(k meta.KeyRef, op, value string, typ meta.ValueType, email string, ms int64) error {
	var least, most int64
	if _, err := tx.c.one(bg, "SELECT coalesce((SELECT rowid FROM metadata_log ORDER BY rowid LIMIT 1), 0), coalesce((SELECT rowid FROM metadata_log ORDER BY rowid DESC LIMIT 1), 0)", nil, func(r *rows) {
		least, most = r.num(0), r.num(1)
	}); err != nil {
		return err
	}
	if most > 0 {
		return tx.run("INSERT INTO metadata_log(rowid, target_type, target_value, key, value, value_type, operation, email, timestamp) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
			min(least, 0)-1, k.Target.Type, k.Target.Value, k.Key, value, typ, op, orUnknown(email), ms)
	}
	before, err := tx.LogPosition()
	if err != nil {
		return err
	}
	if err := tx.run("INSERT INTO metadata_log(rowid, target_type, target_value, key, value, value_type, operation, email, timestamp) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)",
		k.Target.Type, k.Target.Value, k.Key, value, typ, op, orUnknown(email), ms); err != nil {
		return err
	}
	after, err := tx.LogPosition()
	if err != nil {
		return err
	}
	return tx.run("UPDATE x_cursor SET log_rowid = ?, log_fingerprint = ? WHERE log_rowid = ? AND log_fingerprint = ?",
		after.RowID, after.Fingerprint, before.RowID, before.Fingerprint)
}

// KnowsTarget reports whether t has a key with a value, or a promised one.
func (tx *Tx) KnowsTarget(t meta.Target) (bool, error) {
	return tx.c.one(bg, "SELECT 1 FROM metadata WHERE target_type = ? AND target_value = ? LIMIT 1", []any{t.Type, t.Value}, nil)
}

// KnownTargets is [Tx.TargetsWithPrefix] that also returns targets with promised keys
// alone.
func (tx *Tx) KnownTargets(t meta.TargetType, prefix string, limit int) ([]meta.Target, error) {
	return tx.targets(t, prefix, limit, "")
}
