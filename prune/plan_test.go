package prune

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// naiveChoose is the specification, sentence by sentence.
func naiveChoose(keys []item, minKeys, minSize int64) (kept map[meta.KeyRef]bool) {
	kept = map[meta.KeyRef]bool{}
	var order []item
	for _, k := range keys {
		if k.Target.Type == meta.Project {
			continue // always retained, never counted
		}
		if minSize > 0 && k.bytes > minSize {
			continue // alone bigger than the floor: cannot be published
		}
		order = append(order, k)
	}
	slices.SortFunc(order, func(a, b item) int {
		if a.time != b.time {
			return int(b.time - a.time)
		}
		return a.KeyRef.Compare(b.KeyRef)
	})
	n, bytes := int64(0), int64(0)
	for _, k := range order {
		n, bytes = n+1, bytes+k.bytes
		if minKeys > 0 && n > minKeys || minSize > 0 && bytes > minSize {
			break
		}
		kept[k.KeyRef] = true
	}
	return kept
}

func TestChoose(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		inv := &inventory{}
		for i := range rapid.IntRange(0, 12).Draw(t, "keys") {
			inv.keys = append(inv.keys, item{
				KeyRef: meta.KeyRef{Target: meta.Target{Type: rapid.SampledFrom(meta.TargetTypes).Draw(t, "type"), Value: fmt.Sprint(i % 3)}, Key: fmt.Sprint(i)},
				bytes:  rapid.Int64Range(0, 10).Draw(t, "bytes"), time: rapid.Int64Range(0, 4).Draw(t, "time"),
			})
		}
		slices.SortFunc(inv.keys, func(a, b item) int { return a.KeyRef.Compare(b.KeyRef) })
		minKeys, minSize := rapid.Int64Range(0, 6).Draw(t, "min-keys"), rapid.Int64Range(0, 20).Draw(t, "min-size")
		p := choose(inv, minKeys, minSize)
		want := naiveChoose(inv.keys, minKeys, minSize)
		if p.kept != int64(len(want)) {
			t.Fatalf("kept %d, want %d", p.kept, len(want))
		}
		bytes := int64(0)
		for _, k := range inv.keys {
			dropped := slices.ContainsFunc(p.drop, func(d *item) bool { return d.KeyRef == k.KeyRef })
			if k.Target.Type != meta.Project && dropped == want[k.KeyRef] || k.Target.Type == meta.Project && dropped {
				t.Fatalf("%v: dropped %v", k, dropped)
			}
			if want[k.KeyRef] {
				bytes += k.bytes
				if !p.survives || k.time < p.oldest {
					t.Fatalf("%v survives and is older than the oldest survivor, %d", k, p.oldest)
				}
			}
		}
		if minKeys > 0 && p.kept > minKeys || minSize > 0 && bytes > minSize {
			t.Fatalf("%d keys and %d bytes pass a floor", p.kept, bytes)
		}
	})
}

// drawEdits changes the store at random; what it refuses is no change.
func drawEdits(t *rapid.T, w *world, ms int64) {
	keys := []string{
		"project a", "commit:abcd a", "commit:abcd a:b", "commit:abce a", "commit:98bbbb8127dd62ab6e54b17aa86aac61885501e6 a", "branch:topic k", "branch:topic/299 k",
		"branch:feature/x k", "path:src k", "path:src/main.go k:l", "change-id:abcd1234 k",
	}
	for i := range rapid.IntRange(0, 5).Draw(t, "edits") {
		k := keyRef(rapid.SampledFrom(keys).Draw(t, "key"))
		text := strings.Repeat("x", rapid.IntRange(0, 40).Draw(t, "size"))
		e := edit(ms + int64(i))
		what := rapid.SampledFrom([]string{"set", "set", "push", "push", "add", "pop", "drop", "rm"}).Draw(t, "what")
		_ = w.db.Update(context.Background(), func(tx *store.Tx) error {
			switch what {
			case "set":
				return tx.Set(k, text, e)
			case "push":
				return tx.ListPush(k, text, e)
			case "pop":
				return tx.ListRemove(k, 0, e)
			case "add":
				return tx.SetAdd(k, text[:min(len(text), 2)], e)
			case "drop":
				return tx.SetRemove(k, text[:min(len(text), 2)], e)
			}
			return tx.Remove(k, e)
		})
	}
}

// foreign are entries that no key owns or that are spelled unusually.
func (w *world) foreign() []string {
	return []string{
		w.blob("README.md", "read me"), w.blob("future/ab/x/__value", "v"), w.blob("future/__list/1-abcde", "v"), w.blob("project/x/__list/notes.txt", "x"),
		w.blob("commit/zz/abcd/a/__value", "another spelling"), w.blob("commit/zz/abcd/z/__value", "only there"), w.blob("commit/ab/abcd/__value", "no key"),
		w.blob("commit/ab/abcd/__tombstones/gone/__deleted", `{"timestamp":5,"email":"a"}`), w.blob("commit/ab/abcd/a/__set/strange", "strange"),
		w.blob("commit/ab/abcd/a/__set/deep/er", "x"), w.blob("commit/ab/abcd/a:b/__value", "x"), w.blob("path/~src/__target__/k/__value", "alias"),
		w.blob("commit/ab/abce/a/__list/x", "x"), w.blob("commit/ab/file", "x"), strings.Replace(w.blob("commit/ab/abce/link/__value", "to"), "100644", "120000", 1),
		w.blob("branch/00/odd/k/__value", "x"),
	}
}

// naiveMeasure counts what `git ls-tree -r -t -l` lists.
func naiveMeasure(w *world, tree gitdb.Hash) (s store.Stats) {
	w.t.Helper()
	for l := range strings.Lines(w.git("ls-tree", "-r", "-t", "-l", tree.String())) {
		info, path, _ := strings.Cut(strings.TrimSuffix(l, "\n"), "\t")
		f := strings.Fields(info)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if f[1] == "blob" {
			n := int64(0)
			fmt.Sscan(f[3], &n)
			s.Bytes += n
		}
		if f[1] == "blob" && name == "__value" || f[1] == "tree" && (name == "__list" || name == "__set") {
			s.Keys++
		}
	}
	return s
}

// What is cached, what is added up from edits and what is counted from nothing agree.
func TestMeasure(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	rapid.Check(t, func(t *rapid.T) {
		w := g.world(t)
		w.rules("max-keys", "1000000", "max-size", "1g")
		cold := func(tree gitdb.Hash, cached bool) (s store.Stats) {
			w.view(func(tx *store.Tx) (err error) {
				m := newMeasurer(w.reader(), tx, Rules{MaxSize: 1})
				if !cached {
					m.known = func(string) (store.Stats, bool) { return store.Stats{}, false }
				}
				s, err = m.measure(context.Background(), tree, 0)
				return err
			})
			return store.Stats{Keys: s.Keys, Bytes: s.Bytes}
		}
		for step := range rapid.IntRange(1, 4).Draw(t, "serializes") {
			drawEdits(t, w, int64(1000*step))
			if rapid.Bool().Draw(t, "foreign entries") {
				w.serialize()
				w.commitTree("somebody", strings.Join(rapid.SliceOfDistinct(rapid.SampledFrom(w.foreign()), rapid.ID[string]).Draw(t, "entries"), ""))
			}
			w.serialize()
			tree := w.tree()
			want := naiveMeasure(w, tree)
			same(t, "cold", cold(tree, false), want)
			same(t, "cached", cold(tree, true), want)
			inv := w.inventory()
			same(t, "inventory", store.Stats{Keys: inv.total.Keys, Bytes: inv.total.Bytes}, want)
			for id, s := range inv.stats {
				same(t, "folder", store.Stats{Keys: s.Keys, Bytes: s.Bytes}, naiveMeasure(w, id))
			}
			var s store.Stats
			w.view(func(tx *store.Tx) (err error) { s, _, err = tx.TreeStats(tree.String()); return err })
			same(t, "tree_stats", s, store.Stats{Keys: want.Keys, Bytes: want.Bytes, HasKeys: true, HasBytes: true})
		}
	})
}

// However a plan is carried out, what it drops goes, what it keeps stays, and the new
// tree's size is known without counting.
func TestCuts(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	rapid.Check(t, func(t *rapid.T) {
		w := g.world(t)
		for step := range rapid.IntRange(1, 3).Draw(t, "rounds") {
			drawEdits(t, w, int64(1000*step))
		}
		w.serialize()
		info := w.blob("commit/ab/abcd/x/__value", "x") + w.blob("commit/ab/abce/y/__value", "y")
		w.commitTree("somebody", info+strings.Join(rapid.SliceOfDistinct(rapid.SampledFrom(w.foreign()), rapid.ID[string]).Draw(t, "foreign"), ""))
		inv, tree := w.inventory(), w.tree()
		p := &plan{}
		gone := map[string]bool{}
		for i := range inv.keys {
			if k := &inv.keys[i]; k.Target.Type != meta.Project && rapid.Bool().Draw(t, k.KeyRef.String()) {
				p.drop = append(p.drop, k)
				gone[k.KeyRef.String()] = true
			}
		}
		tombs := rapid.Bool().Draw(t, "tombstones go")
		p.dropTombstones(inv, func(*tombstone) bool { return tombs })

		emptied := map[string]bool{} // all that is left are tombstones: they are the value
		for _, x := range inv.tombs {
			if x.value {
				emptied[x.KeyRef.String()] = true
			}
		}
		var byPath serialize.Cuts // the same by single paths
		err := serialize.WalkTree(context.Background(), w.reader(), tree, func(l serialize.Leaf) error {
			d, err := l.Decode()
			if err != nil || d.Kind == meta.PathMarker {
				return nil
			}
			k := d.KeyRef.String()
			goes := tombs && d.Target.Type != meta.Project
			switch {
			case d.Kind == meta.PathValue || d.Kind == meta.PathEntry || d.Kind == meta.PathMember:
				goes = gone[k]
			case d.Kind != meta.PathTombstone: // of an entry or member: with its key
				goes = gone[k] || goes && !emptied[k]
			}
			if goes {
				byPath.Paths = append(byPath.Paths, l.Path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		cut := func(c serialize.Cuts) (gitdb.Hash, serialize.Delta) {
			wr, err := g.repo.NewWriter(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			id, d, err := serialize.Cut(context.Background(), w.reader(), wr, tree, c)
			if err == nil {
				err = wr.Finish(context.Background())
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = wr.Release()
			return id, d
		}
		want, _ := cut(byPath)
		cuts, whole := p.cuts(inv)
		got, delta := cut(cuts)
		if got != want {
			t.Fatalf("got\n%s\nwant\n%s\ndropped %v", w.git("ls-tree", "-r", got.String()), w.git("ls-tree", "-r", want.String()), gone)
		}
		delta.Keys, delta.Gone = delta.Keys+whole.Keys, delta.Gone+whole.Gone
		s, err := addDelta(context.Background(), w.reader(), inv.total, delta)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "size of the new tree", store.Stats{Keys: s.Keys, Bytes: s.Bytes}, naiveMeasure(w, got))
	})
}
