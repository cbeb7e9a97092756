package retention

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/git-meta/git-meta-go/store"
)

// factTurn is there while a process that has begun a fill brings everything up to date. In
// worktrees with different manifests others want other collections: they wait for it,
// since two that take turns before they are done would go on for ever.
const factTurn = "retention:turn"

// mark is a fact that one process owns: a name that it has given itself, and a number that
// grows as long as it is alive.
type mark struct {
	fact, name string
	n          int
}

func newMark(fact string) *mark { return &mark{fact: fact, name: rand.Text()} }

// own reports whether the fact is m's, also where there is none yet.
func (m *mark) own(tx *store.Tx) (ok bool, err error) {
	text, ok, err := tx.Fact(m.fact)
	return m.n == 0 || ok && strings.HasPrefix(text, m.name), err
}

// write says that the process is alive.
func (m *mark) write(tx *store.Tx) error {
	m.n++
	return tx.PutFact(m.fact, fmt.Sprint(m.name, " ", m.n))
}

// await waits while another process works on what the fact says: until it is gone, or has
// been the same for some seconds; each time longer.
func (k *keeper) await(fact string) error {
	if k.patience == 0 {
		k.patience = leaseFor
	}
	var seen string
	for since := time.Now(); time.Since(since) < k.patience; {
		text, ok := "", false
		err := k.env.DB.View(k.ctx, func(tx *store.Tx) (err error) {
			text, ok, err = tx.Fact(fact)
			return err
		})
		if err != nil || !ok {
			return err
		}
		if text != seen {
			seen, since = text, time.Now()
		}
		if err := sleep(k.ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	k.patience = min(2*k.patience, time.Minute)
	return nil
}

// endTurn lets others begin.
func (k *keeper) endTurn() error {
	m := k.turn
	if m == nil {
		return nil
	}
	k.turn = nil
	return k.update(func(tx *store.Tx) error {
		if own, err := m.own(tx); err != nil || !own {
			return err
		}
		return tx.DeleteFact(m.fact)
	})
}

// update runs f in a write transaction, not before others had time to write since the
// last one.
func (k *keeper) update(f func(*store.Tx) error) error {
	if err := sleep(k.ctx, time.Until(k.released.Add(restFor))); err != nil {
		return err
	}
	return k.env.DB.UpdateOwn(k.ctx, func(tx *store.Tx) error {
		defer func() { k.released = time.Now() }() // the commit is short, the sync is after it
		if err := f(tx); err != nil || k.turn == nil {
			return err
		}
		if own, err := k.turn.own(tx); err != nil || !own {
			return err // taken for dead; whoever works now is waited for next time
		}
		return k.turn.write(tx)
	})
}

// rest lets others write.
func rest(ctx context.Context) error { return sleep(ctx, restFor) }

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
