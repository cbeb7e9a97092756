package store

import (
	"fmt"

	"github.com/git-meta/git-meta-go/meta"
)

// emptyCollection stands in the value column of lists and sets.
const emptyCollection = "[]"

// ListPush appends an entry, creating the list if there is none; a string becomes an
// entry with the time 0 first. On a set: [ErrType]. The cost does not depend on the
// list's length. What a caller has to load first, [Tx.EditStarts] tells.
func (tx *Tx) ListPush(k meta.KeyRef, value string, e Edit) error {
	st, err := tx.begin(k, value)
	if err != nil {
		return err
	}
	if st.exists && st.Type != meta.List && st.Type != meta.String {
		return notA(k, meta.List, st.Type)
	}
	if err := tx.checkNew(st); err != nil {
		return err
	}
	ms, err := tx.stamp(st, e)
	if err != nil {
		return err
	}
	old, wasString := "", st.exists && st.Type == meta.String
	if wasString {
		rec, err := tx.Get(k)
		if err != nil {
			return err
		}
		old = rec.Value.String
	}
	id, err := tx.writeRow(st, emptyCollection, meta.List, ms, nil)
	if err != nil {
		return err
	}
	at := ms
	if wasString {
		if err := tx.deleteChildren(id); err != nil {
			return err
		}
		if err := tx.addEntry(id, meta.Entry{Value: old}); err != nil {
			return err
		}
	} else if st.exists {
		newest := int64(-1)
		_, err := tx.c.one(bg, "SELECT timestamp FROM list_values WHERE metadata_id = ? ORDER BY timestamp DESC LIMIT 1", []any{id}, func(r *rows) { newest = r.num(0) })
		if err != nil {
			return err
		}
		at = max(at, newest+1)
	}
	if err := tx.addEntry(id, meta.Entry{Time: at, Value: value}); err != nil {
		return err
	}
	return tx.edited(k, opPush, meta.List, e, ms)
}

func (tx *Tx) addEntry(id int64, e meta.Entry) error {
	return tx.run("INSERT INTO list_values(metadata_id, value, timestamp, is_git_ref) VALUES (?, ?, ?, 0)", id, e.Value, e.Time)
}

// edited ends an edit of a list or set: the key's tombstone and withheld entry go, the
// log record is written.
func (tx *Tx) edited(k meta.KeyRef, op string, typ meta.ValueType, e Edit, ms int64) error {
	if err := tx.dropTombstones(k, meta.KeyTombstone); err != nil {
		return err
	}
	if err := tx.DeleteWithheld(k); err != nil {
		return err
	}
	return tx.log(k, op, emptyCollection, typ, e.Email, ms)
}

// ListPop removes the last entry that equals value and leaves an entry tombstone;
// [meta.ErrNotFound] if there is none.
func (tx *Tx) ListPop(k meta.KeyRef, value string, e Edit) error {
	st, err := tx.beginCollection(k, meta.List, value)
	if err != nil {
		return err
	}
	var row int64
	var entry meta.Entry
	ok, err := tx.c.one(tx.ctx, "SELECT rowid, value, timestamp FROM list_values WHERE metadata_id = ? AND value = ? ORDER BY timestamp DESC, rowid DESC LIMIT 1",
		[]any{st.ID, value}, func(r *rows) { row, entry = r.num(0), meta.Entry{Value: r.str(1), Time: r.num(2)} })
	if err != nil {
		return err
	}
	if !ok {
		return meta.NotFound(fmt.Sprintf("key %q", k.Key), fmt.Sprintf("value %q not in the list", value), "git meta list:rm "+shellWord(k.Target.String())+" "+shellWord(k.Key)+" shows the entries")
	}
	return tx.dropEntry(st, row, entry, opPop, e)
}

// ListRemove removes the entry at index (0 is the first, in the order of time, then
// insertion) and leaves an entry tombstone; [meta.ErrNotFound] if there is none.
func (tx *Tx) ListRemove(k meta.KeyRef, index int, e Edit) error {
	st, err := tx.beginCollection(k, meta.List)
	if err != nil {
		return err
	}
	var row int64
	var entry meta.Entry
	var gitRef, ok bool
	if index >= 0 {
		ok, err = tx.c.one(tx.ctx, "SELECT rowid, value, timestamp, is_git_ref FROM list_values WHERE metadata_id = ? ORDER BY timestamp, rowid LIMIT 1 OFFSET ?",
			[]any{st.ID, index}, func(r *rows) {
				row, entry, gitRef = r.num(0), meta.Entry{Value: r.str(1), Time: r.num(2)}, r.num(3) != 0
			})
		if err != nil {
			return err
		}
	}
	if !ok {
		n, err := tx.c.int64(tx.ctx, "SELECT count(*) FROM list_values WHERE metadata_id = ?", st.ID)
		if err != nil {
			return err
		}
		return meta.NotFound(fmt.Sprintf("key %q", k.Key), quoteIndex(index, int(n)), "git meta list:rm "+shellWord(k.Target.String())+" "+shellWord(k.Key)+" shows the entries")
	}
	if gitRef {
		if entry.Value, err = tx.db.blob(k, entry.Value); err != nil {
			return err
		}
	}
	return tx.dropEntry(st, row, entry, opListRm, e)
}

// beginCollection starts an edit that needs a list or set to be there.
func (tx *Tx) beginCollection(k meta.KeyRef, typ meta.ValueType, texts ...string) (state, error) {
	st, err := tx.begin(k, texts...)
	switch {
	case err != nil:
		return st, err
	case !st.exists:
		return st, keyNotFound(k)
	case st.Type != typ:
		return st, notA(k, typ, st.Type)
	}
	return st, nil
}

func (tx *Tx) dropEntry(st state, row int64, entry meta.Entry, op string, e Edit) error {
	ms, err := tx.stamp(st, e, entry.Time)
	if err != nil {
		return err
	}
	if err := tx.run("DELETE FROM list_values WHERE rowid = ?", row); err != nil {
		return err
	}
	if _, err := tx.writeRow(st, emptyCollection, meta.List, ms, nil); err != nil {
		return err
	}
	if err := tx.putTombstone(meta.Tombstone{Kind: meta.EntryTombstone, KeyRef: st.KeyRef, Name: entry.Name(), Time: ms, Email: e.Email}); err != nil {
		return err
	}
	return tx.edited(st.KeyRef, op, meta.List, e, ms)
}
