package prune

import (
	"bytes"
	"context"
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
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

const t0 = int64(1_700_000_000_000)

// TestMain fixes everything that git takes from outside.
func TestMain(m *testing.M) {
	home, err := os.MkdirTemp("", "prune-home")
	if err != nil {
		panic(err)
	}
	for _, kv := range os.Environ() {
		if k, _, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "GIT_") || k == "EMAIL" {
			os.Unsetenv(k)
		}
	}
	for k, v := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C", "TZ": "UTC", "GORACE": "atexit_sleep_ms=0",
		"GIT_COMMITTER_DATE": "1700001000 +0000",
	} {
		os.Setenv(k, v)
	}
	config := "[user]\n\tname = A U Thor\n\temail = a@example.com\n[core]\n\tfsync = none\n[gc]\n\tauto = 0\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o666); err != nil {
		panic(err)
	}
	flag.Set("rapid.checks", "15") // each takes commits; more with -rapid.checks
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
	g.open()
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

// open reads the repository anew.
func (g *gitRepo) open() {
	g.t.Helper()
	repo, err := gitdb.Discover(context.Background(), g.dir)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { repo.Close() })
	g.repo = repo
}

// world is a store and a namespace of refs in a repository.
type world struct {
	t        tester
	g        *gitRepo
	db       *store.DB
	env      *serialize.Env
	ref      string
	warnings []string
	now      time.Time
}

// world makes a new store with a namespace of its own.
func (g *gitRepo) world(t tester) *world {
	t.Helper()
	n := g.n.Add(1)
	w := &world{t: t, g: g, now: time.UnixMilli(t0 + 1_000_000)}
	clock := func() time.Time { return w.now }
	var err error
	if w.db, err = store.Open(context.Background(), filepath.Join(g.dir, fmt.Sprintf("%d.sqlite", n)), store.Options{Bulk: true, Now: clock}); err != nil {
		t.Fatalf("%v", err)
	}
	g.t.Cleanup(func() { w.db.Close() })
	w.env = &serialize.Env{Repo: g.repo, DB: w.db, Namespace: fmt.Sprintf("meta%d", n), Now: clock, Warn: func(s string) { w.warnings = append(w.warnings, s) }}
	w.ref = w.env.LocalRef("main")
	return w
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

// keyRef reads "project key" or "type:value key".
func keyRef(s string) meta.KeyRef {
	target, key, _ := strings.Cut(s, " ")
	typ, value, _ := strings.Cut(target, ":")
	return meta.KeyRef{Target: meta.Target{Type: meta.TargetType(typ), Value: value}, Key: key}
}

func edit(ms int64) store.Edit { return store.Edit{Email: "a@example.com", Time: t0 + ms} }

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

// rules sets strings of the project without "meta:prune:".
func (w *world) rules(pairs ...string) {
	w.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		w.set(1, "project meta:prune:"+pairs[i], pairs[i+1])
	}
}

// fill sets path keys p<from>… p<to-1>, each a millisecond after the one before.
func (w *world) fill(from, to int, value string) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		for i := from; i < to; i++ {
			if err := tx.Set(keyRef(fmt.Sprintf("path:p%03d k", i)), value, edit(int64(1000+i))); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *world) serialize(force ...bool) *serialize.Result {
	w.t.Helper()
	res, err := serialize.Run(context.Background(), w.env, serialize.Options{Pruner: Auto{}, ForceFull: len(force) > 0})
	if err != nil {
		w.t.Fatalf("serialize: %v", err)
	}
	return res
}

func (w *world) git(args ...string) string {
	w.t.Helper()
	return gitIn(w.t, w.g.dir, "", args...)
}

// remote configures a meta remote.
func (w *world) remote() {
	w.t.Helper()
	w.git("config", "remote.origin.url", "x")
	w.git("config", "remote.origin.meta", "true")
	w.g.open()
	w.env.Repo = w.g.repo
}

// message returns the message of the newest commit.
func (w *world) message() string { w.t.Helper(); return w.git("log", "-1", "--format=%B", w.ref) }

func (w *world) commits() string { w.t.Helper(); return w.git("rev-list", "--count", w.ref) }

// keys lists the keys in the tree of main, without the project's.
func (w *world) keys() string {
	w.t.Helper()
	var out []string
	for _, k := range w.inventory().keys {
		if k.Target.Type != meta.Project {
			out = append(out, k.KeyRef.String())
		}
	}
	return strings.Join(out, ", ")
}

// paths lists the paths in the tree of main.
func (w *world) paths() string { w.t.Helper(); return w.git("ls-tree", "-r", "--name-only", w.ref) }

func (w *world) tree() gitdb.Hash {
	w.t.Helper()
	id, _ := gitdb.ParseHash(w.git("rev-parse", w.ref+"^{tree}"))
	return id
}

func (w *world) reader() *gitdb.Reader {
	rd, err := w.g.repo.Objects(context.Background())
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return rd
}

func (w *world) inventory() *inventory {
	w.t.Helper()
	inv, err := takeInventory(context.Background(), w.reader(), w.tree(), true)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return inv
}

// withheld lists the withheld keys and why.
func (w *world) withheld() string {
	w.t.Helper()
	var out []string
	w.view(func(tx *store.Tx) error {
		for h, err := range tx.AllWithheld() {
			if err != nil {
				return err
			}
			out = append(out, fmt.Sprintf("%s %s", h.KeyRef, h.Why))
		}
		return nil
	})
	return strings.Join(out, ", ")
}

// rows lists the keys of the store, without the project's.
func (w *world) rows() string {
	w.t.Helper()
	var out []string
	w.view(func(tx *store.Tx) error {
		for r, err := range tx.Rows(store.Query{}) {
			if err != nil {
				return err
			}
			if r.Target.Type != meta.Project {
				out = append(out, r.KeyRef.String())
			}
		}
		return nil
	})
	return strings.Join(out, ", ")
}

// commitTree commits the tip's tree with lines of `git update-index --index-info`
// applied, as another program would.
func (w *world) commitTree(message, indexInfo string) {
	w.t.Helper()
	index := filepath.Join(w.g.dir, fmt.Sprintf("index%d", w.g.n.Add(1)))
	run := func(stdin string, args ...string) string {
		w.t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = w.g.dir, strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "GIT_INDEX_FILE="+index, "GIT_AUTHOR_DATE=1700000500 +0000")
		out, err := cmd.CombinedOutput()
		if err != nil {
			w.t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	args := []string{"commit-tree", "-m", message}
	if _, err := w.g.repo.Ref(context.Background(), w.ref); err == nil {
		run("", "read-tree", w.ref)
		args = append(args, "-p", w.ref)
	}
	run(indexInfo, "update-index", "--index-info")
	run("", "update-ref", w.ref, run("", append(args, run("", "write-tree"))...))
}

// blob writes a blob and returns the line that puts it at path.
func (w *world) blob(path, content string) string {
	w.t.Helper()
	return "100644 " + gitIn(w.t, w.g.dir, content, "hash-object", "-w", "--stdin") + "\t" + path + "\n"
}

// names returns "path:p<from> k" … in order, as keys lists them.
func names(from, to int) string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("path:p%03d k", i))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func same[T comparable](t tester, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got\n%v\nwant\n%v", what, got, want)
	}
}
