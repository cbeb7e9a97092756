//go:build unix

package cmd_test

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// follower is a running git meta changes --follow --json.
type follower struct {
	t     *testing.T
	c     *exec.Cmd
	out   io.ReadCloser
	errs  bytes.Buffer
	lines chan string
}

// follow starts one; unless it is read, nobody reads what it prints.
func follow(t *testing.T, dir string, read bool, args ...string) *follower {
	t.Helper()
	f := &follower{t: t, c: exec.Command("git-meta", append([]string{"changes", "--follow", "--json"}, args...)...), lines: make(chan string, 1000)}
	f.c.Dir, f.c.Stderr = dir, &f.errs
	var err error
	if f.out, err = f.c.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := f.c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if f.c.ProcessState == nil {
			_ = f.c.Process.Kill()
			_ = f.c.Wait()
		}
	})
	if read {
		go func() {
			defer close(f.lines)
			in := bufio.NewScanner(f.out)
			for in.Scan() {
				f.lines <- in.Text()
			}
		}()
	}
	return f
}

// next returns the key of the next change, "RESYNC" or "NOW" for the other lines, "-" if
// there is none within d.
func (f *follower) next(d time.Duration) string {
	f.t.Helper()
	select {
	case <-time.After(d):
		return "-"
	case line, ok := <-f.lines:
		if !ok {
			return "END"
		}
		var doc struct {
			Key, Cursor string
			Resync      bool
		}
		if err := json.Unmarshal([]byte(line), &doc); err != nil || doc.Cursor == "" {
			f.t.Fatalf("line %s: %v", line, err)
		}
		switch {
		case doc.Resync:
			return "RESYNC"
		case doc.Key == "":
			return "NOW"
		}
		return doc.Key
	}
}

// expect checks the next lines. They come within a second of the change; the rest of the
// time is for a busy machine.
func (f *follower) expect(want ...string) {
	f.t.Helper()
	for _, w := range want {
		if got := f.next(5 * time.Second); got != w {
			f.t.Fatalf("got %s, want %s; stderr: %s", got, w, &f.errs)
		}
	}
}

// ends waits for the end and returns the exit code.
func (f *follower) ends() int {
	f.t.Helper()
	done := make(chan error, 1)
	go func() { done <- f.c.Wait() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		f.t.Fatal("it does not end")
	}
	if f.errs.Len() > 0 {
		f.t.Errorf("stderr: %s", &f.errs)
	}
	return f.c.ProcessState.ExitCode()
}

// TestChangesFollow: what other programs write is printed at once, whatever becomes of the
// file, and nobody is kept from anything.
func TestChangesFollow(t *testing.T) {
	dir := tempRepo(t)
	path := filepath.Join(dir, ".git", "git-meta.sqlite")
	f := follow(t, dir, true)
	if got := f.next(300 * time.Millisecond); got != "-" {
		t.Errorf("without a store: %s", got)
	}
	run(t, dir, "git-meta", "set", "project", "first", "v")
	f.expect("first")
	late := follow(t, dir, true)
	late.expect("first")
	fromNow := follow(t, dir, true, "--since", "now")
	fromNow.expect("NOW")

	var took time.Duration
	for i := range 5 {
		key := fmt.Sprint("k", i)
		run(t, dir, "git-meta", "set", "project", key, "v")
		begin := time.Now()
		f.expect(key)
		took = max(took, time.Since(begin))
		late.expect(key)
		fromNow.expect(key)
	}
	t.Logf("woken after %v at most", took)

	// Another program, with its file open all the time, as the Rust program and any other
	// user of SQLite would: in the same second, of the same size.
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	for i := range 20 {
		key := fmt.Sprintf("raw%02d", i)
		if _, err := db.Exec("INSERT INTO metadata_log VALUES ('project', '', ?, '\"v\"', 'string', 'set', 'x', 1)", key); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 { // the log starts at its beginning again
			var busy, frames, done int
			if err := db.QueryRow("PRAGMA wal_checkpoint(RESTART)").Scan(&busy, &frames, &done); err != nil || busy != 0 || frames != done {
				t.Errorf("a checkpoint is blocked: %d, %d of %d, %v", busy, done, frames, err)
			}
		}
		if i%5 == 0 {
			f.expect(key)
			late.expect(key)
		}
		if i%5 == 4 {
			for j := i - 3; j <= i; j++ {
				f.expect(fmt.Sprintf("raw%02d", j))
				late.expect(fmt.Sprintf("raw%02d", j))
			}
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	// The store is removed, and later there is another one.
	run(t, dir, "git-meta", "teardown", "--force")
	f.expect("RESYNC")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the store is still there: %v", err)
	}
	run(t, dir, "git-meta", "set", "project", "anew", "v")
	f.expect("anew")
	// One that was made elsewhere takes its place, when nobody has the file open: its log
	// would count for the other.
	for i := 0; ; i++ {
		if _, err := os.Stat(path + "-wal"); errors.Is(err, os.ErrNotExist) {
			break
		}
		if i == 100 {
			t.Fatal("the store is open all the time")
		}
		time.Sleep(50 * time.Millisecond)
	}
	other := filepath.Join(t.TempDir(), "r")
	run(t, "", "git", "init", "-q", "--template=", other)
	run(t, other, "git-meta", "set", "project", "elsewhere", "v")
	if err := os.Rename(filepath.Join(other, ".git", "git-meta.sqlite"), path); err != nil {
		t.Fatal(err)
	}
	f.expect("RESYNC")
	run(t, dir, "git-meta", "set", "project", "on", "v")
	f.expect("on")
	// A file that is no store for a moment.
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("not a store ", 1000)), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := f.next(500 * time.Millisecond); got != "-" {
		t.Errorf("of no store: %s", got)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "git-meta", "set", "project", "again", "v")
	f.expect("again")
}

// TestChangesEnd: how a follower ends, and that waiting costs nothing.
func TestChangesEnd(t *testing.T) {
	dir := tempRepo(t)
	run(t, dir, "git-meta", "set", "project", "a", "v")

	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		f := follow(t, dir, true)
		f.expect("a")
		time.Sleep(1500 * time.Millisecond)
		if err := f.c.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if code := f.ends(); code != 130 {
			t.Errorf("%v: exit code %d", signal, code)
		}
		if cpu := f.c.ProcessState.UserTime() + f.c.ProcessState.SystemTime(); cpu > 500*time.Millisecond {
			t.Errorf("%v of processor time", cpu)
		}
	}

	f := follow(t, dir, true, "--limit", "2")
	f.expect("a")
	run(t, dir, "git-meta", "set", "project", "b", "v")
	run(t, dir, "git-meta", "set", "project", "c", "v")
	f.expect("b", "END")
	if code := f.ends(); code != 0 {
		t.Errorf("--limit: exit code %d", code)
	}

	// Nobody reads any more: without a change too.
	f = follow(t, dir, false)
	if _, err := bufio.NewReader(f.out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	f.out.Close()
	if code := f.ends(); code != 0 {
		t.Errorf("closed pipe: exit code %d", code)
	}
	// What is no store from the beginning is an error at once.
	if err := os.WriteFile(filepath.Join(dir, ".git", "git-meta.sqlite"), []byte(strings.Repeat("not a store ", 1000)), 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git-meta", "-C", dir, "changes", "--follow").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "not a git-meta store") {
		t.Errorf("%v: %s", err, out)
	}
}
