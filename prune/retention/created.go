package retention

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// cursorRef is the cursor of what x_created and x_usage know: the log up to its position,
// and the history of the local main up to its commit.
const cursorRef = "retention:"

// workFor is how long a write transaction works before it ends; what it wrote still has to
// be synced. restFor is how long the store is left alone then: a process that waits for
// the lock asks for it every 25 ms at first. leaseFor is how long a process that works on
// something may be silent before another one takes it for dead. Tests change them.
var (
	workFor  = 20 * time.Millisecond
	restFor  = 30 * time.Millisecond
	leaseFor = 3 * time.Second
)

// batch is how many keys are dealt with between two looks at the clock.
const batch = 100

// keeper brings x_created and x_usage up to date.
type keeper struct {
	ctx   context.Context
	env   *serialize.Env
	names []string
	owner meta.Namespaces

	released time.Time     // when the last write transaction ended
	turn     *mark         // this process has begun to fill; nil: another one, or nobody
	patience time.Duration // how long another process may be silent; 0: leaseFor
}

// catchUp brings what is known of the rows of the collections names up to date: from log
// records behind the cursor, from keys that changed without one, and from the history of
// the local main. Collections that are new are filled, those that are no more are emptied.
// It works in short transactions with rests between them and goes on where an earlier one
// stopped; two at once do no harm. If there is nothing to do it costs a few look-ups and
// writes nothing. On a store that is open for reading it works on copies in memory.
func catchUp(ctx context.Context, env *serialize.Env, names []string) error {
	if env.DB == nil {
		return nil
	}
	names = slices.Clone(names)
	slices.Sort(names)
	k := &keeper{ctx: ctx, env: env, names: names, owner: meta.NamespacesOf(names)}
	for {
		var todo step
		err := env.DB.View(ctx, func(tx *store.Tx) (err error) {
			todo, err = k.next(tx)
			return err
		})
		if err != nil {
			return err
		}
		switch todo {
		case stepNone:
			return k.endTurn()
		case stepBegin:
			if err = k.await(factTurn); err == nil {
				err = k.update(k.begin)
			}
		case stepFill:
			err = k.fill()
		case stepLog:
			err = k.read()
		case stepBirths:
			err = k.births()
		}
		if err != nil && !errors.Is(err, errOvertaken) {
			return err
		}
	}
}

func progress(env *serialize.Env) meta.Progress {
	if env.Progress == nil {
		return meta.NoProgress{}
	}
	return env.Progress
}

// errOvertaken says that another process has done meanwhile what was about to be done.
var errOvertaken = errors.New("another process was faster")

// step is what has to be done next.
type step int

const (
	stepNone   step = iota
	stepBegin       // start to fill
	stepFill        // go on filling
	stepLog         // read the log and keys that changed without a record
	stepBirths      // read the history
)

// next finds out what has to be done, from any transaction.
func (k *keeper) next(tx *store.Tx) (step, error) {
	have, ok, err := tx.Collections()
	if err != nil || !ok && len(k.names) == 0 {
		return stepNone, err
	}
	cur, known, err := tx.LatestCursor(cursorRef)
	if err != nil {
		return stepNone, err
	}
	if !ok || !known || !slices.Equal(have, k.names) {
		return stepBegin, nil
	}
	if lost, err := lost(tx, cur); err != nil || lost {
		return stepBegin, err
	}
	if _, filling, err := readFill(tx); err != nil || filling {
		return stepFill, err
	}
	if pending, err := k.pending(tx, cur); err != nil || pending {
		return stepLog, err
	}
	tip, err := k.tip()
	if err != nil || tip == (gitdb.Hash{}) || tip.String() == cur.Commit {
		return stepNone, err
	}
	return stepBirths, nil
}

// lost reports whether there may have been changes that neither the log nor x_recount
// tells of.
func lost(tx *store.Tx, cur store.Cursor) (bool, error) {
	holds, err := tx.LogHolds(cur.Log)
	if err != nil || !holds {
		return true, err
	}
	g, err := tx.Guard()
	return g != store.GuardHolds, err
}

// pending reports whether there are changes behind the cursor.
func (k *keeper) pending(tx *store.Tx, cur store.Cursor) (bool, error) {
	p, err := tx.LogPosition()
	if err != nil || p != cur.Log {
		return true, err
	}
	keys, err := tx.Recounts(1)
	if err != nil || len(keys) > 0 {
		return true, err
	}
	silent, err := k.silent(tx)
	return len(silent) > 0, err
}

func (k *keeper) tip() (gitdb.Hash, error) {
	id, err := k.env.Repo.Ref(k.ctx, k.env.LocalRef(meta.MainDestination))
	if errors.Is(err, gitdb.ErrRefNotFound) {
		return gitdb.Hash{}, nil
	}
	return id, err
}

// read brings everything up to the end of the log.
func (k *keeper) read() error {
	for {
		done := false
		err := k.update(func(tx *store.Tx) (err error) {
			done, err = k.readIn(tx, deadline())
			return err
		})
		if err != nil || done {
			return err
		}
	}
}

// readIn reads the log and the keys that changed without a record, until the deadline;
// done says that it has got to the end. If something else has to be done first the error
// is errOvertaken.
func (k *keeper) readIn(tx *store.Tx, deadline time.Time) (done bool, err error) {
	cur, err := k.cursor(tx)
	if err != nil {
		return false, err
	}
	late := func() bool { return time.Now().After(deadline) }
	for noted := false; ; noted = true {
		keys, err := tx.Recounts(batch)
		if err != nil {
			return false, err
		}
		if len(keys) == 0 {
			if noted { // where rows are numbered, this was no deletion behind our back
				err = tx.SetGuard()
			}
			if err != nil {
				return false, err
			}
			break
		}
		if err := k.recount(tx, keys, store.KeepAge); err != nil {
			return false, err
		}
		if err := tx.DropRecounts(keys); err != nil || late() {
			return false, err
		}
	}
	for {
		p, err := tx.LogPosition()
		if err != nil {
			return false, err
		}
		if p == cur.Log {
			break
		}
		keys, next, more, err := tx.LogAfter(cur.Log, 2*batch)
		if err != nil {
			return false, err
		}
		list := make([]store.Recount, 0, len(keys))
		for _, c := range keys {
			r := store.Recount{KeyRef: c.KeyRef, Collection: k.owner.Longest(c.Key)}
			if c.Removed {
				r.Age = store.AnewAge
			}
			list = append(list, r)
		}
		if err := tx.Recount(list...); err != nil {
			return false, err
		}
		cur.Log = next
		if err := tx.PutCursor(cur); err != nil {
			return false, err
		}
		if !more {
			break
		}
		if late() {
			return false, nil
		}
	}
	silent, err := k.silent(tx)
	if err != nil {
		return false, err
	}
	for keys := range slices.Chunk(silent, batch) {
		if err := k.recount(tx, keys, store.KeepAge); err != nil || late() {
			return false, err
		}
	}
	return true, nil
}

// cursor returns the cursor if everything but the log is up to date.
func (k *keeper) cursor(tx *store.Tx) (store.Cursor, error) {
	have, ok, err := tx.Collections()
	if err != nil {
		return store.Cursor{}, err
	}
	cur, known, err := tx.LatestCursor(cursorRef)
	if err != nil {
		return cur, err
	}
	if !ok || !known || !slices.Equal(have, k.names) {
		return cur, errOvertaken
	}
	_, filling, err := readFill(tx)
	if err == nil && !filling {
		filling, err = lost(tx, cur)
	}
	if err == nil && filling {
		err = errOvertaken
	}
	return cur, err
}

// silent returns keys of collections to which the peer has given a row without saying so.
func (k *keeper) silent(tx *store.Tx) ([]meta.KeyRef, error) {
	keys, err := tx.Silent()
	return slices.DeleteFunc(keys, func(r meta.KeyRef) bool { return k.owner.Longest(r.Key) == "" }), err
}

func (k *keeper) recount(tx *store.Tx, keys []meta.KeyRef, age store.Age) error {
	list := make([]store.Recount, len(keys))
	for i, r := range keys {
		list[i] = store.Recount{KeyRef: r, Collection: k.owner.Longest(r.Key), Age: age}
	}
	return tx.Recount(list...)
}

func deadline() time.Time { return time.Now().Add(workFor) }
