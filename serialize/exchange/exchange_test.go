package exchange

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
)

// clone makes a repository that is connected with url.
func clone(t *testing.T, url string) *Env {
	t.Helper()
	e := repo(t)
	if _, err := e.Add(t.Context(), AddOptions{URL: url, Init: true}); err != nil {
		t.Fatal(err)
	}
	return e
}

// set stores a string of the project.
func set(t *testing.T, e *Env, key, value string) {
	t.Helper()
	env, err := e.Open(t.Context())
	if err == nil {
		err = env.DB.Update(t.Context(), func(tx *store.Tx) error { return tx.Set(projectKey(key), value, store.Edit{Email: "a@example.com"}) })
	}
	if err != nil {
		t.Error(err)
	}
}

// values returns the strings of the store.
func values(t *testing.T, e *Env) map[string]string {
	t.Helper()
	out := map[string]string{}
	env, err := e.Open(t.Context())
	if err == nil {
		err = env.DB.View(t.Context(), func(tx *store.Tx) error {
			for rec, err := range tx.Records(store.Query{}) {
				if err != nil {
					return err
				}
				out[rec.KeyRef.String()] = rec.Value.String
			}
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func syncAll(ctx context.Context, e *Env) error {
	remotes, err := e.All(ctx, "")
	if err != nil {
		return err
	}
	_, err = e.Sync(ctx, remotes, SyncReport{})
	return err
}

func mustPush(t *testing.T, e *Env) *Pushed {
	t.Helper()
	r, err := e.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Push(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustPull(t *testing.T, e *Env) *Pulled {
	t.Helper()
	r, err := e.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Pull(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// everybodyEqual syncs all clones twice and compares their stores and refs with url.
func everybodyEqual(t *testing.T, url string, clones []*Env) map[string]string {
	t.Helper()
	for range 2 {
		for i, e := range clones {
			if err := syncAll(t.Context(), e); err != nil {
				t.Fatalf("clone %d: %v", i, err)
			}
		}
	}
	tip := git(t, url, "rev-parse", "refs/meta/main")
	want := values(t, clones[0])
	for i, e := range clones {
		if got := git(t, e.Repo.WorkTree, "rev-parse", "refs/meta/local/main"); got != tip {
			t.Errorf("clone %d is at %s, the remote at %s", i, got, tip)
		}
		if got := values(t, e); !maps.Equal(got, want) {
			t.Errorf("clone %d has %v, want %v", i, got, want)
		}
	}
	return want
}

// Clones edit keys of their own and a shared one and sync at the same time: every sync
// succeeds and nothing is lost.
func testParallel(t *testing.T, n, rounds int) {
	url := bare(t, "", "")
	clones := make([]*Env, n)
	for i := range clones {
		clones[i] = clone(t, url)
	}
	var wg sync.WaitGroup
	for i, e := range clones {
		wg.Go(func() {
			for k := range rounds {
				set(t, e, fmt.Sprintf("c%d:k%d", i, k), "v")
				set(t, e, "shared", fmt.Sprintf("%d of %d", k, i))
				if err := syncAll(t.Context(), e); err != nil {
					t.Errorf("clone %d, round %d: %v", i, k, err)
				}
			}
		})
	}
	wg.Wait()
	got := everybodyEqual(t, url, clones)
	for i := range clones {
		for k := range rounds {
			if got[projectKey(fmt.Sprintf("c%d:k%d", i, k)).String()] != "v" {
				t.Errorf("c%d:k%d is lost", i, k)
			}
		}
	}
	git(t, url, "fsck", "--strict")
}

func TestFourClonesInParallel(t *testing.T) { testParallel(t, 4, 5) }

// GIT_META_STRESS is how many rounds each clone makes, 2 by default.
func TestTwentyClonesInParallel(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	rounds, err := strconv.Atoi(os.Getenv("GIT_META_STRESS"))
	if err != nil {
		rounds = 2
	}
	testParallel(t, 20, rounds)
}

// smartHTTP serves the folder of a bare repository by git http-backend. before may take
// over a request.
func smartHTTP(t *testing.T, dir string, before func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	path, err := exec.Command("git", "--exec-path").Output()
	backend := filepath.Join(strings.TrimSpace(string(path)), "git-http-backend")
	if _, serr := os.Stat(backend); err != nil || serr != nil {
		t.Skip("there is no git http-backend")
	}
	git(t, dir, "config", "http.receivepack", "true")
	h := &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(dir), "GIT_HTTP_EXPORT_ALL=1"}, InheritEnv: []string{"HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || !before(w, r) {
			// the Go client of git's protocol headers
			c := *h
			c.Env = append(c.Env[:len(c.Env):len(c.Env)], "GIT_PROTOCOL="+r.Header.Get("Git-Protocol"))
			c.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/" + filepath.Base(dir)
}

// Over smart http: values stay behind in a fetch where the server can leave them out,
// and are fetched for the tip.
func TestHTTP(t *testing.T) {
	t.Parallel()
	for _, filter := range []string{"true", "false"} {
		t.Run("filter="+filter, func(t *testing.T) {
			t.Parallel()
			dir := bare(t, "", "")
			git(t, dir, "config", "uploadpack.allowFilter", filter)
			url := smartHTTP(t, dir, nil)
			a := clone(t, url)
			for i := range 5 {
				set(t, a, "k", fmt.Sprint("old value ", i))
				mustPush(t, a)
			}
			set(t, a, "k", "last")
			mustPush(t, a)
			b := clone(t, url)
			if got := values(t, b); got["project k"] != "last" {
				t.Errorf("%v", got)
			}
			missing := strings.Count(git(t, b.Repo.WorkTree, "rev-list", "--objects", "--missing=print", "refs/meta/remotes/main"), "?")
			if want := filter == "true"; (missing == 5) != want || !want && missing != 0 {
				t.Errorf("%d values were left out", missing)
			}
			set(t, b, "mine", "b")
			set(t, a, "k", "newer")
			mustPush(t, a)
			if p := mustPush(t, b); p.Attempts != 2 || len(p.Merges) != 1 {
				t.Errorf("%+v", p)
			}
			if got := values(t, b); got["project k"] != "newer" {
				t.Errorf("%v", got)
			}
			if mustPull(t, a); values(t, a)["project mine"] != "b" {
				t.Errorf("%v", values(t, a))
			}
			for _, e := range []*Env{a, b} {
				git(t, e.Repo.WorkTree, "fsck", "--strict")
				git(t, e.Repo.WorkTree, "gc", "-q", "--prune=now")
			}
		})
	}
}

// A server that cannot send single values gets asked for everything.
func TestHydrateRefused(t *testing.T) {
	t.Parallel()
	dir := bare(t, "", "")
	git(t, dir, "config", "uploadpack.allowFilter", "true")
	url := smartHTTP(t, dir, func(w http.ResponseWriter, r *http.Request) bool {
		r.Header.Del("Git-Protocol") // an old server: no wish for what is not a ref
		return false
	})
	a := clone(t, url)
	set(t, a, "k", "v")
	mustPush(t, a)
	if got := values(t, clone(t, url)); got["project k"] != "v" {
		t.Errorf("%v", got)
	}
}

func TestServerRefuses(t *testing.T) {
	t.Parallel()
	calls := filepath.Join(t.TempDir(), "calls")
	url := bare(t, "pre-receive", "test -e off && exit 0\necho x >>"+calls+"\necho 'heute nicht' >&2\nexit 1")
	off := filepath.Join(url, "off")
	if err := os.WriteFile(off, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	e := clone(t, url)
	if err := os.Remove(off); err != nil {
		t.Fatal(err)
	}
	set(t, e, "k", "v")
	r, err := e.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Push(t.Context(), r)
	if err == nil || !strings.Contains(err.Error(), "pre-receive hook declined") || !strings.Contains(err.Error(), "remote: heute nicht") {
		t.Errorf("error %v", err)
	}
	if data, _ := os.ReadFile(calls); len(data) != 2 {
		t.Errorf("the hook ran %d times", len(data)/2)
	}
	// nothing is lost
	if err := os.WriteFile(off, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	mustPush(t, e)
	if b := clone(t, url); values(t, b)["project k"] != "v" {
		t.Error("the value did not arrive")
	}
}

// The connection breaks in the middle of an answer.
func TestServerDies(t *testing.T) {
	t.Parallel()
	var dead atomic.Value
	dead.Store("")
	dir := bare(t, "", "")
	url := smartHTTP(t, dir, func(w http.ResponseWriter, r *http.Request) bool {
		if d := dead.Load().(string); d == "" || !strings.HasSuffix(r.URL.Path, d) || r.Method != http.MethodPost {
			return false
		}
		w.Header().Set("Content-Type", "application/x-"+filepath.Base(r.URL.Path)+"-result")
		_, _ = w.Write([]byte("0008NAK\n"))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	e := clone(t, url)
	set(t, e, "k", "v")
	r, err := e.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	before := git(t, dir, "rev-parse", "refs/meta/main")
	dead.Store("git-receive-pack")
	if _, err := e.Push(t.Context(), r); err == nil || errors.Is(err, meta.ErrConflict) {
		t.Errorf("error %v", err)
	}
	dead.Store("git-upload-pack")
	if _, err := e.Pull(t.Context(), r); err == nil {
		t.Error("pull says nothing")
	}
	fresh := repo(t)
	was := snapshot(t, fresh)
	if _, err := fresh.Add(t.Context(), AddOptions{URL: url}); err == nil {
		t.Error("remote add says nothing")
	}
	if now := snapshot(t, fresh); now != was {
		t.Errorf("left behind:\n%s\nwas:\n%s", now, was)
	}
	dead.Store("")
	if got := git(t, dir, "rev-parse", "refs/meta/main"); got != before {
		t.Errorf("the remote is at %s", got)
	}
	mustPush(t, e)
	if b := clone(t, url); values(t, b)["project k"] != "v" {
		t.Error("the value did not arrive")
	}
}

// The server has taken the push, but its answer is lost.
func TestPushAnswerLost(t *testing.T) {
	t.Parallel()
	url := bare(t, "post-receive", "test -e on && kill -9 $PPID")
	e := clone(t, url)
	if err := os.WriteFile(filepath.Join(url, "on"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	set(t, e, "k", "v")
	p := mustPush(t, e)
	if p.UpToDate || p.Attempts != 1 || git(t, url, "rev-parse", "refs/meta/main") != p.Commit {
		t.Errorf("%+v", p)
	}
}

// The remote's ref is removed or moved back: push does not claim to be up to date.
func TestPushLooksAtTheRemote(t *testing.T) {
	t.Parallel()
	url := bare(t, "", "")
	e := clone(t, url)
	first := git(t, url, "rev-parse", "refs/meta/main")
	set(t, e, "k", "v")
	tip := mustPush(t, e).Commit
	if !mustPush(t, e).UpToDate {
		t.Error("not up to date")
	}
	git(t, url, "update-ref", "-d", "refs/meta/main")
	if p := mustPush(t, e); p.UpToDate || git(t, url, "rev-parse", "refs/meta/main") != tip {
		t.Errorf("%+v", p)
	}
	git(t, url, "update-ref", "refs/meta/main", first)
	if p := mustPush(t, e); p.UpToDate || git(t, url, "rev-parse", "refs/meta/main") != tip {
		t.Errorf("%+v", p)
	}
	if git(t, e.Repo.WorkTree, "rev-parse", "refs/meta/remotes/main") != tip {
		t.Error("the tracking ref is elsewhere")
	}
}

// The history on the remote was written anew: it is merged, nothing of either is lost.
func TestRemoteRewritten(t *testing.T) {
	t.Parallel()
	url := bare(t, "", "")
	a := clone(t, url)
	first := git(t, url, "rev-parse", "refs/meta/main")
	b := clone(t, url)
	set(t, a, "a", "1")
	mustPush(t, a)
	mustPull(t, b)
	git(t, url, "update-ref", "refs/meta/main", first)
	c := clone(t, url)
	set(t, c, "c", "1")
	mustPush(t, c)
	if p := mustPull(t, b); !p.Rewritten {
		t.Errorf("%+v", p)
	}
	got := everybodyEqual(t, url, []*Env{b, a, c})
	if got["project a"] != "1" || got["project c"] != "1" {
		t.Errorf("%v", got)
	}
}

// A plain git fetch has moved the tracking ref: push reverts nobody.
func TestPushAfterGitFetch(t *testing.T) {
	t.Parallel()
	url := bare(t, "", "")
	a, b := clone(t, url), clone(t, url)
	set(t, a, "a", "1")
	mustPush(t, a)
	set(t, b, "b", "1")
	git(t, b.Repo.WorkTree, "fetch", "-q", "meta")
	if p := mustPush(t, b); len(p.Merges) != 1 || p.Attempts != 1 {
		t.Errorf("%+v", p)
	}
	mustPull(t, a)
	for _, e := range []*Env{a, b} {
		if got := values(t, e); got["project a"] != "1" || got["project b"] != "1" {
			t.Errorf("%v", got)
		}
	}
}

func TestInterruptedPush(t *testing.T) {
	t.Parallel()
	url := bare(t, "pre-receive", "test -e on && sleep 1\nexit 0")
	e := clone(t, url)
	if err := os.WriteFile(filepath.Join(url, "on"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	set(t, e, "k", "v")
	r, err := e.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	context.AfterFunc(t.Context(), cancel)
	go func() {
		for git(t, e.Repo.WorkTree, "rev-parse", "refs/meta/local/main") == git(t, e.Repo.WorkTree, "rev-parse", "refs/meta/remotes/main") {
		}
		cancel()
	}()
	if _, err := e.Push(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
