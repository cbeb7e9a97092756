//go:build unix

package store

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// readAsOther reads a store in a child that may not write to its folder.
func readAsOther(t *testing.T, path string) (string, error) {
	t.Helper()
	return asOther(t, "STORE_TEST_READ", path)
}

func asOther(t *testing.T, what, path string) (string, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), what+"="+path, "GORACE=atexit_sleep_ms=0")
	if os.Geteuid() == 0 {
		bin := filepath.Join(filepath.Dir(filepath.Dir(path)), "bin")
		if _, err := os.Stat(bin); err != nil {
			data, err := os.ReadFile(os.Args[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(bin, data, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd.Path, cmd.Dir = bin, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestReadOnlyFolder(t *testing.T) {
	top, err := os.MkdirTemp("", "store-ro")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "git")
	t.Cleanup(func() { os.Chmod(dir, 0o755); os.RemoveAll(top) })
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	os.Chmod(top, 0o755)
	path := filepath.Join(dir, FileName)
	db := open(t, path)
	update(t, db, func(tx *Tx) error { return tx.Set(ref("project a"), "value", me) })

	// A writer is at work: its log is in use, the reader cannot use it.
	os.Chmod(path, 0o444)
	os.Chmod(path+"-wal", 0o444)
	os.Chmod(path+"-shm", 0o000)
	os.Chmod(dir, 0o555)
	if out, err := readAsOther(t, path); err == nil || !strings.Contains(out, path+"-wal") || !strings.Contains(out, "read-only") {
		t.Errorf("with a log: got %q, %v", out, err)
	}
	os.Chmod(path+"-shm", 0o444)
	if out, err := readAsOther(t, path); err != nil || out != "value" {
		t.Errorf("with a readable log: got %q, %v", out, err)
	}
	os.Chmod(dir, 0o755)
	db.Close()
	os.Chmod(dir, 0o555)
	if out, err := readAsOther(t, path); err != nil || out != "value" {
		t.Errorf("closed: got %q, %v", out, err)
	}
	if out, err := asOther(t, "STORE_TEST_WRITE", path); err == nil || !strings.Contains(out, path) || !strings.Contains(out, "read-only") {
		t.Errorf("writing: got %q, %v", out, err)
	}
	if out, err := asOther(t, "STORE_TEST_WRITE", filepath.Join(dir, "new.sqlite")); err == nil || !strings.Contains(out, "new.sqlite: cannot be opened or created") {
		t.Errorf("creating: got %q, %v", out, err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
}

// What a killed fill has left must be undone first, which this user may not do.
func TestReadOnlyFolderAfterKilledFill(t *testing.T) {
	top, err := os.MkdirTemp("", "store-ro")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "git")
	t.Cleanup(func() { os.Chmod(dir, 0o755); os.RemoveAll(top) })
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	os.Chmod(top, 0o755)
	path := killedFill(t, dir)
	os.Chmod(path, 0o444)
	os.Chmod(path+"-journal", 0o444)
	os.Chmod(dir, 0o555)
	if out, err := readAsOther(t, path); err == nil || !strings.Contains(out, path+"-journal") || !strings.Contains(out, "read-only") {
		t.Errorf("got %q, %v", out, err)
	}
}
