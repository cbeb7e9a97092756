package store

import (
	"io/fs"
	"os"
	"runtime"
	"time"
)

// Watch notices that another process, this program or the peer, may have changed a store.
// It looks at the files from outside: nothing is opened, so that no lock is held, a
// missing or replaced file is no trouble, and the file can be removed meanwhile. The
// zero value is not usable; make one with [NewWatch]. Not safe for concurrent use.
type Watch struct {
	path     string
	now      func() time.Time
	file     fs.FileInfo // nil: missing
	wal      fs.FileInfo
	again    time.Time // when to report a change once more; zero: not
	reported bool      // the first call has been made
}

// settle is how long after a change the files are reported as changed once more: a write
// within the resolution of the file's time, and of the same size, cannot be seen.
const settle = time.Second

// NewWatch returns a Watch of the store at path, which need not exist.
func NewWatch(path string) *Watch { return &Watch{path: path, now: time.Now} }

// Changed reports whether the store may have changed since the last call; the first time
// it is true. It may be true without a change, once or twice after each one. Look first,
// then read: what is stored while one reads is reported the next time. It costs two
// calls of stat.
func (w *Watch) Changed() bool {
	file, wal := stat(w.path), stat(w.path+"-wal")
	if wal != nil && wal.Size() == 0 {
		wal = nil // every reader makes an empty one
	}
	changed := !w.reported || !sameStat(file, w.file) || !sameStat(wal, w.wal)
	w.file, w.wal, w.reported = file, wal, true
	now := w.now()
	switch {
	case changed:
		w.again = now.Add(settle)
	case !w.again.IsZero() && !now.Before(w.again):
		changed, w.again = true, time.Time{}
		if runtime.GOOS == "windows" && file != nil {
			w.again = now.Add(settle) // times of open files may be out of date there
		}
	}
	return changed
}

func stat(path string) fs.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}

func sameStat(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
