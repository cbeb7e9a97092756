package retention

import (
	"slices"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
)

// count is what there is of a collection.
type count struct {
	rows, bytes int64 // live
	wouldPrune  int64 // live rows that a sweep deletes
	leftover    int64 // rows that are not live; a sweep deletes them
}

// counts returns what there is of each collection of p, by name, and what its effective
// bounds would take at now (in ms). It is right as of the last [catchUp], and the error
// is errOvertaken if another process has begun one for other names since. Rows and bytes
// are counters; the rows over an age are counted in an index.
func counts(tx *store.Tx, p *policy, now int64) (map[string]count, error) {
	if err := current(tx, p.names()); err != nil {
		return nil, err
	}
	out := make(map[string]count, len(p.collections))
	for _, d := range p.collections {
		var c count
		var err error
		if c.rows, c.bytes, err = tx.Usage(d.name); err != nil {
			return nil, err
		}
		if c.wouldPrune, err = over(tx, d, c.rows, now); err != nil {
			return nil, err
		}
		out[d.name] = c
	}
	err := eachLeftover(tx, func(s store.SweepRow) {
		if name, ok := p.owner(s.Key); ok {
			if d, _ := p.find(name); d.bounded() {
				c := out[name]
				c.leftover++
				out[name] = c
			}
		}
	})
	return out, err
}

// current returns errOvertaken if what is counted is not the rows of names.
func current(tx *store.Tx, names []string) error {
	have, ok, err := tx.Collections()
	if err == nil && (!ok || !slices.Equal(have, names)) {
		err = errOvertaken
	}
	return err
}

// over returns how many of a collection's live rows its bounds do not keep.
func over(tx *store.Tx, d declared, rows, now int64) (n int64, err error) {
	if d.effective.MaxAgeDays > 0 {
		if n, err = tx.CountCreatedBefore(d.name, d.cutoff(now)); err != nil {
			return 0, err
		}
	}
	if d.effective.MaxRows > 0 {
		n = max(n, rows-d.effective.MaxRows) // both orders agree: the oldest go
	}
	return n, nil
}

// cutoff returns the time in ms from which on rows stay; without a bound before all times.
func (d *declared) cutoff(now int64) int64 {
	if d.effective.MaxAgeDays == 0 {
		return -1 << 63
	}
	return now - d.effective.MaxAgeDays*dayMillis
}

// bounded reports whether anything of the collection may have to go.
func (d *declared) bounded() bool { return d.effective != Bounds{} }

// eachLeftover calls fn for the rows that another clone's retention has dropped.
func eachLeftover(tx *store.Tx, fn func(store.SweepRow)) error {
	const rowsAtOnce = 1000
	var after meta.KeyRef
	for {
		list, err := tx.RetainedRows(after, rowsAtOnce)
		if err != nil {
			return err
		}
		for _, s := range list {
			fn(s)
			after = s.KeyRef
		}
		if len(list) < rowsAtOnce {
			return nil
		}
	}
}
