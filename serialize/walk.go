package serialize

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Leaf is one blob of a published tree.
type Leaf struct {
	Path string
	Mode uint32
	Hash gitdb.Hash
	Base int // leading components that make up the target, where a marker says so
}

// Decode returns what the leaf is. The error is [meta.ErrUnknownPath] for what a newer
// program or a README left there, else it says what is malformed.
func (l Leaf) Decode() (meta.TreePath, error) {
	p, err := meta.ParseTreePath(l.Path, l.Base)
	if err != nil {
		return p, err
	}
	if l.Mode&0o170000 != 0o100000 {
		return p, fmt.Errorf("mode %o instead of a file", l.Mode)
	}
	if err := p.Target.Publishable(); err != nil {
		return p, errors.Unwrap(err)
	}
	return p, nil
}

// walkFolders calls leaf for every blob below the tree id, which stands at prefix (with a
// final slash unless empty), in git's order, and folder, if there is one, for every entry
// on the way.
func walkFolders(ctx context.Context, rd gitdb.Objects, id gitdb.Hash, prefix string, base int, folder func(gitdb.TreeEntry), leaf func(Leaf) error) error {
	if id == zero {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := gitdb.ReadTree(ctx, rd, id)
	if err != nil {
		return err
	}
	base = markedBase(entries, prefix, base)
	for _, e := range entries {
		if folder != nil {
			folder(e)
		}
		if e.Mode == modeTree {
			err = walkFolders(ctx, rd, e.Hash, prefix+e.Name+"/", base, folder, leaf)
		} else {
			err = leaf(Leaf{prefix + e.Name, e.Mode, e.Hash, base})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// markedBase returns how many components the target has if entries, the folder at
// prefix, hold the marker that ends it; base if it is known already or unknown still.
func markedBase(entries []gitdb.TreeEntry, prefix string, base int) int {
	if base != 0 || !isMarkedBase(prefix) {
		return base
	}
	if _, ok := find(entries, markerName, false); ok {
		return strings.Count(prefix, "/")
	}
	return base
}

// isMarkedBase reports whether the folder at prefix (with a final slash) can be one that a
// marker makes the end of a target.
func isMarkedBase(prefix string) bool {
	return (strings.HasPrefix(prefix, "branch/") || strings.HasPrefix(prefix, "change-id/")) && strings.Count(prefix, "/") >= 3
}

// WalkTree calls fn for every blob of a metadata tree, in git's order.
func WalkTree(ctx context.Context, rd *gitdb.Reader, tree gitdb.Hash, fn func(Leaf) error) error {
	return walkFolders(ctx, rd, tree, "", 0, nil, fn)
}

// leafDiff is a blob that two trees hold differently; the zero hash stands for absent.
type leafDiff struct {
	leaf     Leaf // path and base; Hash and Mode of whichever side has it, new first
	old, new gitdb.Hash
}

// diffLeaves calls fn for every blob that differs between the trees a and b; equal
// subtrees are not read.
func diffLeaves(ctx context.Context, rd *gitdb.Reader, a, b gitdb.Hash, prefix string, base int, fn func(leafDiff) error) error {
	return diffSome(ctx, rd, a, b, prefix, base, nil, fn)
}

// diffSome is diffLeaves that leaves out the folders, as they are in a and in b, for
// which into is false; nil: none.
func diffSome(ctx context.Context, rd *gitdb.Reader, a, b gitdb.Hash, prefix string, base int, into func(x, y gitdb.TreeEntry) bool, fn func(leafDiff) error) error {
	if a == b {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	read := func(id gitdb.Hash) ([]gitdb.TreeEntry, error) {
		if id == zero {
			return nil, nil
		}
		return rd.Tree(ctx, id)
	}
	ea, err := read(a)
	if err != nil {
		return err
	}
	eb, err := read(b)
	if err != nil {
		return err
	}
	base = max(markedBase(ea, prefix, base), markedBase(eb, prefix, base))
	return pairEntries(ea, eb, func(x, y gitdb.TreeEntry) error {
		if x.Hash == y.Hash && x.Mode == y.Mode {
			return nil
		}
		e := y
		if e.Hash == zero {
			e = x
		}
		if e.Mode == modeTree {
			if into != nil && !into(x, y) {
				return nil
			}
			return diffSome(ctx, rd, x.Hash, y.Hash, prefix+e.Name+"/", base, into, fn)
		}
		return fn(leafDiff{Leaf{prefix + e.Name, e.Mode, e.Hash, base}, x.Hash, y.Hash})
	})
}

// pairEntries calls fn for the entries of two folders in git's order, those of the same
// name and kind (blob or folder) together; an entry that is missing is zero.
func pairEntries(a, b []gitdb.TreeEntry, fn func(x, y gitdb.TreeEntry) error) error {
	for len(a) > 0 || len(b) > 0 {
		c := 0
		switch {
		case len(a) == 0:
			c = 1
		case len(b) == 0:
			c = -1
		default:
			c = compareNames(a[0].Name, a[0].Mode == modeTree, b[0].Name, b[0].Mode == modeTree)
		}
		var x, y gitdb.TreeEntry
		if c <= 0 {
			x, a = a[0], a[1:]
		}
		if c >= 0 {
			y, b = b[0], b[1:]
		}
		if err := fn(x, y); err != nil {
			return err
		}
	}
	return nil
}

// keyState is what a tree says of one key, by ids only.
type keyState struct {
	value   gitdb.Hash            // string
	entries map[string]gitdb.Hash // list
	members map[string]gitdb.Hash // set
	tomb    gitdb.Hash            // key tombstone
	gone    map[string]gitdb.Hash // member tombstones
	popped  map[string]gitdb.Hash // entry tombstones
}

// add notes one path; where a key is spelled twice, the canonical spelling comes last in
// the walk's order or wins by being canonical.
func (s *keyState) add(p meta.TreePath, id gitdb.Hash) {
	put := func(m *map[string]gitdb.Hash) {
		if *m == nil {
			*m = map[string]gitdb.Hash{}
		}
		(*m)[p.Name] = id
	}
	switch p.Kind {
	case meta.PathValue:
		s.value = id
	case meta.PathEntry:
		put(&s.entries)
	case meta.PathMember:
		put(&s.members)
	case meta.PathTombstone:
		s.tomb = id
	case meta.PathMemberTombstone:
		put(&s.gone)
	case meta.PathEntryTombstone:
		put(&s.popped)
	}
}

// kind returns the type of the value; several types at one key: string beats list beats
// set (format.md §3.2). A key with member or entry tombstones only is an empty
// collection (design §8). ok is false for a key without a value.
func (s *keyState) kind() (t meta.ValueType, ok bool) {
	switch {
	case s == nil:
		return "", false
	case s.value != zero:
		return meta.String, true
	case len(s.entries) > 0:
		return meta.List, true
	case len(s.members) > 0:
		return meta.Set, true
	case s.tomb != zero:
		return "", false
	case len(s.popped) > 0:
		return meta.List, true
	case len(s.gone) > 0:
		return meta.Set, true
	}
	return "", false
}

// readKey returns what the tree of l says of one key; nil if nothing.
func readKey(l *lookup, ref meta.KeyRef) (*keyState, error) {
	s, err := readKeyAt(l, ref, ref.Target.BasePath())
	if s != nil || err != nil {
		return s, err
	}
	for _, base := range l.aliases(ref.Target) {
		if s, err = readKeyAt(l, ref, base); s != nil || err != nil {
			return s, err
		}
	}
	return nil, nil
}

func readKeyAt(l *lookup, ref meta.KeyRef, base string) (*keyState, error) {
	k := meta.KeyPath(base, ref.Key)
	s := &keyState{}
	found := false
	add := func(kind meta.PathKind, name string, id gitdb.Hash) {
		found = true
		s.add(meta.TreePath{Kind: kind, Name: name}, id)
	}
	for _, d := range []struct {
		path  string
		kind  meta.PathKind
		class clearClass
	}{
		{meta.ListPath(k), meta.PathEntry, clearEntries},
		{meta.ListTombstonesPath(k), meta.PathEntryTombstone, clearEntries},
		{meta.SetPath(k), meta.PathMember, clearAll},
		{meta.MemberTombstonesPath(k), meta.PathMemberTombstone, clearIDs},
	} {
		es, err := l.entries(d.path)
		if err != nil {
			return nil, err
		}
		for _, e := range es {
			if isFile(e) && d.class.covers(e.Name) {
				add(d.kind, e.Name, e.Hash)
			}
		}
	}
	for _, f := range []struct {
		path string
		kind meta.PathKind
	}{{meta.ValuePath(k), meta.PathValue}, {meta.TombstonePath(base, ref.Key), meta.PathTombstone}} {
		e, ok, err := l.entry(f.path, false)
		if err != nil {
			return nil, err
		}
		if ok && e.Mode&0o170000 == 0o100000 {
			add(f.kind, "", e.Hash)
		}
	}
	if !found {
		return nil, nil
	}
	return s, nil
}
