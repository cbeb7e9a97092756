package serialize

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
)

// sweep deletes keys as a retention sweep does: row, children, log records and tombstones
// of any kind, with an entry for the next serialize.
func (w *world) sweep(keys ...string) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		for _, key := range keys {
			k := keyRef(key)
			row, ok, err := tx.Row(k)
			if err != nil || !ok {
				return fmt.Errorf("%s: %v, %w", k, ok, err)
			}
			if _, err := tx.LocalPrune([]meta.KeyRef{k}, store.LocalPruneOptions{UpTo: math.MaxInt64}); err != nil {
				return err
			}
			ts, err := tx.Tombstones(k)
			if err != nil {
				return err
			}
			for _, t := range ts {
				if err := tx.DeleteTombstone(t); err != nil {
					return err
				}
			}
			if err := tx.PutWithheld(store.Withheld{KeyRef: k, EditTime: row.Time, Why: store.Swept}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *world) idle() bool {
	w.t.Helper()
	idle, err := NothingToDo(context.Background(), w.g.repo, w.db, w.env.Namespace)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return idle
}

func (w *world) message(ref string) string {
	w.t.Helper()
	return w.git("log", "-1", "--format=%B", ref)
}

// withCollections makes a world with a string, a list with a popped entry and a set with
// a removed member, and other keys beside them, all published.
func withCollections(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.set(1, "branch:main ci:a", "1", "branch:main ci:b", "1", "branch:main other", "1", "project p", "1")
	w.update(func(tx *store.Tx) error {
		for _, f := range []func() error{
			func() error { return tx.ListPush(keyRef("branch:main ci:list"), "one", edit(2)) },
			func() error { return tx.ListPush(keyRef("branch:main ci:list"), "two", edit(3)) },
			func() error { return tx.ListPop(keyRef("branch:main ci:list"), "two", edit(4)) },
			func() error { return tx.SetAdd(keyRef("branch:main ci:set"), "m", edit(2)) },
			func() error { return tx.SetAdd(keyRef("branch:main ci:set"), "n", edit(3)) },
			func() error { return tx.SetRemove(keyRef("branch:main ci:set"), "n", edit(4)) },
		} {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	})
	w.serialize(Options{})
	return w
}

const othersOnly = "branch/b2/main/ci/b/__value=1\nbranch/b2/main/other/__value=1\nproject/p/__value=1\n"

// "The next serialize drops the same keys from the tree in one commit (`git-meta:
// retention`, body as for prune), even if nothing else changed."
func TestRetentionCommit(t *testing.T) {
	t.Parallel()
	w := withCollections(t)
	if !w.idle() {
		t.Fatal("not idle after a serialize")
	}
	before := w.tip()
	w.sweep("branch:main ci:a", "branch:main ci:list", "branch:main ci:set")
	if w.idle() {
		t.Error("idle with swept keys")
	}
	rows := w.dump()
	res := w.serialize(Options{DryRun: true})
	if r := res.Retention; r == nil || r.Ref != w.ref || r.Commit != "" || r.KeysDropped != 3 || r.KeysRetained != 3 || len(res.Refs) != 0 {
		t.Errorf("dry run: %+v %+v", res, r)
	}
	same(t, "after a dry run", w.dump(), rows)
	if w.tip() != before {
		t.Error("a dry run moved the ref")
	}

	res = w.serialize(Options{})
	r := res.Retention
	if r == nil || r.Ref != w.ref || r.Commit != w.tip().String() || r.KeysDropped != 3 || r.KeysRetained != 3 || len(res.Refs) != 0 || len(r.Refs) != 1 {
		t.Errorf("got %+v %+v", res, r)
	}
	same(t, "message", w.message(w.ref), "git-meta: retention\n\npruned: true\nreason: a collection's retention\nkeys-dropped: 3\nkeys-retained: 3")
	same(t, "parent", w.git("rev-parse", w.ref+"~1"), before.String())
	same(t, "tree", w.paths(), othersOnly)
	if strings.Contains(w.dump(), "withheld") {
		t.Error(w.dump())
	}
	if !w.idle() {
		t.Error("not idle afterwards")
	}
	tip := w.tip()
	if res = w.serialize(Options{}); res.Retention != nil || w.tip() != tip {
		t.Errorf("a second run: %+v", res)
	}
	w.set(9, "branch:main ci:a", "new")
	w.serialize(Options{})
	same(t, "set again", w.changes(), lines("A branch:main ci:a"))
	w.g.fsck()
}

// A change and a retention in one run are two commits, the retention on top.
func TestRetentionAfterChanges(t *testing.T) {
	t.Parallel()
	w := withCollections(t)
	w.sweep("branch:main ci:a", "branch:main ci:b")
	w.set(9, "branch:main ci:a", "again", "branch:main other", "2") // a has a row and no entry: an ordinary change
	res := w.serialize(Options{})
	if len(res.Refs) != 1 || res.Refs[0].Changes != 2 || res.Retention == nil || res.Retention.KeysDropped != 1 {
		t.Errorf("got %+v %+v", res, res.Retention)
	}
	same(t, "first", w.git("log", "-1", "--format=%B", w.ref+"~1"), "git-meta: serialize (2 changes)\n\nM\tbranch:main\tci:a\nM\tbranch:main\tother")
	if !strings.HasPrefix(w.message(w.ref), "git-meta: retention\n") {
		t.Error(w.message(w.ref))
	}
	if p := w.paths(); strings.Contains(p, "ci/b") || !strings.Contains(p, "ci/a/__value=again") {
		t.Error(p)
	}
	if cur, _ := w.cursor(); cur.Commit != w.tip().String() {
		t.Errorf("cursor %+v", cur)
	}
}

func (w *world) cursor() (cur store.Cursor, ok bool) {
	w.t.Helper()
	w.view(func(tx *store.Tx) (err error) {
		cur, ok, err = tx.Cursor(w.ref, w.tip().String())
		return err
	})
	return cur, ok
}

// What no tree holds is forgotten, without a commit.
func TestSweptBeforePublished(t *testing.T) {
	t.Parallel()
	w := withCollections(t)
	w.set(5, "branch:main ci:new", "1")
	w.sweep("branch:main ci:new")
	tip := w.tip()
	if res := w.serialize(Options{DryRun: true}); res.Retention != nil {
		t.Errorf("dry run: %+v", res.Retention)
	}
	if res := w.serialize(Options{}); res.Retention != nil || w.tip() != tip {
		t.Errorf("got %+v", res)
	}
	if strings.Contains(w.dump(), "withheld") || !w.idle() {
		t.Error(w.dump())
	}
	fresh := newWorld(t) // and where there is no ref yet
	fresh.set(1, "branch:main ci:a", "1")
	fresh.sweep("branch:main ci:a")
	fresh.serialize(Options{})
	if strings.Contains(fresh.dump(), "withheld") || fresh.tip() != zero {
		t.Error(fresh.dump())
	}
}

// Every ref that a rule sends the key to is cut.
func TestRetentionInDestinations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.update(func(tx *store.Tx) error {
		return tx.SetAdd(keyRef("project local:meta:filter"), "route ci:** main,backup", edit(0))
	})
	w.set(1, "branch:main ci:a", "1", "branch:main ci:b", "1", "branch:main x", "1")
	w.serialize(Options{})
	w.sweep("branch:main ci:a")
	res := w.serialize(Options{DryRun: true})
	if res.Retention == nil || len(res.Retention.Refs) != 2 || res.Retention.Ref != w.ref {
		t.Fatalf("dry run: %+v", res.Retention)
	}
	res = w.serialize(Options{})
	if r := res.Retention; r == nil || len(r.Refs) != 2 || r.KeysDropped != 1 || r.Ref != w.ref {
		t.Fatalf("got %+v", r)
	}
	backup := w.env.LocalRef("backup")
	same(t, "message", w.message(backup), "git-meta: retention\n\npruned: true\nreason: a collection's retention\nkeys-dropped: 1")
	for _, ref := range []string{w.ref, backup} {
		if got := w.git("ls-tree", "-r", "--name-only", ref); strings.Contains(got, "ci/a") || !strings.Contains(got, "ci/b") {
			t.Errorf("%s: %s", ref, got)
		}
	}
	if !w.idle() {
		t.Error("not idle")
	}
	// main alone moved, then the power went: only the other ref is left to do
	w.sweep("branch:main ci:b")
	w.update(func(tx *store.Tx) error { return nil })
	at := w.git("rev-parse", backup)
	w.serialize(Options{})
	tip := w.tip()
	w.git("update-ref", backup, at)
	w.update(func(tx *store.Tx) error {
		return tx.PutWithheld(store.Withheld{KeyRef: keyRef("branch:main ci:b"), EditTime: t0 + 1, Why: store.Swept})
	})
	res = w.serialize(Options{})
	if r := res.Retention; r == nil || r.Ref != backup || w.tip() != tip || !w.idle() {
		t.Errorf("got %+v", r)
	}
}

// A force-full run writes every row and drops what was swept; what another clone's
// retention dropped it does not bring back.
func TestRetentionForceFull(t *testing.T) {
	t.Parallel()
	w := withCollections(t)
	w.sweep("branch:main ci:a", "branch:main ci:list", "branch:main ci:set")
	res := w.serialize(Options{ForceFull: true})
	if res.Retention == nil || res.Retention.KeysDropped != 3 {
		t.Errorf("got %+v", res)
	}
	same(t, "tree", w.paths(), othersOnly)
	w.commitTree(retentionMessage(1, -1), without("branch/b2/main/ci/b/__value"))
	w.serialize(Options{})
	if !strings.Contains(w.dump(), "withheld branch:main ci:b retention") || !strings.Contains(w.dump(), `branch:main ci:b string "1"`) {
		t.Fatal(w.dump())
	}
	rest := strings.Replace(othersOnly, "branch/b2/main/ci/b/__value=1\n", "", 1)
	w.serialize(Options{ForceFull: true})
	same(t, "tree", w.paths(), rest)
	w.update(func(tx *store.Tx) error { // other rules: everything is routed anew
		return tx.SetAdd(keyRef("project local:meta:filter"), "exclude zzz", edit(5))
	})
	w.serialize(Options{})
	same(t, "tree", w.paths(), rest)
	w.set(9, "branch:main ci:b", "2") // an edit ends it
	w.serialize(Options{})
	same(t, "edited", w.changes(), lines("A branch:main ci:b"))
	if strings.Contains(w.dump(), "withheld") {
		t.Error(w.dump())
	}
}

// Died at each place: the next run finishes it, and no entry stays.
func TestRetentionInterrupted(t *testing.T) {
	t.Parallel()
	w := withCollections(t)
	w.sweep("branch:main ci:a", "branch:main ci:list", "branch:main ci:set")
	before := w.tip().String()
	w.serialize(Options{})
	tip := w.tip()
	// the ref has moved, the entries are still there
	again := func() {
		w.update(func(tx *store.Tx) error {
			for _, k := range []string{"branch:main ci:a", "branch:main ci:list", "branch:main ci:set"} {
				if err := tx.PutWithheld(store.Withheld{KeyRef: keyRef(k), EditTime: t0 + 1, Why: store.Swept}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	again()
	if res := w.serialize(Options{}); res.Retention != nil || w.tip() != tip || !w.idle() {
		t.Errorf("after the ref: %+v", res)
	}
	// the cursor is written, the ref has not moved
	again()
	w.git("update-ref", w.ref, before)
	w.serialize(Options{})
	same(t, "before the ref", w.paths(), othersOnly)
	if !w.idle() || w.commits() != "2" {
		t.Errorf("%s commits", w.commits())
	}
	w.g.fsck()
}

// A tip that this store has not seen: what was swept here does not come back with it,
// unless somebody edited it; a store that is lost before the serialize has forgotten that
// anything was swept.
func TestRetentionUnseenTip(t *testing.T) {
	t.Parallel()
	w := withCollections(t)
	w.sweep("branch:main ci:a", "branch:main ci:b")
	w.commitTree("somebody", w.blob("branch/b2/main/other/__value", "theirs")+w.blob("branch/b2/main/ci/b/__value", "edited"))
	w.serialize(Options{DryRun: true})
	w.serialize(Options{})
	d := w.dump()
	if strings.Contains(d, "ci:a") || !strings.Contains(d, `ci:b string "edited"`) || !strings.Contains(d, `other string "theirs"`) || strings.Contains(d, "withheld") {
		t.Error(d)
	}
	if p := w.paths(); strings.Contains(p, "ci/a") || !strings.Contains(p, "ci/b/__value=edited") {
		t.Error(p)
	}
	// the position is lost, not the entries: compared, not loaded
	w.sweep("branch:main ci:list")
	w.update(func(tx *store.Tx) error { return tx.DeleteCursors(w.ref) })
	w.serialize(Options{})
	if strings.Contains(w.dump()+w.paths(), "ci:list") || strings.Contains(w.paths(), "ci/list") {
		t.Error(w.dump(), w.paths())
	}
	// lost before: the key is loaded like any other
	w.sweep("branch:main ci:set")
	lost := w.lose()
	lost.serialize(Options{})
	if !strings.Contains(lost.dump(), "ci:set set") || strings.Contains(lost.dump(), "ci:list") {
		t.Error(lost.dump())
	}
	// lost after: it is gone, and nothing says that it is to come
	lost.sweep("branch:main ci:set")
	lost.serialize(Options{})
	fresh := w.lose()
	fresh.serialize(Options{})
	if strings.Contains(fresh.dump(), "ci:set") || strings.Contains(fresh.dump(), "withheld") {
		t.Error(fresh.dump())
	}
	// a store whose rows are older than that: they stay, not live
	old := w.lose()
	old.set(2, "branch:main ci:list", "x")
	old.set(2, "branch:main ci:a", "1")
	old.serialize(Options{})
	if d := old.dump(); !strings.Contains(d, "withheld branch:main ci:a retention") {
		t.Error(d)
	}
}

// Both ways back into the tree end the entry of a key that another clone's retention took.
func TestRetainedComesBack(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		w := withCollections(t)
		w.commitTree(retentionMessage(1, -1), without("branch/b2/main/ci/a/__value"))
		w.serialize(Options{})
		if !strings.Contains(w.dump(), "withheld branch:main ci:a retention") {
			t.Fatal(w.dump())
		}
		w.commitTree("somebody", w.blob("branch/b2/main/ci/a/__value", "1"))
		if lost {
			w.update(func(tx *store.Tx) error { return tx.DeleteCursors(w.ref) })
		}
		w.serialize(Options{})
		if strings.Contains(w.dump(), "withheld") {
			t.Error(w.dump())
		}
	}
}

// The peer wrote a row of a swept key: an ordinary change, in whatever way it is found.
func TestPeerWritesSweptKey(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"cursor", "rules", "full"} {
		w := withCollections(t)
		w.sweep("branch:main ci:a")
		raw, err := sql.Open("sqlite", w.path)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{
			`INSERT INTO metadata(target_type, target_value, key, value, value_type, last_timestamp) VALUES ('branch', 'main', 'ci:a', '"peer"', 'string', 1700000009000)`,
			`INSERT INTO metadata_log VALUES ('branch', 'main', 'ci:a', '"peer"', 'string', 'set', 'p@e', 1700000009000)`,
		} {
			if _, err := raw.Exec(text); err != nil {
				t.Fatal(err)
			}
		}
		raw.Close()
		if how == "rules" {
			w.update(func(tx *store.Tx) error {
				return tx.SetAdd(keyRef("project local:meta:filter"), "exclude zzz", edit(5))
			})
		}
		res := w.serialize(Options{ForceFull: how == "full"})
		same(t, how, w.changes(), lines("M branch:main ci:a"))
		if res.Retention != nil || strings.Contains(w.dump(), "withheld") || !strings.Contains(w.paths(), "ci/a/__value=peer") {
			t.Errorf("%s: %+v\n%s%s", how, res.Retention, w.dump(), w.paths())
		}
	}
}

// Two processes: one retention commit, no entry left, both succeed.
func TestRetentionAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var pairs []string
	for i := range 200 {
		pairs = append(pairs, fmt.Sprintf("branch:b%d ci", i), "1")
	}
	w.set(1, pairs...)
	w.serialize(Options{})
	for i := range 100 {
		w.sweep(fmt.Sprintf("branch:b%d ci", i))
	}
	var wg sync.WaitGroup
	for range 4 {
		other := w.g.open(t, w.path, w.env.Namespace)
		wg.Go(func() {
			if _, err := Run(t.Context(), other.env, Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	w.serialize(Options{})
	if n := strings.Count(w.git("log", "--format=%s", w.ref), "git-meta: retention"); n != 1 || !w.idle() {
		t.Errorf("%d retention commits, %s", n, w.dump())
	}
	if n := strings.Count(w.paths(), "\n"); n != 100 {
		t.Errorf("%d keys", n)
	}
	w.g.fsck()
}
