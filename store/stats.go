package store

// Stats is what a tree holds: keys with a value, and bytes of all blobs, every path
// counted. The peer uses the same rows.
type Stats struct {
	Keys, Bytes       int64
	HasKeys, HasBytes bool // which of the two is known
}

// maxTreeStats is how many rows the cache keeps.
const maxTreeStats = 100_000

// TreeStats returns what is cached for a tree.
func (tx *Tx) TreeStats(oid string) (s Stats, ok bool, err error) {
	if ok, err = tx.has("tree_stats"); !ok || err != nil {
		return s, false, err
	}
	ok, err = tx.c.one(bg, "SELECT key_count, byte_size FROM tree_stats WHERE tree_oid = ?", []any{oid}, func(r *rows) {
		s = Stats{Keys: r.num(0), Bytes: r.num(1), HasKeys: !r.null(0), HasBytes: !r.null(1)}
	})
	return s, ok, err
}

// PutTreeStats caches what is known of trees, by tree id; what was known before and is
// not given stays. The rows used longest ago are dropped beyond 100,000.
func (tx *Tx) PutTreeStats(stats map[string]Stats) error {
	if err := tx.writable(); err != nil || len(stats) == 0 {
		return err
	}
	for oid, s := range stats {
		var keys, bytes any
		if s.HasKeys {
			keys = s.Keys
		}
		if s.HasBytes {
			bytes = s.Bytes
		}
		err := tx.run(`INSERT INTO tree_stats(tree_oid, key_count, byte_size, last_used) VALUES (?, ?, ?, ?)
			ON CONFLICT(tree_oid) DO UPDATE SET key_count = coalesce(excluded.key_count, key_count),
			byte_size = coalesce(excluded.byte_size, byte_size), last_used = excluded.last_used`, oid, keys, bytes, tx.clock())
		if err != nil {
			return err
		}
	}
	return tx.trimTreeStats(maxTreeStats)
}

func (tx *Tx) trimTreeStats(keep int) error {
	n, err := tx.c.int64(bg, "SELECT count(*) FROM tree_stats")
	if err != nil || n <= int64(keep) {
		return err
	}
	return tx.run("DELETE FROM tree_stats WHERE rowid IN (SELECT rowid FROM tree_stats ORDER BY last_used LIMIT ?)", n-int64(keep))
}
