package exchange

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// TestMain keeps the configuration and the environment of whoever runs the tests out.
func TestMain(m *testing.M) {
	home, err := os.MkdirTemp("", "exchange")
	if err != nil {
		panic(err)
	}
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "GIT_") {
			_ = os.Unsetenv(name)
		}
	}
	config := filepath.Join(home, ".gitconfig")
	text := "[user]\n\tname = A U Thor\n\temail = author@example.com\n[init]\n\tdefaultBranch = main\n"
	if err := os.WriteFile(config, []byte(text), 0o666); err != nil {
		panic(err)
	}
	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_GLOBAL": config, "GIT_CONFIG_NOSYSTEM": "1"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	_ = os.RemoveAll(home)
	os.Exit(code)
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	out, err := c.Output()
	if err != nil {
		t.Fatalf("git %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// bare makes an empty bare repository; hook, if any, is its script of that name.
func bare(t *testing.T, hook, script string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "R.git")
	git(t, ".", "init", "-q", "--bare", "--template=", dir)
	if hook != "" {
		if err := os.Mkdir(filepath.Join(dir, "hooks"), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "hooks", hook), []byte("#!/bin/sh\n"+script+"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// repo makes a repository with one commit.
func repo(t *testing.T) *Env {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "--template=")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "one")
	r, err := gitdb.Discover(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var db *store.DB
	t.Cleanup(func() {
		if db != nil {
			_ = db.Close()
		}
		_ = r.Close()
	})
	e := &Env{Repo: r, Namespace: "meta", NoPrompt: true}
	e.Open = func(ctx context.Context) (*serialize.Env, error) {
		if db == nil {
			if db, err = store.Open(ctx, filepath.Join(r.CommonDir, store.FileName), store.Options{}); err != nil {
				return nil, err
			}
		}
		return &serialize.Env{Repo: r, DB: db, Namespace: "meta"}, nil
	}
	return e
}

// snapshot is what a failed Add must leave as it was.
func snapshot(t *testing.T, e *Env) string {
	t.Helper()
	files, err := os.ReadDir(e.Repo.GitDir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	return git(t, e.Repo.WorkTree, "config", "--local", "--list") + "\n" + git(t, e.Repo.WorkTree, "for-each-ref") + "\n" + strings.Join(names, " ")
}

func TestAddInterrupted(t *testing.T) {
	t.Parallel()
	e := repo(t)
	before := snapshot(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e.Say = func(_ Kind, text string) {
		if strings.HasPrefix(text, "Initializing") {
			cancel()
		}
	}
	_, err := e.Add(ctx, AddOptions{URL: bare(t, "pre-receive", "sleep 1"), Init: true})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want a cancelled context", err)
	}
	if after := snapshot(t, e); after != before {
		t.Errorf("left behind:\n%s\nwas:\n%s", after, before)
	}
}

// The remote has taken the push, but its answer is lost.
func TestAddAnswerLost(t *testing.T) {
	t.Parallel()
	e := repo(t)
	url := bare(t, "post-receive", "kill -9 $PPID")
	added, err := e.Add(t.Context(), AddOptions{URL: url, Init: true})
	if err != nil {
		t.Fatal(err)
	}
	if !added.Created || !added.Rules {
		t.Errorf("%+v, want created, with rules", added)
	}
	tip := git(t, url, "rev-parse", "refs/meta/main")
	for _, ref := range []string{"refs/meta/local/main", "refs/meta/remotes/main"} {
		if got := git(t, e.Repo.WorkTree, "rev-parse", ref); got != tip {
			t.Errorf("%s is %s, want %s", ref, got, tip)
		}
	}
}

// Many start the same empty remote: one makes the first commit and has the rules, the
// others find it there and read it.
func TestAddInParallel(t *testing.T) {
	t.Parallel()
	url := bare(t, "", "")
	const n = 8
	envs := make([]*Env, n)
	errs := make([]error, n)
	added := make([]*Added, n)
	for i := range envs {
		envs[i] = repo(t)
		// the same person in the same second would make the same commit
		git(t, envs[i].Repo.WorkTree, "config", "user.name", fmt.Sprint("clone ", i))
	}
	var wg sync.WaitGroup
	for i, e := range envs {
		wg.Go(func() { added[i], errs[i] = e.Add(t.Context(), AddOptions{URL: url, Init: true}) })
	}
	wg.Wait()
	winners := 0
	tip := git(t, url, "rev-parse", "refs/meta/main")
	for i, e := range envs {
		if errs[i] != nil {
			t.Errorf("clone %d: %v", i, errs[i])
			continue
		}
		if added[i].Created != added[i].Rules {
			t.Errorf("clone %d: %+v", i, added[i])
		}
		if added[i].Created {
			winners++
		}
		if got := git(t, e.Repo.WorkTree, "rev-parse", "refs/meta/local/main"); got != tip {
			t.Errorf("clone %d is at %s, want %s", i, got, tip)
		}
	}
	if winners != 1 {
		t.Errorf("%d clones made the first commit", winners)
	}
}

// Setup by several processes in one repository at once.
func TestSetupInParallel(t *testing.T) {
	t.Parallel()
	first := repo(t)
	url := bare(t, "", "")
	var wg sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		r, err := gitdb.Discover(t.Context(), first.Repo.WorkTree)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		e := &Env{Repo: r, Namespace: "meta", Open: first.Open}
		if i > 0 {
			var mu sync.Mutex
			e.Open = func(ctx context.Context) (*serialize.Env, error) {
				mu.Lock()
				defer mu.Unlock()
				db, err := store.Open(ctx, filepath.Join(r.CommonDir, store.FileName), store.Options{})
				if err == nil {
					t.Cleanup(func() { _ = db.Close() })
				}
				return &serialize.Env{Repo: r, DB: db, Namespace: "meta"}, err
			}
		}
		wg.Go(func() { _, errs[i] = e.Add(t.Context(), AddOptions{URL: url, Init: true, Setup: true}) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	cfg := git(t, first.Repo.WorkTree, "config", "--local", "--get-regexp", "^remote")
	if got := strings.Count(cfg, "\n") + 1; got != 5 {
		t.Errorf("configuration:\n%s", cfg)
	}
	env, err := first.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = env.DB.View(t.Context(), func(tx *store.Tx) error {
		rules, err := tx.ProjectStrings("meta:prune")
		if len(rules) != 2 {
			t.Errorf("rules %v", rules)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestConfigurationLocked(t *testing.T) {
	t.Parallel()
	e := repo(t)
	lock := filepath.Join(e.Repo.CommonDir, "config.lock")
	if err := os.WriteFile(lock, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	url := bare(t, "", "")
	_, err := e.Add(t.Context(), AddOptions{URL: url, Init: true})
	if err == nil || !strings.Contains(err.Error(), lock) || !strings.Contains(meta.HintOf(err), "rm -f") {
		t.Errorf("error %v, hint %q", err, meta.HintOf(err))
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Add(t.Context(), AddOptions{URL: url, Init: true}); err != nil {
		t.Error(err)
	}
}

func TestReadmeIsForEverybody(t *testing.T) {
	t.Parallel()
	r := Remote{Name: "meta", URL: "https://bot:secret@example.com/m.git", Namespace: "alt", OwnNamespace: true}
	text := readmeText(r, "https://token@example.com/code.git")
	for _, bad := range []string{"secret", "token", "bot", "{"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is in the README:\n%s", bad, text)
		}
	}
	for _, want := range []string{"<https://example.com/code.git>", "git meta remote add https://example.com/m.git --namespace=alt\n", "refs/alt/main"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the README:\n%s", want, text)
		}
	}
	r.URL = "/home/me/m.git"
	if text := readmeText(r, "/home/me/code.git"); strings.Contains(text, "/home") {
		t.Errorf("a path of this machine is in the README:\n%s", text)
	}
}
