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

// The ages from which a .keep file may be a leftover: of a process of this host that is
// gone, and of one that cannot be asked.
const (
	staleHere  = time.Minute
	staleThere = time.Hour
)

// createKeep makes a .keep file, with its contents from the start: an empty one could not
// be told from somebody else's. If there is one already, it belongs to somebody else, who
// keeps the same pack: "" is returned, nothing to remove.
func createKeep(path string) (string, error) {
	f, err := createTemp(filepath.Dir(path), "tmp_keep_")
	if err != nil {
		return "", err
	}
	tmp := f.Name()
	defer os.Remove(tmp)
	host, _ := os.Hostname()
	_, err = fmt.Fprintf(f, "%s%d %s\n", keepMark, os.Getpid(), host)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	err = os.Link(tmp, path)
	if err == nil {
		return path, nil
	}
	if _, serr := os.Lstat(path); serr == nil {
		return "", nil
	}
	// no hard links here
	return path, os.Rename(tmp, path)
}

// removeStaleKeeps removes .keep files that a process of ours left behind.
func removeStaleKeeps(dir string) {
	names, _ := os.ReadDir(dir)
	for _, e := range names {
		if !strings.HasSuffix(e.Name(), ".keep") {
			continue
		}
		p := filepath.Join(dir, e.Name())
		fi, err := os.Lstat(p)
		if err != nil || !fi.Mode().IsRegular() || fi.Size() > 512 || time.Since(fi.ModTime()) < staleHere {
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
		here, err := os.Hostname()
		local := err == nil && here == host && pid > 0
		if local && !processGone(pid) || !local && time.Since(fi.ModTime()) < staleThere {
			continue
		}
		os.Remove(p)
	}
}
