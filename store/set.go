package store

import (
	"fmt"

	"github.com/git-meta/git-meta-go/meta"
)

// SetAdd adds a member, creating the set if there is none; a member that is there gets
// the new time. On a string or list: [ErrType].
func (tx *Tx) SetAdd(k meta.KeyRef, member string, e Edit) error {
	st, err := tx.begin(k, member)
	if err != nil {
		return err
	}
	if st.exists && st.Type != meta.Set {
		return notA(k, meta.Set, st.Type)
	}
	if err := tx.checkNew(st); err != nil {
		return err
	}
	id := meta.MemberID(member)
	removed, err := tx.tombstoneTime(meta.MemberTombstone, k, id)
	if err != nil {
		return err
	}
	ms, err := tx.stamp(st, e, removed)
	if err != nil {
		return err
	}
	row, err := tx.writeRow(st, emptyCollection, meta.Set, ms, nil)
	if err != nil {
		return err
	}
	if err := tx.addMember(row, id, member, ms); err != nil {
		return err
	}
	if removed != 0 {
		if err := tx.DeleteTombstone(meta.Tombstone{Kind: meta.MemberTombstone, KeyRef: k, Name: id}); err != nil {
			return err
		}
	}
	return tx.edited(k, opSetAdd, meta.Set, e, ms)
}

func (tx *Tx) addMember(row int64, id, member string, ms int64) error {
	return tx.run("INSERT INTO set_values(metadata_id, member_id, value, timestamp) VALUES (?, ?, ?, ?) ON CONFLICT(metadata_id, member_id) DO UPDATE SET value = excluded.value, timestamp = excluded.timestamp",
		row, id, member, ms)
}

// SetRemove removes a member and leaves a member tombstone; [meta.ErrNotFound] if it is
// not in the set.
func (tx *Tx) SetRemove(k meta.KeyRef, member string, e Edit) error {
	st, err := tx.beginCollection(k, meta.Set, member)
	if err != nil {
		return err
	}
	id := meta.MemberID(member)
	var added int64
	ok, err := tx.c.one(bg, "SELECT timestamp FROM set_values WHERE metadata_id = ? AND member_id = ?", []any{st.ID, id}, func(r *rows) { added = r.num(0) })
	if err != nil {
		return err
	}
	if !ok {
		return meta.NotFound(fmt.Sprintf("key %q", k.Key), fmt.Sprintf("value %q not in the set", member), "git meta get "+shellWord(k.Target.String())+" "+shellWord(k.Key)+" shows the members")
	}
	ms, err := tx.stamp(st, e, added)
	if err != nil {
		return err
	}
	if err := tx.run("DELETE FROM set_values WHERE metadata_id = ? AND member_id = ?", st.ID, id); err != nil {
		return err
	}
	if _, err := tx.writeRow(st, emptyCollection, meta.Set, ms, nil); err != nil {
		return err
	}
	if err := tx.putTombstone(meta.Tombstone{Kind: meta.MemberTombstone, KeyRef: k, Name: id, Member: member, Time: ms, Email: e.Email}); err != nil {
		return err
	}
	return tx.edited(k, opSetRemove, meta.Set, e, ms)
}
