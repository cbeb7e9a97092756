package retention

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
)

func (w *world) auto() *AutoResult {
	w.t.Helper()
	res, err := AutoSweep(w.t.Context(), w.env)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

func TestAutoSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.lines("SELECT * FROM x_facts")
	nothing := func(what string) {
		t.Helper()
		if res := w.auto(); res.Swept != nil || len(res.Unconfirmed) > 0 {
			t.Errorf("%s: %+v", what, res)
		}
	}
	w.fill(2010)
	nothing("no manifest")
	w.g.write(".git-meta", "url: x\n")
	nothing("no collections")
	w.declare("free 0 0")
	nothing("no bounds")
	if after := w.lines("SELECT * FROM x_facts"); len(after) != len(before) {
		t.Errorf("where nothing is to do something was written: %q", after)
	}

	w.declare("ci 10 0")
	if res := w.auto(); res.Swept != nil || len(res.Unconfirmed) != 1 || res.Unconfirmed[0].WouldPrune != 2000 || res.Unconfirmed[0].Collection != "ci" {
		t.Errorf("nobody has confirmed: %+v", res)
	}
	if err := Accept(t.Context(), w.env, "ci"); err != nil {
		t.Fatal(err)
	}
	nothing("not due")
	w.g.now = w.g.now.Add(24*time.Hour - time.Millisecond)
	nothing("a millisecond before")
	w.g.now = w.g.now.Add(time.Millisecond)
	res := w.auto()
	if res.Swept == nil || res.Swept.Rows != 1000 || res.Swept.Done || res.Next != w.g.now.Add(24*time.Hour).UnixMilli() {
		t.Errorf("one pass: %+v", res)
	}
	nothing("just done")
	setProject(t, w.env, KeyInterval, "1h")
	w.g.now = w.g.now.Add(time.Hour)
	if res := w.auto(); res.Swept == nil || res.Swept.Rows != 1000 || !res.Swept.Done {
		t.Errorf("the interval: %+v", res)
	}
	w.set("path:src/new", "ci:new", 0)
	setProject(t, w.env, KeyInterval, "0")
	w.g.now = w.g.now.Add(1000 * time.Hour)
	if res := w.auto(); res.Swept != nil || res.Next != 0 {
		t.Errorf("off: %+v", res)
	}
	setProject(t, w.env, KeyInterval, "1d")
	w.g.now = w.g.now.Add(-2000 * time.Hour) // the last one was in the future
	if res := w.auto(); res.Swept == nil || res.Swept.Rows != 1 {
		t.Errorf("a clock that was wrong: %+v", res)
	}
	w.audit()

	// A manifest that cannot be read: said once an interval.
	w.g.write(".git-meta", "collections: [\n")
	w.g.now = w.g.now.Add(25 * time.Hour)
	if _, err := AutoSweep(t.Context(), w.env); err == nil {
		t.Error("no error about a manifest that is no YAML")
	}
	nothing("said already")

	// A manifest that is gone.
	if err := os.Remove(filepath.Join(w.g.dir, ".git-meta")); err != nil {
		t.Fatal(err)
	}
	w.g.now = w.g.now.Add(25 * time.Hour)
	nothing("no manifest any more")
	w.names = nil
	w.audit()
	if got := w.lines("SELECT key FROM x_created"); len(got) > 0 {
		t.Errorf("still counted: %q", got)
	}
}

func TestAutoSweepWithoutStore(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	g.declare("ci 1 0")
	env := &serialize.Env{Repo: g.repo, Namespace: "meta"}
	if res, err := AutoSweep(t.Context(), env); err != nil || res.Swept != nil {
		t.Errorf("%+v, %v", res, err)
	}
	if res, err := Sweep(t.Context(), env, SweepOptions{}); err != nil || !res.Done || res.Rows != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := Sweep(t.Context(), env, SweepOptions{Collections: []string{"x"}}); meta.HintOf(err) == "" {
		t.Errorf("%v", err)
	}
}
