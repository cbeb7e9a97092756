package serialize

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// design §5.5: A if the tip's tree lacks the key, M if it holds it, D if it held it or
// the removal is explicit; a first serialize has A lines only.
func TestChangeLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, "project a", "1", "project b", "1", "branch:xyz c", "1", "path:pqr d", "1")
	w.update(func(tx *store.Tx) error { return tx.SetAdd(keyRef("project s"), "m", edit(1)) })
	w.rm(2, "path:pqr d")
	w.serialize(Options{})
	same(t, "first", w.changes(), lines("A branch:xyz c", "A project a", "A project b", "A project s"))

	w.set(3, "project a", "2", "project new", "1")
	w.rm(4, "project b")
	w.set(4, "branch:xyz gone", "1")
	w.rm(5, "branch:xyz gone") // never published, removed knowingly
	w.update(func(tx *store.Tx) error { return tx.SetRemove(keyRef("project s"), "m", edit(5)) })
	w.serialize(Options{})
	same(t, "second", w.changes(), lines("D branch:xyz gone", "M project a", "D project b", "A project new", "M project s"))

	w.set(6, "project b", "again", "project a", "2") // a keeps its value
	w.serialize(Options{})
	same(t, "third", w.changes(), lines("A project b"))

	// another type is M; several edits of a key are one line
	w.update(func(tx *store.Tx) error {
		for i := range 3 {
			if err := tx.ListPush(keyRef("project b"), fmt.Sprint(i), edit(7)); err != nil {
				return err
			}
		}
		return nil
	})
	w.serialize(Options{})
	same(t, "fourth", w.changes(), lines("M project b"))
	w.g.fsck()
}

// An implied tombstone of a key that the tip does not hold is an absence: not published.
func TestImpliedTombstones(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, "project a", "1", "project b", "1")
	w.serialize(Options{})
	implied := func(key string) {
		w.update(func(tx *store.Tx) error {
			k := keyRef(key)
			if err := tx.DropRow(k, edit(2)); err != nil {
				return err
			}
			return tx.PutTombstone(meta.Tombstone{Kind: meta.KeyTombstone, KeyRef: k, Time: t0 + 2, Email: "p@e"})
		})
	}
	implied("project a") // the tip holds it
	w.set(2, "project c", "1")
	implied("project c") // it does not
	w.serialize(Options{})
	same(t, "lines", w.changes(), lines("D project a"))
	same(t, "tree", w.paths(), lines(`project/__tombstones/a/__deleted={"timestamp":1700000000002,"email":"p@e"}`, "project/b/__value=1"))
}

func TestMessages(t *testing.T) {
	t.Parallel()
	one := line{'A', keyRef("branch:xyz a:b"), 1}
	same(t, "one", message([]line{one}), "git-meta: serialize (1 changes)\n\nA\tbranch:xyz\ta:b")
	same(t, "none", message(nil), "git-meta: serialize (0 changes)\n")
	many := slices.Repeat([]line{one}, 1001)
	same(t, "many", message(many), "git-meta: serialize (1001 changes)\n\nchanges-omitted: true\ncount: 1001")
	if n := strings.Count(message(many[:1000]), "\nA\t"); n != 1000 {
		t.Errorf("1000 changes: %d lines", n)
	}
	same(t, "control characters", message([]line{{'M', meta.KeyRef{Target: meta.Target{Type: meta.Branch, Value: "a\tb"}, Key: "k\n"}, 1}}),
		"git-meta: serialize (1 changes)\n\nM\t\"branch:a\\tb\"\t\"k\\n\"")
	got := removals("git-meta: serialize (3 changes)\n\nD\tproject\ta:b\nM\tbranch:xyz\tc\nD\tbranch:xyz/y\tk\tl\nD\tweird:x\ty")
	if diff := cmp.Diff(got, []meta.KeyRef{keyRef("project a:b"), {Target: meta.Target{Type: meta.Branch, Value: "xyz/y"}, Key: "k\tl"}}); diff != "" {
		t.Error(diff)
	}
	if removals("materialize\n\nD\tproject\ta") != nil {
		t.Error("another program's commit tells removals")
	}
}

// The times in a commit are those of the rows, in milliseconds.
func TestTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	times := func() (string, map[string]int64) {
		t.Helper()
		rd := w.reader()
		c, err := rd.Commit(t.Context(), w.tip())
		if err != nil {
			t.Fatal(err)
		}
		before := zero
		if len(c.Parents) > 0 {
			before, _ = treeOf(t.Context(), rd, c.Parents[0])
		}
		keys, err := changedKeys(t.Context(), rd, before, c.Tree)
		if err != nil {
			t.Fatal(err)
		}
		ms := commitTimes(step{commit: c}, keys)
		got := map[string]int64{}
		for _, k := range keys {
			if k.has && ms != nil {
				got[k.KeyRef.String()], ms = ms[0]-t0, ms[1:]
			}
		}
		return c.Author.When.UTC().Format("15:04:05"), got
	}
	w.set(1, "project b", "1", "branch:xyz a", "1")
	w.set(5_000_007, "path:pqr a", "1", "project a-b", "1")
	w.set(-9, "project a", "1", "project a:b", "1")
	w.update(func(tx *store.Tx) error { return tx.SetAdd(keyRef("project set"), "m", edit(77)) })
	w.serialize(Options{})
	when, got := times()
	want := map[string]int64{"project b": 1, "branch:xyz a": 1, "path:pqr a": 5_000_007, "project a-b": 5_000_007, "project a": -9, "project a:b": -9, "project set": 77}
	if diff := cmp.Diff(got, want); diff != "" || when != "23:36:40" {
		t.Errorf("author date %s, want the newest edit's\n%s", when, diff)
	}
	w.set(6_000_000, "project a", "2")
	w.rm(6_000_001, "project b")
	w.update(func(tx *store.Tx) error { return tx.SetRemove(keyRef("project set"), "m", edit(6_000_002)) })
	w.serialize(Options{})
	if _, got = times(); len(got) != 0 { // a's time is the author date; b and set have no value left
		t.Errorf("got times %v", got)
	}
	if out := w.git("cat-file", "-p", w.ref); strings.Contains(out, meta.TimesHeader) {
		t.Errorf("a header that says nothing:\n%s", out)
	}
	w.g.fsck()
}

// The same rows give the same tree, in whatever order they came and were published.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	pairs := []string{"branch:aaa/b k", "branch:aaa k", "branch:aaa/b/c k:l", "change-id:aaa/b k", "path:aaa/b k", "path:aaa k", "project a:b", "project a", "commit:abcd k", "branch:topic/299 k", "branch:topic k"}
	trees := map[string]bool{}
	for n := range 4 {
		w := g.world(t)
		for i := range pairs {
			k := pairs[(i*(2*n+1)+n)%len(pairs)]
			if n == 1 {
				k = pairs[len(pairs)-1-i]
			} else if n == 2 {
				k = pairs[i]
			}
			w.set(int64(len(k)), k, "v")
			if n%2 == 0 {
				w.serialize(Options{})
			}
		}
		for _, k := range pairs {
			w.set(int64(len(k)), k, "v")
		}
		w.serialize(Options{})
		trees[w.tree("main")] = true
	}
	if len(trees) != 1 {
		t.Errorf("%d trees", len(trees))
	}
}

func TestNothingToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	idle := func(what string, want bool) {
		t.Helper()
		got, err := NothingToDo(t.Context(), w.g.repo, w.db, w.env.Namespace)
		if err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", what, got, err, want)
		}
	}
	idle("a new store", false)
	w.set(1, "project a", "1")
	idle("an edit", false)
	w.serialize(Options{})
	idle("after a serialize", true)
	before := w.commits()
	for range 3 {
		if res := w.serialize(Options{}); len(res.Refs) != 0 {
			t.Errorf("an idle serialize wrote %v", res.Refs)
		}
	}
	same(t, "commits", w.commits(), before)
	w.set(2, "project local:x", "1")
	idle("a local edit", false) // found out by the serialize
	w.serialize(Options{})
	idle("after it", true)
	same(t, "commits after a local edit", w.commits(), before)
	w.commitTree("somebody", w.blob("README.md", "x"))
	idle("the ref was moved", false)
	w.serialize(Options{})
	idle("the new tip was looked at", true)
	w.git("update-ref", "-d", w.ref)
	idle("the ref is gone", false)
}

func TestDryRunWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, "project a", "1", "project b", "2")
	res := w.serialize(Options{DryRun: true})
	if len(res.Refs) != 1 || res.Refs[0].Commit != "" || !slices.Equal(res.Refs[0].Lines, []string{"A\tproject\ta", "A\tproject\tb"}) {
		t.Errorf("got %+v", res.Refs)
	}
	if w.tip() != zero || w.git("count-objects") != "0 objects, 0 kilobytes" {
		t.Error("something was written")
	}
	same(t, "store", w.serialize(Options{}).Refs[0].Ref, w.ref)
}

// Twelve processes, each with the store open for itself, publish at once: nothing is lost,
// every edit is in the tree, and the history is linear.
func TestParallelRuns(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	first := g.world(t)
	const n = 12
	var wg sync.WaitGroup
	errs := make(chan error, n)
	for i := range n {
		w := g.open(t, first.path, first.env.Namespace)
		wg.Go(func() {
			err := w.db.Update(context.Background(), func(tx *store.Tx) error {
				return tx.Set(keyRef(fmt.Sprintf("branch:bra%d k", i)), "v", edit(int64(i)))
			})
			if err == nil {
				_, err = Run(context.Background(), w.env, Options{})
			}
			errs <- err
		})
	}
	wg.Wait()
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := strings.Count(first.paths(), "__value=v\n"); got != n {
		t.Errorf("%d of %d keys are published:\n%s", got, n, first.paths())
	}
	if first.git("rev-list", "--merges", first.ref) != "" {
		t.Error("a merge")
	}
	before := first.tip()
	if first.serialize(Options{ForceFull: true}); first.tip() != before {
		t.Error("force-full finds something else")
	}
	g.fsck()
}

// Somebody moves the ref after the tip was read: the run starts again from the new tip.
func TestLostRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, "project a", "1")
	w.serialize(Options{})
	w.set(2, "project a", "2")
	moved := 0
	w.env.Logf = func(format string, _ ...any) {
		if moved < 2 && strings.HasPrefix(format, "building") {
			moved++
			w.commitTree("somebody", w.blob(fmt.Sprintf("project/other%d/__value", moved), "theirs"))
		}
	}
	w.serialize(Options{})
	same(t, "tree", w.paths(), lines("project/a/__value=2", "project/other1/__value=theirs", "project/other2/__value=theirs"))
	same(t, "lines", w.changes(), lines("M project a"))
	if moved != 2 || w.commits() != "4" {
		t.Errorf("moved %d times, %s commits", moved, w.commits())
	}
	w.g.fsck()
}

// Above a hundred objects go into one pack; the ids are git's.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.update(func(tx *store.Tx) error {
		for i := range 400 {
			k := meta.KeyRef{Target: meta.Target{Type: meta.Commit, Value: fmt.Sprintf("%040x", i*7919)}, Key: "a:b"}
			if err := tx.Set(k, fmt.Sprint(i), edit(1)); err != nil {
				return err
			}
		}
		return nil
	})
	w.serialize(Options{})
	if out := w.git("count-objects"); out != "0 objects, 0 kilobytes" {
		t.Error(out)
	}
	var info bytes.Buffer
	for i := range 400 {
		id := gitdb.HashObject(blobObject, []byte(fmt.Sprint(i)))
		c := fmt.Sprintf("%040x", i*7919)
		fmt.Fprintf(&info, "100644 %s\tcommit/%s/%s/a/b/__value\n", id, c[:2], c)
	}
	tree := w.tree("main")
	other := w.g.world(t)
	other.commitTree("by git", info.String())
	same(t, "tree", tree, other.tree("main"))
	w.g.fsck()
}

// The tombstones of a slashed branch stand in the folder of the branch that is its first
// component, and need the marker as its values do.
func TestTombstonesBelowABranch(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	w, full := g.world(t), g.world(t)
	for _, w := range []*world{w, full} {
		w.set(1, "branch:topic/299 a", "1")
		if w != full {
			w.serialize(Options{})
		}
		w.rm(2, "branch:topic/299 a")
		w.set(3, "branch:topic k", "1")
		w.serialize(Options{ForceFull: w == full})
	}
	same(t, "tree", full.paths(), lines("branch/b4/topic/299/__target__=",
		`branch/b4/topic/299/__tombstones/a/__deleted={"timestamp":1700000000002,"email":"a@example.com","explicit":true}`, "branch/b4/topic/k/__value=1"))
	same(t, "tree", w.tree("main"), full.tree("main"))
	again := w.lose()
	again.serialize(Options{})
	same(t, "store", again.dump(), w.dump())
}
