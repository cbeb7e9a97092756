package gitdb

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain fixes everything that git takes from outside.
func TestMain(m *testing.M) {
	home, err := os.MkdirTemp("", "gitdb-home")
	if err != nil {
		panic(err)
	}
	for _, kv := range os.Environ() {
		if k, _, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "GIT_") || k == "EMAIL" || k == "SUDO_UID" {
			os.Unsetenv(k)
		}
	}
	for k, v := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": filepath.Join(home, "xdg"), "GIT_CONFIG_NOSYSTEM": "1",
		"LC_ALL": "C", "TZ": "UTC", "GORACE": "atexit_sleep_ms=0",
	} {
		os.Setenv(k, v)
	}
	must(os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(
		"[user]\n\tname = A U Thor\n\temail = author@example.com\n[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n"+
			"[protocol \"file\"]\n\tallow = always\n[core]\n\tfsync = none\n"), 0o666))
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// git runs git in dir and returns its output without the last line feed.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := gitErr(dir, "", args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func gitErr(dir, in string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out) + stderr.String(), err
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// newRepo makes a repository with one commit.
func newRepo(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(tempDir(t), "repo")
	git(t, filepath.Dir(dir), "init", "-q", dir)
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "one")
	return dir
}

func tempDir(t testing.TB) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(err)
	return dir
}

func discover(t testing.TB, dir string) *Repo {
	t.Helper()
	r, err := Discover(t.Context(), dir)
	if err != nil {
		t.Fatalf("Discover(%s): %v", dir, err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func write(t testing.TB, path, data string) {
	t.Helper()
	must(os.MkdirAll(filepath.Dir(path), 0o777))
	must(os.WriteFile(path, []byte(data), 0o666))
}

func hashOf(t testing.TB, s string) Hash {
	t.Helper()
	h, ok := ParseHash(s)
	if !ok {
		t.Fatalf("%q is not an id", s)
	}
	return h
}
