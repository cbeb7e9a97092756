package gitdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// history makes a repository whose objects delta well, and commits it in
// several steps.
func history(t testing.TB) string {
	dir := newRepo(t)
	text := strings.Repeat("line of text that repeats\n", 400)
	for i := range 8 {
		write(t, filepath.Join(dir, "big.txt"), fmt.Sprint(i, "\n")+text+fmt.Sprint(i))
		write(t, filepath.Join(dir, fmt.Sprintf("d%d/f", i%3)), fmt.Sprint("small ", i))
		git(t, dir, "add", "-A")
		git(t, dir, "commit", "-q", "-m", fmt.Sprint("c", i))
	}
	for i := range 60 { // a tree large enough for deltas
		write(t, filepath.Join(dir, "many", fmt.Sprintf("file-%03d", i)), fmt.Sprint(i))
	}
	write(t, filepath.Join(dir, "empty"), "")
	write(t, filepath.Join(dir, "random"), string(pseudoRandom(70000, 1)))
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "many")
	write(t, filepath.Join(dir, "many/file-030"), "changed")
	git(t, dir, "commit", "-qam", "one of many")
	git(t, dir, "tag", "-a", "-m", "t", "v1")
	return dir
}

func pseudoRandom(n int, seed uint64) []byte {
	b := make([]byte, n)
	for i := range b {
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
		b[i] = byte(seed)
	}
	return b
}

type wantObject struct {
	typ  string
	data string
}

// allObjects asks git for everything that is in a repository.
func allObjects(t testing.TB, dir string) map[Hash]wantObject {
	out := map[Hash]wantObject{}
	for line := range strings.Lines(git(t, dir, "cat-file", "--batch-all-objects", "--batch-check")) {
		f := strings.Fields(line)
		b, err := gitBytes(dir, "cat-file", f[1], f[0])
		must(err)
		out[hashOf(t, f[0])] = wantObject{f[1], string(b)}
	}
	return out
}

func gitBytes(dir string, args ...string) ([]byte, error) {
	r, err := Discover(context.Background(), dir)
	if err != nil {
		return nil, err
	}
	return r.Git(context.Background(), args...).Output()
}

func checkObjects(t *testing.T, o Objects, want map[Hash]wantObject) {
	t.Helper()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for id, w := range want {
				typ, size, err := o.Header(t.Context(), id)
				if err != nil || typ.String() != w.typ || size != int64(len(w.data)) {
					t.Errorf("Header(%v) = %v %d %v, want %s %d", id, typ, size, err, w.typ, len(w.data))
				}
				typ, data, err := o.Read(t.Context(), id)
				if err != nil || typ.String() != w.typ || string(data) != w.data {
					t.Errorf("Read(%v) = %v, %d bytes, %v; want %s, %d bytes", id, typ, len(data), err, w.typ, len(w.data))
				}
				if !o.Has(t.Context(), id) {
					t.Errorf("Has(%v) = false", id)
				}
			}
		})
	}
	wg.Wait()
	none := HashObject(BlobObject, []byte("nobody has this"))
	_, _, err := o.Read(t.Context(), none)
	if !errors.Is(err, ErrObjectMissing) || !strings.Contains(err.Error(), none.String()) {
		t.Errorf("missing: %v", err)
	}
	if _, _, err := o.Header(t.Context(), none); !errors.Is(err, ErrObjectMissing) {
		t.Errorf("missing header: %v", err)
	}
	if o.Has(t.Context(), none) {
		t.Error("has a missing object")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for id := range want {
		if _, _, err := o.Read(ctx, id); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		break
	}
}

// TestObjects is the suite for every implementation of Objects.
func TestObjects(t *testing.T) {
	dir := history(t)
	want := allObjects(t, dir)
	clone := func(name string, args ...string) string {
		p := filepath.Join(t.TempDir(), name)
		git(t, dir, append(append([]string{"clone", "-q"}, args...), dir, p)...)
		return p
	}
	layouts := map[string]func() string{
		"loose": func() string { return dir },
		"packed, deep deltas": func() string {
			p := clone("aggressive", "--mirror")
			git(t, p, "repack", "-adfq", "--depth=200", "--window=50")
			return p
		},
		"ref deltas": func() string {
			p := clone("ref", "--mirror", "--no-local")
			git(t, p, "-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq", "--depth=50")
			return p
		},
		"many packs": func() string {
			p := clone("many")
			for i := range 4 {
				git(t, p, "commit", "-q", "--allow-empty", "-m", fmt.Sprint(i))
				git(t, p, "repack", "-dq")
			}
			return p
		},
		"64-bit offsets": func() string {
			p := clone("64", "--mirror")
			git(t, p, "-c", "pack.indexVersion=2", "repack", "-adq")
			packs, _ := filepath.Glob(p + "/objects/pack/*.pack")
			must(os.Chmod(strings.TrimSuffix(packs[0], "pack")+"idx", 0o666))
			git(t, p, "index-pack", "--index-version=2,0x40", packs[0])
			return p
		},
		"idx version 1": func() string {
			p := clone("v1", "--mirror")
			git(t, p, "-c", "pack.indexVersion=1", "repack", "-adfq")
			return p
		},
		"alternates": func() string { return clone("alt", "--shared") },
		"relative, recursive and circular alternates": func() string {
			mid, p := clone("mid", "--bare", "--shared"), clone("end", "--bare", "--shared")
			rel, err := filepath.Rel(filepath.Join(p, "objects"), filepath.Join(mid, "objects"))
			must(err)
			write(t, filepath.Join(p, "objects/info/alternates"), "# comment\n/no/such/dir\n"+rel+"\n")
			write(t, filepath.Join(mid, "objects/info/alternates"), "\""+filepath.Join(dir, ".git/obj\\145cts")+"\"\n"+filepath.Join(p, "objects")+"\n")
			return p
		},
	}
	for name, make := range layouts {
		t.Run(name, func(t *testing.T) {
			p := make()
			r := discover(t, p)
			want := want
			if name == "many packs" {
				want = allObjects(t, p)
			}
			rd, err := r.Objects(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Run("reader", func(t *testing.T) { checkObjects(t, rd, want) })
			if started := rd.git.read.cmd != nil; started != (name == "idx version 1") {
				t.Errorf("child started: %v", started)
			}
			cf := r.NewCatFile()
			defer cf.Close()
			t.Run("cat-file", func(t *testing.T) { checkObjects(t, cf, want) })
		})
	}
	t.Run("env alternates", func(t *testing.T) {
		p := newRepo(t)
		t.Setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", "/none:"+filepath.Join(dir, ".git/objects"))
		rd, err := discover(t, p).Objects(t.Context())
		must(err)
		checkObjects(t, rd, want)
	})
	t.Run("no cache", func(t *testing.T) {
		r := discover(t, dir)
		rd, err := r.Objects(t.Context())
		must(err)
		rd.SetCacheBytes(0)
		checkObjects(t, rd, want)
	})
}

func TestReaderRescan(t *testing.T) {
	t.Parallel()
	dir := history(t)
	r := discover(t, dir)
	rd, err := r.Objects(t.Context())
	must(err)
	rd.SetCacheBytes(0)
	want := allObjects(t, dir)
	checkObjects(t, rd, want)
	for range 2 { // loose to pack, pack to another pack
		git(t, dir, "gc", "-q", "--aggressive", "--prune=now")
		checkObjects(t, rd, want)
		git(t, dir, "commit", "-q", "--allow-empty", "-m", "more")
		want = allObjects(t, dir)
	}
	// An index that was seen and whose pack went before it was opened.
	rd2 := r.newReader()
	defer rd2.Close()
	rd2.packList(false)
	git(t, dir, "repack", "-adfq", "--window=1")
	checkObjects(t, rd2, want)
}

func TestReaderPromisor(t *testing.T) {
	t.Parallel()
	dir := history(t)
	git(t, dir, "config", "uploadpack.allowFilter", "true")
	git(t, dir, "config", "uploadpack.allowAnySHA1InWant", "true")
	p := filepath.Join(t.TempDir(), "partial")
	git(t, dir, "clone", "-q", "--bare", "--filter=blob:none", "file://"+dir, p)
	rd, err := discover(t, p).Objects(t.Context())
	must(err)
	blob := hashOf(t, git(t, dir, "rev-parse", "HEAD:big.txt"))
	if rd.Has(t.Context(), blob) {
		t.Fatal("the clone is not partial")
	}
	if _, _, err := rd.Local().Read(t.Context(), blob); !errors.Is(err, ErrObjectMissing) {
		t.Errorf("local: %v", err)
	}
	typ, data, err := rd.Read(t.Context(), blob)
	if err != nil || typ != BlobObject || !strings.Contains(string(data), "repeats") {
		t.Errorf("fetched %v, %d bytes, %v", typ, len(data), err)
	}
	if !rd.Has(t.Context(), blob) {
		t.Error("not here after the fetch")
	}
}

func TestReaderReplaceRefs(t *testing.T) {
	t.Parallel()
	dir := history(t)
	a, b := git(t, dir, "rev-parse", "HEAD:d0/f"), git(t, dir, "rev-parse", "HEAD:d1/f")
	git(t, dir, "replace", a, b)
	r := discover(t, dir)
	rd, err := r.Objects(t.Context())
	must(err)
	cf := r.NewCatFile()
	defer cf.Close()
	for _, o := range []Objects{rd, cf} {
		_, data, err := o.Read(t.Context(), hashOf(t, a))
		if err != nil || HashObject(BlobObject, data).String() != a {
			t.Errorf("%T: %q %v", o, data, err)
		}
	}
}

func TestReaderDamage(t *testing.T) {
	t.Parallel()
	dir := history(t)
	git(t, dir, "gc", "-q", "--aggressive", "--prune=now")
	want := allObjects(t, dir)
	packs, _ := filepath.Glob(filepath.Join(dir, ".git/objects/pack/*.pack"))
	good, err := os.ReadFile(packs[0])
	must(err)
	idxPath := strings.TrimSuffix(packs[0], "pack") + "idx"
	goodIdx, err := os.ReadFile(idxPath)
	must(err)
	must(os.Chmod(packs[0], 0o666))
	must(os.Chmod(idxPath, 0o666))
	read := func(pack, idx []byte) (failed int) {
		must(os.WriteFile(packs[0], pack, 0o666))
		must(os.WriteFile(idxPath, idx, 0o666))
		p := &pack_{base: strings.TrimSuffix(packs[0], ".pack")}
		defer p.close()
		var bases cache[baseKey]
		for id := range want {
			off, ok, err := p.find(id)
			if ok {
				var data []byte
				var typ ObjectType
				if typ, data, err = p.read(off, &bases); err == nil && HashObject(typ, data) != id {
					err = ErrCorrupt
				}
				p.header(off)
			}
			if err != nil || !ok {
				failed++
			}
		}
		return failed
	}
	if n := read(good, goodIdx); n != 0 {
		t.Fatalf("%d objects of the good pack fail", n)
	}
	for i := 12; i < len(good)-20; i += 1 + len(good)/60 {
		bad := bytes.Clone(good)
		bad[i] ^= 0x55
		if read(bad, goodIdx) == 0 {
			t.Errorf("damage at %d goes unseen", i)
		}
		read(append(bytes.Clone(good[:i]), good[len(good)-20:]...), goodIdx)
	}
	for i := 0; i < len(goodIdx); i += 1 + len(goodIdx)/60 {
		bad := bytes.Clone(goodIdx)
		bad[i] ^= 0xff
		read(good, bad)
		read(good, goodIdx[:i])
	}
	// Through the Reader: an error that names the object and the pack.
	bad := bytes.Clone(good)
	for i := 12; i < len(bad)-20; i++ {
		bad[i] = 0xff
	}
	must(os.WriteFile(packs[0], bad, 0o666))
	must(os.WriteFile(idxPath, goodIdx, 0o666))
	rd, err := discover(t, dir).Objects(t.Context())
	must(err)
	for id, w := range want {
		if w.data == "" {
			continue // git knows the empty tree and the empty blob without a pack
		}
		_, _, err := rd.Read(t.Context(), id)
		var oe *ObjectError
		if !errors.As(err, &oe) || oe.ID != id || !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), packs[0]) {
			t.Errorf("got %v", err)
		}
		break
	}
	// A good copy elsewhere wins.
	for id, w := range want {
		typ, _ := parseObjectType(w.typ)
		must(putLoose(discover(t, dir), typ, []byte(w.data)))
		if _, data, err := rd.Read(t.Context(), id); err != nil || string(data) != w.data {
			t.Errorf("loose copy: %v", err)
		}
		break
	}
	// A loose file that is empty, as after a power cut.
	empty := HashObject(BlobObject, []byte("lost"))
	write(t, loosePath(rd.dirs[0], empty), "")
	if _, _, err := rd.Read(t.Context(), empty); !errors.Is(err, ErrCorrupt) || rd.Has(t.Context(), empty) {
		t.Errorf("empty file: %v", err)
	}
}

type pack_ = pack

func TestReaderOverlay(t *testing.T) {
	t.Parallel()
	rd, err := discover(t, newRepo(t)).Objects(t.Context())
	must(err)
	data := []byte("not on disk")
	id := HashObject(BlobObject, data)
	rd.Add(BlobObject, id, data)
	if typ, got, err := rd.Read(t.Context(), id); err != nil || typ != BlobObject || string(got) != string(data) {
		t.Error(typ, got, err)
	}
	rd.Forget(id)
	if rd.Has(t.Context(), id) {
		t.Error("not forgotten")
	}
}

func TestParseTree(t *testing.T) {
	t.Parallel()
	dir := history(t)
	rd, err := discover(t, dir).Objects(t.Context())
	must(err)
	got, err := rd.Tree(t.Context(), hashOf(t, git(t, dir, "rev-parse", "HEAD^{tree}")))
	must(err)
	var want []TreeEntry
	for line := range strings.Lines(git(t, dir, "ls-tree", "HEAD")) {
		var e TreeEntry
		var typ, h string
		_, err := fmt.Sscanf(line, "%o %s %s\t%s", &e.Mode, &typ, &h, &e.Name)
		must(err)
		e.Hash = hashOf(t, h)
		want = append(want, e)
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Error(d)
	}
	if _, err := rd.Tree(t.Context(), hashOf(t, git(t, dir, "rev-parse", "HEAD"))); err == nil {
		t.Error("a commit is read as a tree")
	}
}

func TestCommitRoundTrip(t *testing.T) {
	const head = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n"
	const p = "parent 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n"
	for _, s := range []string{
		head + "author A <a@x> 1 +0000\ncommitter B <b@x> 2 -0130\n\nmsg\n",
		head + p + p + "author A <a@x> 1 -0000\ncommitter  <> -5 +051800\n\nno line feed",
		head + "author A  B <a@x> 01 +0030\ncommitter B<b@x>\nencoding latin1\ngpgsig -----BEGIN\n \n line\n -----END\nx-y z\n\n\xff\n\n",
		head + "author \ncommitter x\n\n",
		head + "author A <a@x> 1 +0000\ncommitter B <b@x> 2 +0000\n",
		head + "author A <a <b>> 1 +0000\ncommitter B <b@x> 99999999999999999999 +9999\nmergetag object 1\n type commit\n  \n\n\n",
	} {
		c, err := ParseCommit([]byte(s))
		if err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		if d := cmp.Diff(string(c.Encode()), s); d != "" {
			t.Errorf("%q:\n%s", s, d)
		}
	}
	for _, s := range []string{"", head, head + "author A\n", "author A\ncommitter B\n\n", head + "author A\ncommitter", head + p} {
		if _, err := ParseCommit([]byte(s)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: %v", s, err)
		}
	}
	c, err := ParseCommit([]byte(head + "author A  B <a@x> 1 -0000\ncommitter B <b@x> 2 +0000\n\nm"))
	must(err)
	c.Author.Name = "New <\n> Name"
	if got := string(c.Encode()); !strings.Contains(got, "\nauthor New  Name <a@x> 1 +0000\n") {
		t.Errorf("got %q", got)
	}
}
