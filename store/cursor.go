package store

// Cursor says what a published commit holds: everything in the store up to a record of
// the log, under one set of filter rules.
type Cursor struct {
	Ref, Commit  string
	Log          Position
	FilterSet    string // identifies the rules that decide where keys go
	PruneChecked bool   // the auto-prune rules have been checked on the commit
}

const cursorSelect = "SELECT ref, commit_oid, log_rowid, log_fingerprint, filter_set, prune_checked FROM x_cursor WHERE ref = ?"

func (r *rows) cursor() Cursor {
	return Cursor{Ref: r.str(0), Commit: r.str(1), Log: Position{r.num(2), r.str(3)}, FilterSet: r.str(4), PruneChecked: r.num(5) != 0}
}

func (tx *Tx) oneCursor(text string, args ...any) (c Cursor, ok bool, err error) {
	if ok, err = tx.has("x_cursor"); !ok || err != nil {
		return c, false, err
	}
	ok, err = tx.c.one(bg, text, args, func(r *rows) { c = r.cursor() })
	return c, ok, err
}

// Cursor returns the cursor of ref at commit. A cursor is written before the ref moves
// and counts once the ref is at its commit.
func (tx *Tx) Cursor(ref, commit string) (Cursor, bool, error) {
	return tx.oneCursor(cursorSelect+" AND commit_oid = ?", ref, commit)
}

// LatestCursor returns the cursor last written for ref, whatever its commit.
func (tx *Tx) LatestCursor(ref string) (Cursor, bool, error) {
	return tx.oneCursor(cursorSelect+" ORDER BY seq DESC LIMIT 1", ref)
}

// CursorRefs returns the refs that have cursors, sorted.
func (tx *Tx) CursorRefs() ([]string, error) {
	if ok, err := tx.has("x_cursor"); !ok || err != nil {
		return nil, err
	}
	return collect(tx, "SELECT DISTINCT ref FROM x_cursor ORDER BY ref", nil, func(r *rows) string { return r.str(0) })
}

// PutCursor stores c, in place of one with the same ref and commit; it becomes the
// latest of its ref.
func (tx *Tx) PutCursor(c Cursor) error {
	if err := tx.ownWritable(); err != nil {
		return err
	}
	return tx.run(`INSERT OR REPLACE INTO x_cursor(ref, commit_oid, log_rowid, log_fingerprint, filter_set, prune_checked, seq)
		VALUES (?, ?, ?, ?, ?, ?, (SELECT coalesce(max(seq), 0) + 1 FROM x_cursor))`,
		c.Ref, c.Commit, c.Log.RowID, c.Log.Fingerprint, c.FilterSet, c.PruneChecked)
}

// TrimCursors forgets the cursors of ref that were written before that of keepCommit.
func (tx *Tx) TrimCursors(ref, keepCommit string) error {
	if err := tx.writable(); err != nil {
		return err
	}
	return tx.run("DELETE FROM x_cursor WHERE ref = ? AND seq < (SELECT seq FROM x_cursor WHERE ref = ? AND commit_oid = ?)", ref, ref, keepCommit)
}

// DeleteCursors forgets every cursor of ref.
func (tx *Tx) DeleteCursors(ref string) error {
	if err := tx.ownWritable(); err != nil {
		return err
	}
	return tx.run("DELETE FROM x_cursor WHERE ref = ?", ref)
}

// MoveCursors runs del, which deletes log records, and moves each cursor whose record it
// deleted to the newest record before. Cursors that were on no record before stay as
// they are: their commit has to be compared with the store.
func (tx *Tx) MoveCursors(del func() error) error {
	if err := tx.writable(); err != nil {
		return err
	}
	all, err := collect(tx, "SELECT ref, commit_oid, log_rowid, log_fingerprint, filter_set, prune_checked FROM x_cursor WHERE log_rowid <> 0", nil, (*rows).cursor)
	if err != nil {
		return err
	}
	var held []Cursor
	for _, c := range all {
		ok, err := tx.LogHolds(c.Log)
		if err != nil {
			return err
		}
		if ok {
			held = append(held, c)
		}
	}
	if err := tx.noteCut(del); err != nil {
		return err
	}
	for _, c := range held {
		ok, err := tx.LogHolds(c.Log)
		if err != nil {
			return err
		}
		if ok {
			continue
		}
		var p Position
		if _, err := tx.c.one(bg, logBefore, []any{c.Log.RowID}, func(r *rows) { p = r.position() }); err != nil {
			return err
		}
		if err := tx.run("UPDATE x_cursor SET log_rowid = ?, log_fingerprint = ? WHERE ref = ? AND commit_oid = ?", p.RowID, p.Fingerprint, c.Ref, c.Commit); err != nil {
			return err
		}
	}
	return tx.keepNumbering()
}
