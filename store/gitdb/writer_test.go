package gitdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// putAll writes objects, a tree of them and a commit, and returns the commit.
func putAll(t testing.TB, w *Writer, blobs [][]byte) Hash {
	t.Helper()
	put := func(typ ObjectType, data []byte) Hash {
		id := HashObject(typ, data)
		if err := w.Put(typ, id, data); err != nil {
			t.Fatal(err)
		}
		clear(data) // the writer must not look at it later
		return id
	}
	var tree []byte
	for i, b := range blobs {
		tree = AppendTreeEntry(tree, ModeFile, fmt.Sprintf("f%06d", i), put(BlobObject, append([]byte(nil), b...)))
	}
	who := Ident{Name: "A", Email: "a@x", When: time.Unix(1700000000, 0).UTC()}
	c := &Commit{Tree: put(TreeObject, tree), Author: who, Committer: who, Message: "m\n"}
	return put(CommitObject, c.Encode())
}

func smallBlobs(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = fmt.Appendf(nil, "%d %s", i, strings.Repeat("x", i%300))
	}
	return out
}

func tempFiles(t testing.TB, dir string) (out []string) {
	must(filepath.WalkDir(filepath.Join(dir, ".git/objects"), func(p string, _ os.DirEntry, err error) error {
		if n := filepath.Base(p); strings.HasPrefix(n, "tmp_") || strings.HasSuffix(n, ".keep") {
			out = append(out, n)
		}
		return err
	}))
	return out
}

func TestWriter(t *testing.T) {
	big := pseudoRandom(5<<20, 3)
	for name, tt := range map[string]struct {
		blobs [][]byte
		pack  bool
	}{
		"few":           {smallBlobs(20), false},
		"limit":         {smallBlobs(DefaultLooseObjects - 2), false},
		"many":          {smallBlobs(DefaultLooseObjects - 1), true},
		"thousands":     {smallBlobs(20000), true},
		"bytes":         {[][]byte{big, pseudoRandom(6<<20, 4), {}}, true},
		"big among few": {append(smallBlobs(200), big, []byte(strings.Repeat("a", 20<<20)), []byte("last")), true},
		"sizes":         {[][]byte{{}, {1}, make([]byte, 15), make([]byte, 16), make([]byte, 99), make([]byte, 100), make([]byte, 2047), make([]byte, 2048), make([]byte, 65535), make([]byte, 65536), make([]byte, 1<<22-1), make([]byte, 1<<22)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newRepo(t)
			r := discover(t, dir)
			w, err := r.NewWriter(t.Context(), func(w *Writer) {
				if name == "sizes" {
					w.looseObjects = 0
				}
			})
			must(err)
			defer w.Abort()
			commit := putAll(t, w, tt.blobs)
			n := w.Count()
			if again := putAll(t, w, tt.blobs); again != commit || w.Count() != n {
				t.Errorf("duplicates count: %d, then %d", n, w.Count())
			}
			if err := w.Finish(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := w.PackPath() != ""; got != tt.pack {
				t.Errorf("pack = %q", w.PackPath())
			}
			if tt.pack {
				// Before the ref moves, gc must leave it alone.
				git(t, dir, "gc", "-q", "--prune=now")
				git(t, dir, "verify-pack", w.PackPath())
				git(t, dir, "index-pack", "--strict", "--verify", w.PackPath())
				if fi, err := os.Stat(w.PackPath()); err != nil || fi.Mode().Perm() != 0o444 {
					t.Errorf("mode %v", fi.Mode())
				}
			}
			must(r.UpdateRef(t.Context(), "refs/meta/x", commit, ZeroHash, "test"))
			must(w.Release())
			must(w.Release())
			w.Abort()
			if f := tempFiles(t, dir); f != nil {
				t.Errorf("left: %v", f)
			}
			if out := git(t, dir, "fsck", "--strict", "--full"); out != "" {
				t.Errorf("fsck: %s", out)
			}
			rd, err := r.Objects(t.Context())
			must(err)
			for _, b := range tt.blobs[:min(len(tt.blobs), 500)] {
				if _, got, err := rd.Read(t.Context(), HashObject(BlobObject, b)); err != nil || string(got) != string(b) {
					t.Errorf("read back %d bytes: %v", len(b), err)
				}
			}
			if rd.git.read.cmd != nil {
				t.Error("reader asked git")
			}
			git(t, dir, "gc", "-q", "--prune=now")
			git(t, dir, "cat-file", "commit", "refs/meta/x")
			if err := w.Put(BlobObject, commit, nil); err == nil {
				t.Error("Put after Finish")
			}
		})
	}
}

func TestWriterSkipsExisting(t *testing.T) {
	t.Parallel()
	dir := newRepo(t)
	r := discover(t, dir)
	files := func() string { return git(t, dir, "count-objects") }
	for range 2 {
		w, err := r.NewWriter(t.Context())
		must(err)
		putAll(t, w, smallBlobs(10))
		must(w.Finish(t.Context()))
	}
	once := files()
	git(t, dir, "repack", "-adq") // unreachable ones stay loose
	w, err := r.NewWriter(t.Context())
	must(err)
	tree := HashObject(TreeObject, nil)
	must(w.Put(TreeObject, tree, nil)) // of the first commit, packed now
	must(w.Finish(t.Context()))
	if _, err := os.Stat(loosePath(r.ObjectDir, tree)); err == nil && !strings.Contains(once, "15 objects") {
		t.Errorf("packed object written again (%s)", once)
	}
	w, err = r.NewWriter(t.Context())
	must(err)
	must(w.Finish(t.Context())) // nothing to write
	if w.PackPath() != "" || w.Count() != 0 {
		t.Error("empty writer wrote")
	}
	// A leftover that is empty must be replaced.
	data := []byte("lost in a power cut")
	id := HashObject(BlobObject, data)
	write(t, loosePath(r.ObjectDir, id), "")
	w, err = r.NewWriter(t.Context())
	must(err)
	must(w.Put(BlobObject, id, data))
	must(w.Finish(t.Context()))
	if got := git(t, dir, "cat-file", "blob", id.String()); got != string(data) {
		t.Errorf("got %q", got)
	}
}

func TestWriterAbort(t *testing.T) {
	t.Parallel()
	dir := newRepo(t)
	r := discover(t, dir)
	rd, err := r.Objects(t.Context())
	must(err)
	for _, n := range []int{10, 3000} {
		for _, how := range []string{"abort", "cancel", "cancel finish"} {
			ctx, cancel := context.WithCancel(t.Context())
			w, err := r.NewWriter(ctx, WithReader(rd))
			must(err)
			id := putAll(t, w, smallBlobs(n))
			if n == 10 && !rd.Has(t.Context(), id) {
				t.Error("not readable before Finish")
			}
			switch how {
			case "abort":
				w.Abort()
				w.Abort()
				if err := w.Finish(t.Context()); err == nil {
					t.Error("Finish after Abort")
				}
			case "cancel":
				cancel()
				err := w.Put(BlobObject, HashObject(BlobObject, []byte("x")), []byte("x"))
				if n > 100 {
					for i := 0; err == nil && i < 1<<20; i++ {
						b := fmt.Append(nil, "more", i)
						err = w.Put(BlobObject, HashObject(BlobObject, b), b)
					}
					if !errors.Is(err, context.Canceled) {
						t.Errorf("Put: %v", err)
					}
				}
				if err := w.Finish(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("Finish: %v", err)
				}
			case "cancel finish":
				c2, cancel2 := context.WithCancel(t.Context())
				cancel2()
				if err := w.Finish(c2); !errors.Is(err, context.Canceled) {
					t.Errorf("Finish: %v", err)
				}
			}
			cancel()
			if f := tempFiles(t, dir); f != nil || rd.Has(t.Context(), id) {
				t.Errorf("%d, %s: left %v", n, how, f)
			}
		}
	}
	// After Finish, Abort gives the pack up for gc.
	w, err := r.NewWriter(t.Context())
	must(err)
	id := putAll(t, w, smallBlobs(200))
	must(w.Finish(t.Context()))
	w.Abort()
	git(t, dir, "gc", "-q", "--prune=now")
	if _, err := gitErr(dir, "", "cat-file", "-e", id.String()); err == nil || tempFiles(t, dir) != nil {
		t.Error("kept after Abort")
	}
}

func TestStaleKeep(t *testing.T) {
	t.Parallel()
	dir := newRepo(t)
	pack := filepath.Join(dir, ".git/objects/pack")
	host, _ := os.Hostname()
	files := map[string]struct {
		text string
		age  time.Duration
		stay bool
	}{
		"pack-old.keep":   {"git-meta 999999999 " + host + "\n", 2 * time.Hour, false},
		"pack-young.keep": {"git-meta 999999999 " + host + "\n", 30 * time.Second, true},
		"pack-gone.keep":  {"git-meta 999999999 " + host + "\n", 2 * time.Minute, false},
		"pack-there.keep": {"git-meta 1 elsewhere\n", 2 * time.Minute, true},
		"pack-alive.keep": {fmt.Sprintf("git-meta %d %s\n", os.Getpid(), host), 2 * time.Hour, true},
		"pack-far.keep":   {"git-meta 1 elsewhere\n", 2 * time.Hour, false},
		"pack-other.keep": {"fetch-pack 1 on x\n", 2 * time.Hour, true},
		"pack-empty.keep": {"", 2 * time.Hour, true},
	}
	for n, f := range files {
		write(t, filepath.Join(pack, n), f.text)
		must(os.Chtimes(filepath.Join(pack, n), time.Time{}, time.Now().Add(-f.age)))
	}
	w, err := discover(t, dir).NewWriter(t.Context())
	must(err)
	putAll(t, w, smallBlobs(200))
	w.Abort()
	for n, f := range files {
		if _, err := os.Stat(filepath.Join(pack, n)); (err == nil) != f.stay {
			t.Errorf("%s: %v", n, err)
		}
	}
}

func TestIdxLargeOffsets(t *testing.T) {
	var b strings.Builder
	ents := []idxEntry{{id: Hash{2}, off: 1 << 31}, {id: Hash{1}, off: 12}, {id: Hash{3}, off: 1 << 40}, {id: Hash{255}, off: 1<<31 - 1}}
	must(writeIdx(&b, ents, Hash{9}))
	p := &pack{base: "x"}
	p.idxOnce.Do(func() {})
	p.idxFile = mapped{b: []byte(b.String()), mem: true}
	must(p.parseIdx(p.idxFile.b))
	for _, e := range ents {
		if off, ok, err := p.find(e.id); !ok || err != nil || off != e.off {
			t.Errorf("%v: %d %v %v", e.id, off, ok, err)
		}
	}
	if _, ok, _ := p.find(Hash{4}); ok {
		t.Error("found what is not there")
	}
}
