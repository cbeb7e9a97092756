package serialize

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
)

// What a lost store gets back: every value with its time to the millisecond and its
// author, every tombstone.
func TestLoadUnseenTip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, "project a", "1", "branch:topic/299 a:b", "t", "path:.gitmodules k", "")
	w.serialize(Options{})
	w.set(1_007, "project a", "2", "commit:98afc48127dd62ab6e54b17aa86aac61885501e6 x", strings.Repeat("x", 5000))
	w.set(999, "project gone", "x")
	w.serialize(Options{})
	w.update(func(tx *store.Tx) error {
		for _, err := range []error{
			tx.ListPush(keyRef("project list"), "one", edit(2_003)), tx.ListPush(keyRef("project list"), "two", edit(2_004)), tx.ListPop(keyRef("project list"), "one", edit(2_005)),
			tx.SetAdd(keyRef("branch:main set"), "m", edit(2_006)), tx.SetAdd(keyRef("branch:main set"), "n", edit(2_006)),
			tx.Remove(keyRef("project gone"), edit(2_007)),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	w.serialize(Options{})
	w.update(func(tx *store.Tx) error { return tx.SetRemove(keyRef("branch:main set"), "n", edit(3_009)) })
	w.serialize(Options{})
	tree := w.tree("main")

	again := w.lose()
	res := again.serialize(Options{})
	if res.Loaded != 6 || len(res.Refs) != 0 {
		t.Errorf("got %+v", res)
	}
	same(t, "store", again.dump(), w.dump())
	same(t, "tree", again.tree("main"), tree)
	if idle, err := NothingToDo(t.Context(), w.g.repo, again.db, again.env.Namespace); err != nil || !idle {
		t.Errorf("after loading: %v, %v", idle, err)
	}
	// one edit in the new store touches nothing else
	again.set(4_000, "project new", "1")
	again.serialize(Options{})
	same(t, "lines", again.changes(), lines("A project new"))
	w.g.fsck()
}

// An edit made before the tip was ever seen wins over the tip, and the rest is loaded.
func TestEditBeforeLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, "project a", "1", "project b", "1")
	w.serialize(Options{})
	w.set(2, "project a", "2")
	w.serialize(Options{})
	again := w.lose()
	again.set(3, "project a", "mine", "project c", "new")
	again.serialize(Options{})
	same(t, "tree", again.paths(), lines("project/a/__value=mine", "project/b/__value=1", "project/c/__value=new"))
	same(t, "lines", again.changes(), lines("M project a", "A project c"))
	// without a cursor, a value that the tip's history holds is an old one: the tip wins
	third := w.lose()
	third.set(4, "project a", "1")
	third.serialize(Options{})
	same(t, "tree", third.paths(), again.paths())
	if !strings.Contains(third.dump(), `project a string "mine"`) {
		t.Error(third.dump())
	}
}

func TestRefRewound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, "project a", "1", "project b", "1", "project same", "1")
	w.serialize(Options{})
	first := w.tip().String()
	w.set(2, "project a", "2", "project new", "1")
	w.rm(3, "project b")
	w.serialize(Options{})
	tree, rows := w.tree("main"), w.dump()
	w.git("update-ref", w.ref, first)
	w.serialize(Options{})
	same(t, "tree", w.tree("main"), tree)
	same(t, "store", w.dump(), rows)
	same(t, "lines", w.changes(), lines("M project a", "D project b", "A project new"))
	if len(w.warnings) != 0 {
		t.Errorf("warnings: %q", w.warnings)
	}
	w.g.fsck()
}

func TestRefDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, "project a", "1", "branch:main b", "1")
	w.serialize(Options{})
	w.rm(2, "project a")
	w.serialize(Options{})
	tree := w.tree("main")
	w.git("update-ref", "-d", w.ref)
	w.serialize(Options{})
	same(t, "tree", w.tree("main"), tree)
	same(t, "commits", w.commits(), "1")
	same(t, "lines", w.changes(), lines("A branch:main b"))
}

// The peer commits on top: what it changed is taken over with the commit's author and
// date, what it removed with a tombstone goes, what vanished for no reason is put back.
func TestCommitOnTop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, "project a", "1", "project b", "1", "project c", "1", "project lost", "1", "branch:main d", "1")
	w.serialize(Options{})
	w.commitTree("git-meta: serialize (4 changes)\n\nD\tproject\tb\nD\tproject\tc\nM\tproject\ta",
		w.blob("project/a/__value", "theirs")+w.blob("project/new/__list/1700000000123-aaf4c", "hello")+
			without("project/b/__value")+w.blob("project/__tombstones/b/__deleted", `{"timestamp":1700000000009,"email":"p@e"}`)+
			without("project/c/__value")+without("project/lost/__value"))
	w.set(5, "branch:main d", "2") // an edit here meanwhile
	res := w.serialize(Options{})
	same(t, "tree", w.paths(), lines("branch/b2/main/d/__value=2", `project/__tombstones/b/__deleted={"timestamp":1700000000009,"email":"p@e"}`,
		"project/a/__value=theirs", "project/lost/__value=1", "project/new/__list/1700000000123-aaf4c=hello"))
	same(t, "lines", w.changes(), lines("M branch:main d", "A project lost"))
	same(t, "store", w.dump(), lines(`branch:main d string "2"[] 5 a@example.com`, `gone project b metadata  "" 9 p@e false`,
		`project a string "theirs"[] 500000 peer@example.com`, `project lost string "1"[] 1 a@example.com`, `project new list ""["123:hello"] 500000 peer@example.com`))
	if res.Loaded != 2 || len(w.warnings) != 1 || !strings.Contains(w.warnings[0], "1 keys had vanished") {
		t.Errorf("loaded %d, warnings %q", res.Loaded, w.warnings)
	}
	w.g.fsck()
}

// Both sides have changed a key since the cursor: the store wins, unless the tip's
// history has had that very value.
func TestBothChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, "project a", "1", "project b", "1", "project c", "1")
	w.serialize(Options{})
	w.commitTree("one", w.blob("project/a/__value", "x")+w.blob("project/b/__value", "x")+without("project/c/__value"))
	w.commitTree("two", w.blob("project/a/__value", "theirs")+w.blob("project/b/__value", "theirs"))
	w.set(2, "project a", "mine", "project b", "x", "project c", "2")
	w.serialize(Options{})
	same(t, "tree", w.paths(), lines("project/a/__value=mine", "project/b/__value=theirs", "project/c/__value=2"))
}

// A prune by somebody else takes keys out of the tree, never out of the store.
func TestPruneCommitOnTop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, "branch:one a", "1", "branch:two a", "1", "branch:three a", "1")
	w.serialize(Options{})
	w.set(2, "branch:three a", "2")
	w.commitTree("git-meta: auto-prune\n\npruned: true\nreason: exceeded configured maximum", without("branch/"+shardOf("one")+"/one/a/__value")+
		without("branch/"+shardOf("three")+"/three/a/__value"))
	w.serialize(Options{})
	want := lines("branch/"+shardOf("two")+"/two/a/__value=1", "branch/"+shardOf("three")+"/three/a/__value=2")
	same(t, "tree", w.paths(), want)
	if d := w.dump(); !strings.Contains(d, "branch:one a string") || !strings.Contains(d, "withheld branch:one a pruned") || strings.Contains(d, "withheld branch:three") {
		t.Error(d)
	}
	w.serialize(Options{})
	same(t, "tree later", w.paths(), want)
	if len(w.warnings) != 0 {
		t.Errorf("warnings: %q", w.warnings)
	}
	w.set(3, "branch:one a", "again")
	w.serialize(Options{})
	same(t, "an edit", w.changes(), lines("A branch:one a"))
}

func shardOf(branch string) string {
	return strings.Split((meta.Target{Type: meta.Branch, Value: branch}).BasePath(), "/")[1]
}

// The log was trimmed, or a cursor lost: store and tip are compared as a whole.
func TestComparison(t *testing.T) {
	t.Parallel()
	for _, cursor := range []bool{true, false} {
		w := newWorld(t)
		w.set(1, "project a", "1", "project b", "1", "project c", "1", "project d", "1")
		w.serialize(Options{})
		w.commitTree("git-meta: serialize (1 changes)\n\nD\tproject\tb", without("project/b/__value")) // removed
		w.commitTree("other", without("project/d/__value"))                                            // lost
		w.commitTree("other", w.blob("project/c/__value", "theirs")+w.blob("project/e/__value", "theirs"))
		w.set(2, "project a", "2")
		if cursor {
			runSQL(t, w, "DELETE FROM metadata_log")
		} else {
			runSQL(t, w, "DELETE FROM x_cursor")
		}
		w.serialize(Options{})
		want := lines("project/a/__value=2", "project/c/__value=theirs", "project/d/__value=1", "project/e/__value=theirs")
		if !cursor { // an earlier tree holds d: it may have been pruned
			want = strings.Replace(want, "project/d/__value=1\n", "", 1)
		}
		same(t, "tree", w.paths(), want)
		dump := w.dump()
		if strings.Contains(dump, "project b string") || strings.Contains(dump, "withheld project d pruned") == cursor || !strings.Contains(dump, `project e string "theirs"`) {
			t.Errorf("cursor %v:\n%s", cursor, dump)
		}
		before := w.tip()
		if w.serialize(Options{}); w.tip() != before {
			t.Error("it does not settle")
		}
	}
}

// runSQL runs SQL on the store's file, as another program would.
func runSQL(t *testing.T, w *world, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", w.path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

// Whatever the tip holds besides keys stays byte for byte, and is named once.
func TestForeignEntriesStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, "project a", "1")
	w.serialize(Options{})
	link := strings.Replace(w.blob("project/link/__value", "to"), "100644", "120000", 1)
	odd := w.blob("README.md", "# hi") + w.blob("future/ab/x/__value", "v") + w.blob("project/README", "x") + w.blob("project/a/__list/notes.txt", "x") + link +
		w.blob("project/a:b/__value", "x") + w.blob("project/__x/y", "x") + w.blob("path/abc/k/__value", "no marker") + w.blob("commit/ab/abcdef", "x") +
		w.blob("project/latin/__value", "caf\xe9") + w.blob("project/a/__set/strange/deep", "x") + w.blob("project/bad/__tombstones/__deleted", "x") +
		w.blob("project/__tombstones/json/__deleted", "not json")
	w.commitTree("somebody", odd)
	listed := func() string {
		var out []string
		for l := range strings.Lines(w.git("-c", "core.quotePath=false", "ls-tree", "-r", w.ref)) {
			if l = strings.TrimSuffix(l, "\n"); !strings.HasSuffix(l, "project/a/__value") {
				out = append(out, l)
			}
		}
		return lines(out...)
	}
	before := listed()
	w.set(2, "project a", "2")
	w.serialize(Options{})
	same(t, "after an edit beside them", listed(), before)
	w.serialize(Options{ForceFull: true})
	same(t, "after force-full", listed(), before)
	again := w.lose()
	again.set(3, "project a", "3")
	again.serialize(Options{ForceFull: true})
	same(t, "after another store's force-full", listed(), before)
	all := strings.Join(again.warnings, "\n")
	for _, p := range []string{"project/a/__list/notes.txt", "project/link/__value", "project/a:b/__value", "project latin", "future/: an unknown target type, 1 file"} {
		if strings.Count(all, p) != 1 {
			t.Errorf("%s is named %d times:\n%s", p, strings.Count(all, p), all)
		}
	}
	if strings.Contains(all, "README.md") {
		t.Errorf("a README is complained about:\n%s", all)
	}
}
