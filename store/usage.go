package store

// usageChange is by how much the counters of collections change.
type usageChange map[string][2]int64

func (d usageChange) add(collection string, rows, bytes int64) {
	n := d[collection]
	d[collection] = [2]int64{n[0] + rows, n[1] + bytes}
}

// changeUsage must be called in the transaction that changes x_created.
func (tx *Tx) changeUsage(d usageChange) error {
	for name, n := range d {
		if n == [2]int64{} {
			continue
		}
		err := tx.run(`INSERT INTO x_usage(collection, rows, bytes) VALUES (?, ?, ?)
			ON CONFLICT(collection) DO UPDATE SET rows = rows + excluded.rows, bytes = bytes + excluded.bytes`, name, n[0], n[1])
		if err != nil {
			return err
		}
	}
	return nil
}

// Usage returns how many live rows a collection has, and their bytes: one look-up. It is
// right as of the last catch-up.
func (tx *Tx) Usage(collection string) (rowCount, bytes int64, err error) {
	if ok, err := tx.has("x_usage"); !ok || err != nil {
		return 0, 0, err
	}
	_, err = tx.c.one(bg, "SELECT rows, bytes FROM x_usage WHERE collection = ?", []any{collection}, func(r *rows) { rowCount, bytes = r.num(0), r.num(1) })
	return rowCount, bytes, err
}

// DropEmptyUsage forgets the counters that stand at zero.
func (tx *Tx) DropEmptyUsage() error {
	if err := tx.ownWritable(); err != nil {
		return err
	}
	return tx.run("DELETE FROM x_usage WHERE rows = 0 AND bytes = 0")
}

// CountCreatedBefore returns how many live rows of a collection were created before ms. It
// counts in an index, on the side of ms where it expects fewer: about 0.25 µs a row there.
func (tx *Tx) CountCreatedBefore(collection string, ms int64) (int64, error) {
	if ok, err := tx.has("x_created"); !ok || err != nil {
		return 0, err
	}
	rowCount, _, err := tx.Usage(collection)
	if err != nil {
		return 0, err
	}
	var oldest, newest int64
	for q, at := range map[string]*int64{oldestTimeSQL: &oldest, newestTimeSQL: &newest} {
		if _, err := tx.c.one(bg, q, []any{collection}, func(r *rows) { *at = r.num(0) }); err != nil {
			return 0, err
		}
	}
	switch {
	case rowCount == 0 || ms <= oldest:
		return 0, nil
	case ms > newest:
		return rowCount, nil
	case ms-oldest < newest-ms:
		return tx.c.int64(tx.ctx, countBeforeSQL, collection, ms)
	}
	n, err := tx.c.int64(tx.ctx, countFromSQL, collection, ms)
	return rowCount - n, err
}

const (
	oldestTimeSQL = "SELECT created FROM x_created WHERE collection = ? ORDER BY created LIMIT 1"
	newestTimeSQL = "SELECT created FROM x_created WHERE collection = ? ORDER BY created DESC LIMIT 1"

	countBeforeSQL = "SELECT count(*) FROM x_created WHERE collection = ? AND created < ?"
	countFromSQL   = "SELECT count(*) FROM x_created WHERE collection = ? AND created >= ?"
)
