//go:build unix

package gitdb

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ownedByUser is is_path_owned_by_current_user of git's compat code: the
// effective user, and for root also the user that called sudo.
func ownedByUser(p string) bool {
	fi, err := os.Lstat(p)
	if err != nil {
		return false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	euid := os.Geteuid()
	if euid == 0 && st.Uid != 0 {
		if n, err := strconv.ParseUint(os.Getenv("SUDO_UID"), 10, 32); err == nil {
			return uint32(n) == st.Uid
		}
	}
	return uint32(euid) == st.Uid
}

// sameDevice says whether p lies on the file system of fi.
func sameDevice(fi os.FileInfo, p string) bool {
	up, err := os.Stat(p)
	if err != nil {
		return false
	}
	a, ok1 := fi.Sys().(*syscall.Stat_t)
	b, ok2 := up.Sys().(*syscall.Stat_t)
	return ok1 && ok2 && a.Dev == b.Dev
}

// mapFile maps a whole file, read-only. An empty file gives an empty slice.
func mapFile(f *os.File, size int) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
}

func unmapFile(b []byte) error { return unix.Munmap(b) }

// syncDir makes the names in a directory durable. File systems that cannot
// sync a directory say EINVAL, which is not an error.
func syncDir(p string) error {
	d, err := os.Open(p)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}

// processGone says whether no process has this id.
func processGone(pid int) bool {
	return pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// politely makes cancellation send SIGTERM first, on which git removes its
// lock files.
func politely(cmd *exec.Cmd) {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
}
