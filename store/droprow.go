package store

import "github.com/git-meta/git-meta-go/meta"

// DropRow deletes the key's row, if it is there, because the published tree says that
// the key was removed. It writes the log record of a removal with e's author and time,
// but no tombstone: the tree's own is put beside it by the caller.
func (tx *Tx) DropRow(k meta.KeyRef, e Edit) error {
	if err := tx.writable(); err != nil {
		return err
	}
	row, ok, err := tx.Row(k)
	if !ok || err != nil {
		return err
	}
	if err := tx.deleteRow(row.ID); err != nil {
		return err
	}
	return tx.log(k, opRemove, "", "", e.Email, e.Time)
}
