package cmd_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// tempRepo makes a repository with one commit.
func tempRepo(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := filepath.Join(t.TempDir(), "r")
	home := t.TempDir()
	for name, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.DevNull, "LC_ALL": "C",
		"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@example.com",
	} {
		t.Setenv(name, value)
	}
	run(t, "", "git", "init", "-q", "--template=", dir)
	run(t, dir, "git", "commit", "-q", "--allow-empty", "-m", "one")
	return dir
}

// run runs a program that must succeed and returns what it printed on stdout.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	var errs bytes.Buffer
	c.Dir, c.Stderr = dir, &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &errs)
	}
	return string(out)
}

// parallel starts all commands at once; every one must succeed.
func parallel(t *testing.T, dir string, commands [][]string) {
	t.Helper()
	var wg sync.WaitGroup
	start := make(chan struct{})
	for _, args := range commands {
		wg.Go(func() {
			<-start
			c := exec.Command("git-meta", args...)
			c.Dir = dir
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("git meta %s: %v\n%s", strings.Join(args, " "), err, out)
			}
		})
	}
	close(start)
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// treePaths returns the paths of the published tree.
func treePaths(t *testing.T, dir string) []string {
	t.Helper()
	return strings.Fields(run(t, dir, "git", "ls-tree", "-r", "--name-only", "refs/meta/local/main"))
}

// soundHistory fails unless history is linear and git finds no fault with it.
func soundHistory(t *testing.T, dir string) {
	t.Helper()
	run(t, dir, "git", "fsck", "--strict")
	if out := run(t, dir, "git", "rev-list", "--min-parents=2", "refs/meta/local/main"); out != "" {
		t.Errorf("merges in the history:\n%s", out)
	}
	if out := run(t, dir, "git", "rev-list", "--max-parents=0", "refs/meta/local/main"); strings.Count(out, "\n") != 1 {
		t.Errorf("several roots in the history:\n%s", out)
	}
}

// TestParallelFirst: the first commands ever run in a repository, all at once. The store
// is created by one of them.
func TestParallelFirst(t *testing.T) {
	for round := range 3 {
		dir := tempRepo(t)
		var commands [][]string
		for i := range 8 {
			n := fmt.Sprint(i)
			commands = append(commands,
				[]string{"set", "project", "s" + n, "v"},
				[]string{"list:push", "project", "l", "e" + n},
				[]string{"set:add", "project", "m", "m" + n},
				[]string{"serialize"})
		}
		parallel(t, dir, commands)
		run(t, dir, "git-meta", "serialize")
		count := map[string]int{}
		for _, p := range treePaths(t, dir) {
			switch {
			case strings.HasPrefix(p, "project/l/__list/"):
				count["entries"]++
			case strings.HasPrefix(p, "project/m/__set/"):
				count["members"]++
			case strings.HasPrefix(p, "project/s") && strings.HasSuffix(p, "/__value"):
				count["strings"]++
			}
		}
		for _, what := range []string{"strings", "entries", "members"} {
			if count[what] != 8 {
				t.Errorf("round %d: %d %s in the tree, want 8", round, count[what], what)
			}
		}
		soundHistory(t, dir)
	}
}

// TestParallelSet: 40 writers of strings.
func TestParallelSet(t *testing.T) {
	dir := tempRepo(t)
	var commands [][]string
	for i := range 40 {
		commands = append(commands, []string{"set", "project", fmt.Sprint("k", i), "v"})
	}
	parallel(t, dir, commands)
	run(t, dir, "git-meta", "serialize")
	if n := len(treePaths(t, dir)); n != 40 {
		t.Errorf("%d keys in the tree, want 40", n)
	}
	soundHistory(t, dir)
}

// TestParallelListPush: 40 writers of one list; equal values count as often as they were
// pushed.
func TestParallelListPush(t *testing.T) {
	dir := tempRepo(t)
	var commands [][]string
	for i := range 40 {
		commands = append(commands, []string{"list:push", "project", "log", fmt.Sprint("e", i/2)})
	}
	parallel(t, dir, commands)
	got := map[string]int{}
	for _, entry := range strings.Fields(run(t, dir, "git-meta", "get", "project", "log")) {
		got[entry]++
	}
	for i := range 20 {
		if e := fmt.Sprint("e", i); got[e] != 2 {
			t.Errorf("entry %s is there %d times, want 2", e, got[e])
		}
	}
	run(t, dir, "git-meta", "serialize")
	if n := len(treePaths(t, dir)); n != 40 {
		t.Errorf("%d entries in the tree, want 40", n)
	}
	soundHistory(t, dir)
}

// TestParallelSerialize: 12 processes that set and serialize; the ref moves under each.
func TestParallelSerialize(t *testing.T) {
	dir := tempRepo(t)
	run(t, dir, "git-meta", "set", "project", "first", "v")
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			for _, args := range [][]string{{"set", "project", fmt.Sprint("s", i), "v"}, {"serialize"}} {
				c := exec.Command("git-meta", args...)
				c.Dir = dir
				if out, err := c.CombinedOutput(); err != nil {
					t.Errorf("git meta %s: %v\n%s", strings.Join(args, " "), err, out)
				}
			}
		})
	}
	wg.Wait()
	// each process's own value was published when its serialize ended
	if n := len(treePaths(t, dir)); n != 13 {
		t.Errorf("%d keys in the tree, want 13", n)
	}
	if out := run(t, dir, "git-meta", "serialize"); out != "no metadata to serialize\n" {
		t.Errorf("something was left to serialize: %s", out)
	}
	soundHistory(t, dir)
}

// TestParallelPrune: serializes that prune, beside writers; the limit holds and the newest
// keys are there.
func TestParallelPrune(t *testing.T) {
	dir := tempRepo(t)
	run(t, dir, "git-meta", "config", "meta:prune:max-keys", "12")
	run(t, dir, "git-meta", "config", "meta:prune:min-keys", "5")
	for round := range 3 {
		var commands [][]string
		for i := range 10 {
			commands = append(commands, []string{"set", fmt.Sprintf("path:src/r%df%d", round, i), "k", "v"}, []string{"serialize"})
		}
		parallel(t, dir, commands)
	}
	run(t, dir, "git-meta", "serialize")
	if n := len(treePaths(t, dir)); n > 12 {
		t.Errorf("%d keys in the tree, want at most 12", n)
	}
	soundHistory(t, dir)
}
