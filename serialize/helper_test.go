package serialize

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

const t0 = int64(1_700_000_000_000)

// TestMain fixes everything that git takes from outside.
func TestMain(m *testing.M) {
	home, err := os.MkdirTemp("", "serialize-home")
	if err != nil {
		panic(err)
	}
	for _, kv := range os.Environ() {
		if k, _, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "GIT_") || k == "EMAIL" {
			os.Unsetenv(k)
		}
	}
	for k, v := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C", "TZ": "UTC", "GORACE": "atexit_sleep_ms=0"} {
		os.Setenv(k, v)
	}
	config := "[user]\n\tname = A U Thor\n\temail = a@example.com\n[core]\n\tfsync = none\n[gc]\n\tauto = 0\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o666); err != nil {
		panic(err)
	}
	flag.Set("rapid.checks", "20") // each takes commits; more with -rapid.checks
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

// tester is what helpers need of *testing.T and *rapid.T.
type tester interface {
	Helper()
	Fatalf(format string, a ...any)
}

// gitRepo is a git repository of its own.
type gitRepo struct {
	t    testing.TB
	dir  string
	repo *gitdb.Repo
	n    atomic.Int64
}

func newRepo(t testing.TB) *gitRepo {
	t.Helper()
	g := &gitRepo{t: t, dir: filepath.Join(t.TempDir(), "r")}
	gitIn(t, filepath.Dir(g.dir), "", "init", "-q", g.dir)
	var err error
	if g.repo, err = gitdb.Discover(context.Background(), g.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.repo.Close() })
	return g
}

func gitIn(t tester, dir, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

func (g *gitRepo) git(args ...string) string {
	g.t.Helper()
	return gitIn(g.t, g.dir, "", args...)
}

// fsck checks the repository.
func (g *gitRepo) fsck() {
	g.t.Helper()
	if out := g.git("fsck", "--strict", "--no-dangling", "--no-progress"); out != "" {
		g.t.Errorf("git fsck: %s", out)
	}
}

// world is a store and a namespace of refs in a repository.
type world struct {
	t        tester
	g        *gitRepo
	env      *Env
	db       *store.DB
	path     string
	ref      string // local main
	mu       sync.Mutex
	warnings []string
	now      time.Time
}

// world makes a new store with a namespace of its own.
func (g *gitRepo) world(t tester) *world {
	t.Helper()
	n := g.n.Add(1)
	return g.open(t, filepath.Join(g.dir, fmt.Sprintf("%d-%s", n, store.FileName)), fmt.Sprintf("meta%d", n))
}

// open opens the store at path.
func (g *gitRepo) open(t tester, path, namespace string) *world {
	t.Helper()
	w := &world{t: t, g: g, path: path, ref: LocalRef(namespace, "main"), now: time.UnixMilli(t0 + 1e9)}
	db, err := store.Open(context.Background(), path, store.Options{Bulk: true, Now: func() time.Time { return w.now }})
	if err != nil {
		t.Fatalf("%v", err)
	}
	g.t.Cleanup(func() { db.Close() })
	w.db = db
	w.env = &Env{Repo: g.repo, DB: db, Namespace: namespace, Now: func() time.Time { return w.now }, Warn: func(s string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.warnings = append(w.warnings, s)
	}}
	return w
}

// lose returns the world with an empty store, as after the file was deleted.
func (w *world) lose() *world {
	w.t.Helper()
	return w.g.open(w.t, fmt.Sprintf("%s.%d", w.path, w.g.n.Add(1)), w.env.Namespace)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newRepo(t).world(t)
}

func (w *world) update(f func(tx *store.Tx) error) {
	w.t.Helper()
	if err := w.db.Update(context.Background(), f); err != nil {
		w.t.Fatalf("update: %v", err)
	}
}

func (w *world) view(f func(tx *store.Tx) error) {
	w.t.Helper()
	if err := w.db.View(context.Background(), f); err != nil {
		w.t.Fatalf("view: %v", err)
	}
}

// ref reads "project key" or "type:value key".
func keyRef(s string) meta.KeyRef {
	target, key, _ := strings.Cut(s, " ")
	typ, value, _ := strings.Cut(target, ":")
	return meta.KeyRef{Target: meta.Target{Type: meta.TargetType(typ), Value: value}, Key: key}
}

// set writes strings, "target key" and value in turn, at t0 + ms.
func (w *world) set(ms int64, pairs ...string) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		for i := 0; i < len(pairs); i += 2 {
			if err := tx.Set(keyRef(pairs[i]), pairs[i+1], edit(ms)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *world) rm(ms int64, key string) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error { return tx.Remove(keyRef(key), edit(ms)) })
}

func edit(ms int64) store.Edit { return store.Edit{Email: "a@example.com", Time: t0 + ms} }

func (w *world) serialize(o Options) *Result {
	w.t.Helper()
	res, err := Run(context.Background(), w.env, o)
	if err != nil {
		w.t.Fatalf("serialize: %v", err)
	}
	return res
}

func (w *world) git(args ...string) string {
	w.t.Helper()
	return gitIn(w.t, w.g.dir, "", args...)
}

// tree returns the tree that the ref of dest is at, the empty tree without one.
func (w *world) tree(dest string) string {
	w.t.Helper()
	id, err := w.g.repo.Ref(context.Background(), w.env.LocalRef(dest))
	if errors.Is(err, gitdb.ErrRefNotFound) {
		return emptyTree
	}
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	c, err := w.reader().Commit(context.Background(), id)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return c.Tree.String()
}

const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

func (w *world) reader() *gitdb.Reader {
	rd, err := w.g.repo.Objects(context.Background())
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return rd
}

// tip returns the commit at the ref of main.
func (w *world) tip() gitdb.Hash {
	w.t.Helper()
	id, err := w.env.tip(context.Background(), w.ref)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return id
}

// paths lists the tree of main as "path=content" lines.
func (w *world) paths() string {
	w.t.Helper()
	var out []string
	err := WalkTree(context.Background(), w.reader(), gitdbHash(w.tree("main")), func(l Leaf) error {
		_, data, err := w.reader().Read(context.Background(), l.Hash)
		out = append(out, l.Path+"="+string(data))
		return err
	})
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return lines(out...)
}

func gitdbHash(s string) gitdb.Hash { h, _ := gitdb.ParseHash(s); return h }

func lines(s ...string) string { return strings.Join(s, "\n") + "\n" }

// changes returns the change lines of the newest commit, with blanks for tabs.
func (w *world) changes() string {
	w.t.Helper()
	msg := w.git("log", "-1", "--format=%B", w.ref)
	var out []string
	for l := range strings.Lines(msg) {
		if strings.Contains(l, "\t") {
			out = append(out, strings.ReplaceAll(strings.TrimSuffix(l, "\n"), "\t", " "))
		}
	}
	return lines(out...)
}

// commits counts the commits of main.
func (w *world) commits() string {
	w.t.Helper()
	return w.git("rev-list", "--count", w.ref)
}

// dump lists rows, tombstones and withheld keys, one a line, with times and authors.
func (w *world) dump() string {
	w.t.Helper()
	var out []string
	w.view(func(tx *store.Tx) error {
		for rec, err := range tx.Records(store.Query{}) {
			if err != nil {
				return err
			}
			who, _, err := tx.Author(rec.KeyRef)
			if err != nil {
				return err
			}
			var v []string
			for _, e := range rec.Value.Entries {
				v = append(v, fmt.Sprintf("%d:%s", e.Time-t0, e.Value))
			}
			v = append(v, rec.Value.Members...)
			out = append(out, fmt.Sprintf("%s %s %q%q %d %s", rec.KeyRef, rec.Type, rec.Value.String, v, rec.Time-t0, who))
		}
		for t, err := range tx.AllTombstones() {
			if err != nil {
				return err
			}
			out = append(out, fmt.Sprintf("gone %s %s %s %q %d %s %v", t.KeyRef, t.Kind, t.Name, t.Member, t.Time-t0, t.Email, t.Explicit))
		}
		for h, err := range tx.AllWithheld() {
			if err != nil {
				return err
			}
			out = append(out, fmt.Sprintf("withheld %s %s", h.KeyRef, h.Why))
		}
		return nil
	})
	slices.Sort(out)
	return lines(out...)
}

// commitTree puts a tree made by edit, a shell-free `git update-index --index-info` text,
// on top of the tip and moves the ref there, as another program would.
func (w *world) commitTree(message, indexInfo string) {
	w.t.Helper()
	index := filepath.Join(w.g.dir, fmt.Sprintf("index%d", w.g.n.Add(1)))
	run := func(stdin string, args ...string) string {
		w.t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = w.g.dir, strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "GIT_INDEX_FILE="+index, "GIT_AUTHOR_DATE=1700000500 +0000", "GIT_COMMITTER_DATE=1700000500 +0000", "GIT_AUTHOR_EMAIL=peer@example.com")
		out, err := cmd.CombinedOutput()
		if err != nil {
			w.t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	args := []string{"commit-tree", "-m", message}
	if tip := w.tip(); tip != zero {
		run("", "read-tree", w.ref)
		args = append(args, "-p", w.ref)
	}
	if indexInfo != "" {
		run(indexInfo, "update-index", "--index-info")
	}
	id := run("", append(args, run("", "write-tree"))...)
	run("", "update-ref", w.ref, id)
}

// blob writes a blob and returns the line that puts it at path.
func (w *world) blob(path, content string) string {
	w.t.Helper()
	return "100644 " + gitIn(w.t, w.g.dir, content, "hash-object", "-w", "--stdin") + "\t" + path + "\n"
}

// without is the line that drops path.
func without(path string) string { return "0 " + zero.String() + "\t" + path + "\n" }

func same(t tester, what, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got\n%s\nwant\n%s", what, got, want)
	}
}
