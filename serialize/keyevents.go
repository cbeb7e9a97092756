package serialize

import (
	"context"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// keyEvent is what one commit did to one key. Where a collection has tombstones of its
// items and nothing else, the trees alone do not say whether it is empty, which is a
// value, or was pruned: then one of the flags is set, and history decides.
type keyEvent struct {
	Birth
	refilled bool // such a collection got items: a birth if a prune had emptied it, else nothing
	emptied  bool // a collection lost its items, and no prune took them: no loss
}

// keyEvents returns the keys that a commit brought or took.
func keyEvents(ctx context.Context, rd *gitdb.Reader, s step) ([]keyEvent, error) {
	c := s.commit
	changed, err := changedKeys(ctx, rd, s.before, c.Tree)
	if err != nil {
		return nil, err
	}
	e := eventReader{ctx: ctx, rd: rd, took: LostUnclear, date: c.Author.When.Unix() * 1000, dlines: map[meta.KeyRef]bool{}}
	e.before = lookup{ctx: ctx, rd: rd, root: s.before}
	e.after = lookup{ctx: ctx, rd: rd, root: c.Tree}
	switch {
	case isRetentionCommit(c.Message):
		e.took = LostRetention
	case isPruneCommit(c.Message):
		e.took = LostPrune
	default:
		for _, k := range removals(c.Message) {
			e.dlines[k] = true
		}
	}
	times := commitTimes(s, changed)
	n := 0
	for _, k := range changed {
		ms := e.date
		if k.has {
			if times != nil {
				ms = times[n]
			}
			n++
		}
		if err := e.key(k, ms); err != nil {
			return nil, err
		}
		delete(e.dlines, k.KeyRef)
	}
	for k := range e.dlines { // a removal that left no trace in the tree
		is, err := readKey(&e.after, k)
		if err != nil {
			return nil, err
		}
		if _, has := is.kind(); !has {
			e.lost(k, LostRemoval)
		}
	}
	return e.out, nil
}

// eventReader looks at the keys of one commit.
type eventReader struct {
	ctx           context.Context
	rd            *gitdb.Reader
	before, after lookup
	took          Loss // what a loss is that no removal explains
	date          int64
	dlines        map[meta.KeyRef]bool
	out           []keyEvent
}

func (e *eventReader) lost(k meta.KeyRef, how Loss) {
	e.out = append(e.out, keyEvent{Birth: Birth{KeyRef: k, Lost: how}})
}

func (e *eventReader) born(k meta.KeyRef, ms int64) {
	e.out = append(e.out, keyEvent{Birth: Birth{KeyRef: k, Has: true, Time: ms}})
}

// items reports whether s holds a value, other than an empty collection.
func (s *keyState) items() bool { return s != nil && (s.value != zero || s.size() > 0) }

func (e *eventReader) key(k changedKey, ms int64) error {
	if k.had && k.has {
		return nil // most of it
	}
	was, err := readKey(&e.before, k.KeyRef)
	if err != nil {
		return err
	}
	_, had := was.kind()
	if k.has {
		switch {
		case was.items():
		case had:
			e.out = append(e.out, keyEvent{Birth: Birth{KeyRef: k.KeyRef, Has: true, Time: ms}, refilled: true})
		default:
			e.born(k.KeyRef, ms)
		}
		return nil
	}
	is, err := readKey(&e.after, k.KeyRef)
	if err != nil {
		return err
	}
	_, has := is.kind()
	dropped := e.took != LostUnclear
	switch {
	case has && dropped && was.items():
		e.lost(k.KeyRef, e.took) // the tombstones that are left don't say that it is empty
	case has && was.items():
		e.out = append(e.out, keyEvent{Birth: Birth{KeyRef: k.KeyRef}, emptied: true})
	case has && !had:
		e.born(k.KeyRef, e.date)
	case has:
	case e.dlines[k.KeyRef]:
		e.lost(k.KeyRef, LostRemoval)
	case !dropped && is != nil && is.tomb != zero && (was == nil || was.tomb != is.tomb || had):
		counts, err := explicitTombstone(e.ctx, e.rd, is.tomb)
		if err != nil {
			return err
		}
		if counts {
			e.lost(k.KeyRef, LostRemoval)
		} else if had {
			e.lost(k.KeyRef, LostUnclear)
		}
	case had:
		e.lost(k.KeyRef, e.took)
	}
	return nil
}

// prunedEmpty reports whether a collection that has nothing but tombstones of its items in
// the tree of tip was emptied by a prune or a retention.
func prunedEmpty(ctx context.Context, rd *gitdb.Reader, tip gitdb.Hash, k meta.KeyRef) (pruned bool, err error) {
	err = history(ctx, rd, tip, zero, func(s step) (bool, error) {
		look := lookup{ctx: ctx, rd: rd, root: s.before}
		was, err := readKey(&look, k)
		if err != nil {
			return false, err
		}
		if _, had := was.kind(); had && !was.items() {
			return true, nil
		}
		pruned = was.items() && isPruneCommit(s.commit.Message)
		return false, nil
	})
	return pruned, err
}
