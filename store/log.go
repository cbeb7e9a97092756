package store

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/git-meta/git-meta-go/meta"
)

// Position names a record of the log, and with it all records before it. The zero
// Position is before the first record.
type Position struct {
	RowID int64
	// Fingerprint tells the record from another that got the same rowid after a
	// deletion; "" for RowID 0.
	Fingerprint string
}

const (
	logColumns = "rowid, target_type, target_value, key, value, value_type, operation, email, timestamp"
	// Records below 1 are before every position.
	logNewest = "SELECT " + logColumns + " FROM metadata_log WHERE rowid > 0 ORDER BY rowid DESC LIMIT 1"
	logAt     = "SELECT " + logColumns + " FROM metadata_log WHERE rowid = ?"
	logBefore = "SELECT " + logColumns + " FROM metadata_log WHERE rowid < ? AND rowid > 0 ORDER BY rowid DESC LIMIT 1"
)

// position reads logColumns. The fingerprint is the SHA-1 of the eight columns after
// the rowid, each as decimal length in bytes, ':', text.
func (r *rows) position() Position {
	h := sha1.New()
	for i := 1; i <= 8; i++ {
		s := r.str(i)
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return Position{r.num(0), hex.EncodeToString(h.Sum(nil))}
}

// LogPosition returns the position of the newest record.
func (tx *Tx) LogPosition() (p Position, err error) {
	_, err = tx.c.one(bg, logNewest, nil, func(r *rows) { p = r.position() })
	return p, err
}

// LogHolds reports whether the record at p is there and unchanged.
func (tx *Tx) LogHolds(p Position) (bool, error) {
	if p.RowID == 0 {
		return true, nil
	}
	var have Position
	_, err := tx.c.one(bg, logAt, []any{p.RowID}, func(r *rows) { have = r.position() })
	return have == p, err
}

// Change is a key with log records behind a position.
type Change struct {
	meta.KeyRef
	Op    string // newest operation
	RowID int64  // of the newest record
	Time  int64  // ms; of the newest record
}

const changesSQL = "SELECT rowid, target_type, target_value, key, operation, timestamp FROM metadata_log WHERE rowid > ? ORDER BY rowid"

// ChangesSince returns the keys that have records behind p, each once, ordered by
// target type, value, key.
func (tx *Tx) ChangesSince(p Position) ([]Change, error) {
	at := map[meta.KeyRef]int{}
	var out []Change
	for c, err := range each2(tx, changesSQL, []any{p.RowID}, func(r *rows) Change {
		return Change{RowID: r.num(0), KeyRef: r.key(1), Op: r.str(4), Time: r.num(5)}
	}) {
		if err != nil {
			return nil, err
		}
		if i, ok := at[c.KeyRef]; ok {
			out[i] = c
			continue
		}
		at[c.KeyRef] = len(out)
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Change) int { return cmp.Or(a.KeyRef.Compare(b.KeyRef), cmp.Compare(a.RowID, b.RowID)) })
	return out, nil
}

// CountLog counts the log records of a key up to and including rowid upTo.
func (tx *Tx) CountLog(k meta.KeyRef, upTo int64) (int64, error) {
	return tx.c.int64(tx.ctx, "SELECT count(*) FROM metadata_log WHERE target_type = ? AND target_value = ? AND key = ? AND rowid <= ?", append(keyArgs(k), upTo)...)
}

// DeleteLog deletes the log records of keys up to and including rowid upTo, and moves
// the cursors that stood on one of them.
func (tx *Tx) DeleteLog(keys []meta.KeyRef, upTo int64) (n int64, err error) {
	err = tx.MoveCursors(func() error {
		for _, k := range keys {
			d, err := tx.changed("DELETE FROM metadata_log WHERE target_type = ? AND target_value = ? AND key = ? AND rowid <= ?", append(keyArgs(k), upTo)...)
			if err != nil {
				return err
			}
			n += d
		}
		return nil
	})
	return n, err
}
