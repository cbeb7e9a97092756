package serialize

import (
	"context"
	"errors"
	"slices"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// keyLine is what the commits of one line of history, oldest first, did to a key.
type keyLine struct {
	tree      gitdb.Hash // tree of the newest commit that gave it a value; zero: none did
	time      int64      // edit time of that value, ms
	email     string
	gone      bool // after that, or without it: removed or swept
	removed   bool // a removal that counts lies in the line
	removedAt int64
	removedBy gitdb.Hash // tree that holds the latest removal's tombstone, if it has one
	unclear   bool       // the last that happened is a tombstone that does not count
	swept     bool       // the last that happened is a retention commit
	pruned    bool       // the last that happened is a prune that left item tombstones only
}

// lineOf reads the commits of tip that base does not contain.
func lineOf(ctx context.Context, rd *gitdb.Reader, tip, base gitdb.Hash) (*pastLine, error) {
	steps, err := rangeOf(ctx, rd, tip, base)
	if err != nil {
		return nil, err
	}
	l := &pastLine{keys: map[meta.KeyRef]*keyLine{}}
	for _, s := range steps {
		l.commits++
		if err := l.add(ctx, rd, s); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// pastLine is a line of history from a base to a tip.
type pastLine struct {
	keys    map[meta.KeyRef]*keyLine
	prunes  []*gitdb.Commit // prune commits of the line, oldest first
	commits int
	cut     bool // the line ends at a shallow cut
}

func (l *pastLine) key(k meta.KeyRef) *keyLine {
	e := l.keys[k]
	if e == nil {
		e = &keyLine{}
		l.keys[k] = e
	}
	return e
}

// add takes in one commit.
func (l *pastLine) add(ctx context.Context, rd *gitdb.Reader, s step) error {
	c := s.commit
	keys, err := changedKeys(ctx, rd, s.before, c.Tree)
	if err != nil {
		return err
	}
	l.cut = l.cut || s.cut
	retention := isRetentionCommit(c.Message)
	pruned := !retention && isPruneCommit(c.Message)
	if pruned {
		l.prunes = append(l.prunes, c)
	}
	dlines := map[meta.KeyRef]bool{}
	for _, k := range removals(c.Message) {
		dlines[k] = true
	}
	before := lookup{ctx: ctx, rd: rd, root: s.before}
	after := lookup{ctx: ctx, rd: rd, root: c.Tree}
	date := c.Author.When.Unix() * 1000
	times := commitTimes(s, keys)
	n := 0
	for _, k := range keys {
		ms := date
		if k.has {
			if times != nil {
				ms = times[n]
			}
			n++
		}
		e := l.key(k.KeyRef)
		d := dlines[k.KeyRef]
		delete(dlines, k.KeyRef)
		if k.has {
			*e = keyLine{tree: c.Tree, time: ms, email: c.Author.Email, removed: e.removed, removedAt: e.removedAt, removedBy: e.removedBy}
			continue
		}
		if err := l.lost(ctx, rd, e, k.KeyRef, &before, &after, c, d, pruned, retention); err != nil {
			return err
		}
	}
	for k := range dlines { // a removal that left no trace in the tree
		s, err := readKey(&after, k)
		if err != nil {
			return err
		}
		if _, has := s.kind(); !has {
			l.key(k).remove(date, zero)
		}
	}
	return nil
}

func (e *keyLine) remove(ms int64, tree gitdb.Hash) {
	if !e.removed || ms >= e.removedAt {
		e.removedAt, e.removedBy = ms, tree
	}
	e.removed, e.gone, e.unclear, e.swept, e.pruned = true, true, false, false, false
	e.tree = zero
}

// lost takes in a commit after which the key has no value.
func (l *pastLine) lost(ctx context.Context, rd *gitdb.Reader, e *keyLine, k meta.KeyRef, before, after *lookup, c *gitdb.Commit, dline, pruned, retention bool) error {
	is, err := readKey(after, k)
	if err != nil {
		return err
	}
	was, err := readKey(before, k)
	if err != nil {
		return err
	}
	if _, has := is.kind(); has && (pruned || retention) && was.items() {
		e.pruned = true // the tombstones that are left don't say that it is empty
		return nil
	} else if has { // an empty collection
		*e = keyLine{tree: c.Tree, time: c.Author.When.Unix() * 1000, email: c.Author.Email, removed: e.removed, removedAt: e.removedAt, removedBy: e.removedBy}
		return nil
	}
	_, had := was.kind()
	switch {
	case retention:
		if had {
			e.tree, e.gone, e.swept = zero, true, true
		}
		return nil
	case pruned:
		return nil
	}
	if is == nil || is.tomb == zero {
		if dline {
			e.remove(c.Author.When.Unix()*1000, zero)
		}
		return nil
	}
	fresh := was == nil || was.tomb != is.tomb || had
	_, data, err := rd.Read(ctx, is.tomb)
	if err != nil {
		return err
	}
	ms, _, explicit, terr := meta.DecodeTombstone(data)
	if terr != nil {
		ms = c.Author.When.Unix() * 1000
	}
	switch {
	case dline || fresh && explicit:
		e.remove(ms, c.Tree)
	case fresh && had:
		e.unclear = true
	}
	return nil
}

// explicitTombstone reports whether a tombstone blob says that somebody removed the key
// knowingly.
func explicitTombstone(ctx context.Context, rd *gitdb.Reader, id gitdb.Hash) (bool, error) {
	_, data, err := rd.Read(ctx, id)
	if err != nil {
		return false, err
	}
	_, _, explicit, err := meta.DecodeTombstone(data)
	return err == nil && explicit, nil
}

// rangeOf returns the commits of tip that base does not contain, oldest first. Mostly
// they lie on first parents; where a merge lies between, ancestry decides.
func rangeOf(ctx context.Context, rd *gitdb.Reader, tip, base gitdb.Hash) ([]step, error) {
	var steps []step
	straight := false
	err := history(ctx, rd, tip, base, func(s step) (bool, error) {
		steps = append(steps, s)
		merge := len(s.commit.Parents) > 1
		straight = !merge && (len(s.commit.Parents) == 0 || s.cut || s.commit.Parents[0] == base)
		return !merge, nil
	})
	if err != nil {
		return nil, err
	}
	reached := len(steps) == 0 || straight && (base == zero || len(steps[len(steps)-1].commit.Parents) > 0 && !steps[len(steps)-1].cut)
	if !reached {
		if steps, err = ancestryRange(ctx, rd, tip, base); err != nil {
			return nil, err
		}
	}
	slices.Reverse(steps)
	return steps, nil
}

// ancestryRange returns the commits of tip that base does not contain, parents after
// their children.
func ancestryRange(ctx context.Context, rd *gitdb.Reader, tip, base gitdb.Hash) ([]step, error) {
	known, err := ancestors(ctx, rd, base)
	if err != nil {
		return nil, err
	}
	var order []step
	state := map[gitdb.Hash]bool{}
	// depth first, parents before children, without recursion
	type frame struct {
		id   gitdb.Hash
		done bool
	}
	todo := []frame{{id: tip}}
	for len(todo) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if f.done {
			s, err := stepOf(ctx, rd, f.id)
			if err != nil {
				return nil, err
			}
			order = append(order, s)
			continue
		}
		if state[f.id] || known[f.id] {
			continue
		}
		state[f.id] = true
		c, err := rd.Commit(ctx, f.id)
		if errors.Is(err, gitdb.ErrObjectMissing) {
			continue
		}
		if err != nil {
			return nil, err
		}
		todo = append(todo, frame{f.id, true})
		for _, p := range c.Parents {
			todo = append(todo, frame{id: p})
		}
	}
	slices.Reverse(order)
	return order, nil
}

// stepOf reads a commit and the tree of its first parent.
func stepOf(ctx context.Context, rd *gitdb.Reader, id gitdb.Hash) (step, error) {
	c, err := rd.Commit(ctx, id)
	if err != nil {
		return step{}, err
	}
	s := step{id: id, commit: c}
	if len(c.Parents) == 0 {
		return s, nil
	}
	p, err := rd.Commit(ctx, c.Parents[0])
	if errors.Is(err, gitdb.ErrObjectMissing) {
		s.cut = true
		return s, nil
	}
	if err == nil {
		s.before = p.Tree
	}
	return s, err
}

func ancestors(ctx context.Context, rd *gitdb.Reader, tip gitdb.Hash) (map[gitdb.Hash]bool, error) {
	seen := map[gitdb.Hash]bool{}
	todo := []gitdb.Hash{tip}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if id == zero || seen[id] {
			continue
		}
		seen[id] = true
		c, err := rd.Commit(ctx, id)
		if errors.Is(err, gitdb.ErrObjectMissing) {
			continue
		}
		if err != nil {
			return nil, err
		}
		todo = append(todo, c.Parents...)
	}
	return seen, nil
}
