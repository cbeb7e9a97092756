package retention

import (
	"context"
	"slices"
	"strconv"

	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
)

// factSweptAt is when an automatic sweep was last done here, in ms.
const factSweptAt = "retention:swept-at"

// Due reports whether an automatic sweep has something to look at: there are collections
// with bounds, and the last one was done meta:retention:interval ago (or in the future:
// then the clock was wrong). It costs a look-up, and if the time has come the reading of
// the manifest. next is when it will be time (ms); 0 where it is switched off, or where
// there is nothing to sweep. It works on a store that is open for reading.
func Due(ctx context.Context, env *serialize.Env) (due bool, next int64, err error) {
	if env.DB == nil {
		return false, 0, nil
	}
	err = env.DB.View(ctx, func(tx *store.Tx) error {
		due, next, err = dueIn(tx, nowMillis(env))
		if err != nil || !due {
			return err
		}
		p, err := loadPolicy(ctx, env, tx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(p.collections, func(d declared) bool { return d.bounded() }) {
			// Nothing to sweep. What was counted for a manifest that is gone can go.
			_, counted, err := tx.Collections()
			due = counted && len(p.collections) == 0
			return err
		}
		return nil
	})
	return due, next, err
}

func dueIn(tx *store.Tx, now int64) (due bool, next int64, err error) {
	every, err := interval(tx)
	if err != nil {
		err = nil // a value that makes no sense: the default
	}
	if every == 0 {
		return false, 0, nil
	}
	text, ok, err := tx.Fact(factSweptAt)
	if err != nil {
		return false, 0, err
	}
	at, bad := strconv.ParseInt(text, 10, 64)
	if !ok || bad != nil {
		return true, now, nil
	}
	next = at + every.Milliseconds()
	return now >= next || now < at, next, nil
}

// AutoSweep does one pass over the collections whose bounds have been confirmed here, if
// one is due (meta:retention:interval). Of the others it counts what would go; that, too,
// only when it is due, and in a large store only once somebody has had it counted, which
// takes 10 s for 100,000 rows the first time. It costs next to nothing where it is not, or where there is no
// manifest. If the manifest cannot be read that is an error, and it is tried again after
// the interval.
func AutoSweep(ctx context.Context, env *serialize.Env) (*AutoResult, error) {
	res := &AutoResult{}
	due, next, err := Due(ctx, env)
	res.Next = next
	if err == nil && !due {
		return res, nil
	}
	if err == nil {
		res.Uncounted, err = uncounted(ctx, env)
	}
	if err == nil && len(res.Uncounted) == 0 {
		var p *policy
		if p, err = caughtUp(ctx, env); err == nil && len(p.collections) == 0 {
			return res, catchUp(ctx, env, nil)
		}
		if err == nil {
			err = res.sweep(ctx, env)
		}
	}
	if ctx.Err() != nil || env.DB == nil {
		return res, err
	}
	// After an error, too: it would be the same after every serialize.
	now := nowMillis(env)
	stamp := env.DB.Update(ctx, func(tx *store.Tx) error {
		if every, _ := interval(tx); every > 0 {
			res.Next = now + every.Milliseconds()
		}
		return tx.PutFact(factSweptAt, strconv.FormatInt(now, 10))
	})
	if err == nil {
		err = stamp
	}
	return res, err
}

// countAtOnce is the number of keys in a store up to which AutoSweep counts the rows of
// collections that it may not sweep.
var countAtOnce int64 = 20_000

// uncounted returns the collections with bounds if none of them is confirmed, their rows
// are not counted yet, and the store is large.
func uncounted(ctx context.Context, env *serialize.Env) (names []string, err error) {
	err = env.DB.View(ctx, func(tx *store.Tx) error {
		rows, _, err := tx.Counts()
		if err != nil || rows <= countAtOnce {
			return err
		}
		p, err := loadPolicy(ctx, env, tx)
		if err != nil {
			return err
		}
		have, ok, err := tx.Collections()
		if err != nil {
			return err
		}
		_, filling, err := readFill(tx)
		if err != nil || ok && !filling && slices.Equal(have, p.names()) {
			return err
		}
		for _, d := range p.collections {
			switch {
			case d.bounded() && d.confirmed:
				names = nil
				return nil
			case d.bounded():
				names = append(names, d.name)
			}
		}
		return nil
	})
	return names, err
}

func (res *AutoResult) sweep(ctx context.Context, env *serialize.Env) error {
	swept, err := Sweep(ctx, env, SweepOptions{Passes: 1, Confirmed: true})
	if swept != nil && swept.Rows+swept.Leftover > 0 {
		res.Swept = swept
	}
	if err != nil {
		return err
	}
	return look(ctx, env, func(tx *store.Tx, p *policy) error {
		res.Unconfirmed = nil
		found, err := p.counts(tx, env)
		if err != nil {
			return err
		}
		for _, d := range p.collections {
			if c := found[d.name]; d.bounded() && !d.confirmed && c.wouldPrune > 0 {
				res.Unconfirmed = append(res.Unconfirmed, p.stateOf(d, c))
			}
		}
		return nil
	})
}
