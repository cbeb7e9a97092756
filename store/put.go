package store

import (
	"github.com/git-meta/git-meta-go/meta"
)

// PutOptions changes what [Tx.Put] does besides storing the value.
type PutOptions struct {
	SourceRef    string // the side remote's ref the value comes from: it is never published
	KeepWithheld bool   // leave the key's withheld entry
	NoLog        bool   // write no log record
}

// Put stores a loaded value exactly as given: the row with Time e.Time (never lifted),
// entries with their own times, members with e.Time. Whatever the key held is replaced,
// the key's own tombstone goes (those of members and entries stay: the caller knows
// which still hold), a log record "set" is written. About 20 µs for a new string.
func (tx *Tx) Put(k meta.KeyRef, v meta.Value, e Edit, o PutOptions) error {
	if err := tx.writable(); err != nil {
		return err
	}
	encoded, logged, err := encodeValue(k, v)
	if err != nil {
		return err
	}
	id, err := tx.putRow(k, encoded, v.Type, e.Time, o.SourceRef)
	if err != nil {
		return err
	}
	if v.Type == meta.List {
		for _, entry := range v.Entries {
			if err := tx.addEntry(id, entry); err != nil {
				return err
			}
		}
	} else if v.Type == meta.Set {
		for _, m := range v.Members {
			if err := tx.addMember(id, meta.MemberID(m), m, e.Time); err != nil {
				return err
			}
		}
	}
	if err := tx.dropTombstones(k, meta.KeyTombstone); err != nil {
		return err
	}
	if !o.KeepWithheld {
		if err := tx.DeleteWithheld(k); err != nil {
			return err
		}
	}
	if o.NoLog {
		return tx.noteRecount(k)
	}
	return tx.log(k, opSet, logged, v.Type, e.Email, e.Time)
}

// encodeValue returns the value column of a row and that of a log record.
func encodeValue(k meta.KeyRef, v meta.Value) (encoded, logged string, err error) {
	switch v.Type {
	case meta.String:
		encoded = encodeString(v.String)
		return encoded, logValue(v.String, encoded), checkStorable(k, v.String)
	case meta.List, meta.Set:
		return emptyCollection, emptyCollection, checkStorable(k, v.Items()...)
	}
	return "", "", meta.Invalid("key "+k.Key, "unknown type of value", "")
}

// putRow inserts the row, or replaces it and deletes its children.
func (tx *Tx) putRow(k meta.KeyRef, value string, typ meta.ValueType, ms int64, source string) (int64, error) {
	var ref any
	if source != "" {
		ref = source
	}
	res, err := tx.c.exec(bg, insertRow+" ON CONFLICT DO NOTHING", k.Target.Type, k.Target.Value, k.Key, value, typ, ms, ref)
	if err != nil {
		return 0, err
	}
	if n, err := res.RowsAffected(); n > 0 || err != nil {
		if err != nil {
			return 0, err
		}
		return res.LastInsertId()
	}
	st := state{present: true}
	if st.Row, _, err = tx.Row(k); err != nil {
		return 0, err
	}
	if err := tx.deleteChildren(st.ID); err != nil {
		return 0, err
	}
	return tx.writeRow(st, value, typ, ms, ref)
}
