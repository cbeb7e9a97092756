package prune

import (
	"context"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// item is one key of a published tree.
type item struct {
	meta.KeyRef
	paths  []string // blobs of its value
	bytes  int64    // their sizes
	time   int64    // edit time, ms
	hasRow bool
}

// tombstone is one tombstone blob of a published tree.
type tombstone struct {
	meta.TreePath
	path  string
	hash  gitdb.Hash
	bytes int64
	time  int64 // ms
}

// inventory is what a published tree holds.
type inventory struct {
	keys  []item // ordered by target type, value, key
	tombs []tombstone
	other int64 // bytes of README, markers and entries that can't be read as keys
}

// part is what one subtree holds.
type part struct {
	keys  []item
	tombs []tombstone
	other int64
}

// takeInventory reads the whole tree; sizes says whether blob sizes are wanted.
func takeInventory(ctx context.Context, rd *gitdb.Reader, tree gitdb.Hash, sizes bool) (*inventory, error) {
	var parts []*part
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	// one job per folder of the second level: the fan-out of a target type
	var split func(id gitdb.Hash, prefix string, depth int) error
	split = func(id gitdb.Hash, prefix string, depth int) error {
		entries, err := rd.Tree(ctx, id)
		if err != nil {
			return err
		}
		here := &part{}
		parts = append(parts, here)
		for _, e := range entries {
			path := prefix + e.Name
			switch {
			case e.Mode != modeTree:
				if err := here.add(ctx, rd, serialize.Leaf{Path: path, Mode: e.Mode, Hash: e.Hash}, sizes); err != nil {
					return err
				}
			case depth == 0:
				if err := split(e.Hash, path+"/", 1); err != nil {
					return err
				}
			default:
				p := &part{}
				parts = append(parts, p)
				g.Go(func() error {
					return serialize.WalkSubtree(gctx, rd, e.Hash, path+"/", func(l serialize.Leaf) error {
						return p.add(gctx, rd, l, sizes)
					})
				})
			}
		}
		return nil
	}
	err := split(tree, "", 0)
	if werr := g.Wait(); err == nil {
		err = werr
	}
	if err != nil {
		return nil, err
	}
	inv := &inventory{}
	for _, p := range parts {
		inv.keys = append(inv.keys, p.keys...)
		inv.tombs = append(inv.tombs, p.tombs...)
		inv.other += p.other
	}
	inv.merge()
	return inv, nil
}

// add files one blob.
func (p *part) add(ctx context.Context, rd *gitdb.Reader, l serialize.Leaf, sizes bool) error {
	size := int64(0)
	if sizes && l.Mode&0o170000 != 0o160000 {
		var err error
		if _, size, err = rd.Header(ctx, l.Hash); err != nil {
			return err
		}
	}
	d, err := l.Decode()
	if err != nil {
		p.other += size
		return nil
	}
	switch d.Kind {
	case meta.PathValue, meta.PathEntry, meta.PathMember:
		if n := len(p.keys); n == 0 || p.keys[n-1].KeyRef != d.KeyRef {
			p.keys = append(p.keys, item{KeyRef: d.KeyRef})
		}
		k := &p.keys[len(p.keys)-1]
		k.paths = append(k.paths, l.Path)
		k.bytes += size
	case meta.PathTombstone, meta.PathMemberTombstone, meta.PathEntryTombstone:
		p.tombs = append(p.tombs, tombstone{TreePath: d, path: l.Path, hash: l.Hash, bytes: size, time: -1})
	default:
		p.other += size
	}
	return nil
}

// merge orders the keys and joins what the walk met in pieces.
func (inv *inventory) merge() {
	slices.SortStableFunc(inv.keys, func(a, b item) int { return a.KeyRef.Compare(b.KeyRef) })
	out := inv.keys[:0]
	for _, k := range inv.keys {
		if n := len(out); n > 0 && out[n-1].KeyRef == k.KeyRef {
			out[n-1].paths = append(out[n-1].paths, k.paths...)
			out[n-1].bytes += k.bytes
			continue
		}
		out = append(out, k)
	}
	inv.keys = out
}

// date fills in the edit times: from the rows, else from the history of tip, else the
// tip's author date. Times after latest count as latest; it is in ms.
func (inv *inventory) date(ctx context.Context, rd *gitdb.Reader, tx *store.Tx, tip gitdb.Hash, latest int64) error {
	i := 0
	for row, err := range tx.KeyTimes() {
		if err != nil {
			return err
		}
		for i < len(inv.keys) && inv.keys[i].KeyRef.Compare(row.KeyRef) < 0 {
			i++
		}
		if i < len(inv.keys) && inv.keys[i].KeyRef == row.KeyRef {
			inv.keys[i].time, inv.keys[i].hasRow = row.Time, true
		}
	}
	want := map[meta.KeyRef]bool{}
	for _, k := range inv.keys {
		if !k.hasRow && k.Target.Type != meta.Project {
			want[k.KeyRef] = true
		}
	}
	members, err := inv.dateTombstones(ctx, rd, tx)
	if err != nil {
		return err
	}
	for k := range members {
		want[k] = true
	}
	c, err := rd.Commit(ctx, tip)
	if err != nil {
		return err
	}
	times, err := serialize.KeyTimes(ctx, rd, tip, want)
	if err != nil {
		return err
	}
	of := func(k meta.KeyRef) int64 {
		if t, ok := times[k]; ok {
			return t
		}
		return c.Author.When.Unix() * 1000
	}
	for i := range inv.keys {
		k := &inv.keys[i]
		if !k.hasRow {
			k.time = of(k.KeyRef)
		}
		k.time = min(k.time, latest)
	}
	for i := range inv.tombs {
		if t := &inv.tombs[i]; t.time < 0 {
			t.time = of(t.KeyRef)
		}
	}
	return nil
}

// dateTombstones takes the times of tombstones from their blobs and, for members, from
// the store; it returns the keys of those it found no time for.
func (inv *inventory) dateTombstones(ctx context.Context, rd *gitdb.Reader, tx *store.Tx) (map[meta.KeyRef]bool, error) {
	open := map[meta.KeyRef]bool{}
	for i := range inv.tombs {
		t := &inv.tombs[i]
		if t.Kind != meta.PathMemberTombstone {
			_, data, err := rd.Read(ctx, t.hash)
			if err != nil {
				return nil, err
			}
			if ms, _, _, err := meta.DecodeTombstone(data); err == nil {
				t.time = ms
				continue
			}
		}
		rows, err := tx.Tombstones(t.KeyRef)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if r.Kind == meta.MemberTombstone && r.Name == t.Name {
				t.time = r.Time
			}
		}
		if t.time < 0 {
			open[t.KeyRef] = true
		}
	}
	return open, nil
}
