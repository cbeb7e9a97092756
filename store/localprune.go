package store

import (
	"math"

	"github.com/git-meta/git-meta-go/meta"
)

// LocalPruneOptions says what is known of the keys that [Tx.LocalPrune] drops.
type LocalPruneOptions struct {
	// UpTo: log records up to and including this rowid go with the rows. Take the log
	// position of the cursor, so that no unpublished change is forgotten.
	UpTo int64
	// Unpublished: the keys are not in the tree and nobody else has them: they go
	// without a withheld entry, and with all their log records.
	Unpublished bool
}

// LocalPrune deletes the rows of keys with their entries, members and log records, and
// writes the entry [LocalPruned] for those that are in the tree: not for keys withheld
// from it, whose entry just goes. It leaves no tombstone. Cursors on deleted log records
// move. It returns how many rows were deleted.
func (tx *Tx) LocalPrune(keys []meta.KeyRef, o LocalPruneOptions) (n int64, err error) {
	if err := tx.writable(); err != nil {
		return 0, err
	}
	upTo := o.UpTo
	if o.Unpublished {
		upTo = math.MaxInt64
	}
	var dropped []meta.KeyRef
	for i, k := range keys {
		if i%1000 == 0 && tx.ctx.Err() != nil {
			return 0, tx.ctx.Err()
		}
		row, ok, err := tx.Row(k)
		if err != nil {
			return 0, err
		}
		if !ok || row.Promised {
			continue
		}
		w, hidden, err := tx.Withheld(k)
		if err != nil {
			return 0, err
		}
		hidden = hidden && (w.Why != LocalPruned && w.Why != Swept && w.Why != Gone)
		if err := tx.deleteRow(row.ID); err != nil {
			return 0, err
		}
		if hidden || o.Unpublished || row.SourceRef != "" {
			err = tx.DeleteWithheld(k)
		} else {
			err = tx.PutWithheld(Withheld{k, row.Time, LocalPruned})
		}
		if err != nil {
			return 0, err
		}
		if err := tx.noteRecount(k); err != nil {
			return 0, err
		}
		dropped = append(dropped, k)
	}
	_, err = tx.DeleteLog(dropped, upTo)
	return int64(len(dropped)), err
}
