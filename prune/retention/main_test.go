package retention

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	home, err := os.MkdirTemp("", "retention-home")
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
	config := "[user]\n\tname = A U Thor\n\temail = a@example.com\n[core]\n\tfsync = none\n[gc]\n\tauto = 0\n[init]\n\tdefaultBranch = main\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o666); err != nil {
		panic(err)
	}
	flag.Set("rapid.checks", "15") // more with -rapid.checks
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

// gitRepo is a git repository of its own.
type gitRepo struct {
	t    testing.TB
	dir  string
	repo *gitdb.Repo
	now  time.Time
}

func newRepo(t testing.TB) *gitRepo {
	t.Helper()
	g := &gitRepo{t: t, dir: filepath.Join(t.TempDir(), "r"), now: time.UnixMilli(t0)}
	if err := os.Mkdir(g.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	g.git("init", "-q")
	g.repo = discover(t, g.dir)
	return g
}

func discover(t testing.TB, dir string) *gitdb.Repo {
	t.Helper()
	repo, err := gitdb.Discover(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { repo.Close() })
	return repo
}

func (g *gitRepo) git(args ...string) string {
	g.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = g.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func (g *gitRepo) write(name, text string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o666); err != nil {
		g.t.Fatal(err)
	}
}

// declare writes a manifest with collections, each as "name maxRows maxAgeDays", 0 for
// none: a line for the name, one for retention, and one for each bound.
func (g *gitRepo) declare(collections ...string) {
	g.t.Helper()
	var b strings.Builder
	b.WriteString("collections:\n")
	for _, c := range collections {
		f := strings.Fields(c)
		fmt.Fprintf(&b, "  %q:\n    retention:\n", f[0])
		for i, field := range []string{"maxRows", "maxAgeDays"} {
			if f[i+1] != "0" {
				fmt.Fprintf(&b, "      %s: %s\n", field, f[i+1])
			}
		}
	}
	g.write(".git-meta", b.String())
}

// env returns a new store in the repository, with the namespace ns of refs.
func (g *gitRepo) env(ns string) *serialize.Env {
	g.t.Helper()
	clock := func() time.Time { return g.now }
	db, err := store.Open(context.Background(), filepath.Join(g.dir, ".git", ns+".sqlite"), store.Options{Bulk: true, Now: clock})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { db.Close() })
	return &serialize.Env{Repo: g.repo, DB: db, Namespace: ns, Now: clock}
}

// setProject sets project strings: key, value, key, value…
func setProject(t testing.TB, env *serialize.Env, kv ...string) {
	t.Helper()
	err := env.DB.Update(context.Background(), func(tx *store.Tx) error {
		for i := 0; i < len(kv); i += 2 {
			if err := tx.Set(meta.KeyRef{Target: meta.ProjectTarget, Key: kv[i]}, kv[i+1], store.Edit{}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
