package gitdb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// keepMark starts the contents of our .keep files:
// "git-meta <process id> <host>".
const keepMark = "git-meta "

// staleKeep is the age from which a .keep file may be a leftover.
const staleKeep = time.Hour

// createKeep makes a .keep file. If there is one already, it belongs to
// somebody else, who keeps the same pack: "" is returned, nothing to remove.
func createKeep(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, os.ErrExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	host, _ := os.Hostname()
	_, err = fmt.Fprintf(f, "%s%d %s\n", keepMark, os.Getpid(), host)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
		return "", err
	}
	return path, nil
}

// removeStaleKeeps removes .keep files that a process of ours left behind:
// older than an hour, and the process gone, if it ran on this host.
func removeStaleKeeps(dir string) {
	names, _ := os.ReadDir(dir)
	for _, e := range names {
		if !strings.HasSuffix(e.Name(), ".keep") {
			continue
		}
		p := filepath.Join(dir, e.Name())
		fi, err := os.Lstat(p)
		if err != nil || !fi.Mode().IsRegular() || fi.Size() > 512 || time.Since(fi.ModTime()) < staleKeep {
			continue
		}
		b, err := os.ReadFile(p)
		rest, ok := strings.CutPrefix(string(b), keepMark)
		if err != nil || !ok {
			continue
		}
		pid, host := 0, ""
		if f := strings.Fields(rest); len(f) == 2 {
			pid, _ = strconv.Atoi(f[0])
			host = f[1]
		}
		if here, err := os.Hostname(); err == nil && here == host && pid > 0 && !processGone(pid) {
			continue
		}
		os.Remove(p)
	}
}
