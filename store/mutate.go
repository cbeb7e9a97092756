package store

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/git-meta/git-meta-go/meta"
)

// Edit says who makes a change, and when.
type Edit struct {
	Email string // "" is stored as "unknown"
	// Time in ms. 0: the clock, lifted strictly above the peer's synchronisation mark
	// and above the time the key had (row, tombstone, withheld entry), so that both
	// programs see the change and it counts as the later one. Other times are stored
	// as they are.
	Time int64
}

// Operations of the log; the peer knows no others.
const (
	opSet       = "set"
	opRemove    = "rm"
	opPush      = "push"
	opPop       = "pop"
	opListRm    = "list_rm"
	opSetAdd    = "set_add"
	opSetRemove = "set_rm"
)

// checkStorable refuses what the peer would choke on: text that is not UTF-8, unknown
// types, a project row with a value.
func checkStorable(k meta.KeyRef, texts ...string) error {
	op := fmt.Sprintf("key %q", k.Key)
	switch {
	case !k.Target.Type.Known():
		return meta.Invalid(op, fmt.Sprintf("unknown target type %q", string(k.Target.Type)), "")
	case k.Target.Type == meta.Project && k.Target.Value != "":
		return meta.Invalid(op, "the project has no value", "")
	case k.Key == "":
		return meta.Invalid("key", "empty", "")
	case !utf8.ValidString(k.Key) || !utf8.ValidString(k.Target.Value):
		return meta.Invalid(op, "not valid UTF-8", "")
	}
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return meta.Invalid(op, "the value is not valid UTF-8", "git-meta holds text; encode binary data first, for example with base64")
		}
	}
	return nil
}

// state is what an edit finds.
type state struct {
	Row
	present bool // there is a row, perhaps a promised one
	exists  bool // there is a value
}

// begin starts an edit of k: it checks the input and reads what is there.
func (tx *Tx) begin(k meta.KeyRef, texts ...string) (st state, err error) {
	if err := tx.writable(); err != nil {
		return st, err
	}
	if err := checkStorable(k, texts...); err != nil {
		return st, err
	}
	st.Row, st.present, err = tx.Row(k)
	st.KeyRef = k
	st.exists = st.present && !st.Promised
	return st, err
}

// stamp returns the time of an edit of st.KeyRef. above are times that the result must
// be above as well.
func (tx *Tx) stamp(st state, e Edit, above ...int64) (int64, error) {
	if e.Time != 0 {
		return e.Time, nil
	}
	if !tx.lastMaterializedOK {
		ms, _, err := tx.LastMaterialized()
		if err != nil {
			return 0, err
		}
		tx.lastMaterialized, tx.lastMaterializedOK = ms, true
	}
	t := max(tx.clock(), tx.lastMaterialized+1)
	if st.present {
		t = max(t, st.Time+1)
	}
	ms, err := tx.tombstoneTime(meta.KeyTombstone, st.KeyRef, "")
	if err != nil {
		return 0, err
	}
	if ms != 0 {
		t = max(t, ms+1)
	}
	w, ok, err := tx.Withheld(st.KeyRef)
	if err != nil {
		return 0, err
	}
	if ok {
		t = max(t, w.EditTime+1)
	}
	for _, a := range above {
		t = max(t, a+1)
	}
	return t, nil
}

const maxLogValue = 1024

// logValue returns what the log holds for a string: the text of the value column, or
// for a string that the peer would have offloaded its blob id.
func logValue(value, encoded string) string {
	if len(value) > maxLogValue {
		return meta.MemberID(value)
	}
	return encoded
}

func (tx *Tx) log(k meta.KeyRef, op, value string, typ meta.ValueType, email string, ms int64) error {
	return tx.run("INSERT INTO "+logInto+" VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		k.Target.Type, k.Target.Value, k.Key, value, typ, op, orUnknown(email), ms)
}

const logInto = "metadata_log(target_type, target_value, key, value, value_type, operation, email, timestamp)"

// deleteChildren deletes the entries and members of row id.
func (tx *Tx) deleteChildren(id int64) error {
	if err := tx.run("DELETE FROM list_values WHERE metadata_id = ?", id); err != nil {
		return err
	}
	return tx.run("DELETE FROM set_values WHERE metadata_id = ?", id)
}

// writeRow inserts or updates the row of st and returns its id.
func (tx *Tx) writeRow(st state, value string, typ meta.ValueType, ms int64, sourceRef any) (int64, error) {
	if st.present {
		return st.ID, tx.run("UPDATE metadata SET value = ?, value_type = ?, last_timestamp = ?, is_git_ref = 0, is_promised = 0, source_ref = ? WHERE rowid = ?",
			value, typ, ms, sourceRef, st.ID)
	}
	res, err := tx.c.exec(bg, insertRow, st.Target.Type, st.Target.Value, st.Key, value, typ, ms, sourceRef)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

const insertRow = "INSERT INTO metadata(target_type, target_value, key, value, value_type, last_timestamp, is_git_ref, is_promised, source_ref) VALUES (?, ?, ?, ?, ?, ?, 0, 0, ?)"

// largeValue is the size from which memory is worth a garbage collection.
const largeValue = 4 << 20

// Set makes the key a string, whatever it was. The value stays in the store whatever
// its size. It drops the key's own tombstone and those of members.
func (tx *Tx) Set(k meta.KeyRef, value string, e Edit) error {
	st, err := tx.begin(k, value)
	if err != nil {
		return err
	}
	if err := tx.checkNew(st); err != nil {
		return err
	}
	ms, err := tx.stamp(st, e)
	if err != nil {
		return err
	}
	if st.present {
		if err := tx.deleteChildren(st.ID); err != nil {
			return err
		}
	}
	encoded := encodeString(value)
	logged := logValue(value, encoded)
	if len(encoded) > largeValue {
		debug.FreeOSMemory() // value is not needed any more, and SQLite makes two copies
	}
	if _, err := tx.writeRow(st, encoded, meta.String, ms, nil); err != nil {
		return err
	}
	if err := tx.dropTombstones(k, meta.KeyTombstone, meta.MemberTombstone); err != nil {
		return err
	}
	if err := tx.DeleteWithheld(k); err != nil {
		return err
	}
	return tx.log(k, opSet, logged, meta.String, e.Email, ms)
}

// Remove deletes the key and leaves an explicit tombstone. Without a row it returns
// [meta.ErrNotFound], unless the key is withheld as local-pruned: it is published, so
// that the tombstone is written all the same. A promised row counts as published too.
func (tx *Tx) Remove(k meta.KeyRef, e Edit) error {
	return tx.remove(k, e, meta.EntryTombstone)
}

func (tx *Tx) remove(k meta.KeyRef, e Edit, drop ...meta.TombstoneKind) error {
	st, err := tx.begin(k)
	if err != nil {
		return err
	}
	if !st.present {
		w, ok, err := tx.Withheld(k)
		if err != nil {
			return err
		}
		if !ok || w.Why != LocalPruned {
			return keyNotFound(k)
		}
	}
	ms, err := tx.stamp(st, e)
	if err != nil {
		return err
	}
	if st.present {
		if err := tx.deleteRow(st.ID); err != nil {
			return err
		}
	}
	if err := tx.dropTombstones(k, drop...); err != nil {
		return err
	}
	if err := tx.putTombstone(meta.Tombstone{Kind: meta.KeyTombstone, KeyRef: k, Time: ms, Email: e.Email, Explicit: true}); err != nil {
		return err
	}
	if err := tx.DeleteWithheld(k); err != nil {
		return err
	}
	return tx.log(k, opRemove, "", "", e.Email, ms)
}

func (tx *Tx) deleteRow(id int64) error {
	if err := tx.deleteChildren(id); err != nil {
		return err
	}
	return tx.run("DELETE FROM metadata WHERE rowid = ?", id)
}

// Clear removes every key that q chooses, as [Tx.Remove] does, local-pruned and
// promised keys included, and returns them in order. Tombstones of their entries and
// members go as well.
func (tx *Tx) Clear(q Query, e Edit) ([]meta.KeyRef, error) {
	if err := tx.writable(); err != nil {
		return nil, err
	}
	q.Promised = true
	var keys []meta.KeyRef
	for row, err := range tx.Rows(q) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, row.KeyRef)
	}
	for w, err := range tx.AllWithheld(LocalPruned) {
		if err != nil {
			return nil, err
		}
		if q.matches(w.KeyRef) {
			keys = append(keys, w.KeyRef)
		}
	}
	slices.SortFunc(keys, meta.KeyRef.Compare)
	keys = slices.Compact(keys)
	for _, k := range keys {
		if err := tx.remove(k, e, meta.EntryTombstone, meta.MemberTombstone); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// matches reports whether q's target, type and namespace choose k.
func (q Query) matches(k meta.KeyRef) bool {
	switch {
	case q.Namespace != "" && !meta.InNamespace(k.Key, q.Namespace):
		return false
	case q.Target == nil:
		return q.Type == "" || q.Type == k.Target.Type
	case *q.Target == k.Target:
		return true
	}
	return q.Subtree && q.Target.Type == meta.Path && k.Target.Type == meta.Path &&
		len(k.Target.Value) > len(q.Target.Value) && k.Target.Value[:len(q.Target.Value)+1] == q.Target.Value+"/"
}

// DeleteRow deletes the key's row with its entries or members, if it is there. It
// leaves no tombstone and no log record.
func (tx *Tx) DeleteRow(k meta.KeyRef) error {
	if err := tx.writable(); err != nil {
		return err
	}
	row, ok, err := tx.Row(k)
	if !ok || err != nil {
		return err
	}
	if err := tx.noteRecount(k); err != nil {
		return err
	}
	return tx.deleteRow(row.ID)
}

// checkNew refuses a key that a tree could not hold: a bad name, or a path that another
// row already has. Rows that are there were accepted before.
func (tx *Tx) checkNew(st state) error {
	if st.exists {
		return nil
	}
	if err := st.Target.Publishable(); err != nil {
		return err
	}
	if err := meta.KeyPublishable(st.Key); err != nil {
		return err
	}
	return tx.checkPath(st.KeyRef)
}

func quoteIndex(i, n int) string {
	entries := "entries"
	if n == 1 {
		entries = "entry"
	}
	return "index " + strconv.Itoa(i) + " out of range (" + strconv.Itoa(n) + " " + entries + ")"
}
