package store

import (
	"strings"

	"github.com/git-meta/git-meta-go/meta"
)

// factCollections holds the names of the collections that x_created is kept for, one a
// line. Without it nothing is noted: repositories without collections pay one look-up a
// transaction.
const factCollections = "retention:names"

// Collections returns the names of the collections that x_created is kept for; ok is false
// if it is not kept.
func (tx *Tx) Collections() (names []string, ok bool, err error) {
	text, ok, err := tx.Fact(factCollections)
	if err != nil || !ok {
		return nil, false, err
	}
	if text != "" {
		names = strings.Split(text, "\n")
	}
	return names, true, nil
}

// SetCollections stores the names of the collections that x_created is kept for. The
// caller brings it up to date.
func (tx *Tx) SetCollections(names []string) error {
	tx.collectionsKnown = false
	return tx.PutFact(factCollections, strings.Join(names, "\n"))
}

// DropCollections forgets what was noted; x_created and x_usage are empty by then.
func (tx *Tx) DropCollections() error {
	if err := tx.DropGuard(); err != nil {
		return err
	}
	for _, text := range []string{"DELETE FROM x_recount", "DELETE FROM x_usage"} {
		if err := tx.run(text); err != nil {
			return err
		}
	}
	tx.collectionsKnown = false
	return tx.DeleteFact(factCollections)
}

// counts reports whether x_created may have to say something of k.
func (tx *Tx) counts(k meta.KeyRef) (bool, error) {
	if !tx.collectionsKnown {
		names, _, err := tx.Collections()
		if err != nil {
			return false, err
		}
		tx.collections, tx.collectionsKnown = meta.NamespacesOf(names), true
	}
	return k.Target.Type != meta.Project && tx.collections.Longest(k.Key) != "", nil
}

// noteRecount notes that k's row changes without a log record.
func (tx *Tx) noteRecount(k meta.KeyRef) error {
	if ok, err := tx.counts(k); !ok || err != nil {
		return err
	}
	return tx.run("INSERT OR IGNORE INTO x_recount(target_type, target_value, key) VALUES (?, ?, ?)", keyArgs(k)...)
}

// The condition is that of the index x_withheld_swept, word for word, so that it is used.
const (
	retainedWhere = " FROM x_withheld w WHERE w.why IN ('swept', 'retention') AND w.why = 'retention'"
	noteRetained  = "INSERT OR IGNORE INTO x_recount(target_type, target_value, key) SELECT w.target_type, w.target_value, w.key" + retainedWhere
)

// noteWithheld notes k if its entry is about to become, or to be no longer, [Retained].
func (tx *Tx) noteWithheld(k meta.KeyRef, why Why) error {
	ok, err := tx.counts(k)
	if !ok || err != nil {
		return err
	}
	if why != Retained {
		had := false
		_, err := tx.c.one(bg, withheldSelect+" WHERE target_type = ? AND target_value = ? AND key = ?", keyArgs(k), func(r *rows) { had = Why(r.str(4)) == Retained })
		if err != nil || !had {
			return err
		}
	}
	return tx.noteRecount(k)
}

// noteManyWithheld is noteWithheld for entries that are replaced in bulk by [Pruned].
func (tx *Tx) noteManyWithheld() error {
	if _, err := tx.counts(meta.KeyRef{}); err != nil || len(tx.collections) == 0 {
		return err
	}
	return tx.run(noteRetained)
}

// Recounts returns up to limit keys that changed without a log record.
func (tx *Tx) Recounts(limit int) ([]meta.KeyRef, error) {
	if ok, err := tx.has("x_recount"); !ok || err != nil {
		return nil, err
	}
	return collect(tx, "SELECT target_type, target_value, key FROM x_recount LIMIT ?", []any{limit}, func(r *rows) meta.KeyRef { return r.key(0) })
}

// DropRecounts forgets keys that [Tx.Recounts] has returned.
func (tx *Tx) DropRecounts(keys []meta.KeyRef) error {
	if err := tx.ownWritable(); err != nil {
		return err
	}
	for _, k := range keys {
		if err := tx.run("DELETE FROM x_recount WHERE target_type = ? AND target_value = ? AND key = ?", keyArgs(k)...); err != nil {
			return err
		}
	}
	return nil
}

// LogKey is a key with records in a part of the log.
type LogKey struct {
	meta.KeyRef
	Removed bool // one of them is a removal
}

const logPartSQL = "SELECT rowid, target_type, target_value, key, operation FROM metadata_log WHERE rowid > ? ORDER BY rowid LIMIT ?"

// LogAfter returns the keys of up to limit records behind p, each once, in the order of
// their first record, and the position behind those records; more is false where they
// were fewer than limit.
func (tx *Tx) LogAfter(p Position, limit int) (keys []LogKey, next Position, more bool, err error) {
	next = p
	last, n := int64(0), 0
	at := map[meta.KeyRef]int{}
	for c, err := range each2(tx, logPartSQL, []any{p.RowID, limit}, func(r *rows) Change {
		return Change{RowID: r.num(0), KeyRef: r.key(1), Op: r.str(4)}
	}) {
		if err != nil {
			return nil, p, false, err
		}
		n, last = n+1, c.RowID
		i, ok := at[c.KeyRef]
		if !ok {
			i = len(keys)
			at[c.KeyRef], keys = i, append(keys, LogKey{KeyRef: c.KeyRef})
		}
		keys[i].Removed = keys[i].Removed || c.Op == opRemove
	}
	if n == 0 {
		return nil, p, false, nil
	}
	_, err = tx.c.one(bg, logAt, []any{last}, func(r *rows) { next = r.position() })
	return keys, next, n == limit, err
}
