package retention

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
)

// passRows is how many rows of a collection go in one pass.
const passRows = 1000

// Sweep deletes what the effective bounds no longer keep, and the rows that another
// clone's retention has dropped: for good, the oldest first, without a tombstone or a log
// record. Project rows, and collections without bounds or not in the manifest, are left
// alone. It works in passes of at most 1000 rows of each collection, these in
// transactions of some 30 ms with rests between them, so that other programs can write;
// counters and watermark change in the same transactions. It may be interrupted at any
// time (the result then says what was done so far) and two may run at once. The next
// serialize takes the same keys out of the published trees.
//
// The moment that ages are counted from is that of the call. Bounds that change meanwhile
// end the sweep of their collection; Done is false then. Unless o.Confirmed is set, or it
// is a dry run, the sweep confirms the bounds of what it sweeps ([Accept]).
//
// The error is [meta.ErrNotFound] or [meta.ErrInvalid] if a named collection is not
// declared or its manifest entry is at fault.
func Sweep(ctx context.Context, env *serialize.Env, o SweepOptions) (*SweepResult, error) {
	s, err := newSweeper(ctx, env, o)
	if err != nil {
		return nil, err
	}
	if env.DB == nil || len(s.targets) == 0 {
		return &s.res, nil
	}
	if o.DryRun {
		err = retry(ctx, func() error {
			if err := s.recheck(); err != nil {
				return err
			}
			return s.preview()
		})
	} else if err = s.confirm(); err == nil {
		bar := progress(env)
		bar.Start("Sweeping rows", 0)
		err = s.sweep()
		bar.Done()
	}
	s.sum()
	return &s.res, err
}

func newSweeper(ctx context.Context, env *serialize.Env, o SweepOptions) (*sweeper, error) {
	p, err := caughtUp(ctx, env)
	if err != nil {
		return nil, err
	}
	s := &sweeper{ctx: ctx, env: env, o: o, now: nowMillis(env), names: p.names(), pace: newPace()}
	s.owner = meta.NamespacesOf(s.names)
	s.res.Done = true
	s.targets, err = p.targets(o)
	return s, err
}

// targets returns what is to be swept.
func (p *policy) targets(o SweepOptions) ([]*target, error) {
	chosen, err := p.choose(o.Collections)
	if err != nil {
		return nil, err
	}
	var out []*target
	for _, d := range chosen {
		switch {
		case !d.bounded() && d.problem != nil && len(o.Collections) > 0:
			return nil, d.problem
		case d.bounded() && (d.confirmed || !o.Confirmed):
			out = append(out, &target{declared: d, swept: Swept{Collection: d.name}})
		}
	}
	return out, nil
}

// target is a collection that is being swept.
type target struct {
	declared
	swept  Swept       // so far
	after  meta.KeyRef // leftover rows up to here are dealt with
	noMore bool        // there are no leftover rows behind
	quota  int64       // rows it may still lose in this pass
	done   bool        // it is within its bounds
	ended  bool        // its bounds have changed
}

type sweeper struct {
	ctx     context.Context
	env     *serialize.Env
	o       SweepOptions
	now     int64
	names   []string
	owner   meta.Namespaces // of names
	targets []*target
	res     SweepResult
	pace    *pace

	released time.Time // when the last transaction ended, but for its commit
}

// left returns how many rows may still be deleted under the limit.
func (s *sweeper) left() int64 {
	if s.o.Limit <= 0 {
		return 1 << 62
	}
	n := s.o.Limit
	for _, t := range s.targets {
		n -= t.swept.Rows + t.swept.Leftover
	}
	return n
}

// sum makes the result of what was swept of each collection.
func (s *sweeper) sum() {
	for _, t := range s.targets {
		s.res.add(t.swept)
	}
}

func (r *SweepResult) add(c Swept) {
	if c.Rows+c.Leftover == 0 {
		return
	}
	r.Collections = append(r.Collections, c)
	r.Rows, r.Bytes, r.Leftover = r.Rows+c.Rows, r.Bytes+c.Bytes, r.Leftover+c.Leftover
}

// confirm notes that the automatic sweep may act on these bounds.
func (s *sweeper) confirm() error {
	open := slices.ContainsFunc(s.targets, func(t *target) bool { return !t.confirmed })
	if s.o.Confirmed || !open {
		return nil
	}
	return s.env.DB.Update(s.ctx, func(tx *store.Tx) error {
		for _, t := range s.targets {
			if err := confirm(tx, t.declared); err != nil {
				return err
			}
		}
		return nil
	})
}

// sweep does passes until nothing is left to do.
func (s *sweeper) sweep() error {
	for s.o.Passes == 0 || s.res.Passes < s.o.Passes {
		if err := s.recheck(); err != nil {
			return err
		}
		deleted, err := s.pass()
		if len(deleted.Collections) > 0 {
			s.res.Passes++
			deleted.Passes = 1
			progress(s.env).Add(int(deleted.Rows + deleted.Leftover))
			if s.o.Pass != nil {
				s.o.Pass(deleted)
			}
		}
		if err != nil {
			s.res.Done = false
			return err
		}
		if len(deleted.Collections) == 0 || s.left() <= 0 || !s.active() {
			break
		}
	}
	return s.finished()
}

// active reports whether a collection may have more to delete.
func (s *sweeper) active() bool {
	return slices.ContainsFunc(s.targets, func(t *target) bool { return !t.done && !t.ended })
}

// recheck brings the counts up to date and ends the sweep of collections whose bounds are
// no longer those it began with.
func (s *sweeper) recheck() error {
	p, err := caughtUp(s.ctx, s.env)
	if err != nil {
		return err
	}
	same := slices.Equal(p.names(), s.names)
	for _, t := range s.targets {
		if d, ok := p.find(t.name); !same || !ok || d.hash != t.hash {
			t.ended = true
		}
	}
	return nil
}

// finished finds out whether anything is left over a bound.
func (s *sweeper) finished() error {
	return s.env.DB.View(s.ctx, func(tx *store.Tx) error {
		for _, t := range s.targets {
			if t.done {
				continue
			}
			rows, err := t.next(tx, s, 1)
			if err != nil {
				return err
			}
			if len(rows) > 0 || t.ended {
				s.res.Done = false
			}
		}
		return nil
	})
}

// preview counts what the passes of a sweep would delete.
func (s *sweeper) preview() error {
	return s.env.DB.View(s.ctx, func(tx *store.Tx) error {
		if err := current(tx, s.names); err != nil {
			return err
		}
		left := make([]count, len(s.targets))
		for i, t := range s.targets {
			t.swept = Swept{Collection: t.name}
			rows, _, err := tx.Usage(t.name)
			if err != nil {
				return err
			}
			if left[i].wouldPrune, err = over(tx, t.declared, rows, s.now); err != nil {
				return err
			}
		}
		if err := eachLeftover(tx, func(r store.SweepRow) {
			name := s.owner.Longest(r.Key)
			if i := slices.IndexFunc(s.targets, func(t *target) bool { return t.name == name }); i >= 0 {
				left[i].leftover++
			}
		}); err != nil {
			return err
		}
		for s.res.Passes = 0; s.o.Passes == 0 || s.res.Passes < s.o.Passes; s.res.Passes++ {
			any := false
			for i, t := range s.targets {
				quota := min(passRows, s.left())
				gone := min(quota, left[i].leftover)
				rows := min(quota-gone, left[i].wouldPrune)
				t.swept.Leftover, left[i].leftover = t.swept.Leftover+gone, left[i].leftover-gone
				t.swept.Rows, left[i].wouldPrune = t.swept.Rows+rows, left[i].wouldPrune-rows
				any = any || gone+rows > 0
			}
			if !any {
				break
			}
		}
		for i, t := range s.targets {
			s.res.Done = s.res.Done && left[i].wouldPrune+left[i].leftover == 0
			var err error
			if t.swept.Bytes, err = tx.BytesOfOldest(t.name, s.now, t.swept.Rows); err != nil {
				return err
			}
		}
		return nil
	})
}

// retry runs f again if another process has changed meanwhile what is counted.
func retry(ctx context.Context, f func() error) error {
	for i := 0; ; i++ {
		if err := f(); !errors.Is(err, errOvertaken) || i == 10 {
			return err
		}
		if err := rest(ctx); err != nil {
			return err
		}
	}
}
