package store

import (
	"iter"
	"slices"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
)

// Why says why store and tree differ on purpose for a key.
type Why string

// The reasons. The first three have a row here that is not in the tree, the others no
// row here for a key in the tree.
const (
	Pruned      Why = "pruned"  // left the tree by a prune
	TooBig      Why = "too-big" // alone bigger than the rules allow
	Unclear     Why = "unclear" // removed elsewhere by somebody who may not have meant it
	LocalPruned Why = "local"   // the row was dropped here to save room
	Swept       Why = "swept"   // deleted by retention; leaves the tree at the next serialize
	// Retained has a row here that another clone's retention dropped from the tree: it is
	// readable, not live, and goes at this store's next sweep.
	Retained Why = "retention"
	// Gone was deleted by retention when a prune had taken it from the tree already:
	// history, which knows it, is not to bring it back.
	Gone Why = "gone"
)

// Withheld is a key for which store and tree differ on purpose.
type Withheld struct {
	meta.KeyRef
	EditTime int64 // ms; the row's last_timestamp when the entry was written
	Why      Why
}

func (r *rows) withheld() Withheld {
	return Withheld{KeyRef: r.key(0), EditTime: r.num(3), Why: Why(r.str(4))}
}

const withheldSelect = "SELECT target_type, target_value, key, edit_time, why FROM x_withheld"

// Withheld returns the key's entry.
func (tx *Tx) Withheld(k meta.KeyRef) (w Withheld, ok bool, err error) {
	if err := tx.knowEmpties(); err != nil || tx.noWithheld {
		return w, false, err
	}
	ok, err = tx.c.one(bg, withheldSelect+" WHERE target_type = ? AND target_value = ? AND key = ?", keyArgs(k), func(r *rows) { w = r.withheld() })
	return w, ok, err
}

// EditStarts says what an edit of k starts from. load is true where the value is
// published but not here (local-pruned or promised): the caller loads its last
// published value with [Tx.Put], unless it was removed, before it edits a list or set.
// For a promised row without an entry w.Why is empty.
func (tx *Tx) EditStarts(k meta.KeyRef) (w Withheld, load bool, err error) {
	w, ok, err := tx.Withheld(k)
	if err != nil {
		return w, false, err
	}
	row, present, err := tx.Row(k)
	if err != nil {
		return w, false, err
	}
	w.KeyRef = k
	switch {
	case present && row.Promised:
		return w, !ok || w.Why != Swept, nil
	case present:
		return w, false, nil
	}
	return w, ok && w.Why == LocalPruned, nil
}

// PutWithheld stores w in place of the key's entry.
func (tx *Tx) PutWithheld(w Withheld) error {
	if err := tx.writable(); err != nil {
		return err
	}
	if err := tx.noteWithheld(w.KeyRef, w.Why); err != nil {
		return err
	}
	tx.noWithheld = false
	return tx.run("INSERT OR REPLACE INTO x_withheld(target_type, target_value, key, edit_time, why) VALUES (?, ?, ?, ?, ?)", append(keyArgs(w.KeyRef), w.EditTime, w.Why)...)
}

// DeleteWithheld deletes the key's entry, if it has one.
func (tx *Tx) DeleteWithheld(k meta.KeyRef) error {
	if err := tx.writable(); err != nil {
		return err
	}
	if err := tx.knowEmpties(); err != nil || tx.noWithheld {
		return err
	}
	if err := tx.noteWithheld(k, ""); err != nil {
		return err
	}
	return tx.run("DELETE FROM x_withheld WHERE target_type = ? AND target_value = ? AND key = ?", keyArgs(k)...)
}

// whereWhy returns a condition for the given reasons; none means all.
func whereWhy(why []Why) (string, []any) {
	if len(why) == 0 {
		return "", nil
	}
	args := make([]any, len(why))
	for i, w := range why {
		args[i] = w
	}
	return " WHERE why IN (?" + strings.Repeat(", ?", len(why)-1) + ")", args
}

// AllWithheld yields the entries with one of the given reasons, with any if none is
// given, ordered by target type, value, key.
func (tx *Tx) AllWithheld(why ...Why) iter.Seq2[Withheld, error] {
	return func(yield func(Withheld, error) bool) {
		ok, err := tx.has("x_withheld")
		if err != nil {
			yield(Withheld{}, err)
			return
		}
		if !ok {
			return
		}
		cond, args := whereWhy(why)
		each(tx, withheldSelect+cond+" ORDER BY target_type, target_value, key", args, (*rows).withheld, yield)
	}
}

// CountWithheld returns the number of entries with one of the given reasons, of all if
// none is given.
func (tx *Tx) CountWithheld(why ...Why) (int64, error) {
	if ok, err := tx.has("x_withheld"); !ok || err != nil {
		return 0, err
	}
	cond, args := whereWhy(why)
	return tx.c.int64(tx.ctx, "SELECT count(*) FROM x_withheld"+cond, args...)
}

// WithholdPruned writes an entry [Pruned] with the row's time for each of keys that has
// a row with a value.
func (tx *Tx) WithholdPruned(keys []meta.KeyRef) error {
	if err := tx.writable(); err != nil {
		return err
	}
	if len(keys) == 0 {
		return nil
	}
	if err := tx.noteManyWithheld(); err != nil {
		return err
	}
	tx.noWithheld = false
	if !slices.IsSortedFunc(keys, meta.KeyRef.Compare) {
		keys = slices.Clone(keys)
		slices.SortFunc(keys, meta.KeyRef.Compare)
	}
	for n := 0; len(keys) > 0; n++ {
		if n%1000 == 0 && tx.ctx.Err() != nil {
			return tx.ctx.Err()
		}
		// A statement for each target: half the time of one for each key.
		args := []any{keys[0].Target.Type, keys[0].Target.Value}
		i := 0
		for i < len(keys) && i < withholdBatch && keys[i].Target == keys[0].Target {
			args = append(args, keys[i].Key)
			i++
		}
		for i > 1 && len(args) < 2+withholdBatch {
			args = append(args, keys[i-1].Key) // one text for all sizes but 1
		}
		text := withholdOne
		if i > 1 {
			text = withholdMany
		}
		if err := tx.run(text, args...); err != nil {
			return err
		}
		keys = keys[i:]
	}
	return nil
}

const (
	withholdBatch = 8
	withholdSQL   = `INSERT OR REPLACE INTO x_withheld(target_type, target_value, key, edit_time, why)
	SELECT target_type, target_value, key, last_timestamp, 'pruned' FROM metadata WHERE is_promised = 0 AND target_type = ? AND target_value = ? AND key `
	withholdOne  = withholdSQL + "= ?"
	withholdMany = withholdSQL + "IN (?, ?, ?, ?, ?, ?, ?, ?)"
)
