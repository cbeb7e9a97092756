package serialize

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// readTree returns every key of tree; plain says that no target is spelled in two ways.
// Paths that can't be read as keys go to odd, which may be nil. The folders below the
// target types are read side by side.
func readTree(ctx context.Context, rd gitdb.Objects, tree gitdb.Hash, odd func(path string, why error)) (keys map[meta.KeyRef]*keyState, plain bool, err error) {
	parts, err := walkParts(ctx, rd, tree)
	if err != nil {
		return nil, false, err
	}
	n := 0
	for _, p := range parts {
		n += len(p.keys)
	}
	keys, plain = make(map[meta.KeyRef]*keyState, n), true
	for _, p := range parts {
		for ref, s := range p.keys {
			if have := keys[ref]; have != nil {
				plain = false
				have.merge(s)
				continue
			}
			keys[ref] = s
		}
		if odd != nil {
			for _, o := range p.odd {
				odd(o.path, o.why)
			}
		}
	}
	for _, p := range parts {
		for ref, leaves := range p.aliased {
			plain = false
			if keys[ref] != nil {
				continue // the canonical spelling wins
			}
			s := &keyState{}
			for _, l := range leaves {
				if p, err := l.Decode(); err == nil {
					s.add(p, l.Hash)
				}
			}
			keys[ref] = s
		}
	}
	return keys, plain, nil
}

// keyPart is what a part of a tree holds.
type keyPart struct {
	at      int // its place among the parts
	keys    map[meta.KeyRef]*keyState
	order   []meta.KeyRef // as they were found
	aliased map[meta.KeyRef][]Leaf
	odd     []oddPath
}

type oddPath struct {
	path string
	why  error
}

// treePart is a part of a tree: a folder at the second level, that of paths, that of the
// project where it holds tombstones, or what lies beside them. No key that is spelled in the
// canonical way is in two parts.
type treePart struct {
	prefix string
	gitdb.TreeEntry
}

// treeParts returns the parts of a tree, in its order.
func treeParts(ctx context.Context, rd gitdb.Objects, tree gitdb.Hash) ([]treePart, error) {
	if tree == zero {
		return nil, nil
	}
	top, err := gitdb.ReadTree(ctx, rd, tree)
	if err != nil {
		return nil, err
	}
	var parts []treePart
	for _, e := range top {
		if e.Mode != modeTree || e.Name == string(meta.Path) {
			parts = append(parts, treePart{"", e})
			continue
		}
		below, err := gitdb.ReadTree(ctx, rd, e.Hash)
		if err != nil {
			return nil, err
		}
		if _, ok := find(below, "__tombstones", true); ok && e.Name == string(meta.Project) {
			parts = append(parts, treePart{"", e}) // they are of keys in the folders beside them
			continue
		}
		for _, b := range below {
			parts = append(parts, treePart{e.Name + "/", b})
		}
	}
	return parts, nil
}

// walk adds what the part holds to p.
func (t *treePart) walk(ctx context.Context, rd gitdb.Objects, p *keyPart) error {
	if t.Mode != modeTree {
		return p.leaf(Leaf{t.prefix + t.Name, t.Mode, t.Hash, 0})
	}
	return walkFolders(ctx, rd, t.Hash, t.prefix+t.Name+"/", 0, nil, p.leaf)
}

// walkParts returns what the parts of a tree hold, in its order.
func walkParts(ctx context.Context, rd gitdb.Objects, tree gitdb.Hash) ([]*keyPart, error) {
	var out []*keyPart
	err := walkKeys(ctx, rd, tree, func(p *keyPart) { out = append(out, p) })
	slices.SortFunc(out, func(a, b *keyPart) int { return a.at - b.at })
	return out, err
}

// walkKeys reads the parts of a tree side by side and hands each to fn, one at a time, in no
// particular order.
func walkKeys(ctx context.Context, rd gitdb.Objects, tree gitdb.Hash, fn func(*keyPart)) error {
	parts, err := treeParts(ctx, rd, tree)
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	for i := range parts {
		g.Go(func() error {
			p := &keyPart{at: i, keys: map[meta.KeyRef]*keyState{}}
			if err := parts[i].walk(gctx, rd, p); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			fn(p)
			return nil
		})
	}
	return g.Wait()
}

func (k *keyPart) leaf(l Leaf) error {
	p, err := l.Decode()
	switch {
	case err != nil:
		k.odd = append(k.odd, oddPath{l.Path, err})
		return nil
	case p.Kind == meta.PathMarker:
		return nil
	case p.Target.Type == meta.Path && !strings.HasPrefix(l.Path, p.Target.BasePath()+"/"):
		if k.aliased == nil {
			k.aliased = map[meta.KeyRef][]Leaf{}
		}
		k.aliased[p.KeyRef] = append(k.aliased[p.KeyRef], l)
		return nil
	}
	s := k.keys[p.KeyRef]
	if s == nil {
		s = &keyState{}
		k.keys[p.KeyRef] = s
		k.order = append(k.order, p.KeyRef)
	}
	s.add(p, l.Hash)
	return nil
}

// merge adds what a later part of the tree says of the same key.
func (s *keyState) merge(o *keyState) {
	if o.value != zero {
		s.value = o.value
	}
	if o.tomb != zero {
		s.tomb = o.tomb
	}
	for _, m := range []struct{ to, from *map[string]gitdb.Hash }{
		{&s.entries, &o.entries}, {&s.members, &o.members}, {&s.gone, &o.gone}, {&s.popped, &o.popped},
	} {
		for name, id := range *m.from {
			if *m.to == nil {
				*m.to = map[string]gitdb.Hash{}
			}
			(*m.to)[name] = id
		}
	}
}

// treeKeys is a tree and [allKeys] of it.
type treeKeys struct {
	tree gitdb.Hash
	keys func() []changedKey
}

// listKeys lists the keys of tip's tree, which have been read, beside what the caller does
// meanwhile, if tip is the first commit of its history: [eachOrigin] will ask for them.
func listKeys(ctx context.Context, rd *gitdb.Reader, tip gitdb.Hash, keys map[meta.KeyRef]*keyState) treeKeys {
	c, err := rd.Commit(ctx, tip)
	if err != nil || len(c.Parents) > 0 {
		return treeKeys{}
	}
	list := sync.OnceValue(func() []changedKey { return allKeys(keys) })
	go list()
	return treeKeys{c.Tree, list}
}

// allKeys returns what [changedKeys] does for a tree before which there was none.
func allKeys(keys map[meta.KeyRef]*keyState) []changedKey {
	out := make([]changedKey, 0, len(keys))
	for ref, s := range keys {
		out = append(out, changedKey{KeyRef: ref, path: meta.KeyPath(ref.Target.BasePath(), ref.Key) + "/", has: s.value != zero || s.size() > 0})
	}
	sortChanged(out)
	return out
}
