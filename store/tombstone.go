package store

import (
	"iter"

	"github.com/git-meta/git-meta-go/meta"
)

// tombstoneColumns end with whether x_explicit names the same removal.
const tombstoneColumns = "t.tombstone_type, t.target_type, t.target_value, t.key, t.entry_id, t.value, t.timestamp, t.email"

const explicitColumn = `, EXISTS (SELECT 1 FROM x_explicit x WHERE t.tombstone_type = 'metadata' AND x.target_type = t.target_type
	AND x.target_value = t.target_value AND x.key = t.key AND x.timestamp = t.timestamp)`

func (r *rows) tombstone() meta.Tombstone {
	t := meta.Tombstone{
		Kind: meta.TombstoneKind(r.str(0)), KeyRef: r.key(1), Name: r.str(4), Time: r.num(6), Email: r.str(7), Explicit: r.num(8) != 0,
	}
	if t.Kind == meta.MemberTombstone {
		t.Member = r.str(5)
	}
	return t
}

func (tx *Tx) tombstoneSelect() (string, error) {
	ok, err := tx.has("x_explicit")
	if !ok || err != nil {
		return "SELECT " + tombstoneColumns + ", 0 FROM tombstones t", err
	}
	return "SELECT " + tombstoneColumns + explicitColumn + " FROM tombstones t", nil
}

const tombstoneKinds = "('list_entry', 'metadata', 'set_member')"

// Tombstones returns the tombstones of a key, of all kinds, ordered by kind and name.
func (tx *Tx) Tombstones(k meta.KeyRef) ([]meta.Tombstone, error) {
	if err := tx.knowEmpties(); err != nil || tx.noTombstones {
		return nil, err
	}
	sel, err := tx.tombstoneSelect()
	if err != nil {
		return nil, err
	}
	return collect(tx, sel+" WHERE t.tombstone_type IN "+tombstoneKinds+
		" AND t.target_type = ? AND t.target_value = ? AND t.key = ? ORDER BY t.tombstone_type, t.entry_id", keyArgs(k), (*rows).tombstone)
}

// AllTombstones yields every tombstone, ordered by target type, value, key, kind, name.
func (tx *Tx) AllTombstones() iter.Seq2[meta.Tombstone, error] {
	return func(yield func(meta.Tombstone, error) bool) {
		sel, err := tx.tombstoneSelect()
		if err != nil {
			yield(meta.Tombstone{}, err)
			return
		}
		each(tx, sel+" ORDER BY t.target_type, t.target_value, t.key, t.tombstone_type, t.entry_id", nil, (*rows).tombstone, yield)
	}
}

// PutTombstone stores a tombstone as it is, in place of one with the same kind, key and
// name. It changes no row and writes no log record.
func (tx *Tx) PutTombstone(t meta.Tombstone) error {
	if err := tx.writable(); err != nil {
		return err
	}
	if err := checkStorable(t.KeyRef, t.Name, t.Member); err != nil {
		return err
	}
	return tx.putTombstone(t)
}

func (tx *Tx) putTombstone(t meta.Tombstone) error {
	name, value := t.Name, ""
	switch t.Kind {
	case meta.KeyTombstone:
		name = ""
	case meta.MemberTombstone:
		value = t.Member
	}
	tx.noTombstones = false
	err := tx.run(`INSERT INTO tombstones(tombstone_type, target_type, target_value, key, entry_id, value, timestamp, email) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT(tombstone_type, target_type, target_value, key, entry_id) DO UPDATE SET value = excluded.value, timestamp = excluded.timestamp, email = excluded.email`,
		t.Kind, t.Target.Type, t.Target.Value, t.Key, name, value, t.Time, orUnknown(t.Email))
	if err != nil || t.Kind != meta.KeyTombstone {
		return err
	}
	if !t.Explicit {
		return tx.run("DELETE FROM x_explicit WHERE target_type = ? AND target_value = ? AND key = ?", keyArgs(t.KeyRef)...)
	}
	return tx.run("INSERT OR REPLACE INTO x_explicit(target_type, target_value, key, timestamp) VALUES (?, ?, ?, ?)", append(keyArgs(t.KeyRef), t.Time)...)
}

// DeleteTombstone deletes the tombstone with t's kind, key and name, if it is there.
func (tx *Tx) DeleteTombstone(t meta.Tombstone) error {
	if err := tx.writable(); err != nil {
		return err
	}
	name := t.Name
	if t.Kind == meta.KeyTombstone {
		return tx.dropTombstones(t.KeyRef, meta.KeyTombstone)
	}
	return tx.run("DELETE FROM tombstones WHERE tombstone_type = ? AND target_type = ? AND target_value = ? AND key = ? AND entry_id = ?",
		t.Kind, t.Target.Type, t.Target.Value, t.Key, name)
}

// dropTombstones deletes a key's tombstones of the given kinds.
func (tx *Tx) dropTombstones(k meta.KeyRef, kinds ...meta.TombstoneKind) error {
	if err := tx.knowEmpties(); err != nil || tx.noTombstones {
		return err
	}
	for _, kind := range kinds {
		n, err := tx.changed("DELETE FROM tombstones WHERE tombstone_type = ? AND target_type = ? AND target_value = ? AND key = ?",
			kind, k.Target.Type, k.Target.Value, k.Key)
		if err != nil {
			return err
		}
		if kind == meta.KeyTombstone && n > 0 {
			if err := tx.run("DELETE FROM x_explicit WHERE target_type = ? AND target_value = ? AND key = ?", keyArgs(k)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// tombstoneTime returns the time of one tombstone, 0 if there is none.
func (tx *Tx) tombstoneTime(kind meta.TombstoneKind, k meta.KeyRef, name string) (int64, error) {
	if err := tx.knowEmpties(); err != nil || tx.noTombstones {
		return 0, err
	}
	return tx.c.int64(bg, "SELECT timestamp FROM tombstones WHERE tombstone_type = ? AND target_type = ? AND target_value = ? AND key = ? AND entry_id = ?",
		kind, k.Target.Type, k.Target.Value, k.Key, name)
}

// knowEmpties finds out, once in a transaction, whether there are tombstones and
// withheld entries at all.
func (tx *Tx) knowEmpties() error {
	if tx.emptiesKnown {
		return nil
	}
	withheld := "NOT EXISTS (SELECT 1 FROM x_withheld)"
	if !tx.write { // a store that only the peer has used has no tables of ours
		if ok, err := tx.has("x_withheld"); err != nil {
			return err
		} else if !ok {
			withheld = "1"
		}
	}
	_, err := tx.c.one(bg, "SELECT NOT EXISTS (SELECT 1 FROM tombstones), "+withheld, nil, func(r *rows) {
		tx.noTombstones, tx.noWithheld, tx.emptiesKnown = r.num(0) != 0, r.num(1) != 0, true
	})
	return err
}

func orUnknown(email string) string {
	if email == "" {
		return "unknown"
	}
	return email
}
