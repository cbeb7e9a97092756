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
	paths   []string // blobs of its value that stand at unusual paths
	entries int64    // tree entries that count as keys
	bytes   int64    // sizes of the blobs of its value
	time    int64    // edit time, ms
	row     int64    // rowid in the store, 0: no row
}

// tombstone is one tombstone blob of a published tree.
type tombstone struct {
	meta.TreePath
	path  string
	hash  gitdb.Hash
	bytes int64
	time  int64 // ms
	value bool  // all that is left of an emptied list or set: it goes and stays with its key
}

// inventory is what a published tree holds.
type inventory struct {
	keys  []item // ordered by target type, value, key
	tombs []tombstone
	total store.Stats                // all keys and bytes, as the peer counts them
	alien int64                      // keys in total that are under unknown target types
	whole map[meta.Target]int        // targets that hold nothing but keys, and how many
	stats map[gitdb.Hash]store.Stats // of the folders of the fan-out
}

// takeInventory reads the whole tree; sizes says whether blob sizes are wanted.
func takeInventory(ctx context.Context, rd *gitdb.Reader, tree gitdb.Hash, sizes bool) (*inventory, error) {
	var parts []*part
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	add := func(known bool) *part {
		p := newPart(rd, sizes, known)
		parts = append(parts, p)
		return p
	}
	here := add(true)
	// one job per folder of the second level: the fan-out of a target type
	split := func(top gitdb.TreeEntry) error {
		entries, err := rd.Tree(ctx, top.Hash)
		if err != nil {
			return err
		}
		known := meta.TargetType(top.Name).Known()
		level := add(known)
		for _, e := range entries {
			path := top.Name + "/" + e.Name
			level.count(e)
			if e.Mode != modeTree {
				if err := level.leaf(ctx, path, e); err != nil {
					return err
				}
				continue
			}
			p := add(known)
			p.folder = e.Hash
			g.Go(func() error {
				if top.Name == string(meta.Commit) {
					return p.commits(gctx, e.Hash, path)
				}
				return p.subtree(gctx, e.Hash, path)
			})
		}
		return nil
	}
	entries, err := rd.Tree(ctx, tree)
	for _, e := range entries {
		here.count(e)
		if e.Mode == modeTree {
			err = split(e)
		} else {
			err = here.leaf(ctx, e.Name, e)
		}
		if err != nil {
			break
		}
	}
	if werr := g.Wait(); err == nil {
		err = werr
	}
	if err != nil {
		return nil, err
	}
	return join(parts, sizes), nil
}

// join puts the parts together and orders the keys.
func join(parts []*part, sizes bool) *inventory {
	n, nt := 0, 0
	for _, p := range parts {
		n, nt = n+len(p.keys), nt+len(p.tombs)
	}
	inv := &inventory{
		keys: make([]item, 0, n), tombs: make([]tombstone, 0, nt),
		whole: map[meta.Target]int{}, stats: map[gitdb.Hash]store.Stats{},
	}
	inv.total = store.Stats{HasKeys: true, HasBytes: sizes}
	for _, p := range parts {
		inv.keys = append(inv.keys, p.keys...)
		inv.tombs = append(inv.tombs, p.tombs...)
		inv.total.Keys += p.total.Keys
		inv.total.Bytes += p.total.Bytes
		if !p.known {
			inv.alien += p.total.Keys
		}
		for _, t := range p.whole {
			inv.whole[t.Target] = t.keys
		}
		if !p.folder.IsZero() {
			p.total.HasKeys, p.total.HasBytes = true, sizes
			inv.stats[p.folder] = p.total
		}
	}
	byKey := func(a, b item) int { return a.KeyRef.Compare(b.KeyRef) }
	if !slices.IsSortedFunc(inv.keys, byKey) {
		slices.SortStableFunc(inv.keys, byKey)
	}
	out := inv.keys[:0]
	for _, k := range inv.keys {
		if n := len(out); n > 0 && out[n-1].KeyRef == k.KeyRef { // one key met at two spellings
			o := &out[n-1]
			o.paths = append(o.paths, k.paths...)
			o.bytes, o.entries = o.bytes+k.bytes, o.entries+k.entries
			continue
		}
		out = append(out, k)
	}
	inv.keys = out
	for _, k := range out {
		if k.paths != nil { // not everything of the target is in its folder
			delete(inv.whole, k.Target)
		}
	}
	inv.addEmpty()
	return inv
}

// addEmpty adds the keys of which only tombstones of entries or members are left: an
// empty collection is a value (design §8), which can be dropped like any other.
func (inv *inventory) addEmpty() {
	if len(inv.tombs) == 0 {
		return
	}
	removed := map[meta.KeyRef]bool{}
	for _, t := range inv.tombs {
		if t.Kind == meta.PathTombstone {
			removed[t.KeyRef] = true
		}
	}
	valued, at := len(inv.keys), map[meta.KeyRef]int{}
	for i := range inv.tombs {
		t := &inv.tombs[i]
		if _, ok := slices.BinarySearchFunc(inv.keys[:valued], t.KeyRef, func(k item, r meta.KeyRef) int { return k.KeyRef.Compare(r) }); ok || removed[t.KeyRef] {
			continue
		}
		n, ok := at[t.KeyRef]
		if !ok {
			n = len(inv.keys)
			at[t.KeyRef] = n
			inv.keys = append(inv.keys, item{KeyRef: t.KeyRef})
		}
		t.value = true
		inv.keys[n].bytes += t.bytes
		if t.Kind == meta.PathEntryTombstone {
			inv.keys[n].entries = 1
		}
	}
	if len(inv.keys) > valued {
		slices.SortFunc(inv.keys, func(a, b item) int { return a.KeyRef.Compare(b.KeyRef) })
	}
}

// datedInventory takes the inventory of the tip's tree and fills in the edit times: from
// the rows, else from the history of the tip, else its author date. Times after latest
// (ms) or, without it, after the tip's committer date count as that.
func datedInventory(ctx context.Context, rd *gitdb.Reader, tx *store.Tx, from serialize.Committed, latest int64, sizes bool) (*inventory, error) {
	g, gctx := errgroup.WithContext(ctx)
	var inv *inventory
	g.Go(func() (err error) {
		inv, err = takeInventory(gctx, rd, from.Tree, sizes)
		return err
	})
	var rows []store.KeyTime
	g.Go(func() error {
		for row, err := range tx.KeyTimes() {
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	head, err := rd.Commit(ctx, from.Commit)
	if err != nil {
		return nil, err
	}
	return inv, inv.date(ctx, rd, tx, from.Commit, rows, max(latest, head.Committer.When.Unix()*1000+999))
}

func (inv *inventory) date(ctx context.Context, rd *gitdb.Reader, tx *store.Tx, tip gitdb.Hash, rows []store.KeyTime, latest int64) error {
	at := make(map[meta.KeyRef]int32, len(inv.keys))
	for i := range inv.keys {
		at[inv.keys[i].KeyRef] = int32(i)
	}
	for _, row := range rows {
		if i, ok := at[row.KeyRef]; ok {
			inv.keys[i].time, inv.keys[i].row = row.Time, row.ID
		}
	}
	want := map[meta.KeyRef]bool{}
	for _, k := range inv.keys {
		if k.row == 0 && k.Target.Type != meta.Project {
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
		if k.row == 0 {
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
