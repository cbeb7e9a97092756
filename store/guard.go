package store

import "errors"

// The guard is a log record that tells whether the peer's local-prune has run. That
// deletes rows, and entries of lists that stay, without a record, and log records by
// their time, whatever its window is: the guard's time is 0. It stands at a rowid below 1,
// before every position and outside the feed; the peer looks at later times only.
const (
	guardType   = "path"
	guardValue  = ".git-meta"
	guardKey    = "x:retention"
	factGuard   = "retention:guard"
	guardWhere  = " target_type = '" + guardType + "' AND target_value = '" + guardValue + "' AND key = '" + guardKey + "' AND timestamp = 0"
	hasGuardSQL = "SELECT 1 FROM metadata_log WHERE" + guardWhere
	// An empty log needs an ordinary first record: SQLite counts on from the greatest
	// rowid, and 0 is no position.
	putGuardSQL = `INSERT INTO metadata_log(rowid, target_type, target_value, key, value, value_type, operation, email, timestamp)
		SELECT min(0, min(rowid)) - 1, '` + guardType + "', '" + guardValue + "', '" + guardKey + `', '', '', 'rm', 'unknown', 0 FROM metadata_log HAVING max(rowid) > 0`
	dropGuardSQL = "DELETE FROM metadata_log WHERE" + guardWhere
)

// Guard says what is known of deletions without a record.
type Guard int

const (
	NoGuard    Guard = iota // nothing: nobody has been watching
	GuardHolds              // there were none
	GuardGone               // there may have been some
)

// guardSet is the fact's value where the record is there.
const guardSet = "record"

// Guard looks whether the guard is still there. An empty log, and a store that is open for
// reading, cannot have one: then it is the numbers of rows, entries and members, and
// the sum of the rows' times.
func (tx *Tx) Guard() (Guard, error) {
	text, ok, err := tx.Fact(factGuard)
	if err != nil || !ok {
		return NoGuard, err
	}
	if text == guardSet {
		ok, err = tx.c.one(bg, hasGuardSQL, nil, nil)
	} else {
		var p Position
		if p, err = tx.LogPosition(); err == nil && p.RowID != 0 && !tx.db.scratch {
			return NoGuard, nil // it could be there by now
		}
		var now string
		if err == nil {
			now, err = tx.rowCounts()
		}
		ok = now == text
	}
	if err != nil || !ok {
		return GuardGone, err
	}
	return GuardHolds, nil
}

// SetGuard makes the guard say what is true now. The caller knows that nothing was deleted
// without being noticed, or looks at all rows afterwards.
func (tx *Tx) SetGuard() error {
	if err := tx.ownWritable(); err != nil {
		return err
	}
	ok, err := tx.c.one(bg, hasGuardSQL, nil, nil)
	if err != nil {
		return err
	}
	if !ok && tx.write {
		n, err := tx.changed(putGuardSQL)
		if err != nil {
			return err
		}
		ok = n > 0
	}
	text := guardSet
	if !ok {
		if text, err = tx.rowCounts(); err != nil {
			return err
		}
	}
	if was, _, err := tx.Fact(factGuard); err != nil || was == text {
		return err
	}
	return tx.PutFact(factGuard, text)
}

func (tx *Tx) rowCounts() (text string, err error) {
	_, err = tx.c.one(tx.ctx, "SELECT (SELECT count(*) || ' ' || coalesce(sum(last_timestamp % 2147483647), 0) FROM metadata) || ' ' || (SELECT count(*) FROM list_values) || ' ' || (SELECT count(*) FROM set_values)", nil, func(r *rows) { text = r.str(0) })
	return text, err
}

// DropGuard deletes the guard.
func (tx *Tx) DropGuard() error {
	if tx.write {
		if err := tx.run(dropGuardSQL); err != nil {
			return err
		}
	}
	return tx.DeleteFact(factGuard)
}

// keepNumbering makes sure, after log records were deleted, that the next one gets a
// rowid above 0: it would be before every position otherwise. What is left below 1 is
// the guard, which goes, and values loaded from history, of which the last becomes an
// ordinary record; the cursors step over it.
func (tx *Tx) keepNumbering() error {
	ok, err := tx.c.one(bg, logNewest, nil, nil)
	if err != nil || ok {
		return err
	}
	if ok, err = tx.c.one(bg, "SELECT 1 FROM metadata_log LIMIT 1", nil, nil); err != nil || !ok {
		return err
	}
	if err := tx.DropGuard(); err != nil {
		return err
	}
	if err := tx.run("UPDATE metadata_log SET rowid = 1 WHERE rowid = (SELECT max(rowid) FROM metadata_log)"); err != nil {
		return err
	}
	p, err := tx.LogPosition()
	if err != nil || p.RowID == 0 {
		return err
	}
	if p.RowID != 1 {
		return errors.New("the log cannot be numbered anew")
	}
	return tx.run("UPDATE x_cursor SET log_rowid = ?, log_fingerprint = ? WHERE log_rowid < 1", p.RowID, p.Fingerprint)
}
