package serialize

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

const (
	modeBlob      = 0o100644
	modeTree      = 0o40000
	modeSubmodule = 0o160000
)

var zero gitdb.Hash

type opKind uint8

// Edits sort by path, then kind: what clears a place comes before what fills it.
const (
	opClear  opKind = iota // path ends in "/": drop the blobs of a class in that folder
	opDelete               // drop a blob
	opPut                  // put a blob, or a tree built elsewhere
)

type clearClass uint8

const (
	clearAll     clearClass = iota // every blob
	clearEntries                   // blobs named as list entries
	clearIDs                       // blobs named as members
)

func (c clearClass) covers(name string) bool {
	switch c {
	case clearEntries:
		return meta.IsEntryName(name)
	case clearIDs:
		return meta.IsMemberID(name)
	}
	return true
}

// op is one edit of a tree.
type op struct {
	path  string
	kind  opKind
	class clearClass
	value bool // the blob is (part of) a value, not a tombstone
	have  bool // the blob is in the repository already; data is not set
	mode  uint32
	key   int32 // index into editor.keys, or -1
	id    gitdb.Hash
	data  []byte // content of a blob to put
}

func sortOps(ops []op) {
	slices.SortFunc(ops, func(a, b op) int {
		if c := strings.Compare(a.path, b.path); c != 0 {
			return c
		}
		return int(a.kind) - int(b.kind)
	})
}

// keyEdit is what the edits of one key turned out to do.
type keyEdit struct {
	meta.KeyRef
	path     string // tree path of the key
	time     int64  // edit time of the value or tombstone, ms
	had      bool   // the base tree held a value
	has      bool   // the new tree holds a value
	changed  bool   // any path differs
	explicit bool   // a removal that somebody made knowingly
}

// Delta is how a tree differs in size from the tree it was made from.
type Delta struct {
	Keys       int64        // __value, __list and __set entries
	Added      int64        // bytes of blobs put in
	Gone       int64        // bytes of blobs taken out
	AddedBlobs []gitdb.Hash // more blobs put in, once per path
	Removed    []gitdb.Hash // more blobs taken out, once per path
}

// editor applies sorted edits to trees. Objects that the base does not hold at the same
// path go to put; unchanged subtrees are reused by id without being read.
type editor struct {
	ctx   context.Context
	rd    *gitdb.Reader
	put   func(t gitdb.ObjectType, id gitdb.Hash, data []byte) error
	keys  []keyEdit
	delta Delta
	buf   []byte
}

// apply returns the tree that base becomes, the zero id for an empty one. depth is the
// length of the path prefix that base stands for.
func (e *editor) apply(base gitdb.Hash, ops []op, depth int) (gitdb.Hash, error) {
	if err := e.ctx.Err(); err != nil {
		return zero, err
	}
	var old []gitdb.TreeEntry
	if base != zero {
		var err error
		if old, err = e.rd.Tree(e.ctx, base); err != nil {
			return zero, err
		}
	}
	d := dirEdit{editor: e, marked: len(ops) > 0 && isMarkedBase(ops[0].path[:depth]), old: old, out: make([]gitdb.TreeEntry, 0, len(old)+min(len(ops), 16))}
	for len(ops) > 0 && len(ops[0].path) == depth {
		d.clears = append(d.clears, ops[0])
		ops = ops[1:]
	}
	for len(ops) > 0 {
		rest := ops[0].path[depth:]
		slash := strings.IndexByte(rest, '/')
		n := 1
		if slash < 0 {
			for n < len(ops) && ops[n].path == ops[0].path {
				n++
			}
			d.leaf(rest, ops[:n])
		} else {
			prefix := ops[0].path[:depth+slash+1]
			for n < len(ops) && strings.HasPrefix(ops[n].path, prefix) {
				n++
			}
			if err := d.sub(rest[:slash], ops[:n], depth+slash+1); err != nil {
				return zero, err
			}
		}
		ops = ops[n:]
		if d.err != nil {
			return zero, d.err
		}
	}
	d.rest()
	if d.err != nil {
		return zero, d.err
	}
	return d.finish(base)
}

// dirEdit is one folder while its edits are applied. Its entries and its edits are
// merged in git's order: a folder sorts as its name + "/".
type dirEdit struct {
	*editor
	marked bool // a marker here marks a target
	old    []gitdb.TreeEntry
	next   int // first entry of old that is not decided
	out    []gitdb.TreeEntry
	clears []op
	gone   map[string]bool // names that an edit of the other kind (blob, folder) took over
	dirty  bool
	err    error
}

// isFile tells a file from a folder, a symbolic link and a submodule.
func isFile(o gitdb.TreeEntry) bool { return o.Mode&0o170000 == 0o100000 }

// compareNames orders names as git orders tree entries.
func compareNames(a string, aDir bool, b string, bDir bool) int {
	n := min(len(a), len(b))
	if c := strings.Compare(a[:n], b[:n]); c != 0 {
		return c
	}
	at := func(s string, dir bool) int {
		switch {
		case len(s) > n:
			return int(s[n])
		case dir:
			return '/'
		}
		return 0
	}
	return at(a, aDir) - at(b, bDir)
}

// upTo copies the entries before (name, dir) and returns the one that is it, if any.
func (d *dirEdit) upTo(name string, dir bool) (gitdb.TreeEntry, bool) {
	for d.next < len(d.old) {
		o := d.old[d.next]
		c := compareNames(o.Name, o.Mode == modeTree, name, dir)
		if c > 0 {
			break
		}
		d.next++
		if c == 0 {
			return o, true
		}
		d.keep(o)
	}
	return gitdb.TreeEntry{}, false
}

// keep copies an entry that no edit names, unless the folder is being cleared of it.
func (d *dirEdit) keep(o gitdb.TreeEntry) {
	switch {
	case d.cleared(o):
		d.drop(o)
	case d.gone[o.Name]:
		d.dropAll(o)
	default:
		d.out = append(d.out, o)
	}
}

// cleared reports whether a clear covers o, and notes what that means for the key.
func (d *dirEdit) cleared(o gitdb.TreeEntry) bool {
	if !isFile(o) {
		return false
	}
	for _, c := range d.clears {
		if !c.class.covers(o.Name) {
			continue
		}
		if c.key >= 0 {
			k := &d.keys[c.key]
			k.changed = true
			k.had = k.had || c.value
		}
		return true
	}
	return false
}

// drop takes an entry out; what is below a folder is the caller's matter.
func (d *dirEdit) drop(o gitdb.TreeEntry) {
	d.dirty = true
	if o.Mode != modeTree && o.Mode != modeSubmodule {
		d.delta.Removed = append(d.delta.Removed, o.Hash)
	}
}

// dropAll takes an entry out with everything below it.
func (d *dirEdit) dropAll(o gitdb.TreeEntry) {
	d.drop(o)
	if o.Mode != modeTree || d.err != nil {
		return
	}
	count := func(e gitdb.TreeEntry) {
		if IsKeyEntry(e) {
			d.delta.Keys--
		}
	}
	d.err = walkFolders(d.ctx, d.rd, o.Hash, "", 0, count, func(l Leaf) error {
		d.drop(gitdb.TreeEntry{Mode: l.Mode, Hash: l.Hash})
		return nil
	})
}

// leaf applies the edits of one name: at most a delete and a put.
func (d *dirEdit) leaf(name string, ops []op) {
	last := ops[len(ops)-1]
	isDir := last.kind == opPut && last.mode == modeTree
	o, found := d.upTo(name, isDir)
	var k *keyEdit
	if last.key >= 0 {
		k = &d.keys[last.key]
	}
	if found && k != nil && isFile(o) {
		for _, p := range ops {
			k.had = k.had || p.value
		}
	}
	if last.kind == opDelete {
		switch {
		case !found:
		case isFile(o) || isDir:
			if k != nil {
				k.changed = true
			}
			d.drop(o)
		default:
			d.out = append(d.out, o)
		}
		return
	}
	if last.id == zero { // a subtree that became empty
		if found {
			d.dirty = true
		}
		return
	}
	if k != nil {
		k.has = k.has || last.value
	}
	if found && o.Hash == last.id && o.Mode == last.mode {
		d.out = append(d.out, o)
		return
	}
	if k != nil {
		k.changed = true
	}
	if found {
		d.drop(o)
	}
	d.takeOver(name, isDir)
	d.dirty = true
	d.out = append(d.out, gitdb.TreeEntry{Mode: last.mode, Name: name, Hash: last.id})
	switch {
	case last.have:
		d.delta.AddedBlobs = append(d.delta.AddedBlobs, last.id)
	case last.mode == modeBlob:
		d.delta.Added += int64(len(last.data))
		d.err = d.put(blobObject, last.id, last.data)
	}
}

// takeOver drops an entry of the same name and the other kind: git allows no two
// entries of one name.
func (d *dirEdit) takeOver(name string, dir bool) {
	if i, ok := indexOf(d.out, name, !dir); ok {
		d.dropAll(d.out[i])
		d.out = slices.Delete(d.out, i, i+1)
		return
	}
	if _, ok := indexOf(d.old[d.next:], name, !dir); ok {
		if d.gone == nil {
			d.gone = map[string]bool{}
		}
		d.gone[name] = true
	}
}

func (d *dirEdit) sub(name string, ops []op, depth int) error {
	o, found := d.upTo(name, true)
	id, err := d.apply(o.Hash, ops, depth)
	switch {
	case err != nil:
		return err
	case id == zero:
		d.dirty = d.dirty || found
		return nil
	case found && id == o.Hash:
		d.out = append(d.out, o)
		return nil
	}
	d.takeOver(name, true)
	d.dirty = true
	d.out = append(d.out, gitdb.TreeEntry{Mode: modeTree, Name: name, Hash: id})
	return nil
}

func (d *dirEdit) rest() {
	for ; d.next < len(d.old); d.next++ {
		d.keep(d.old[d.next])
	}
}

func (d *dirEdit) finish(base gitdb.Hash) (gitdb.Hash, error) {
	if d.marked && len(d.out) == 1 && d.out[0].Mode != modeTree && d.out[0].Name == markerName {
		d.drop(d.out[0]) // a marker alone marks nothing
		d.out = nil
	}
	if !d.dirty {
		return base, nil
	}
	d.delta.Keys += keyEntries(d.out) - keyEntries(d.old)
	if len(d.out) == 0 {
		return zero, nil
	}
	b := d.buf[:0]
	for i, o := range d.out {
		if i > 0 && d.out[i-1].Name == o.Name {
			return zero, fmt.Errorf("tree would hold %q twice", o.Name)
		}
		b = gitdb.AppendTreeEntry(b, o.Mode, o.Name, o.Hash)
	}
	d.buf = b
	id := gitdb.HashObject(treeObject, b)
	return id, d.put(treeObject, id, b)
}

// keyEntries counts what the peer counts as keys in one folder: a __value blob, a __list
// folder, a __set folder (format.md §7.1).
func keyEntries(entries []gitdb.TreeEntry) (n int64) {
	for _, o := range entries {
		if IsKeyEntry(o) {
			n++
		}
	}
	return n
}

// IsKeyEntry reports whether a tree entry counts as a key.
func IsKeyEntry(o gitdb.TreeEntry) bool {
	if len(o.Name) < 5 || o.Name[0] != '_' {
		return false
	}
	switch o.Name {
	case "__value":
		return o.Mode != modeTree
	case "__list", "__set":
		return o.Mode == modeTree
	}
	return false
}
