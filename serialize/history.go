package serialize

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// tipOf returns the commit of ref, or the zero id if there is no such ref.
func tipOf(ctx context.Context, repo *gitdb.Repo, ref string) (gitdb.Hash, error) {
	id, err := repo.Ref(ctx, ref)
	if errors.Is(err, gitdb.ErrRefNotFound) {
		return zero, nil
	}
	return id, err
}

// treeOf returns the tree of a commit, zero for the zero id.
func treeOf(ctx context.Context, rd *gitdb.Reader, commit gitdb.Hash) (gitdb.Hash, error) {
	if commit == zero {
		return zero, nil
	}
	c, err := rd.Commit(ctx, commit)
	if err != nil {
		return zero, err
	}
	return c.Tree, nil
}

// isAncestor reports whether old can be reached from tip. Commits that are not here
// (a shallow history) end the search.
func isAncestor(ctx context.Context, rd *gitdb.Reader, old, tip gitdb.Hash) (bool, error) {
	seen := map[gitdb.Hash]bool{}
	todo := []gitdb.Hash{tip}
	for len(todo) > 0 {
		id := todo[0]
		todo = todo[1:]
		if id == old {
			return true, nil
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		c, err := commitHere(ctx, rd, id)
		if err != nil {
			return false, err
		}
		if c != nil {
			todo = append(todo, c.Parents...)
		}
	}
	return false, nil
}

// commitHere returns a commit, nil if it is not in this repository. It asks before it
// reads: reading what lies behind the cut of a shallow partial clone would fetch it.
func commitHere(ctx context.Context, rd *gitdb.Reader, id gitdb.Hash) (*gitdb.Commit, error) {
	if !rd.Has(ctx, id) {
		return nil, ctx.Err()
	}
	return rd.Commit(ctx, id)
}

// step is one commit of a history and the tree of its first parent.
type step struct {
	id     gitdb.Hash
	commit *gitdb.Commit
	before gitdb.Hash // tree of the first parent; zero for a root
	cut    bool       // the first parent is not here: the history is shallow
}

// history calls fn for the commits from tip back to but not including stop, along first
// parents, newest first, until fn returns false.
func history(ctx context.Context, rd *gitdb.Reader, tip, stop gitdb.Hash, fn func(step) (bool, error)) error {
	for id := tip; id != zero && id != stop; {
		if err := ctx.Err(); err != nil {
			return err
		}
		c, err := rd.Commit(ctx, id)
		if err != nil {
			return err
		}
		s := step{id: id, commit: c}
		next := zero
		if len(c.Parents) > 0 {
			next = c.Parents[0]
			p, err := commitHere(ctx, rd, next)
			switch {
			case err != nil:
				return err
			case p == nil:
				s.cut, next = true, zero
			default:
				s.before = p.Tree
			}
		}
		more, err := fn(s)
		if err != nil || !more {
			return err
		}
		id = next
	}
	return nil
}

// changedKeys returns the keys of which any path differs between before and after, in
// the order of the bytes of their tree paths + "/", and whether each has a value in after.
func changedKeys(ctx context.Context, rd *gitdb.Reader, before, after gitdb.Hash) ([]changedKey, error) {
	if before == zero {
		if keys, plain, err := readTree(ctx, rd, after, nil); err != nil || plain {
			return allKeys(keys), err
		}
	}
	found := map[meta.KeyRef]*changedKey{}
	var order []*changedKey
	err := diffLeaves(ctx, rd, before, after, "", 0, func(d leafDiff) error {
		p, err := d.leaf.Decode()
		if err != nil || p.Kind == meta.PathMarker {
			return nil
		}
		c := found[p.KeyRef]
		if c == nil {
			c = &changedKey{KeyRef: p.KeyRef, path: meta.KeyPath(p.Target.BasePath(), p.Key) + "/"}
			found[p.KeyRef] = c
			order = append(order, c)
		}
		isValue := p.Kind == meta.PathValue || p.Kind == meta.PathEntry || p.Kind == meta.PathMember
		c.has = c.has || isValue && d.new != zero
		c.had = c.had || isValue && d.old != zero
		return nil
	})
	if err != nil {
		return nil, err
	}
	look := lookup{ctx: ctx, rd: rd, root: after}
	out := make([]changedKey, len(order))
	for i, c := range order {
		if !c.has { // only removals or tombstones differ: the rest of the value may be there
			s, err := readKey(&look, c.KeyRef)
			if err != nil {
				return nil, err
			}
			c.has = s != nil && (s.value != zero || s.size() > 0)
		}
		out[i] = *c
	}
	sortChanged(out)
	return out, nil
}

type changedKey struct {
	meta.KeyRef
	path string // tree path + "/"
	has  bool   // has a value afterwards
	had  bool   // a part of a value before differs; without it there may be one
}

// origin is when and by whom a key's present value was written.
type origin struct {
	time  int64 // ms
	email string
	known bool
}

// KeyTimes returns the edit time in ms of every key in want, from the history of tip:
// that of the newest commit that touched it. Keys that no commit explains are left out.
func KeyTimes(ctx context.Context, rd *gitdb.Reader, tip gitdb.Hash, want map[meta.KeyRef]bool) (map[meta.KeyRef]int64, error) {
	o, err := origins(ctx, rd, tip, want)
	out := make(map[meta.KeyRef]int64, len(o))
	for k, v := range o {
		out[k] = v.time
	}
	return out, err
}

// origins walks the history of tip, newest first, until every key of want is explained.
// The time is the key's in git-meta-times, else the author date (design §8).
func origins(ctx context.Context, rd *gitdb.Reader, tip gitdb.Hash, want map[meta.KeyRef]bool) (map[meta.KeyRef]origin, error) {
	out := make(map[meta.KeyRef]origin, len(want))
	err := eachOrigin(ctx, rd, tip, len(want), treeKeys{}, func(k meta.KeyRef, o origin) bool {
		if _, done := out[k]; done || !want[k] {
			return false
		}
		out[k] = o
		return true
	})
	return out, err
}

// eachOrigin calls take for the keys that the commits of tip touched, newest first, until
// it has taken n of them. read spares reading a tree again.
func eachOrigin(ctx context.Context, rd *gitdb.Reader, tip gitdb.Hash, n int, read treeKeys, take func(meta.KeyRef, origin) bool) error {
	if n == 0 {
		return nil
	}
	return history(ctx, rd, tip, zero, func(s step) (bool, error) {
		var keys []changedKey
		var err error
		if s.before == zero && s.commit.Tree == read.tree {
			keys = read.keys()
		} else if keys, err = changedKeys(ctx, rd, s.before, s.commit.Tree); err != nil {
			return false, err
		}
		s.origins(keys, func(k changedKey, org origin) {
			if take(k.KeyRef, org) {
				n--
			}
		})
		return n > 0, nil
	})
}

// origins calls take for the keys that the commit changed.
func (s *step) origins(keys []changedKey, take func(changedKey, origin)) {
	times := commitTimes(*s, keys)
	i := 0
	for _, k := range keys {
		org := s.origin()
		if k.has {
			if times != nil {
				org.time = times[i]
			}
			i++
		}
		take(k, org)
	}
}

// origin is that of the keys of which the commit does not say more.
func (s *step) origin() origin {
	return origin{s.commit.Author.When.Unix() * 1000, s.commit.Author.Email, true}
}

// commitTimes returns the edit times in a commit's header, one per key that has a value,
// or nil where there is no header that fits.
func commitTimes(s step, keys []changedKey) []int64 {
	n := 0
	for _, k := range keys {
		if k.has {
			n++
		}
	}
	return headerTimes(s, n)
}

// headerTimes returns the edit times in a commit's header if they are for n keys, or for
// any number where n is negative.
func headerTimes(s step, n int) []int64 {
	if s.cut {
		return nil
	}
	for _, h := range s.commit.Headers {
		if h.Key != meta.TimesHeader {
			continue
		}
		if ms, err := meta.DecodeTimes(strings.TrimSpace(h.Value), s.commit.Author.When.Unix(), n); err == nil {
			return ms
		}
	}
	return nil
}

func sortChanged(keys []changedKey) {
	slices.SortFunc(keys, func(a, b changedKey) int { return strings.Compare(a.path, b.path) })
}
