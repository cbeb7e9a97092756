package serialize

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"pgregory.net/rapid"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// file is a blob of a model tree.
type file struct {
	mode uint32
	data string
}

func (f file) id() gitdb.Hash { return gitdb.HashObject(blobObject, []byte(f.data)) }

// model is a tree as a map from path to blob.
type model map[string]file

// write makes the tree readable and returns its id, as go-git encodes it.
func (m model) write(t tester, rd *gitdb.Reader) gitdb.Hash {
	t.Helper()
	subs := map[string]model{}
	var entries []object.TreeEntry
	for p, f := range m {
		if first, rest, deep := strings.Cut(p, "/"); deep {
			if subs[first] == nil {
				subs[first] = model{}
			}
			subs[first][rest] = f
			continue
		}
		rd.Add(blobObject, f.id(), []byte(f.data))
		entries = append(entries, object.TreeEntry{Name: p, Mode: filemode.FileMode(f.mode), Hash: f.id()})
	}
	for name, sub := range subs {
		entries = append(entries, object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: sub.write(t, rd)})
	}
	slices.SortFunc(entries, func(a, b object.TreeEntry) int {
		return compareNames(a.Name, a.Mode == filemode.Dir, b.Name, b.Mode == filemode.Dir)
	})
	var o plumbing.MemoryObject
	if err := (&object.Tree{Entries: entries}).Encode(&o); err != nil {
		t.Fatalf("go-git refuses the tree: %v", err)
	}
	r, _ := o.Reader()
	data := make([]byte, o.Size())
	r.Read(data)
	rd.Add(treeObject, o.Hash(), data)
	return o.Hash()
}

// keys counts what the peer counts as keys: __value blobs, __list and __set folders.
func (m model) keys() int64 {
	found := map[string]bool{}
	for p := range m {
		c := strings.Split(p, "/")
		for i, name := range c {
			if (i == len(c)-1) == (name == "__value") && (name == "__value" || name == "__list" || name == "__set") {
				found[strings.Join(c[:i+1], "/")] = true
			}
		}
	}
	return int64(len(found))
}

func (m model) bytes() (n int64) {
	for _, f := range m {
		n += int64(len(f.data))
	}
	return n
}

// edit applies ops one after the other.
func (m model) edit(ops []op) model {
	out := maps.Clone(m)
	for _, o := range ops {
		for p, f := range out {
			folder, name := p[:strings.LastIndexByte(p, '/')+1], p[strings.LastIndexByte(p, '/')+1:]
			regular := f.mode&0o170000 == 0o100000
			switch {
			case o.kind == opClear && folder == o.path && regular && o.class.covers(name),
				o.kind == opDelete && p == o.path && regular,
				o.kind == opPut && (strings.HasPrefix(p, o.path+"/") || strings.HasPrefix(o.path, p+"/")):
				delete(out, p)
			}
		}
		if o.kind == opPut {
			out[o.path] = file{o.mode, string(o.data)}
		}
	}
	return out
}

// keyOps draws the edits of a key: all its old paths go, a value and tombstones come.
func keyOps(t *rapid.T, k meta.KeyRef, i int32) []op {
	base := k.Target.BasePath()
	path := meta.KeyPath(base, k.Key)
	ops := appendClears(nil, base, path, k.Key, i)
	v, has := drawValue(t)
	if has {
		ops = appendValue(ops, path, v, i)
	}
	var ts []meta.Tombstone
	for range rapid.IntRange(0, 2).Draw(t, "tombstones") {
		text := rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "text")
		ts = append(ts, rapid.SampledFrom([]meta.Tombstone{
			{Kind: meta.KeyTombstone, KeyRef: k, Time: 5, Email: text},
			{Kind: meta.EntryTombstone, KeyRef: k, Name: meta.Entry{Time: 1, Value: text}.Name(), Time: 6, Email: text},
			{Kind: meta.MemberTombstone, KeyRef: k, Name: meta.MemberID(text), Member: text},
		}).Draw(t, "tombstone"))
	}
	ts = slices.CompactFunc(ts, func(a, b meta.Tombstone) bool { return a.Kind == b.Kind && a.Name == b.Name })
	return appendTombstones(ops, base, path, ts, has, i)
}

func drawValue(t *rapid.T) (v meta.Value, has bool) {
	texts := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b", "ccc"}), 0, 3).Draw(t, "texts")
	switch v.Type = rapid.SampledFrom([]meta.ValueType{meta.String, meta.List, meta.Set, ""}).Draw(t, "type"); v.Type {
	case meta.String:
		v.String = strings.Join(texts, "+")
	case meta.List:
		for i, s := range texts {
			v.Entries = append(v.Entries, meta.Entry{Time: int64(i / 2), Value: s})
		}
	case meta.Set:
		slices.Sort(texts)
		v.Members = slices.Compact(texts)
	default:
		return v, false
	}
	return v, true
}

var editKeys = []string{
	"project a", "project a:b", "project a:b:c", "project ab", "project a-", "project a.", "commit:abcd a", "commit:abce a",
	"path:a a", "path:a/b a", "branch:a/b k", "branch:a b:k",
}

// strange are blobs that no key owns, or that stand where a folder must be.
var strange = []string{
	"README.md", "future/x/y", "project/README", "project/a", "project/a/b", "project/a/__value/x", "project/a/__list",
	"project/a/__list/notes.txt", "project/a/__list/sub/1-abcde", "project/a/__set/x/y", "project/a/__set/z", "project/a/__tombstones/x", "project/__tombstones",
	"project/__tombstones/a/b", "commit/ab/abcd/__value", "project/a.b", "project/a0", "commit", "project/a/__value/__value", "project/a/__target__", "project/a/b/__target__", "project/a/__list/__set/q",
}

func drawTree(t *rapid.T) model {
	m := model{}
	for _, k := range rapid.SliceOfDistinct(rapid.SampledFrom(editKeys), rapid.ID[string]).Draw(t, "base keys") {
		m = m.edit(keyOps(t, keyRef(k), -1))
	}
	for _, p := range rapid.SliceOfNDistinct(rapid.SampledFrom(strange), 0, 3, rapid.ID[string]).Draw(t, "strange") {
		mode := rapid.SampledFrom([]uint32{modeBlob, 0o100755, 0o120000}).Draw(t, "mode")
		m = m.edit([]op{{path: p, kind: opPut, mode: mode, data: []byte(rapid.SampledFrom([]string{"", "x", "yy"}).Draw(t, "data"))}})
	}
	if rapid.Bool().Draw(t, "symlink value") {
		m = m.edit([]op{{path: "project/a/__value", kind: opPut, mode: 0o120000, data: []byte("to")}})
	}
	return m
}

func TestEditor(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	rapid.Check(t, func(t *rapid.T) {
		rd, err := g.repo.Objects(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		m := drawTree(t)
		base := m.write(t, rd)
		for range rapid.IntRange(1, 6).Draw(t, "edits") {
			m, base = checkEdit(t, rd, m, base)
		}
	})
}

// checkEdit applies random edits to the tree base, which is that of the model before.
func checkEdit(t *rapid.T, rd *gitdb.Reader, before model, base gitdb.Hash) (model, gitdb.Hash) {
	refs := rapid.SliceOfNDistinct(rapid.SampledFrom(editKeys), 1, 6, rapid.ID[string]).Draw(t, "keys")
	ed := editor{ctx: context.Background(), rd: rd}
	var ops []op
	for i, k := range refs {
		ops = append(ops, keyOps(t, keyRef(k), int32(i))...)
		ed.keys = append(ed.keys, keyEdit{KeyRef: keyRef(k)})
	}
	puts := map[gitdb.Hash]int{}
	ed.put = func(typ gitdb.ObjectType, id gitdb.Hash, data []byte) error {
		if got := gitdb.HashObject(typ, data); got != id {
			t.Fatalf("an object is put under a wrong id")
		}
		puts[id]++
		rd.Add(typ, id, slices.Clone(data))
		return nil
	}
	sortOps(ops)
	after := before.edit(ops)
	got, err := ed.apply(base, ops, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := after.write(t, rd)
	if got != want && !(got == zero && len(after) == 0) {
		t.Fatalf("got tree\n%s\nwant\n%s", list(t, rd, got), list(t, rd, want))
	}
	checkDelta(t, rd, ed.delta, before, after)
	for i := range ed.keys {
		checkKey(t, &ed.keys[i], int32(i), ops, before, after)
	}
	if len(after) > 0 {
		checkPuts(t, puts, folders(t, rd, base), folders(t, rd, got), before, after)
	}
	return after, want
}

func checkDelta(t tester, rd *gitdb.Reader, d Delta, before, after model) {
	t.Helper()
	if got, want := d.Keys, after.keys()-before.keys(); got != want {
		t.Fatalf("delta of keys: got %d, want %d", got, want)
	}
	n := d.Added - d.Gone
	for _, id := range d.Removed {
		_, size, err := rd.Header(context.Background(), id)
		if err != nil {
			t.Fatalf("%v", err)
		}
		n -= size
	}
	if want := after.bytes() - before.bytes(); n != want {
		t.Fatalf("delta of bytes: got %d, want %d", n, want)
	}
}

func checkKey(t tester, k *keyEdit, i int32, ops []op, before, after model) {
	t.Helper()
	var had, has, changed bool
	for _, o := range ops {
		if o.key != i {
			continue
		}
		for p, f := range before {
			cleared := o.kind == opClear && p[:strings.LastIndexByte(p, '/')+1] == o.path && o.class.covers(p[len(o.path):])
			if !cleared && p != o.path || f.mode&0o170000 != 0o100000 && o.kind != opPut {
				continue
			}
			had = had || o.value && f.mode&0o170000 == 0o100000
			changed = changed || after[p] != f
		}
		if o.kind == opPut {
			has = has || o.value
			f, ok := before[o.path]
			changed = changed || !ok || f != after[o.path]
		}
	}
	if k.had != had || k.has != has || k.changed != changed {
		t.Fatalf("%s: got had %v, has %v, changed %v; want %v, %v, %v", k.KeyRef, k.had, k.has, k.changed, had, has, changed)
	}
}

// folders maps every folder of a tree to its id.
func folders(t tester, rd *gitdb.Reader, tree gitdb.Hash) map[string]gitdb.Hash {
	t.Helper()
	out := map[string]gitdb.Hash{"": tree}
	for todo := []string{""}; len(todo) > 0; todo = todo[1:] {
		entries, err := rd.Tree(context.Background(), out[todo[0]])
		if err != nil {
			t.Fatalf("%v", err)
		}
		for _, e := range entries {
			if e.Mode == modeTree {
				p := todo[0] + e.Name + "/"
				out[p] = e.Hash
				todo = append(todo, p)
			}
		}
	}
	return out
}

// checkPuts: what is put is what differs at its path, once.
func checkPuts(t tester, puts map[gitdb.Hash]int, dirsBefore, dirsAfter map[string]gitdb.Hash, before, after model) {
	t.Helper()
	want := map[gitdb.Hash]int{}
	for p, id := range dirsAfter {
		if dirsBefore[p] != id {
			want[id]++
		}
	}
	for p, f := range after {
		if before[p] != f {
			want[f.id()]++
		}
	}
	if !maps.Equal(puts, want) {
		t.Fatalf("objects put: got %v, want %v", puts, want)
	}
}

func list(t tester, rd *gitdb.Reader, tree gitdb.Hash) string {
	t.Helper()
	if tree.String() == emptyTree {
		return ""
	}
	var out []string
	err := WalkTree(context.Background(), rd, tree, func(l Leaf) error {
		out = append(out, fmt.Sprintf("%o %s %s", l.Mode, l.Hash, l.Path))
		return nil
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return lines(out...)
}

// What no edit names is not even read.
func TestEditorReadsOnlyWhatChanges(t *testing.T) {
	t.Parallel()
	rd, err := newRepo(t).repo.Objects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	absent := gitdb.HashObject(treeObject, []byte("nowhere"))
	data := gitdb.AppendTreeEntry(nil, modeTree, "future", absent)
	data = gitdb.AppendTreeEntry(data, modeTree, "project", model{"k/__value": {modeBlob, "a"}}.write(t, rd))
	base := gitdb.HashObject(treeObject, data)
	rd.Add(treeObject, base, data)
	var puts []string
	ed := editor{ctx: t.Context(), rd: rd, put: func(typ gitdb.ObjectType, _ gitdb.Hash, _ []byte) error {
		puts = append(puts, typ.String())
		return nil
	}}
	ops := putBlob(nil, "project/k/__value", "b", true, -1)
	if _, err := ed.apply(base, ops, 0); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(puts, cmp.Compare)
	same(t, "puts", strings.Join(puts, " "), "blob tree tree tree")
	puts = nil
	if got, err := ed.apply(base, putBlob(nil, "project/k/__value", "a", true, -1), 0); err != nil || got != base || len(puts) != 0 {
		t.Errorf("an edit that changes nothing: got %v, %v, %d puts", got, err, len(puts))
	}
}
