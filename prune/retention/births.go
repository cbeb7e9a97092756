package retention

import (
	"errors"
	"fmt"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// factBirths is a [mark] that is there while a process writes what a long stretch of
// history says. It keeps two from mixing older and newer events.
const factBirths = "retention:births"

// birthBatch is how many events are written in one transaction: about 20 ms.
const birthBatch = 500

// history calls fn for what the commits from→tip did to keys of collections.
func (k *keeper) history(from, tip gitdb.Hash, fn func(serialize.Birth) error) error {
	rd, err := k.env.Repo.Objects(k.ctx)
	if err != nil {
		return err
	}
	return serialize.Births(k.ctx, rd, from, tip, func(b serialize.Birth) error {
		if b.Target.Type == meta.Project || k.owner.Longest(b.Key) == "" {
			return nil
		}
		return fn(b)
	})
}

// apply writes events.
func (k *keeper) apply(tx *store.Tx, list []serialize.Birth) error {
	for _, b := range list {
		var err error
		switch {
		case b.Has:
			err = tx.SetPublished(b.KeyRef, b.Time)
		case b.Lost == serialize.LostRemoval || b.Lost == serialize.LostFork:
			err = tx.Recount(store.Recount{KeyRef: b.KeyRef, Collection: k.owner.Longest(b.Key), Age: store.AnewAge})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// births reads the history of the local main from the cursor's commit on.
func (k *keeper) births() error {
	tip, err := k.tip()
	if err != nil || tip == (gitdb.Hash{}) {
		return err
	}
	a := &applier{keeper: k, claim: newMark(factBirths)}
	err = k.env.DB.View(k.ctx, func(tx *store.Tx) error {
		a.cur, err = k.cursor(tx)
		return err
	})
	if err != nil {
		return err
	}
	from, _ := gitdb.ParseHash(a.cur.Commit)
	bar := progress(k.env)
	bar.Start("Reading when keys were published", 0)
	defer bar.Done()
	err = k.history(from, tip, func(b serialize.Birth) error {
		bar.Add(1)
		if a.list = append(a.list, b); len(a.list) < birthBatch {
			return nil
		}
		return a.write(a.cur.Commit)
	})
	if err == nil {
		err = a.write(tip.String())
	}
	if errors.Is(err, gitdb.ErrObjectMissing) && a.cur.Commit != "" {
		// git has collected the old commit: from the beginning.
		return k.update(func(tx *store.Tx) error {
			cur, err := k.cursor(tx)
			if err != nil {
				return err
			}
			cur.Commit = ""
			return setCursor(tx, cur)
		})
	}
	if err != nil && !errors.Is(err, errOvertaken) {
		return fmt.Errorf("read the history of %s: %w", k.env.LocalRef(meta.MainDestination), err)
	}
	return err
}

// applier writes a stretch of history in several transactions.
type applier struct {
	*keeper
	cur   store.Cursor // before it
	list  []serialize.Birth
	claim *mark
}

// write writes the list; commit is where the cursor is afterwards.
func (a *applier) write(commit string) error {
	last := commit != a.cur.Commit
	if !last && a.claim.n == 0 {
		if err := a.await(factBirths); err != nil {
			return err
		}
	}
	for {
		done := false
		err := a.update(func(tx *store.Tx) (err error) {
			done, err = a.writeIn(tx, commit, last)
			return err
		})
		if err != nil {
			return err
		}
		if done {
			a.list = a.list[:0]
			return nil
		}
	}
}

func (a *applier) writeIn(tx *store.Tx, commit string, last bool) (done bool, err error) {
	// The rows that these commits brought must be counted before they get their times.
	if done, err := a.readIn(tx, deadline()); err != nil || !done {
		return false, err
	}
	cur, err := a.cursor(tx)
	if err != nil {
		return false, err
	}
	own, err := a.claim.own(tx)
	if err != nil {
		return false, err
	}
	if cur.Commit != a.cur.Commit || !own {
		return false, errOvertaken
	}
	if err := a.apply(tx, a.list); err != nil {
		return false, err
	}
	if !last {
		return true, a.claim.write(tx)
	}
	if err := tx.DeleteFact(factBirths); err != nil {
		return false, err
	}
	cur.Commit = commit
	return true, setCursor(tx, cur)
}
