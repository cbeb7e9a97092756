package retention

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// factFill is there while x_created is being filled: a [fillState].
const factFill = "retention:fill"

// fillState says how far a fill has got. It goes first through x_created, so that each
// entry is right or gone, then through the rows that have no entry, and then through
// history for those. Changes meanwhile come through the log as usual.
type fillState struct {
	Phase phase
	After [3]string // type, value and key that are done
	Had   []string  // collections that were complete before: their rows keep their creation times
	Full  bool      // entries may be wrong, not only in another collection now
}

type phase int

const (
	fillCounted phase = iota
	fillUncounted
	fillBirths
	filled
)

func (s *fillState) after() meta.KeyRef {
	return meta.KeyRef{Target: meta.Target{Type: meta.TargetType(s.After[0]), Value: s.After[1]}, Key: s.After[2]}
}

func (s *fillState) advance(k meta.KeyRef) {
	s.After = [3]string{string(k.Target.Type), k.Target.Value, k.Key}
}

func readFill(tx *store.Tx) (s *fillState, ok bool, err error) {
	text, ok, err := tx.Fact(factFill)
	if err != nil || !ok {
		return nil, false, err
	}
	s = &fillState{}
	if json.Unmarshal([]byte(text), s) != nil {
		s = &fillState{Full: true} // from the beginning
	}
	return s, true, nil
}

func (s *fillState) write(tx *store.Tx) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return tx.PutFact(factFill, string(text))
}

// begin starts to fill x_created: for the first time, for other names, or because changes
// may have been lost.
func (k *keeper) begin(tx *store.Tx) error {
	have, ok, err := tx.Collections()
	if err != nil {
		return err
	}
	cur, known, err := tx.LatestCursor(cursorRef)
	if err != nil {
		return err
	}
	gone := !known
	if known {
		if gone, err = lost(tx, cur); err != nil {
			return err
		}
	}
	before, filling, err := readFill(tx)
	switch {
	case err != nil:
		return err
	case ok && known && !gone && slices.Equal(have, k.names):
		return nil // somebody was faster
	}
	s := &fillState{Had: have, Full: gone}
	if filling {
		s.Full = s.Full || before.Full
		s.Had = slices.DeleteFunc(before.Had, func(n string) bool { return !slices.Contains(have, n) })
	}
	if !known {
		s.Had = nil
	}
	if gone {
		// First the guard: what goes from now on is noticed.
		if err := tx.SetGuard(); err != nil {
			return err
		}
		if cur.Log, err = tx.LogPosition(); err != nil {
			return err
		}
	}
	if len(s.Had) == 0 {
		cur.Commit = ""
	}
	if err := tx.SetCollections(k.names); err != nil {
		return err
	}
	k.turn = newMark(factTurn) // written by update
	if err := setCursor(tx, cur); err != nil {
		return err
	}
	return s.write(tx)
}

func setCursor(tx *store.Tx, c store.Cursor) error {
	c.Ref, c.PruneChecked = cursorRef, true
	if err := tx.DeleteCursors(cursorRef); err != nil {
		return err
	}
	return tx.PutCursor(c)
}

// fill goes on filling until it is done.
func (k *keeper) fill() error {
	var s *fillState
	err := k.env.DB.View(k.ctx, func(tx *store.Tx) error {
		now, ok, err := readFill(tx)
		if err == nil && !ok {
			err = errOvertaken
		}
		s = now
		return err
	})
	bar := progress(k.env)
	bar.Start("Counting rows of collections", 0)
	defer bar.Done()
	for err == nil && s.Phase != filled {
		if s.Phase == fillBirths {
			err = k.replay(s)
		} else {
			err = k.fillPart(s)
		}
	}
	return err
}

// keysAtOnce is how many keys are read before they are written.
const keysAtOnce = 20 * batch

// fillPart deals with some keys of the phase.
func (k *keeper) fillPart(s *fillState) (err error) {
	if s.Phase == fillUncounted {
		return k.addPart(s)
	}
	var entries []store.Created
	err = k.env.DB.View(k.ctx, func(tx *store.Tx) error {
		entries, err = tx.CreatedAfter(s.after(), keysAtOnce)
		return err
	})
	if err != nil {
		return err
	}
	age := store.KeepAge
	if s.Full {
		age = store.FromLog
	}
	var keys []meta.KeyRef
	for _, e := range entries {
		if s.Full || k.owner.Longest(e.Key) != e.Collection {
			keys = append(keys, e.KeyRef)
		}
	}
	err = k.writePart(s, len(keys), func(tx *store.Tx, i, j int) (meta.KeyRef, error) {
		return keys[j-1], k.recount(tx, keys[i:j], age)
	})
	if err != nil {
		return err
	}
	if len(entries) == keysAtOnce {
		s.advance(entries[len(entries)-1].KeyRef)
		return nil
	}
	return k.nextPhase(s)
}

// addPart reads some rows without an entry and adds those. What changes between reading
// and writing is in the log, behind the cursor, and seen to later.
func (k *keeper) addPart(s *fillState) (err error) {
	names := k.fresh(s)
	if len(names) == 0 {
		return k.nextPhase(s)
	}
	var rows []store.Created
	err = k.env.DB.View(k.ctx, func(tx *store.Tx) error {
		rows, err = tx.UncountedAfter(s.after(), names, keysAtOnce)
		return err
	})
	if err != nil {
		return err
	}
	for i := range rows {
		rows[i].Collection = k.owner.Longest(rows[i].Key)
	}
	err = k.writePart(s, len(rows), func(tx *store.Tx, i, j int) (meta.KeyRef, error) {
		return rows[j-1].KeyRef, tx.AddCreated(rows[i:j])
	})
	if err != nil || len(rows) == keysAtOnce {
		return err
	}
	return k.nextPhase(s)
}

// writePart has write write n things, from i to j at a time, in as many transactions as
// it takes; write returns the key up to which s is done then.
func (k *keeper) writePart(s *fillState, n int, write func(tx *store.Tx, i, j int) (meta.KeyRef, error)) error {
	for i, from := 0, 0; i < n; {
		err := k.updateFill(s, func(tx *store.Tx) error {
			for end := deadline(); ; {
				j := min(i+batch, n)
				at, err := write(tx, i, j)
				if err != nil {
					return err
				}
				s.advance(at)
				if i = j; i == n || time.Now().After(end) {
					return nil
				}
			}
		})
		if err != nil {
			return err
		}
		progress(k.env).Add(i - from)
		from = i
	}
	return nil
}

func (k *keeper) nextPhase(s *fillState) error {
	return k.updateFill(s, func(*store.Tx) error {
		s.Phase++
		s.After = [3]string{}
		return nil
	})
}

// fresh returns the names whose rows may have no entry yet.
func (k *keeper) fresh(s *fillState) []string {
	if s.Full {
		return k.names
	}
	had := meta.NamespacesOf(s.Had)
	return slices.DeleteFunc(slices.Clone(k.names), func(n string) bool { return had.Longest(n) != "" })
}

// updateFill runs f in a write transaction and stores s as it is afterwards, unless
// somebody else has moved it on; then the error is errOvertaken.
func (k *keeper) updateFill(s *fillState, f func(*store.Tx) error) error {
	was := *s
	err := k.update(func(tx *store.Tx) error {
		now, ok, err := readFill(tx)
		if err != nil {
			return err
		}
		have, _, err := tx.Collections()
		if err != nil {
			return err
		}
		// Between two writes s may be ahead: what it passed had nothing to do.
		if !ok || now.Phase != s.Phase || now.Full != s.Full || !slices.Equal(now.Had, s.Had) || !slices.Equal(have, k.names) {
			return errOvertaken
		}
		if err := f(tx); err != nil {
			return err
		}
		if s.Phase == filled {
			return k.filled(tx)
		}
		return s.write(tx)
	})
	if err != nil {
		*s = was
	}
	return err
}

// filled ends a fill.
func (k *keeper) filled(tx *store.Tx) error {
	if err := tx.DeleteFact(factFill); err != nil {
		return err
	}
	if len(k.names) > 0 {
		return tx.DropEmptyUsage()
	}
	if err := tx.DeleteCursors(cursorRef); err != nil {
		return err
	}
	return tx.DropCollections()
}

// replay reads the whole history for the rows that got their entries in this fill. Where
// all did, the cursor is before the first commit and they are read from there anyway.
func (k *keeper) replay(s *fillState) error {
	var cur store.Cursor
	err := k.env.DB.View(k.ctx, func(tx *store.Tx) (err error) {
		cur, _, err = tx.LatestCursor(cursorRef)
		return err
	})
	if err != nil {
		return err
	}
	tip, ok := gitdb.ParseHash(cur.Commit)
	had := meta.NamespacesOf(s.Had)
	var list []serialize.Birth
	flush := func() error {
		if len(list) == 0 {
			return nil
		}
		err := k.updateFill(s, func(tx *store.Tx) error { return k.apply(tx, list) })
		list = list[:0]
		return err
	}
	if ok && len(s.Had) > 0 && slices.ContainsFunc(k.names, func(n string) bool { return had.Longest(n) == "" }) {
		err := k.history(gitdb.Hash{}, tip, func(b serialize.Birth) error {
			if had.Longest(b.Key) != "" {
				return nil
			}
			if list = append(list, b); len(list) < birthBatch {
				return nil
			}
			return flush()
		})
		if err == nil {
			err = flush()
		}
		if err != nil {
			return fmt.Errorf("read the history of %s: %w", k.env.LocalRef(meta.MainDestination), err)
		}
	}
	return k.nextPhase(s)
}
