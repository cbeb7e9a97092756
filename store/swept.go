package store

import "time"

// SweptKey is a key that retention deleted here and that leaves the published trees at
// the next serialize.
type SweptKey struct {
	Withheld
	// Again: there is a row after all, which the peer wrote: an ordinary change.
	Again bool
}

// The condition is that of the index x_withheld_swept, word for word, so that it is used.
const (
	sweptWhere = " x_withheld w WHERE w.why IN ('swept', 'retention') AND w.why = 'swept'"
	anySwept   = "SELECT EXISTS (SELECT 1 FROM" + sweptWhere + ")"
	allSwept   = `SELECT w.target_type, w.target_value, w.key, w.edit_time, w.why,
	EXISTS (SELECT 1 FROM metadata m WHERE m.target_type = w.target_type AND m.target_value = w.target_value AND m.key = w.key AND m.is_promised = 0 AND m.source_ref IS NULL)
	FROM` + sweptWhere + " ORDER BY w.target_type, w.target_value, w.key"
)

// HasSwept reports whether a key has the entry [Swept]: one look-up in an index.
func (tx *Tx) HasSwept() (bool, error) {
	if ok, err := tx.has("x_withheld"); !ok || err != nil {
		return false, err
	}
	n, err := tx.c.int64(tx.ctx, anySwept)
	return n != 0, err
}

// SweptKeys returns the keys with the entry [Swept], by target type, value, key.
func (tx *Tx) SweptKeys() ([]SweptKey, error) {
	if ok, err := tx.HasSwept(); !ok || err != nil {
		return nil, err
	}
	return collect(tx, allSwept, nil, func(r *rows) SweptKey { return SweptKey{r.withheld(), r.num(5) != 0} })
}

// EndSwept deletes the entries of keys, a result of [Tx.SweptKeys], that are still the
// same: of keys swept again since the entry stays. It stops after d and returns how many
// of keys it has dealt with.
func (tx *Tx) EndSwept(keys []SweptKey, d time.Duration) (n int, err error) {
	if err := tx.writable(); err != nil {
		return 0, err
	}
	start := time.Now()
	for n < len(keys) {
		if n%100 == 99 && time.Since(start) > d {
			break
		}
		k := keys[n]
		if err := tx.run("DELETE FROM x_withheld WHERE target_type = ? AND target_value = ? AND key = ? AND why = 'swept' AND edit_time = ?", append(keyArgs(k.KeyRef), k.EditTime)...); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
