package serialize_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// caseWorld runs schedules by hand, with looks in between.
type caseWorld struct {
	*realWorld
	*testing.T
}

func newCase(t *testing.T, clones, maximum int) *caseWorld {
	t.Helper()
	s := schedOf(clones, "")
	s.maximum = maximum
	c := &caseWorld{newRealWorld(t, t.TempDir(), s, true), t}
	c.w.after = c.troubles
	t.Cleanup(func() {
		if !t.Failed() {
			if bad := c.fsck(); bad != nil {
				t.Error(bad)
			}
		}
		c.close()
	})
	return c
}

func (c *caseWorld) run(steps string) {
	c.Helper()
	for _, s := range parseSteps(steps) {
		if c.w.run(s); c.w.bad != nil {
			c.Fatalf("%s: %s", s, c.w.bad)
		}
	}
}

func (c *caseWorld) clone(i int) *realClone { return c.w.sites[i].(*realClone) }

// rows checks what clone i reads: "x=v0001 g=set[m]".
func (c *caseWorld) rows(i int, want string) {
	c.Helper()
	if got := c.clone(i).rows().String(); got != want {
		c.Errorf("%c reads %q, want %q", 'A'+i, got, want)
	}
}

// published checks what the remote holds.
func (c *caseWorld) published(want string) {
	c.Helper()
	if _, got, _ := c.realWorld.tip(); got.String() != want {
		c.Errorf("R holds %q, want %q", got.String(), want)
	}
}

// agree syncs all clones twice and checks that they and the remote have one tree.
func (c *caseWorld) agree() {
	c.Helper()
	for range 2 {
		for i := range c.w.sites {
			c.run(string(rune('A'+i)) + ".sync")
		}
	}
	before, _, text := c.realWorld.tip()
	for i, s := range c.w.sites {
		if _, _, got := s.tip(); got != text {
			c.Errorf("%c has another tree than R:\n%s\n%s", 'A'+i, got, text)
		}
		c.run(string(rune('A'+i)) + ".sync")
	}
	if now, _, _ := c.realWorld.tip(); now != before {
		c.Error("a further sync writes")
	}
}

// merge fetches and materializes into clone i and returns what that did.
func (c *caseWorld) merge(i int) *serialize.MergeResult {
	c.Helper()
	x := c.clone(i)
	c.w.now += tickMS
	if err := x.fetch(); err != nil {
		c.Fatal(err)
	}
	res, err := serialize.Materialize(context.Background(), x.e, trackedMain, serialize.MergeOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return res
}

// conflicts checks the keys and losers that a merge reports.
func conflicts(t *testing.T, res *serialize.MergeResult, want ...string) {
	t.Helper()
	var got []string
	for _, c := range res.Conflicts {
		got = append(got, fmt.Sprintf("%s %s %s %s", letterOf(c.KeyRef), c.Reason, c.Resolution, c.Loser))
	}
	if !slices.Equal(got, want) {
		t.Errorf("conflicts %q, want %q", got, want)
	}
}

// TestPrunedElsewhere: another clone's prune hides a key here, and nothing that this clone
// does brings it back or makes a removal of it (cases 4 and 24).
func TestPrunedElsewhere(t *testing.T) {
	t.Parallel()
	c := newCase(t, 2, 0)
	c.run("A.set_x A.set_y A.sync B.sync A.prune A.sync B.sync")
	c.rows(0, "x=v0001 y=v0002")
	c.rows(1, "x=v0001 y=v0002")
	c.published("y=v0002")
	for range 5 {
		c.run("B.set_y B.serialize B.push A.sync")
	}
	c.published("y=v0007")
	c.rows(0, "x=v0001 y=v0007")
	c.rows(1, "x=v0001 y=v0007")
	for _, x := range c.line() {
		if len(x.removed) > 0 {
			t.Errorf("a commit removes %v", x.removed)
		}
	}
	c.agree()
	// an edit publishes it again, a rebuild too
	c.run("B.set_x B.sync A.sync")
	c.published("x=v0008 y=v0007")
	c.rows(0, "x=v0008 y=v0007")
}

// TestAutoPruneElsewhere is the same with rules: R stays at the floor.
func TestAutoPruneElsewhere(t *testing.T) {
	t.Parallel()
	c := newCase(t, 2, 3)
	c.run("A.set_x A.set_y A.set_p A.sync B.sync A.set_q A.sync")
	c.published("q=v0004")
	c.run("B.sync B.set_x B.sync B.serialize B.push A.sync B.sync")
	c.published("q=v0004 x=v0005")
	c.rows(1, "p=v0003 q=v0004 x=v0005 y=v0002")
	c.rows(0, "p=v0003 q=v0004 x=v0005 y=v0002")
	c.agree()
}

// TestLocalPruneStaysLocal: a local cleanup changes nothing that is published (case 5).
func TestLocalPruneStaysLocal(t *testing.T) {
	t.Parallel()
	c := newCase(t, 2, 0)
	c.run("A.set_x A.sync B.sync A.local-prune_x A.set_y A.full A.push B.sync A.serialize A.sync")
	c.rows(0, "y=v0002")
	c.rows(1, "x=v0001 y=v0002")
	c.published("x=v0001 y=v0002")
	c.agree()
	c.run("B.set_x B.sync A.sync") // a new value is loaded
	c.rows(0, "x=v0003 y=v0002")
	c.run("A.local-prune_x A.rm_x A.sync B.sync") // rm finds no row: not done here
	c.run("B.rm_x B.sync A.sync")
	c.rows(0, "y=v0002")
	c.published("y=v0002")
	c.agree()
}

// TestLaterEditWins whoever merges, and the loser is reported (case 14).
func TestLaterEditWins(t *testing.T) {
	t.Parallel()
	c := newCase(t, 2, 0)
	c.run("A.set_x A.sync B.sync A.set_x B.set_x B.push")
	conflicts(t, c.merge(0), "x both-changed remote v0002")
	c.rows(0, "x=v0003")
	c.agree()
	c.rows(1, "x=v0003")

	c.run("A.set_x B.set_x A.push")
	conflicts(t, c.merge(1), "x both-changed local v0004")
	c.agree()
	c.rows(0, "x=v0005")
	out, err := c.git(c.clone(1).dir, "log", "-p", "--format=", trackedMain)
	if err != nil || !strings.Contains(out, "v0004") {
		t.Errorf("the loser is not in the history: %v", err)
	}
}

// TestSetRemovalStands when another clone adds a member (case 16).
func TestSetRemovalStands(t *testing.T) {
	t.Parallel()
	c := newCase(t, 2, 0)
	c.run("A.add_g_base A.sync B.sync A.add_g_one A.drop_g_base A.push B.add_g_two B.sync A.sync")
	c.rows(0, "g=set[one two]")
	c.rows(1, "g=set[one two]")
	c.agree()
	for i := range 2 { // both remember the removal
		c.must(c.clone(i).db.View(t.Context(), func(tx *store.Tx) error {
			ts, err := tx.Tombstones(keyOf("g"))
			if len(ts) != 1 || ts[0].Member != "base" {
				t.Errorf("%c: tombstones %+v", 'A'+i, ts)
			}
			return err
		}))
	}
}

// TestRemovedStaysRemoved although its tombstone was pruned before an offline clone came
// back (case 18).
func TestRemovedStaysRemoved(t *testing.T) {
	t.Parallel()
	c := newCase(t, 2, 0)
	c.run("A.set_x A.set_y A.sync B.sync B.set_q A.rm_x A.push A.set_y")
	c.must(c.clone(0).run())
	c.must(c.clone(0).pruneBefore(realStart + c.w.now - tickMS))
	if _, _, text := c.clone(0).tip(); strings.Contains(text, "__deleted") {
		t.Fatal("the tombstone was not pruned")
	}
	c.run("A.push B.sync A.sync")
	c.rows(0, "q=v0003 y=v0004")
	c.rows(1, "q=v0003 y=v0004")
	c.published("q=v0003 y=v0004")
	c.agree()
}

// TestStringAgainstList: the later edit wins, the other is reported (case 19).
func TestStringAgainstList(t *testing.T) {
	t.Parallel()
	c := newCase(t, 2, 0)
	c.run("A.set_x B.append_x B.sync A.serialize")
	conflicts(t, c.merge(0), "x concurrent-add remote v0001")
	c.agree()
	c.rows(0, "x=list[v0002]")
	c.rows(1, "x=list[v0002]")
	c.run("A.append_x B.set_x B.push")
	conflicts(t, c.merge(0), "x both-changed remote a list of 2")
	c.agree()
	c.rows(0, "x=v0004")
}

// TestRemovalAgainstEdit is the table's rows on removals, both ways.
func TestRemovalAgainstEdit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, steps, merged, conflict string }{
		{"newer removal there", "A.set_x B.rm_x B.push", "", "x local-modified-remote-removed remote v0002"},
		{"older removal there", "B.rm_x A.set_x B.push", "x=v0002", "x local-modified-remote-removed local "},
		{"newer removal here", "B.set_x A.rm_x B.push", "", "x remote-modified-local-removed local v0002"},
		{"older removal here", "A.rm_x B.set_x B.push", "x=v0002", "x remote-modified-local-removed remote "},
		{"removed on both sides", "A.rm_x B.rm_x B.push", "", ""},
		{"unchanged, removed there", "B.rm_x B.push", "", ""},
		{"pruned here, removed there", "A.prune B.rm_x B.push", "", ""},
		{"removed and set again there", "B.rm_x B.set_x B.push", "x=v0002", ""},
		{"newer removal of a set there", "A.add_g_n B.rm_g B.push", "x=v0001", "g local-modified-remote-removed remote a set of 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newCase(t, 2, 0)
			c.run("A.set_x A.sync B.sync")
			if strings.Contains(tt.steps, "_g") {
				c.run("A.add_g_m A.sync B.sync")
			}
			c.run(tt.steps)
			var want []string
			if tt.conflict != "" {
				want = []string{tt.conflict}
			}
			conflicts(t, c.merge(0), want...)
			c.rows(0, tt.merged)
			c.agree()
			c.rows(1, tt.merged)
			c.published(tt.merged)
		})
	}
}

// TestUnpublishedThroughHistory: what was changed and pruned before it was pushed goes
// through a commit of its own, so that nobody else's older value counts as the last.
func TestUnpublishedThroughHistory(t *testing.T) {
	t.Parallel()
	c := newCase(t, 2, 0)
	c.run("A.set_x A.set_y A.sync B.sync A.set_x A.set_y")
	c.must(c.clone(0).run())
	c.must(c.clone(0).pruneBefore(realStart + c.w.now - tickMS + 1)) // x, not y
	c.run("B.set_q B.push A.sync B.sync")
	c.published("q=v0005 y=v0004")
	c.rows(1, "q=v0005 x=v0003 y=v0004")
	c.agree()
}

// TestOddPathsMerge: what no reader understands is merged by path, and kept (cases 31, 32).
func TestOddPathsMerge(t *testing.T) {
	t.Parallel()
	c := newCase(t, 2, 0)
	c.run("A.set_x A.sync B.sync")
	c.plant(0, map[string]string{"README.md": "one", "future-type/ab/abc/k/__value": "f", "path/src/z\xff.ts/__target__/k/__value": "bad name"})
	c.run("A.push B.sync B.set_y")
	c.plant(1, map[string]string{"README.md": "two", "other/file": "b"})
	c.run("B.serialize A.set_x")
	c.plant(0, map[string]string{"README.md": "three", "new/file": "a"})
	c.run("A.push B.sync A.sync")
	c.agree()
	out, err := c.git(c.clone(0).dir, "-c", "core.quotePath=true", "ls-tree", "-r", "--name-only", trackedMain)
	c.must(err)
	for _, want := range []string{"README.md", "future-type/ab/abc/k/__value", `"path/src/z\377.ts/__target__/k/__value"`, "other/file", "new/file"} {
		if !slices.Contains(strings.Split(out, "\n"), want) {
			t.Errorf("%s is gone:\n%s", want, out)
		}
	}
	c.rows(0, "x=v0003 y=v0002")
}

// TestBadValuesStay: bytes that are not UTF-8 are not taken over and not touched, in a
// first load, a fast-forward and a merge (cases 30, 31).
func TestBadValuesStay(t *testing.T) {
	t.Parallel()
	c := newCase(t, 3, 0)
	c.run("A.set_x A.sync B.sync B.set_y")
	c.plant(0, map[string]string{
		"path/src/bin/__target__/k/__value":                            "\xff\xfe",
		"path/src/lst/__target__/k/__list/notanid":                     "x",
		"path/src/deep/__target__/k/__value/deep":                      "x",
		"path/src/set/__target__/k/__set/" + "zz":                      "m",
		"path/src/huge/__target__/k/__list/99999999999999999999-abcde": "m",
	})
	c.run("A.set_q A.push")
	for _, i := range []int{2, 1, 0} {
		res := c.merge(i)
		_ = res
		if i != 0 && !slices.ContainsFunc(c.clone(i).warn, func(s string) bool { return strings.Contains(s, "src/bin") || strings.Contains(s, "bin/") }) {
			t.Errorf("%c does not name the bad value: %q", 'A'+i, c.clone(i).warn)
		}
	}
	c.w.after = nil // such keys are in the tree without a row
	c.run("B.set_y B.push C.set_p C.sync A.sync B.sync C.full C.sync A.sync B.sync")
	for i := range 3 {
		out, err := c.git(c.clone(i).dir, "cat-file", "-p", localMain+":path/src/bin/__target__/k/__value")
		if err != nil || out != "\xff\xfe" {
			t.Errorf("%c has %q, %v", 'A'+i, out, err)
		}
		out, err = c.git(c.clone(i).dir, "ls-tree", "-r", "--name-only", localMain)
		c.must(err)
		if n := strings.Count(out, "\n") + 1; n != 9 {
			t.Errorf("%c has %d paths, want 9:\n%s", 'A'+i, n, out)
		}
	}
}

// TestPrivateRowsStay: what a filter keeps here is neither published by a merge nor
// overwritten, and a tree cannot bring local: keys.
func TestPrivateRowsStay(t *testing.T) {
	t.Parallel()
	c := newCase(t, 2, 0)
	c.w.after = nil // such rows differ from the tree
	rule := func(key string) {
		c.clone(1).edit(func(tx *store.Tx) error {
			return tx.SetAdd(meta.KeyRef{Target: meta.ProjectTarget, Key: key}, "exclude s:**", store.Edit{})
		})
	}
	secret := meta.KeyRef{Target: keyOf("x").Target, Key: "s:g"}
	add := func(i int, member string) {
		c.clone(i).edit(func(tx *store.Tx) error { return tx.SetAdd(secret, member, store.Edit{}) })
	}
	rule("local:meta:filter")
	add(0, "public")
	add(1, "private")
	c.run("A.set_x A.sync B.set_y B.sync A.sync")
	add(0, "more")
	add(1, "own")
	c.plant(0, map[string]string{"project/local/meta/filter/__set/" + meta.MemberID("route s:** main"): "route s:** main", "project/local/x/__value": "v"})
	c.run("A.sync B.set_y B.sync A.sync B.full B.sync A.sync")
	out, err := c.git(c.clone(0).dir, "log", "-p", "--format=", trackedMain, "--", "path/src/x/__target__/s")
	if err != nil || strings.Contains(out, "private") || strings.Contains(out, "own") {
		t.Errorf("published: %v\n%s", err, out)
	}
	c.must(c.clone(1).db.View(t.Context(), func(tx *store.Tx) error {
		rec, err := tx.Get(secret)
		if got := fmt.Sprint(rec.Value.Members); got != "[own private]" {
			t.Errorf("the private set is %s", got)
		}
		if texts, err := tx.FilterTexts(); err != nil || !slices.Equal(texts, []string{"exclude s:**"}) {
			t.Errorf("rules %q, %v", texts, err)
		}
		if _, ok, _ := tx.ProjectString("local:x"); ok {
			t.Error("a local: key came with a tree")
		}
		return err
	}))
	out, err = c.git(c.clone(1).dir, "ls-tree", "-r", "--name-only", localMain, "project/local/x")
	if err != nil || out == "" {
		t.Errorf("the local: path is gone from the tree: %v", err)
	}
}

// plant commits files on clone i's local ref, as another program would.
func (c *caseWorld) plant(i int, files map[string]string) {
	c.Helper()
	x := c.clone(i)
	c.must(x.run())
	env := c.env
	c.env = append(slices.Clone(env), "GIT_INDEX_FILE="+x.dir+"/plant.index")
	defer func() { c.env = env }()
	git := func(args ...string) string {
		c.Helper()
		out, err := c.git(x.dir, args...)
		c.must(err)
		return out
	}
	git("read-tree", localMain)
	for path, text := range files {
		id := gitdb.HashObject(gitdb.BlobObject, []byte(text))
		w, err := x.repo.NewWriter(context.Background())
		c.must(err)
		c.must(w.Put(gitdb.BlobObject, id, []byte(text)))
		c.must(w.Finish(context.Background()))
		c.must(w.Release())
		git("update-index", "--add", "--cacheinfo", "100644,"+id.String()+","+path)
	}
	tree := git("write-tree")
	commit := git("commit-tree", "-p", localMain, "-m", "planted", tree)
	git("update-ref", localMain, commit)
	c.must(x.run()) // the store sees it
	c.commits = map[gitdb.Hash]*realCommit{}
}

// TestKeyTimesTravel: a merge carries the times of both sides, and a fresh clone reads
// them.
func TestKeyTimesTravel(t *testing.T) {
	t.Parallel()
	c := newCase(t, 4, 0)
	c.run("A.set_x A.set_y A.set_p A.sync B.sync A.set_x B.set_y B.add_g_m B.serialize A.set_q A.push B.push A.sync C.sync D.fetch")
	want := map[string]int64{}
	times := func(i int) map[string]int64 {
		out := map[string]int64{}
		c.must(c.clone(i).db.View(t.Context(), func(tx *store.Tx) error {
			for row, err := range tx.Rows(store.Query{Type: meta.Path}) {
				if err != nil {
					return err
				}
				out[letterOf(row.KeyRef)] = row.Time
			}
			return nil
		}))
		return out
	}
	for _, e := range c.w.events {
		want[e.key] = e.time
	}
	for i := range 3 {
		if got := times(i); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%c: times %v, want %v", 'A'+i, got, want)
		}
	}
}

// TestEmptyCollectionTravels and is a value: nobody's member comes back.
func TestEmptyCollectionTravels(t *testing.T) {
	t.Parallel()
	c := newCase(t, 3, 0)
	c.run("A.add_g_m A.append_l A.sync B.sync A.drop_g_m A.pop_l A.sync B.sync C.sync")
	for i := range 3 {
		c.rows(i, "g=set[] l=list[]")
	}
	c.run("B.add_g_n C.append_l B.sync C.sync A.sync B.sync")
	for i := range 3 {
		c.rows(i, "g=set[n] l=list[v0002]")
	}
	c.agree()
}
