package store

import (
	"context"
	"errors"
	"time"
)

// UpdateBatch is [DB.Update] for one of many transactions of a long job that can be
// repeated, with other programs in mind: it does not wait for the disk while the store is
// locked, but afterwards, if there was much to write. A power cut may take what f wrote,
// as part of the last changes. held is how long the store was locked.
func (db *DB) UpdateBatch(ctx context.Context, f func(*Tx) error) (held time.Duration, err error) {
	if db.readOnly {
		return 0, db.Update(ctx, f)
	}
	sync := "FULL"
	if db.o.Bulk {
		sync = "NORMAL"
	}
	if err := db.script(ctx, "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0"); err != nil {
		return 0, err
	}
	start := time.Now()
	err = db.Update(ctx, func(tx *Tx) error {
		start = time.Now()
		return f(tx)
	})
	held = time.Since(start)
	after := "PRAGMA synchronous = " + sync + "; PRAGMA wal_autocheckpoint = 1000"
	if held > 5*time.Millisecond {
		after += "; PRAGMA wal_checkpoint(PASSIVE)"
	}
	return held, errors.Join(err, db.script(ctx, after))
}
