package serialize

import (
	"context"
	"slices"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// change is one key to be written, with what the store holds of it.
type change struct {
	meta.KeyRef
	rec   *store.Record // nil: no row
	tombs []meta.Tombstone
	leave bool // the key is routed elsewhere: it goes, without a tombstone
}

// keyTombstone returns the key's own tombstone, if there is one.
func (c *change) keyTombstone() (meta.Tombstone, bool) {
	for _, t := range c.tombs {
		if t.Kind == meta.KeyTombstone {
			return t, true
		}
	}
	return meta.Tombstone{}, false
}

// builder collects changes and turns them into a tree. It edits the subtree of one
// target at a time, so that memory follows the largest target and the number of keys,
// not the size of the values.
type builder struct {
	ed    editor
	look  lookup
	tip   gitdb.Hash // tree to start from, or zero
	rows  []bool     // per key of ed.keys: it has a row
	force []bool     // per key, if set: a removal to be told even if no path differs
	fresh bool       // tip is zero: nothing to clear
	solo  func(meta.Target) bool

	last    meta.Target // of the change before, with its base path and group root
	base    string
	at      string
	root    string // path of the target being collected
	group   []op
	scratch []op
	upper   []op // edits above the targets, and of targets that share folders
}

func newBuilder(ctx context.Context, rd *gitdb.Reader, w *gitdb.Writer, tip gitdb.Hash) *builder {
	b := &builder{tip: tip, fresh: tip == zero}
	b.ed = editor{ctx: ctx, rd: rd, put: w.Put}
	b.look = lookup{ctx: ctx, rd: rd, root: tip}
	b.solo = func(meta.Target) bool { return false }
	return b
}

// groupRoot returns the path of the folder that holds t's keys and nobody else's, or ""
// where targets may share folders (branches and change-ids with a '/').
func (b *builder) groupRoot(t meta.Target) string {
	if (t.Type == meta.Branch || t.Type == meta.ChangeID) && !b.solo(t) {
		return ""
	}
	return b.base
}

// expect makes room for n keys.
func (b *builder) expect(n int) {
	b.ed.keys = slices.Grow(b.ed.keys, n)
	b.rows = slices.Grow(b.rows, n)
}

// add takes one change. Changes of one target must follow each other.
func (b *builder) add(c change) error {
	if c.Target != b.last || b.base == "" {
		b.last, b.base = c.Target, c.Target.BasePath()
		b.at = b.groupRoot(c.Target)
	}
	base := b.base
	k := meta.KeyPath(base, c.Key)
	i := int32(len(b.ed.keys))
	e := keyEdit{KeyRef: c.KeyRef, path: k}
	ops := b.scratch[:0]
	if !b.fresh {
		ops = appendClears(ops, base, k, c.Key, i)
		for _, alias := range b.look.aliases(c.Target) {
			b.upper = appendClears(b.upper, alias, meta.KeyPath(alias, c.Key), c.Key, i)
		}
	}
	if !c.leave {
		n := len(ops)
		if c.rec != nil {
			e.time = c.rec.Time
			ops = appendValue(ops, k, c.rec.Value, i)
		} else if t, ok := c.keyTombstone(); ok {
			e.time, e.explicit = t.Time, t.Explicit
		}
		ops = appendTombstones(ops, base, k, c.tombs, c.rec != nil, i)
		if len(ops) > n { // tombstones too would be read as another target's
			ops = appendMarker(ops, c.Target)
		}
	}
	b.ed.keys = append(b.ed.keys, e)
	b.rows = append(b.rows, c.rec != nil && !c.leave)
	b.scratch = ops
	if b.at != b.root {
		if err := b.flush(); err != nil {
			return err
		}
		b.root = b.at
	}
	if b.at == "" {
		// blobs go out at once; what is kept until the end is their ids
		for j := range ops {
			if ops[j].kind == opPut && ops[j].mode == modeBlob && b.fresh {
				if err := b.ed.put(blobObject, ops[j].id, ops[j].data); err != nil {
					return err
				}
			}
		}
		b.upper = append(b.upper, ops...)
		return nil
	}
	b.group = append(b.group, ops...)
	return nil
}

// flush edits the subtree of the target collected so far.
func (b *builder) flush() error {
	if len(b.group) == 0 {
		return nil
	}
	base, err := b.look.tree(b.root)
	if err != nil {
		return err
	}
	sortOps(b.group)
	id, err := b.ed.apply(base, b.group, len(b.root)+1)
	if err != nil {
		return err
	}
	clear(b.group) // let go of the values
	b.group = b.group[:0]
	if id != base {
		b.upper = append(b.upper, op{path: b.root, kind: opPut, mode: modeTree, key: -1, id: id})
	}
	return nil
}

// finish returns the root tree.
func (b *builder) finish() (gitdb.Hash, error) {
	if err := b.flush(); err != nil {
		return zero, err
	}
	if len(b.upper) == 0 {
		return b.tip, nil
	}
	sortOps(b.upper)
	root, err := b.ed.apply(b.tip, b.upper, 0)
	if err != nil {
		return zero, err
	}
	if root == zero { // a commit needs a tree
		root = gitdb.HashObject(treeObject, nil)
		err = b.ed.put(treeObject, root, nil)
	}
	return root, err
}

// changed returns the keys that the new tree holds otherwise than the tip, as lines of a
// commit message, and the paths and times for its header.
func (b *builder) changed(first bool) (lines []line, times []keyTime) {
	for i := range b.ed.keys {
		e := &b.ed.keys[i]
		if e.changed && e.has {
			times = append(times, keyTime{e.path + "/", e.time})
		}
		letter := byte(0)
		switch {
		case b.rows[i] && first:
			letter = 'A'
		case b.force != nil && b.force[i]:
			letter = 'D'
		case !e.changed:
		case b.rows[i] && e.had:
			letter = 'M'
		case b.rows[i]:
			letter = 'A'
		case e.explicit || e.time != 0 && e.had:
			letter = 'D'
		}
		if letter != 0 && !(first && letter == 'D') {
			lines = append(lines, line{letter, e.KeyRef, e.time})
		}
	}
	slices.SortStableFunc(lines, func(x, y line) int { return x.Compare(y.KeyRef) })
	slices.SortFunc(times, func(x, y keyTime) int { return strings.Compare(x.path, y.path) })
	return lines, times
}

// lookup finds paths in a tree. It remembers the folders on the way to the last path,
// since the next one mostly shares them.
type lookup struct {
	ctx   context.Context
	rd    *gitdb.Reader
	root  gitdb.Hash
	names []string
	dirs  [][]gitdb.TreeEntry // dirs[i]: the folder names[:i]
}

func find(entries []gitdb.TreeEntry, name string, dir bool) (gitdb.TreeEntry, bool) {
	i, ok := indexOf(entries, name, dir)
	if !ok {
		return gitdb.TreeEntry{}, false
	}
	return entries[i], true
}

// indexOf returns where name is in a folder's entries, which are in git's order.
func indexOf(entries []gitdb.TreeEntry, name string, dir bool) (int, bool) {
	return slices.BinarySearchFunc(entries, name, func(e gitdb.TreeEntry, name string) int {
		return compareNames(e.Name, e.Mode == modeTree, name, dir)
	})
}

// entries returns the folder at path ("" for the root); nil if there is none.
func (l *lookup) entries(path string) ([]gitdb.TreeEntry, error) {
	if l.root == zero {
		return nil, nil
	}
	if len(l.dirs) == 0 {
		e, err := l.rd.Tree(l.ctx, l.root)
		if err != nil {
			return nil, err
		}
		l.dirs = append(l.dirs, e)
	}
	if path == "" {
		return l.dirs[0], nil
	}
	names := strings.Split(path, "/")
	n := 0
	for n < len(names) && n < len(l.names) && names[n] == l.names[n] {
		n++
	}
	if n == len(names) { // on the way to the last path, which stays at hand
		return l.dirs[n], nil
	}
	l.names, l.dirs = l.names[:n], l.dirs[:n+1]
	for ; n < len(names); n++ {
		d, ok := find(l.dirs[n], names[n], true)
		if !ok {
			return nil, nil
		}
		e, err := l.rd.Tree(l.ctx, d.Hash)
		if err != nil {
			return nil, err
		}
		l.names, l.dirs = append(l.names, names[n]), append(l.dirs, e)
	}
	return l.dirs[n], nil
}

// entry returns the entry at path, a folder (dir) or not.
func (l *lookup) entry(path string, dir bool) (gitdb.TreeEntry, bool, error) {
	parent, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		parent, name = path[:i], path[i+1:]
	}
	es, err := l.entries(parent)
	if err != nil {
		return gitdb.TreeEntry{}, false, err
	}
	e, ok := find(es, name, dir)
	return e, ok, nil
}

// tree returns the id of the folder at path, or zero.
func (l *lookup) tree(path string) (gitdb.Hash, error) {
	e, _, err := l.entry(path, true)
	return e.Hash, err
}

// aliases returns the other base paths in the tree that decode to t: a path target
// whose components somebody escaped where that was not needed, or did not where it was.
func (l *lookup) aliases(t meta.Target) []string {
	if t.Type != meta.Path || l.root == zero {
		return nil
	}
	paths := []string{"path"}
	for c := range strings.SplitSeq(t.Value, "/") {
		var next []string
		for _, p := range paths {
			es, err := l.entries(p)
			if err != nil {
				return nil
			}
			spellings := []string{"~" + c}
			if !strings.HasPrefix(c, "~") {
				spellings = append(spellings, c)
			}
			for _, s := range spellings {
				if _, ok := find(es, s, true); ok {
					next = append(next, p+"/"+s)
				}
			}
		}
		if len(next) == 0 {
			return nil
		}
		paths = next
	}
	canonical := t.BasePath()
	var out []string
	for _, p := range paths {
		if p += "/" + markerName; p != canonical {
			out = append(out, p)
		}
	}
	return out
}
