package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/meta"

	"github.com/git-meta/git-meta-go/store"
)

// created returns when a key is counted to have been made, and since when it is published,
// in ms after t0.
func (w *world) created(target, key string) string {
	w.t.Helper()
	w.catchUp()
	k := kref(target, key)
	return strings.Join(w.lines("SELECT created - ?, published - ? FROM x_created WHERE target_type = ? AND target_value = ? AND key = ?",
		t0, t0, string(k.Target.Type), k.Target.Value, k.Key), ";")
}

func (w *world) wantCreated(target, key, want string) {
	w.t.Helper()
	if got := w.created(target, key); got != want {
		w.t.Errorf("%s %s: %q, want %q", target, key, got, want)
	}
}

func TestCreatedUnpublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("ci 0 0")
	w.set("path:src/a", "ci", t0+5)
	w.set("path:src/a", "ci", t0+9) // an edit makes nothing younger
	w.wantCreated("path:src/a", "ci", "5|")
	w.rm("path:src/a", "ci")
	w.wantCreated("path:src/a", "ci", "")
	w.set("path:src/a", "ci", t0+20)
	w.wantCreated("path:src/a", "ci", "20|")
	// Removed and made again between two looks; the time counts, not the order of times.
	w.rm("path:src/a", "ci")
	w.set("path:src/a", "ci", t0+15)
	w.set("path:src/a", "ci", t0+30)
	w.wantCreated("path:src/a", "ci", "15|")
	// Without a log record: the time of the row.
	w.update(func(tx *store.Tx) error {
		return tx.Put(kref("path:src/b", "ci"), meta.Value{Type: meta.String, String: "x"}, store.Edit{Time: t0 + 7}, store.PutOptions{NoLog: true})
	})
	w.wantCreated("path:src/b", "ci", "7|")
	w.exec("DELETE FROM metadata_log WHERE timestamp > 0")
	w.wantCreated("path:src/a", "ci", "30|")
	w.audit()
}

func TestCreatedPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("ci 0 0")
	w.set("path:src/a", "ci", t0+5)
	w.set("path:src/a", "ci", t0+9)
	w.wantCreated("path:src/a", "ci", "5|")
	w.serialize()
	w.wantCreated("path:src/a", "ci", "9|9") // what the commit says, to the millisecond
	w.set("path:src/a", "ci", t0+100)
	w.serialize()
	w.wantCreated("path:src/a", "ci", "9|9")
	// A prune takes it out of the tree; it keeps its time until it is brought again.
	setProject(t, w.env, "meta:prune:max-keys", "3", "meta:prune:min-keys", "1")
	w.update(func(tx *store.Tx) error {
		return tx.PutWithheld(store.Withheld{KeyRef: kref("path:src/a", "ci"), EditTime: t0 + 100, Why: store.Pruned})
	})
	w.wantCreated("path:src/a", "ci", "9|9")
	// A removal ends it.
	w.rm("path:src/a", "ci")
	w.serialize()
	w.set("path:src/a", "ci", t0+500)
	w.wantCreated("path:src/a", "ci", "500|")
	w.serialize()
	w.wantCreated("path:src/a", "ci", "500|500")
	// Removed and made again before it left the tree: a new row.
	w.rm("path:src/a", "ci")
	w.set("path:src/a", "ci", t0+600)
	w.serialize()
	w.wantCreated("path:src/a", "ci", "600|")
	// A collection declared later reads the history.
	w.set("path:src/a", "other", t0+50)
	w.serialize()
	w.set("path:src/a", "other", t0+60)
	w.serialize()
	w.declare("ci 0 0", "other 0 0")
	w.wantCreated("path:src/a", "other", "50|50")
	w.wantCreated("path:src/a", "ci", "600|")
	// The log is gone: what is published keeps its time.
	w.exec("DELETE FROM metadata_log WHERE target_type <> 'project'")
	w.wantCreated("path:src/a", "other", "50|50")
	w.audit()
}

// A merge puts another line of history in the place of the local one.
func TestCreatedOnAnotherLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("ci 0 0")
	w.set("path:src/a", "ci", t0+5)
	w.serialize()
	base := w.g.git("rev-parse", "refs/meta/local/main")
	w.set("path:src/b", "ci", t0+10)
	w.set("path:src/c", "ci", t0+11)
	w.serialize()
	w.wantCreated("path:src/b", "ci", "10|10")
	other := w.g.world("meta2")
	other.declare("ci 0 0")
	w.g.git("update-ref", "refs/meta2/local/main", base)
	other.set("path:src/b", "ci", t0+7)
	other.serialize()
	w.g.git("update-ref", "refs/meta/local/main", "refs/meta2/local/main")
	w.wantCreated("path:src/a", "ci", "5|5")
	w.wantCreated("path:src/b", "ci", "7|7")
	w.wantCreated("path:src/c", "ci", "11|")
	// The old commit is no more.
	w.exec("UPDATE x_cursor SET commit_oid = ? WHERE ref = 'retention:'", strings.Repeat("1", 40))
	w.wantCreated("path:src/b", "ci", "7|7")
	w.audit()
}

// Rows that another clone's retention dropped are not live until something brings them
// back.
func TestRetainedIsNotLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("ci 10 0")
	w.set("path:src/a", "ci", t0)
	w.set("path:src/b", "ci", t0)
	w.catchUp()
	w.update(func(tx *store.Tx) error {
		return tx.PutWithheld(store.Withheld{KeyRef: kref("path:src/a", "ci"), EditTime: t0, Why: store.Retained})
	})
	if s := w.state("ci"); s.Rows != 1 || s.Leftover != 1 || s.WouldPrune != 0 {
		t.Errorf("%+v", s)
	}
	w.set("path:src/a", "ci", t0+9)
	if s := w.state("ci"); s.Rows != 2 || s.Leftover != 0 {
		t.Errorf("%+v", s)
	}
	w.wantCreated("path:src/a", "ci", "0|")
	w.audit()
}

// Names come and go, nested ones too, in two worktrees with different manifests.
func TestNamesChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, key := range []string{"ci", "ci:log", "ci:log:x", "ci:url", "cix", "agent"} {
		w.set("path:src/a", key, t0+int64(i))
		w.set("project:", key, t0)
	}
	names := func(names ...string) {
		t.Helper()
		w.names = names
		w.catchUp()
		w.audit()
	}
	names("ci")
	names("ci", "ci:log")
	names("ci:log:x")
	names("agent", "ci:log", "ci:log:x")
	names("ci")
	names()
	if got := w.lines("SELECT name FROM x_facts WHERE name LIKE 'retention%' UNION ALL SELECT ref FROM x_cursor WHERE ref = 'retention:' UNION ALL SELECT key FROM x_recount UNION ALL SELECT collection FROM x_usage"); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
	if got := w.lines("SELECT * FROM metadata_log WHERE rowid < 1"); len(got) > 0 {
		t.Errorf("left in the log: %q", got)
	}
	// Without collections nothing is noted.
	w.update(func(tx *store.Tx) error {
		return tx.Put(kref("path:src/b", "ci"), meta.Value{Type: meta.String, String: "x"}, store.Edit{Time: t0}, store.PutOptions{NoLog: true})
	})
	if got := w.lines("SELECT key FROM x_recount"); len(got) > 0 {
		t.Errorf("noted: %q", got)
	}
}

// dying is a context that ends at the n-th question.
type dying struct {
	context.Context
	n *atomic.Int64
}

func (c dying) Err() error {
	if c.n.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

func dieAt(n int64) context.Context {
	c := dying{context.Background(), &atomic.Int64{}}
	c.n.Store(n)
	return c
}

// A catch-up that is interrupted anywhere goes on from there.
func TestCatchUpResumes(t *testing.T) {
	defer func(d, e time.Duration) { workFor, leaseFor = d, e }(workFor, leaseFor)
	workFor, leaseFor = 0, 0
	w := newWorld(t)
	w.declare("ci 0 0", "ci:b 0 0")
	n := 600 // more than one batch of events
	if testing.Short() {
		n = 100
	}
	w.update(func(tx *store.Tx) error {
		for i := range n {
			key := "ci:a"
			if i%2 == 0 {
				key = "ci:b"
			}
			if err := tx.Set(kref(fmt.Sprintf("path:%04d", i), key), "v", store.Edit{Time: t0 + int64(i)}); err != nil {
				return err
			}
		}
		return nil
	})
	w.serialize()
	interrupted := func() (times int) {
		t.Helper()
		for at := int64(0); ; at += 17 {
			err := catchUp(dieAt(at), w.env, w.names)
			if err == nil {
				w.audit()
				return times
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			times++
		}
	}
	t.Logf("filling was interrupted %d times", interrupted())
	if got := w.lines("SELECT count(*), sum(created = published), sum(created - ?) FROM x_created", t0); got[0] != fmt.Sprintf("%d|%d|%d", n, n, n*(n-1)/2) {
		t.Errorf("%q", got)
	}
	w.update(func(tx *store.Tx) error {
		for i := range n {
			if err := tx.Set(kref(fmt.Sprintf("path:%04d", i), "ci:c"), "v", store.Edit{Time: t0}); err != nil {
				return err
			}
		}
		return nil
	})
	w.serialize()
	t.Logf("reading the log was interrupted %d times", interrupted())
	w.declare("ci 0 0")
	t.Logf("emptying was interrupted %d times", interrupted())
}

// Two processes catch up at once, with the same and with different manifests.
func TestCatchUpTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.update(func(tx *store.Tx) error {
		for i := range 3000 {
			if err := tx.Set(kref(fmt.Sprintf("path:%04d", i%1000), []string{"ci", "ci:a", "agent"}[i/1000]), "v", store.Edit{Time: t0 + int64(i)}); err != nil {
				return err
			}
		}
		return nil
	})
	w.serialize()
	done := make(chan error)
	sets := [][]string{{"ci"}, {"ci"}, {"agent", "ci"}}
	for i, names := range sets {
		db, err := store.Open(t.Context(), w.path, store.Options{Bulk: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		env := *w.env
		env.DB, env.Repo = db, discover(t, w.g.dir)
		go func() {
			var err error
			for range 3 {
				if err = catchUp(context.Background(), &env, names); err != nil {
					err = fmt.Errorf("%d: %w", i, err)
					break
				}
			}
			done <- err
		}()
	}
	for range sets {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, names := range sets {
		w.names = names
		w.catchUp()
		w.audit()
		if got := w.lines("SELECT count(*) FROM x_created WHERE published IS NULL"); got[0] != "0" {
			t.Errorf("%s rows are not known to be published", got[0])
		}
	}
}

// A store that only the Rust program has used has no tables of this one.
func TestForeignStoreReadOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("ci 1 0")
	w.set("path:src/a", "ci", t0)
	w.set("path:src/b", "ci", t0+1)
	for _, table := range []string{"x_cursor", "x_withheld", "x_explicit", "x_created", "x_recount", "x_usage", "x_facts"} {
		w.exec("DROP TABLE " + table)
	}
	tables := w.lines("SELECT name FROM sqlite_master ORDER BY 1")
	w.env.DB.Close()
	var err error
	if w.env.DB, err = store.OpenRead(t.Context(), w.path, store.Options{}); err != nil {
		t.Fatal(err)
	}
	defer w.env.DB.Close()
	for range 2 {
		if s := w.state("ci"); s.Rows != 2 || s.Bytes != 6 || s.WouldPrune != 1 {
			t.Errorf("%+v", s)
		}
	}
	if res := w.sweep(SweepOptions{DryRun: true}); res.Rows != 1 || res.Bytes != 3 || !res.Done {
		t.Errorf("%+v", res)
	}
	if _, err := Sweep(t.Context(), w.env, SweepOptions{}); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("sweep of a read-only store: %v", err)
	}
	// What happens after the first look is seen.
	w.exec("DELETE FROM metadata WHERE target_value = 'src/a'")
	w.exec("DELETE FROM metadata_log WHERE target_value = 'src/a'")
	w.peerSet("path:src/c", "ci", "x", t0+5)
	w.peerSet("path:src/d", "ci", "x", t0+6)
	if s := w.state("ci"); s.Rows != 3 || s.WouldPrune != 2 {
		t.Errorf("%+v", s)
	}
	if got := w.lines("SELECT name FROM sqlite_master ORDER BY 1"); !slices.Equal(got, tables) {
		t.Errorf("a reader made tables: %q", got)
	}
}

// A key that was swept and set again before it left the published tree is a new row: it
// must not go at each sweep.
func TestSweptAndSetAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("ci 0 30")
	old := t0 - 40*day.Milliseconds()
	w.set("branch:main", "ci:status", old)
	w.serialize()
	w.wantCreated("branch:main", "ci:status", fmt.Sprintf("%d|%[1]d", old-t0))
	if res := w.sweep(SweepOptions{}); res.Rows != 1 {
		t.Fatalf("%+v", res)
	}
	w.set("branch:main", "ci:status", t0+5)
	w.serialize()
	w.wantCreated("branch:main", "ci:status", "5|")
	w.exec("DELETE FROM metadata_log WHERE rowid < 1") // all is counted anew
	w.wantCreated("branch:main", "ci:status", "5|")
	if res := w.sweep(SweepOptions{}); res.Rows != 0 {
		t.Errorf("%+v", res)
	}
	w.audit()
}
