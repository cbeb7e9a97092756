package serialize

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Whatever a tip holds, and whatever its history: an empty store is filled with what it
// would be with key by key.
func TestFirstLoadIsReconcile(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	var took, left atomic.Int64
	t.Cleanup(func() {
		if took.Load() < 20 || left.Load() < 1 {
			t.Errorf("readFirst took %d and left %d", took.Load(), left.Load())
		}
	})
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := &world{t: t, g: g} // no store
			s := &scribe{w.historian(), rand.New(rand.NewPCG(seed, 1)), map[meta.KeyRef][]string{}}
			var tip gitdb.Hash
			fits, either := true, false
			commits := []int{1, 1, 1, 2, 3, 4}[s.r.IntN(6)]
			for i := range commits {
				n := s.r.IntN(40)
				if i > 0 {
					n /= 4
				}
				s.some(n)
				s.clock += s.r.Int64N(1000)
				p := planted{msg: []string{
					"other", "git-meta: serialize (1 changes)\n\nD\tproject\ta", "git-meta: auto-prune\n\npruned: true", "git-meta: retention\n\npruned: true\nreason: collection retention",
				}[s.r.IntN(4)], email: []string{"", "peer@example.com", " "}[s.r.IntN(3)]}
				if i > 0 {
					p.parents = []gitdb.Hash{tip}
				}
				shallow := false
				switch {
				case i == 0 && s.odds(15):
					shallow = true
					p.parents = []gitdb.Hash{gitdbHash("00112233445566778899aabbccddeeff00112233")}
				case i > 0 && s.odds(30):
					p.parents = append(p.parents, s.commit(zero, "aside"))
				}
				switch s.r.IntN(5) {
				case 0, 1:
					p.times = eachTime(0)
				case 2:
					more := []int{-1, 1}[s.r.IntN(2)]
					p.times = func(n int) []int64 {
						bad := !shallow && n+more > 0
						fits = fits && (!bad || commits > 1)
						either = either || bad && i == 0 && commits > 1 // it may not be needed
						return eachTime(more)(n)
					}
				}
				tip = s.plant(p)
			}
			var rules []string
			if s.odds(30) {
				rules = []string{"exclude a:b", "route a:** builds", "route a builds,main"}[:1+s.r.IntN(3)]
			}
			first, _ := g.bothWays(t, tip, rules...)
			if first {
				took.Add(1)
			} else {
				left.Add(1)
			}
			if first != fits && !either {
				t.Errorf("readFirst takes it: %v, want %v", first, fits)
			}
		})
	}
}

// Trees of which a first load must know what it can't do, or has to take care.
func TestFirstLoadCases(t *testing.T) {
	t.Parallel()
	const commit = "98afc48127dd62ab6e54b17aa86aac61885501e6"
	stone := string(meta.EncodeTombstone(t0+7, "p@e", true))
	member := meta.MemberID("m")
	// a value before and one behind what has no time in the header
	around := map[string]string{"branch/b2/main/a/__value": "1", "project/z/__value": "2"}
	for _, c := range []struct {
		name   string
		paths  []string // path, content
		commit planted
		first  bool
		rows   []string // in the dump
		warns  string
	}{
		{name: "nothing", first: true},
		{
			name: "empty list with times", paths: []string{"project/l/__list/__tombstones/1700000000001-aaaaa", stone}, commit: planted{times: eachTime(0)}, first: true,
			rows: []string{`project l list ""[] 1000 a@example.com`, "project z string \"2\"[] 3252 a@example.com", "branch:main a string \"1\"[] 333 a@example.com"},
		},
		{
			name: "empty set with times", paths: []string{"project/s/__tombstones/" + member, "m"}, commit: planted{times: eachTime(0)}, first: true,
			rows: []string{`project s set ""[] 1000 a@example.com`, "gone project s set_member " + member + ` "m" 1000 a@example.com false`, "project z string \"2\"[] 3252"},
		},
		{
			name: "tombstones with times", paths: []string{"project/__tombstones/s/__deleted", stone, "project/s/__tombstones/" + member, "m"}, commit: planted{times: eachTime(0)}, first: true,
			rows: []string{`gone project s metadata  "" 7 p@e true`, "gone project s set_member " + member + ` "m" 1000 a@example.com false`, "project z string \"2\"[] 3252"},
		},
		{
			name: "tombstone of the project with a value", paths: []string{"project/__tombstones/z/__deleted", stone, "project/__tombstones/Z/b/__deleted", stone, "project/Z/b/__value", "3"}, first: true,
			rows: []string{"project Z:b string"},
		},
		{
			name: "tombstone of a branch with a value", paths: []string{"branch/b2/main/__tombstones/a/__deleted", stone}, commit: planted{times: eachTime(0)}, first: true,
			rows: []string{"branch:main a string"},
		},
		{
			name: "times of nested keys", commit: planted{times: eachTime(0)}, first: true,
			paths: []string{"project/a/b/__value", "", "project/a/__value", "", "project/a/B/__value", "", "project/a/_x/__value", "", "project/a-b/__value", "", "project/A/c/__value", "", "project/__tombstones/a/c/__deleted", stone},
		},
		{name: "a time too few", commit: planted{times: eachTime(-1)}, rows: []string{"project z string \"2\"[] 1000"}},
		{name: "a time too many", commit: planted{times: eachTime(1)}, rows: []string{"project z string \"2\"[] 1000"}},
		{
			name: "two headers", commit: planted{headers: []gitdb.Header{{Key: meta.TimesHeader, Value: "v1 AAAA"}}, times: eachTime(0)},
			rows: []string{"project z string \"2\"[] 3252"},
		},
		{name: "a header that can't be read", commit: planted{headers: []gitdb.Header{{Key: meta.TimesHeader, Value: "v1 ???"}}, times: eachTime(0)}, first: true, rows: []string{"project z string \"2\"[] 3252"}},
		{name: "no times where the history is cut", commit: planted{times: eachTime(0), parents: []gitdb.Hash{gitdbHash(commit)}}, first: true, rows: []string{"project z string \"2\"[] 1000"}},
		{name: "a path's alias", paths: []string{"path/src/~main.go/__target__/k/__value", "1"}, rows: []string{"path:src/main.go k string"}},
		{name: "a path and its alias", paths: []string{"path/src/~main.go/__target__/k/__value", "1", "path/src/main.go/__target__/k/__value", "2"}, rows: []string{`path:src/main.go k string "2"`}},
		{name: "a commit twice", paths: []string{"commit/98/" + commit + "/k/__value", "1", "commit/zz/" + commit + "/k/__value", "2"}, rows: []string{"commit:" + commit + " k string"}},
		{name: "a branch elsewhere", paths: []string{"branch/00/main/k/__value", "1"}, commit: planted{times: eachTime(0)}, rows: []string{"branch:main k string"}},
		{name: "a branch's tombstone elsewhere", paths: []string{"branch/zz/main/__tombstones/a/__deleted", stone}, rows: []string{"branch:main a string"}},
		{name: "a branch's items elsewhere", paths: []string{"branch/00/main/k/__list/5-aaaaa", "1", "branch/b2/main/k/__list/__tombstones/5-aaaaa", stone}, rows: []string{"branch:main k list"}},
		{name: "a value that is no text", paths: []string{"project/bad/__value", "caf\xe9", "project/bad/__list/__tombstones/5-aaaaa", stone}, first: true, warns: "project bad: "},
		{name: "an entry's time that does not fit", paths: []string{"project/bad/__list/99999999999999999999-aaaaa", "x"}, commit: planted{times: eachTime(0)}, first: true, warns: "the time does not fit"},
		{name: "no name of an entry", paths: []string{"project/bad/__list/x", "x", "README.md", "x"}, first: true, warns: "project/bad/__list/x: "},
		{
			name: "entries of one time", first: true, rows: []string{`project l list ""["-1699999999995:zero" "-1699999999995:upper" "-1699999999995:second" "-1699999999995:first"] 1000 a@example.com`},
			paths: []string{"project/l/__list/5-bbbbb", "first", "project/l/__list/5-aaaaa", "second", "project/l/__list/05-ccccc", "zero", "project/l/__list/5-BBBBB", "upper"},
		},
		{name: "an author without address", commit: planted{email: " "}, first: true, rows: []string{`project z string "2"[] 1000 unknown`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newRepo(t)
			a := g.world(t)
			h := a.historian()
			if c.name != "nothing" {
				maps.Copy(h.paths, around)
			}
			for i := 0; i < len(c.paths); i += 2 {
				h.paths[c.paths[i]] = c.paths[i+1]
			}
			tip := h.plant(c.commit)
			first, _ := g.bothWays(t, tip)
			if first != c.first {
				t.Errorf("readFirst takes it: %v", first)
			}
			if left := store.FillFiles(g.dir); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
			a.git("update-ref", a.ref, tip.String())
			a.serialize(Options{})
			b := g.world(t)
			b.general(tip, meta.NewFilter(nil))
			if diff := cmp.Diff(b.contents(), a.contents()) + cmp.Diff(sorted(b.warnings), sorted(a.warnings)); diff != "" {
				t.Errorf("reconcile against Run (-want +got):\n%s", diff)
			}
			dump := a.dump()
			for _, row := range c.rows {
				if !strings.Contains(dump, row) {
					t.Errorf("no %q in\n%s", row, dump)
				}
			}
			if warned := strings.Join(a.warnings, "\n"); !strings.Contains(warned, c.warns) || c.warns == "" && warned != "" {
				t.Errorf("warnings: %q", a.warnings)
			}
			if idle, err := NothingToDo(t.Context(), g.repo, a.db, a.env.Namespace); first && (err != nil || !idle) {
				t.Errorf("there is something to do: %v", err)
			}
		})
	}
}

// A table with a column more is filled by statements.
func TestFirstLoadOfOtherTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, "project a", "1")
	w.serialize(Options{})
	again := w.lose()
	runSQL(t, again, "ALTER TABLE metadata_log ADD COLUMN more TEXT")
	start := time.Now()
	if res := again.serialize(Options{}); res.Loaded != 1 {
		t.Errorf("%+v", res)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	same(t, "store", again.dump(), w.dump())
}

// What programs of ours have published, with all that they leave in a history.
func TestFirstLoadOfPublished(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	rapid.Check(t, func(t *rapid.T) {
		w := g.world(t)
		for step := range rapid.IntRange(1, 3).Draw(t, "serializes") {
			for i := range rapid.IntRange(1, 12).Draw(t, "mutations") {
				w.do(drawMutation(t, int64(step*1_000_000+i*1000)))
			}
			w.serialize(Options{})
		}
		if w.tip() == zero {
			return
		}
		if first, _ := g.bothWays(t, w.tip(), rapid.SliceOfN(rapid.SampledFrom(filterRules), 0, 2).Draw(t, "rules")...); !first {
			t.Fatalf("readFirst does not take it")
		}
	})
	g.fsck()
}

// A part of a tree that is handed on bit by bit: by the number of keys, and by their size.
func TestFirstLoadOfLargePart(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	w := g.world(t)
	var pairs []string
	for i := range someKeys + 1 {
		pairs = append(pairs, fmt.Sprintf("path:src/f%04d k", i), fmt.Sprint(i))
	}
	for i := range 3 {
		pairs = append(pairs, fmt.Sprintf("path:large/f%d k", i), strings.Repeat("large ", someBytes/10))
	}
	w.set(1, pairs...)
	w.serialize(Options{})
	first, contents := g.bothWays(t, w.tip())
	if n := strings.Count(contents, `"path" `); !first || n != len(pairs) { // row and record of each
		t.Errorf("readFirst takes it: %v, with %d rows and records", first, n)
	}
}

// A store that is edited after a tip was read for it is judged as any other.
func TestFirstLoadOvertaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, "project a", "1", "project b", "1")
	w.serialize(Options{})
	again := w.lose()
	first, err := readFirst(t.Context(), again.env, again.reader(), w.tip(), meta.NewFilter(nil))
	if first == nil || err != nil {
		t.Fatal(first, err)
	}
	again.set(2, "project a", "mine")
	before := again.contents()
	if _, err := first.carryOut(t.Context(), again.env); !errors.Is(err, errStoreMoved) {
		t.Errorf("carryOut: %v", err)
	}
	same(t, "contents", again.contents(), before)
	again.serialize(Options{first: first})
	same(t, "tree", again.paths(), lines("project/a/__value=mine", "project/b/__value=1"))
	first.close()

	// what was read of another tip is of no use
	other := w.lose()
	if first, err = readFirst(t.Context(), other.env, other.reader(), w.tip(), meta.NewFilter(nil)); err != nil {
		t.Fatal(err)
	}
	same(t, "tip", w.tip().String(), again.tip().String())
	other.commitTree("other", other.blob("project/a/__value", "theirs"))
	other.serialize(Options{first: first})
	if d := other.dump(); !strings.Contains(d, `project a string "theirs"`) {
		t.Error(d)
	}
	first.close()
	if left := store.FillFiles(w.g.dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestFirstLoadCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, "project a", "1", "project b", "1")
	w.serialize(Options{})
	tip, again := w.tip(), w.lose()
	before := again.contents()
	ctx, cancel := context.WithCancel(t.Context())
	first, err := readFirst(ctx, again.env, again.reader(), tip, meta.NewFilter(nil))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := first.carryOut(ctx, again.env); !errors.Is(err, context.Canceled) {
		t.Errorf("carryOut: %v", err)
	}
	first.close()
	if first, err := readFirst(ctx, again.env, again.reader(), tip, meta.NewFilter(nil)); first != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("readFirst: %v, %v", first, err)
	}
	if left := store.FillFiles(w.g.dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	same(t, "contents", again.contents(), before)
}

// A partial clone has the trees and not the values: they are asked for at once, and where
// that fails nothing has changed.
func TestFirstLoadOfPartialClone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, "project a", "one", "branch:main b", "two")
	w.update(func(tx *store.Tx) error { return tx.ListPush(keyRef("project l"), "three", edit(2)) })
	w.serialize(Options{})
	w.set(3, "project a", "four")
	w.serialize(Options{})
	w.git("config", "uploadpack.allowFilter", "true")

	g := newRepo(t)
	c := g.world(t)
	const tracking = "refs/meta/remotes/main"
	c.git("remote", "add", "origin", "file://"+w.g.dir)
	c.git("config", "remote.origin.promisor", "true")
	c.git("fetch", "-q", "--filter=blob:none", "origin", w.ref+":"+tracking)
	missing := func() []string {
		t.Helper()
		var out []string
		for l := range strings.Lines(c.git("rev-list", "--objects", "--missing=print", tracking)) {
			if id, ok := strings.CutPrefix(strings.TrimSpace(l), "?"); ok {
				out = append(out, id)
			}
		}
		return out
	}
	if n := len(missing()); n != 4 {
		t.Fatalf("%d values are missing", n)
	}
	tip := gitdbHash(c.git("rev-parse", tracking))
	if first, err := readFirst(t.Context(), c.env, c.reader(), tip, meta.NewFilter(nil)); first != nil || !errors.Is(err, gitdb.ErrObjectMissing) {
		t.Errorf("readFirst: %v, %v", first, err)
	}
	before, refs := c.contents(), c.git("for-each-ref")
	offline := errors.New("offline")
	calls := 0
	_, err := Materialize(t.Context(), c.env, tracking, MergeOptions{Hydrate: func(context.Context, gitdb.Hash, gitdb.Hash) error {
		calls++
		return offline
	}})
	if !errors.Is(err, offline) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	same(t, "contents", c.contents(), before)
	same(t, "refs", c.git("for-each-ref"), refs)
	if left := store.FillFiles(g.dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if n := len(missing()); n != 4 {
		t.Errorf("%d values are missing: some were fetched", n)
	}

	res, err := Materialize(t.Context(), c.env, tracking, MergeOptions{Hydrate: func(_ context.Context, local, remote gitdb.Hash) error {
		if local != zero || remote != tip {
			t.Errorf("hydrate of %s and %s", local, remote)
		}
		c.git(append([]string{"fetch", "-q", "origin"}, missing()...)...)
		return nil
	}})
	if err != nil || res.Loaded != 3 || res.Strategy != FastForward {
		t.Fatalf("%+v, %v", res, err)
	}
	same(t, "rows", c.dump(), w.dump())
	same(t, "tip", c.tip().String(), tip.String())
	if left := store.FillFiles(g.dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}

	// everything is here now: nobody is asked
	d := g.world(t)
	if _, err := Materialize(t.Context(), d.env, tracking, MergeOptions{Hydrate: func(context.Context, gitdb.Hash, gitdb.Hash) error { return offline }}); err != nil {
		t.Error(err)
	}
	same(t, "rows", d.dump(), w.dump())
}
