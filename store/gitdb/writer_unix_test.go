//go:build unix

package gitdb

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestWriterShared(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	for mode, want := range map[string][2]os.FileMode{"umask": {0o400, 0o700}, "group": {0o440, 0o770 | os.ModeSetgid}, "all": {0o444, 0o775 | os.ModeSetgid}, "0640": {0o440, 0o750 | os.ModeSetgid}} {
		dir := filepath.Join(t.TempDir(), "r")
		git(t, t.TempDir(), "init", "-q", "--shared="+mode, dir)
		r := discover(t, dir)
		for _, n := range []int{3, 200} {
			w, err := r.NewWriter(t.Context())
			must(err)
			commit := putAll(t, w, smallBlobs(n))
			must(w.Finish(t.Context()))
			p := w.PackPath()
			if p == "" {
				p = loosePath(r.ObjectDir, commit)
				fi, err := os.Stat(filepath.Dir(p))
				must(err)
				if got := fi.Mode() & (os.ModePerm | os.ModeSetgid); got != want[1] {
					t.Errorf("%s: folder %v, want %v", mode, got, want[1])
				}
			}
			fi, err := os.Stat(p)
			must(err)
			if fi.Mode().Perm() != want[0] {
				t.Errorf("%s: %s has %v, want %v", mode, p, fi.Mode(), want[0])
			}
		}
	}
}

func TestWriterErrors(t *testing.T) {
	dir := newRepo(t)
	r := discover(t, dir)
	// A file where the folder should be, for both ways of writing.
	objects := filepath.Join(dir, ".git/objects")
	must(os.RemoveAll(filepath.Join(objects, "pack")))
	write(t, filepath.Join(objects, "pack"), "")
	w, err := r.NewWriter(t.Context(), WithLooseLimit(0))
	must(err)
	err = w.Put(BlobObject, HashObject(BlobObject, nil), nil)
	if err == nil || !strings.Contains(err.Error(), "objects/pack") {
		t.Errorf("pack: %v", err)
	}
	if again := w.Finish(t.Context()); again == nil {
		t.Error("Finish after an error")
	}
	r.ObjectDir = filepath.Join(dir, "none")
	w, err = r.NewWriter(t.Context())
	must(err)
	must(w.Put(BlobObject, HashObject(BlobObject, []byte("new")), []byte("new")))
	if err := w.Finish(t.Context()); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("loose: %v", err)
	}
	e := (&Writer{repo: r}).explain(&os.PathError{Op: "open", Path: "/x/tmp_pack_1", Err: syscall.EROFS})
	if !errors.Is(e, ErrReadOnly) || !errors.Is(e, syscall.EROFS) || !strings.Contains(e.Error(), "read-only") {
		t.Errorf("got %v", e)
	}
}

func TestDiskFull(t *testing.T) {
	dir := newRepo(t)
	r := discover(t, dir)
	w, err := r.NewWriter(t.Context())
	must(err)
	putAll(t, w, smallBlobs(200))
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	w.pack.bw.Reset(full)
	for i := range 4 {
		w.Put(BlobObject, HashObject(BlobObject, []byte{byte(i)}), pseudoRandom(3<<20, uint64(i+1)))
	}
	if err := w.Finish(t.Context()); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "/dev/full") {
		t.Errorf("got %v", err)
	}
	if f := tempFiles(t, dir); f != nil {
		t.Errorf("left %v", f)
	}
}
