package retention

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
)

// fill makes n rows of ci, each a millisecond younger than the one before.
func (w *world) fill(n int) {
	w.t.Helper()
	for from := 0; from < n; from += 5000 {
		w.update(func(tx *store.Tx) error {
			for i := from; i < min(n, from+5000); i++ {
				if err := tx.Set(kref(fmt.Sprintf("path:src/%07d", i*7919%n), "ci:state"), "passed", store.Edit{Email: "a@b", Time: t0 - int64(n) + int64(i)}); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func (w *world) watermark() string {
	return strings.Join(w.lines("SELECT value FROM x_facts WHERE name = 'watermark'"), "")
}

func TestSweepPasses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("ci 500 0", "agent 0 1", "free 0 0")
	w.fill(3000)
	for i := range 5 {
		w.set(fmt.Sprintf("path:old/%d", i), "agent:x", t0-2*day.Milliseconds())
		w.set(fmt.Sprintf("path:old/%d", i), "free", t0-200*day.Milliseconds())
	}
	w.set("project:", "ci:seed", t0-900*day.Milliseconds())
	w.set("project:", "agent", t0-900*day.Milliseconds())
	w.set("path:src/new", "gone:x", t0-900*day.Milliseconds()) // detached
	if s := w.state("ci"); s.Rows != 3000 || s.WouldPrune != 2500 || s.Confirmed {
		t.Errorf("%+v", s)
	}
	if got := w.watermark(); got != "" {
		t.Errorf("watermark %q", got)
	}
	var passes []SweepResult
	res := w.sweep(SweepOptions{Limit: 1203, Pass: func(r SweepResult) { passes = append(passes, r) }})
	if res.Rows != 1203 || res.Passes != 2 || res.Done {
		t.Errorf("%+v", res)
	}
	var total int64
	for _, p := range passes {
		total += p.Rows
		for _, c := range p.Collections {
			if c.Rows > 1000 {
				t.Errorf("a pass deleted %d rows of %s", c.Rows, c.Collection)
			}
		}
	}
	if len(passes) != 2 || total != 1203 || passes[0].Rows != 1005 {
		t.Errorf("%+v", passes)
	}
	w.audit()
	if s := w.state("ci"); s.Rows != 1802 || s.WouldPrune != 1302 || !s.Confirmed {
		t.Errorf("%+v", s)
	}
	one := w.sweep(SweepOptions{Collections: []string{"ci"}, Passes: 1})
	if one.Rows != 1000 || one.Done {
		t.Errorf("%+v", one)
	}
	rest := w.sweep(SweepOptions{})
	if rest.Rows != 302 || !rest.Done || rest.Passes != 1 || len(rest.Collections) != 1 {
		t.Errorf("%+v", rest)
	}
	// The newest are left, and what is exempt.
	if got := w.lines("SELECT min(last_timestamp) - ? FROM metadata WHERE key = 'ci:state'", t0); got[0] != "-500" {
		t.Errorf("the oldest left is of %q", got)
	}
	if got := w.lines("SELECT count(*) FROM metadata WHERE key IN ('ci:seed', 'agent', 'free', 'gone:x')"); got[0] != "8" {
		t.Errorf("%s of the exempt rows are left", got)
	}
	mark := w.watermark()
	if mark == "" || mark == "0" {
		t.Errorf("watermark %q", mark)
	}
	if none := w.sweep(SweepOptions{}); none.Rows != 0 || !none.Done || none.Passes != 0 || w.watermark() != mark {
		t.Errorf("%+v, watermark %s", none, w.watermark())
	}
	w.audit()
}

// Limits that change act on the rows that are there; what was deleted does not come back;
// without a limit nothing more goes.
func TestSweepAfterChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 5 {
		w.set(fmt.Sprintf("path:src/%d", i), "ci", t0+int64(i))
	}
	w.declare("ci 0 0")
	if res := w.sweep(SweepOptions{}); res.Rows != 0 || !res.Done {
		t.Errorf("%+v", res)
	}
	w.declare("ci 2 0")
	if res := w.sweep(SweepOptions{}); res.Rows != 3 {
		t.Errorf("%+v", res)
	}
	setProject(t, w.env, "meta:retention:ci:max-rows", "10")
	for i := range 4 {
		w.set(fmt.Sprintf("path:new/%d", i), "ci", t0+100+int64(i))
	}
	if res := w.sweep(SweepOptions{}); res.Rows != 0 {
		t.Errorf("%+v", res)
	}
	w.rm("project:", "meta:retention:ci:max-rows")
	if res := w.sweep(SweepOptions{}); res.Rows != 4 {
		t.Errorf("%+v", res)
	}
	w.declare("other 1 0")
	if res := w.sweep(SweepOptions{}); res.Rows != 0 || !res.Done {
		t.Errorf("%+v", res)
	}
	var target *meta.Error
	if _, err := Sweep(t.Context(), w.env, SweepOptions{Collections: []string{"ci"}}); !errors.Is(err, meta.ErrNotFound) || !errors.As(err, &target) {
		t.Errorf("sweep of what is not declared: %v", err)
	}
}

// Bounds that are changed while they are swept are no longer acted on.
func TestSweepStopsWhenBoundsChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("ci 10 0", "agent 1 0")
	w.fill(2500)
	w.set("path:src/x", "agent:a", t0)
	w.set("path:src/x", "agent:b", t0+1)
	res := w.sweep(SweepOptions{Pass: func(SweepResult) { setProject(t, w.env, "meta:retention:ci:max-rows", "1400") }})
	if res.Rows != 1001 || res.Done {
		t.Errorf("%+v", res)
	}
	if s := w.state("ci"); s.WouldPrune != 100 || s.Confirmed {
		t.Errorf("%+v", s)
	}
	if auto := w.sweep(SweepOptions{Confirmed: true}); auto.Rows != 0 || !auto.Done {
		t.Errorf("unconfirmed bounds: %+v", auto)
	}
	if err := Accept(t.Context(), w.env); err != nil {
		t.Fatal(err)
	}
	if auto := w.sweep(SweepOptions{Confirmed: true}); auto.Rows != 100 || !auto.Done {
		t.Errorf("%+v", auto)
	}
}

// A sweep may be stopped anywhere; what it says it has done is done, and the next one goes
// on.
func TestSweepResumes(t *testing.T) {
	defer func(d time.Duration) { workFor = d }(workFor)
	workFor = 0
	w := newWorld(t)
	w.declare("ci 40 0")
	w.fill(600)
	w.catchUp()
	var said int64
	stopped := 0
	for at := int64(0); ; at += 13 {
		res, err := Sweep(dieAt(at), w.env, SweepOptions{})
		if res != nil {
			said += res.Rows
		}
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		stopped++
	}
	t.Logf("stopped %d times", stopped)
	if said != 560 || w.state("ci").Rows != 40 {
		t.Errorf("%d rows were said to go, %d are left", said, w.state("ci").Rows)
	}
	w.audit()
}

// Two sweeps at once delete what one would.
func TestSweepTogether(t *testing.T) {
	defer func(d time.Duration) { restFor = d }(restFor)
	restFor = 5 * time.Millisecond // without any, one may never get the lock
	w := newWorld(t)
	w.declare("ci 100 0")
	w.fill(1400)
	var rows atomic.Int64
	done := make(chan error)
	for range 3 {
		db, err := store.Open(t.Context(), w.path, store.Options{Bulk: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		env := *w.env
		env.DB, env.Repo = db, discover(t, w.g.dir)
		go func() {
			res, err := Sweep(context.Background(), &env, SweepOptions{})
			if err == nil {
				rows.Add(res.Rows)
			}
			done <- err
		}()
	}
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if rows.Load() != 1300 || w.state("ci").Rows != 100 {
		t.Errorf("%d rows deleted, %d left", rows.Load(), w.state("ci").Rows)
	}
	w.audit()
}

var sweepRows = flag.Int("sweeprows", 0, "how many rows TestSweepLetsOthersWrite deletes (0: 6000, or 500 with -short)")

// Another process sets values while many rows are swept.
func TestSweepLetsOthersWrite(t *testing.T) {
	defer func(d time.Duration) { restFor = d }(restFor)
	restFor = 30 * time.Millisecond
	w := newWorld(t)
	w.declare("ci 1 0")
	n := *sweepRows
	if n == 0 {
		n = 6000
		if testing.Short() {
			n = 500
		}
	}
	w.fill(n + 1)
	// As a command has it: a small cache, synced to the disk.
	w.env.DB.Close()
	var err error
	if w.env.DB, err = store.Open(t.Context(), w.path, store.Options{Now: w.env.Now}); err != nil {
		t.Fatal(err)
	}
	defer w.env.DB.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSetAllThrough$", "-test.v")
	stop := filepath.Join(t.TempDir(), "stop")
	cmd.Env = append(os.Environ(), "RETENTION_SET="+w.path, "RETENTION_STOP="+stop)
	out := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); cmd.Wait() }()
	time.Sleep(200 * time.Millisecond)
	start := time.Now()
	s, err := newSweeper(t.Context(), w.env, SweepOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.sweep(); err != nil {
		t.Fatal(err)
	}
	s.sum()
	res, took := &s.res, time.Since(start)
	if err := os.WriteFile(stop, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if res.Rows != int64(n) || !res.Done {
		t.Errorf("%+v", res)
	}
	for l := range strings.Lines(out.String()) {
		if strings.Contains(l, "longest") {
			_, l, _ = strings.Cut(l, ".go:")
			t.Logf("%d rows swept in %s, the store locked for %s at most; %s", res.Rows, took.Round(time.Millisecond), s.pace.longest.Round(time.Millisecond), strings.TrimSpace(l))
		}
	}
	if s.pace.longest > 2*time.Second {
		t.Errorf("the store was locked for %s", s.pace.longest)
	}
	w.audit()
}

// TestSetAllThrough is the other process of TestSweepLetsOthersWrite.
func TestSetAllThrough(t *testing.T) {
	path := os.Getenv("RETENTION_SET")
	if path == "" {
		t.Skip("only a helper")
	}
	db, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var waits []time.Duration
	for i := 0; ; i++ {
		if _, err := os.Stat(os.Getenv("RETENTION_STOP")); err == nil {
			break
		}
		start := time.Now()
		err := db.Update(t.Context(), func(tx *store.Tx) error {
			return tx.Set(kref("path:src/other", "other"), fmt.Sprint(i), store.Edit{})
		})
		if err != nil {
			t.Fatal(err)
		}
		waits = append(waits, time.Since(start))
		time.Sleep(2 * time.Millisecond)
	}
	slices.Sort(waits)
	n := len(waits)
	t.Logf("%d values set; median %s, 99 of 100 under %s, longest %s", n, waits[n/2], waits[n*99/100], waits[n-1])
	if waits[n-1] > 4*time.Second {
		t.Errorf("a set took %s", waits[n-1])
	}
}
