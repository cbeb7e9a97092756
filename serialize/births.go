package serialize

import (
	"context"
	"maps"
	"slices"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Loss says how a key lost its value in a tree.
type Loss int

const (
	NotLost       Loss = iota
	LostRemoval        // a removal that counts (design §8)
	LostUnclear        // a tombstone that does not count, or nothing that explains it
	LostPrune          // a prune commit
	LostRetention      // a retention commit
	LostFork           // the commit that brought it is not in this history: a merge wrote another in its place
)

// Birth is what happened to one key: it got a value where the tree had none before, or
// lost it.
type Birth struct {
	meta.KeyRef
	Has  bool  // it has a value from here on
	Time int64 // ms; with Has, the edit time of that value: git-meta-times, else the author date
	Lost Loss  // without Has: how it was lost
}

// Births tells what the commits between from and tip brought and took, oldest first
// along first parents; keys that only changed are not named. from need not be an
// ancestor of tip: after a merge, the old local commits are not. Then fn first gets, for
// every key that the commits only from has brought or removed, what the last common
// commit says of it (Has with its time, or LostFork). A zero from means the whole
// history. At a shallow cut everything is there since the author date of the oldest
// commit. It returns [gitdb.ErrObjectMissing] if from is not in this repository any more.
//
// The cost follows what the commits changed.
func Births(ctx context.Context, rd *gitdb.Reader, from, tip gitdb.Hash, fn func(Birth) error) error {
	base := from
	if from != zero && from != tip {
		var err error
		if base, err = Forked(ctx, rd, from, tip); err != nil {
			return err
		}
	}
	if base != from {
		if err := forgetFork(ctx, rd, base, from, tip, fn); err != nil {
			return err
		}
	}
	return births(ctx, rd, base, tip, fn)
}

// births is [Births] from a commit on tip's first-parent line.
func births(ctx context.Context, rd *gitdb.Reader, from, tip gitdb.Hash, fn func(Birth) error) error {
	type mark struct {
		id, before gitdb.Hash
		cut        bool
	}
	var marks []mark // a message may be long: the commits are read again
	err := history(ctx, rd, tip, from, func(s step) (bool, error) {
		marks = append(marks, mark{s.id, s.before, s.cut})
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(marks) {
		c, err := rd.Commit(ctx, m.id)
		if err != nil {
			return err
		}
		events, err := keyEvents(ctx, rd, step{m.id, c, m.before, m.cut})
		if err != nil {
			return err
		}
		for _, e := range events {
			if e.refilled {
				pruned, err := prunedEmpty(ctx, rd, c.Parents[0], e.KeyRef)
				if err != nil {
					return err
				}
				if !pruned {
					continue
				}
			}
			if e.emptied {
				continue
			}
			if err := fn(e.Birth); err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetFork tells what base says of the keys that the commits from base to from brought
// or took for good. What they pruned only has kept its time.
func forgetFork(ctx context.Context, rd *gitdb.Reader, base, from, tip gitdb.Hash, fn func(Birth) error) error {
	touched := map[meta.KeyRef]Loss{}
	err := births(ctx, rd, base, from, func(b Birth) error {
		if b.Has || b.Lost == LostRemoval || b.Lost == LostRetention {
			touched[b.KeyRef] = b.Lost
		}
		return nil
	})
	if err != nil || len(touched) == 0 {
		return err
	}
	// What base lacks is not searched for in all its history, nor is what was swept on
	// both lines: those may be many, and the other line will tell of them.
	inBase, err := lookIn(ctx, rd, base)
	if err != nil {
		return err
	}
	inTip, err := lookIn(ctx, rd, tip)
	if err != nil {
		return err
	}
	order := slices.SortedFunc(maps.Keys(touched), meta.KeyRef.Compare)
	open := map[meta.KeyRef]bool{}
	for _, k := range order {
		has, err := inBase.holds(k)
		if err == nil && has && touched[k] == LostRetention {
			has, err = inTip.holds(k)
		}
		if err != nil {
			return err
		}
		if has {
			open[k] = true
		}
	}
	known, err := BirthsOf(ctx, rd, base, open)
	if err != nil {
		return err
	}
	for _, k := range order {
		b := Birth{KeyRef: k, Lost: LostFork}
		if at, ok := known[k]; ok {
			b = Birth{KeyRef: k, Has: true, Time: at.Time}
		}
		if err := fn(b); err != nil {
			return err
		}
	}
	return nil
}

func lookIn(ctx context.Context, rd *gitdb.Reader, commit gitdb.Hash) (*lookup, error) {
	tree, err := treeOf(ctx, rd, commit)
	return &lookup{ctx: ctx, rd: rd, root: tree}, err
}

// holds reports whether the tree has a value of k.
func (l *lookup) holds(k meta.KeyRef) (bool, error) {
	s, err := readKey(l, k)
	_, has := s.kind()
	return has, err
}

// Born is since when a key has been in a published tree.
type Born struct {
	Time   int64 // ms; edit time in the commit that brought it since the tree last lacked it
	Pruned bool  // a prune, or a removal that does not count, has taken it out since
}

// BirthsOf walks back from tip until it has found, for each key of want, the commit that
// brought it since the tree last lacked it. Keys that tip's tree lacks are left out,
// except those that a prune or an unclear removal took last. It reads history for as long
// as one is open: keys that never were published make it read everything.
func BirthsOf(ctx context.Context, rd *gitdb.Reader, tip gitdb.Hash, want map[meta.KeyRef]bool) (map[meta.KeyRef]Born, error) {
	out := make(map[meta.KeyRef]Born, len(want))
	if len(want) == 0 || tip == zero {
		return out, nil
	}
	open := maps.Clone(want)
	pruned := map[meta.KeyRef]bool{}
	refilled := map[meta.KeyRef]int64{} // an empty collection got items: a birth, if a prune had emptied it
	err := history(ctx, rd, tip, zero, func(s step) (bool, error) {
		events, err := keyEvents(ctx, rd, s)
		if err != nil {
			return false, err
		}
		for _, e := range events {
			k := e.KeyRef
			if !open[k] {
				continue
			}
			at, again := refilled[k]
			switch {
			case e.refilled:
				refilled[k] = e.Time
			case e.emptied:
				delete(refilled, k)
			case again && (e.Lost == LostPrune || e.Lost == LostRetention):
				out[k] = Born{at, pruned[k]}
				delete(open, k)
			case e.Has:
				out[k] = Born{e.Time, pruned[k]}
				delete(open, k)
			case e.Lost == LostPrune || e.Lost == LostUnclear:
				pruned[k] = true
			default:
				delete(open, k)
			}
		}
		return len(open) > 0, nil
	})
	return out, err
}

// Forked returns the newest commit that the first-parent lines of from and tip share,
// from itself if tip's line holds it, the zero id if they share none. Mostly from lies
// near tip: both lines are read in step.
func Forked(ctx context.Context, rd *gitdb.Reader, from, tip gitdb.Hash) (base gitdb.Hash, err error) {
	type line struct {
		at   gitdb.Hash
		seen map[gitdb.Hash]bool
	}
	a, b := &line{from, map[gitdb.Hash]bool{}}, &line{tip, map[gitdb.Hash]bool{}}
	if _, err := rd.Commit(ctx, from); from != zero && err != nil {
		return zero, err
	}
	for from != zero && (a.at != zero || b.at != zero) {
		for _, l := range []*line{a, b} {
			if err := ctx.Err(); err != nil {
				return zero, err
			}
			other := b
			if l == b {
				other = a
			}
			switch {
			case l.at == zero:
				continue
			case other.seen[l.at]:
				return l.at, nil
			}
			l.seen[l.at] = true
			c, err := commitHere(ctx, rd, l.at)
			if err != nil {
				return zero, err
			}
			l.at = zero
			if c != nil && len(c.Parents) > 0 {
				l.at = c.Parents[0]
			}
		}
	}
	return zero, nil
}
