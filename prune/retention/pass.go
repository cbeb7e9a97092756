package retention

import (
	"errors"
	"time"

	"github.com/git-meta/git-meta-go/store"
)

// pass deletes up to passRows rows of each collection, in as many transactions as that
// takes, and returns what it deleted.
func (s *sweeper) pass() (SweepResult, error) {
	before := make([]Swept, len(s.targets))
	for i, t := range s.targets {
		before[i], t.quota = t.swept, passRows
	}
	var err error
	for again := true; again && err == nil && s.active(); {
		again, err = s.transaction()
		if errors.Is(err, errOvertaken) {
			again, err = true, s.recheck()
		}
	}
	var out SweepResult
	for i, t := range s.targets {
		b := before[i]
		out.add(Swept{t.name, t.swept.Rows - b.Rows, t.swept.Bytes - b.Bytes, t.swept.Leftover - b.Leftover})
	}
	return out, err
}

// transaction goes on with a pass, for as long as the store may be locked; again says
// that the pass is not over.
func (s *sweeper) transaction() (again bool, err error) {
	k := &keeper{ctx: s.ctx, env: s.env, names: s.names, owner: s.owner}
	trial := make([]target, len(s.targets)) // what becomes of the targets if it is committed
	if err := sleep(s.ctx, time.Until(s.released.Add(restFor))); err != nil {
		return false, err
	}
	held, err := s.env.DB.UpdateBatch(s.ctx, func(tx *store.Tx) error {
		s.pace.begin()
		defer func() { s.released = time.Now() }()
		for i, t := range s.targets {
			trial[i] = *t
		}
		upToDate, err := k.readIn(tx, s.pace.deadline)
		if err != nil || !upToDate {
			again = true
			return err
		}
		deleted := false
		err = tx.MoveCursors(func() error {
			left := s.left()
			for i := range trial {
				t := &trial[i]
				for !t.done && !t.ended && t.quota > 0 && left > 0 {
					if deleted && s.pace.late() {
						again = true
						return nil
					}
					n, err := t.some(tx, s, k, left)
					if err != nil {
						return err
					}
					left, deleted = left-n, deleted || n > 0
				}
			}
			return nil
		})
		if err != nil || !deleted {
			return err
		}
		if err := tx.SetGuard(); err != nil {
			return err
		}
		return tx.Stamp()
	})
	s.pace.end(held)
	if err == nil {
		for i, t := range s.targets {
			*t = trial[i]
		}
	}
	return again, err
}

// some deletes a few rows of the collection and returns how many.
func (t *target) some(tx *store.Tx, s *sweeper, k *keeper, left int64) (int64, error) {
	rows, err := t.next(tx, s, min(s.pace.rows(), t.quota, left))
	if err != nil {
		return 0, err
	}
	if len(rows) == 0 {
		t.done = true
		return 0, nil
	}
	if rows[0].ID == 0 { // the entry is out of date
		return 0, tx.Recount(store.Recount{KeyRef: rows[0].KeyRef, Collection: k.owner.Longest(rows[0].Key)})
	}
	start := time.Now()
	if err := tx.SweepRows(rows); err != nil {
		return 0, err
	}
	s.pace.took(len(rows), time.Since(start))
	for _, r := range rows {
		if r.Leftover {
			t.swept.Leftover++
		} else {
			t.swept.Rows++
			t.swept.Bytes += r.Bytes
		}
	}
	n := int64(len(rows))
	t.quota -= n
	return n, nil
}

// next returns up to n rows of the collection that have to go: leftover ones first, then
// those that its bounds do not keep, the oldest first. A row without an ID comes alone.
func (t *target) next(tx *store.Tx, s *sweeper, n int64) ([]store.SweepRow, error) {
	for !t.noMore {
		const rowsAtOnce = 200
		list, err := tx.RetainedRows(t.after, rowsAtOnce)
		if err != nil {
			return nil, err
		}
		var out []store.SweepRow
		for _, r := range list {
			if int64(len(out)) == n {
				return out, nil
			}
			if t.after = r.KeyRef; s.owner.Longest(r.Key) == t.name {
				out = append(out, r)
			}
		}
		t.noMore = len(list) < rowsAtOnce
		if len(out) > 0 {
			return out, nil
		}
	}
	list, err := tx.Oldest(t.name, s.now, int(n))
	if err != nil {
		return nil, err
	}
	rows, _, err := tx.Usage(t.name)
	if err != nil {
		return nil, err
	}
	cutoff, bytes := t.cutoff(s.now), int64(0)
	for i, r := range list {
		keep := r.Time >= cutoff && (t.effective.MaxRows == 0 || rows-int64(i) <= t.effective.MaxRows)
		// Much to delete takes long even where the rows are few.
		bytes += r.Bytes
		if keep || i > 0 && (bytes > maxBytesAtOnce || r.ID == 0) {
			return list[:i], nil
		}
		if r.ID == 0 {
			return list[:1], nil
		}
	}
	return list, nil
}

const maxBytesAtOnce = 32 << 10

// pace keeps transactions short: it learns how long a row takes, and how long a commit.
type pace struct {
	work     time.Duration // how long a transaction may work before it ends
	row      time.Duration // how long a row takes
	deadline time.Time
	longest  time.Duration // for which the store was locked
}

func newPace() *pace { return &pace{work: workFor, row: 200 * time.Microsecond} }

func (p *pace) begin() { p.deadline = time.Now().Add(p.work) }

func (p *pace) late() bool { return time.Now().After(p.deadline) }

// rows returns how many rows to delete before the next look at the clock.
func (p *pace) rows() int64 {
	return max(1, min(200, int64(p.work/6/max(p.row, time.Microsecond))))
}

func (p *pace) took(rows int, d time.Duration) {
	p.row = (p.row + d/time.Duration(rows)) / 2
}

// end is told how long the store was locked: the commit is a part of that.
func (p *pace) end(held time.Duration) {
	p.longest = max(p.longest, held)
	switch {
	case held > 2*workFor:
		p.work = max(p.work/2, workFor/10)
	case held < 3*workFor/2:
		p.work = min(p.work+workFor/10, workFor)
	}
}
