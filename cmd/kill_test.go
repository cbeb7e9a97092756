//go:build unix

package cmd_test

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// killedKeys is how many keys the store of TestKill holds; GIT_META_KILL_KEYS and
// GIT_META_KILL_MOMENTS make it larger.
const (
	killedKeys    = "5000"
	killedMoments = "8"
)

// TestKill kills a first serialize with SIGKILL at moments spread over its whole run.
// Repository and store stay sound, and the next run completes.
func TestKill(t *testing.T) {
	keys, moments := atoi(t, envOr("GIT_META_KILL_KEYS", killedKeys)), atoi(t, envOr("GIT_META_KILL_MOMENTS", killedMoments))
	seed := tempRepo(t)
	run(t, seed, "git-meta", "set", "project", "first", "v")
	fill(t, seed, keys-1)

	// how long a run takes that nobody kills, and what it publishes
	whole := copyRepo(t, seed)
	begin := time.Now()
	run(t, whole, "git-meta", "serialize")
	took := time.Since(begin)
	want := run(t, whole, "git", "rev-parse", "refs/meta/local/main^{tree}")

	for i := range moments {
		dir := copyRepo(t, seed)
		c := exec.Command("git-meta", "serialize")
		c.Dir = dir
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		at := took * time.Duration(i+1) / time.Duration(moments+1)
		time.Sleep(at)
		_ = c.Process.Kill()
		_ = c.Wait()
		run(t, dir, "git", "fsck", "--strict")
		if empty := emptyFiles(t, filepath.Join(dir, ".git")); len(empty) > 0 {
			t.Errorf("killed after %v: empty files: %v", at, empty)
		}
		if got := run(t, dir, "git-meta", "get", "project", "first"); got != "v\n" {
			t.Errorf("killed after %v: the store says %q", at, got)
		}
		// git update-ref, if it had been started, ends by itself
		run(t, dir, "git-meta", "serialize")
		if got := run(t, dir, "git", "rev-parse", "refs/meta/local/main^{tree}"); got != want {
			t.Errorf("killed after %v: the next run published another tree", at)
		}
		if out := run(t, dir, "git-meta", "serialize"); out != "no metadata to serialize\n" {
			t.Errorf("killed after %v: the run after the next had something to do: %s", at, out)
		}
		soundHistory(t, dir)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKillPrune kills serializes that publish and then prune; whatever commit they got to,
// the next run ends at the same tree, under the maximum.
func TestKillPrune(t *testing.T) {
	const keys = 2000
	seed := tempRepo(t)
	run(t, seed, "git-meta", "config", "meta:prune:max-keys", "1000")
	run(t, seed, "git-meta", "config", "meta:prune:min-keys", "400")
	fill(t, seed, keys)
	whole := copyRepo(t, seed)
	begin := time.Now()
	run(t, whole, "git-meta", "serialize")
	took := time.Since(begin)
	want := run(t, whole, "git", "rev-parse", "refs/meta/local/main^{tree}")
	if n := len(treePaths(t, whole)); n != 402 {
		t.Fatalf("%d keys after the prune, want 402", n)
	}
	const moments = 6
	for i := range moments {
		dir := copyRepo(t, seed)
		c := exec.Command("git-meta", "serialize")
		c.Dir = dir
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		at := took * time.Duration(moments+i+1) / time.Duration(2*moments+1) // the second half
		time.Sleep(at)
		_ = c.Process.Kill()
		_ = c.Wait()
		run(t, dir, "git", "fsck", "--strict")
		run(t, dir, "git-meta", "serialize")
		if got := run(t, dir, "git", "rev-parse", "refs/meta/local/main^{tree}"); got != want {
			t.Errorf("killed after %v: the next run ended at another tree", at)
		}
		soundHistory(t, dir)
	}
}

// TestKillLoad kills first loads: of a tip that a materialize takes over. Whatever is left
// of the load, the next run completes it, and every key is there once.
func TestKillLoad(t *testing.T) {
	keys, moments := atoi(t, envOr("GIT_META_KILL_KEYS", killedKeys)), atoi(t, envOr("GIT_META_KILL_MOMENTS", killedMoments))
	source := tempRepo(t)
	run(t, source, "git-meta", "set", "project", "first", "v")
	fill(t, source, keys-1)
	run(t, source, "git-meta", "serialize")
	seed := filepath.Join(t.TempDir(), "r")
	run(t, "", "git", "init", "-q", "--template=", seed)
	for name, value := range map[string]string{"url": source, "meta": "true", "fetch": "+refs/meta/local/main:refs/meta/remotes/main"} {
		run(t, seed, "git", "config", "remote.meta."+name, value)
	}
	run(t, seed, "git", "fetch", "-q", "meta")

	whole := copyRepo(t, seed)
	begin := time.Now()
	run(t, whole, "git-meta", "materialize")
	took := time.Since(begin)
	want := loadedRows(t, whole)
	if !strings.HasPrefix(want, strconv.Itoa(keys)+" rows") || !strings.HasSuffix(want, "\nok\nwal\n") {
		t.Fatalf("nobody killed it, and there are %s", want)
	}
	for i := range moments {
		dir := copyRepo(t, seed)
		c := exec.Command("git-meta", "materialize")
		c.Dir = dir
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		at := took * time.Duration(i+1) / time.Duration(moments+1)
		time.Sleep(at)
		_ = c.Process.Kill()
		_ = c.Wait()
		if i%2 == 0 { // a reader may be the first to see what is left
			_ = exec.Command("git-meta", "-C", dir, "get", "project", "first").Run()
		}
		run(t, dir, "git-meta", "serialize")
		run(t, dir, "git-meta", "materialize")
		if got := loadedRows(t, dir); got != want {
			t.Errorf("killed after %v: got\n%s\nwant\n%s", at, got, want)
		}
		if got := run(t, dir, "git-meta", "get", "project", "first"); got != "v\n" {
			t.Errorf("killed after %v: the store says %q", at, got)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// loadedRows tells how much is in a store, and whether its file is sound.
func loadedRows(t *testing.T, dir string) (out string) {
	t.Helper()
	store := filepath.Join(dir, ".git", "git-meta.sqlite")
	if _, err := os.Stat(store + "-journal"); err == nil {
		t.Errorf("%s-journal is left", store)
	}
	db, err := sql.Open("sqlite", "file:"+store+"?mode=rw&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, query := range []string{
		"SELECT count(*) || ' rows, ' || sum(last_timestamp) FROM metadata",
		"SELECT count(*) || ' keys' FROM (SELECT DISTINCT target_type, target_value, key, value FROM metadata)",
		"SELECT count(*) || ' records' FROM metadata_log",
		"PRAGMA integrity_check", "PRAGMA journal_mode",
	} {
		var text string
		if err := db.QueryRow(query).Scan(&text); err != nil {
			t.Fatal(err)
		}
		out += text + "\n"
	}
	return out
}

// fill puts n keys into a store, as a program would that knows the tables only.
func fill(t *testing.T, dir string, n int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, ".git", "git-meta.sqlite")+"?mode=rw&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO metadata (target_type, target_value, key, value, value_type, last_timestamp)
		SELECT 'path', 'src/d' || (i % 97) || '/f' || i, 'k', '"value ' || i || '"', 'string', 1740000000000 + i FROM n`, n)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func copyRepo(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "r")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// emptyFiles returns the empty refs and objects; git itself leaves temporary files.
func emptyFiles(t *testing.T, gitDir string) []string {
	t.Helper()
	var empty []string
	for _, top := range []string{"refs", "objects"} {
		err := filepath.WalkDir(filepath.Join(gitDir, top), func(p string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), "tmp_") || strings.HasSuffix(d.Name(), ".lock") || strings.HasSuffix(d.Name(), ".keep") {
				return err
			}
			info, err := d.Info()
			if os.IsNotExist(err) {
				return nil
			}
			if err == nil && info.Size() == 0 {
				empty = append(empty, p)
			}
			return err
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return empty
}

func envOr(name, value string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return value
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("%q is not a positive number", s)
	}
	return n
}
