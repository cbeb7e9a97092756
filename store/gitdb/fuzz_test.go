package gitdb

import (
	"bytes"
	"crypto/sha1"
	"os"
	"path/filepath"
	"testing"
)

// samplePack is a small pack with a chain of deltas, and its index.
func samplePack(t testing.TB) (pack, idx []byte) {
	dir := newRepo(t)
	for i := range 4 {
		write(t, filepath.Join(dir, "f"), string(bytes.Repeat([]byte("some text\n"), 30))+string(rune('a'+i)))
		git(t, dir, "add", "-A")
		git(t, dir, "commit", "-q", "-m", "x")
	}
	git(t, dir, "gc", "-q", "--aggressive")
	packs, _ := filepath.Glob(filepath.Join(dir, ".git/objects/pack/*.pack"))
	pack, err := os.ReadFile(packs[0])
	must(err)
	idx, err = os.ReadFile(packs[0][:len(packs[0])-4] + "idx")
	must(err)
	return pack, idx
}

// memPack is a pack over bytes that were not checked against each other.
func memPack(data, idx []byte) (*pack, error) {
	p := &pack{base: "mem", idxFile: mapped{b: idx, mem: true}}
	p.idxOnce.Do(func() {})
	p.dataOnce.Do(func() {})
	p.data = data[:max(0, len(data)-packTail)]
	return p, p.parseIdx(idx)
}

func FuzzPack(f *testing.F) {
	pack, idx := samplePack(f)
	f.Add(pack, int64(12))
	p, err := memPack(pack, idx)
	must(err)
	for i := range p.n {
		off, err := p.offset(i)
		must(err)
		f.Add(pack, off)
	}
	f.Fuzz(func(t *testing.T, data []byte, off int64) {
		if len(data) > 1<<16 {
			return
		}
		p, err := memPack(data, idx)
		must(err)
		bases := cache[baseKey]{budget: 1 << 20, maxItem: 1 << 16}
		for _, at := range []int64{off, 12} {
			if _, size, err := p.header(at); err == nil && size > 1<<20 {
				continue // may well be a valid bomb; the limit is 2 GiB
			}
			typ, out, err := p.read(at, &bases)
			ht, size, herr := p.header(at)
			if err == nil && (herr != nil || ht != typ || size != int64(len(out))) {
				t.Errorf("read: %v %d, header: %v %d %v", typ, len(out), ht, size, herr)
			}
		}
	})
}

func FuzzIdx(f *testing.F) {
	pack, idx := samplePack(f)
	f.Add(idx, []byte("x"))
	var b bytes.Buffer
	must(writeIdx(&b, []idxEntry{{id: Hash{7}, off: 1 << 33}}, Hash{}))
	f.Add(b.Bytes(), []byte{7})
	f.Fuzz(func(t *testing.T, idx, id []byte) {
		p, err := memPack(pack, idx)
		if err != nil {
			return
		}
		h := Hash(sha1.Sum(id))
		copy(h[:], id)
		p.find(h)
		for i := range min(p.n, 64) {
			p.offset(i)
			copy(h[:], p.ids[i*hashSize:])
			p.find(h)
		}
	})
}

func FuzzDelta(f *testing.F) {
	f.Add([]byte("hello"), []byte("\x05\x07\x90\x05\x02xy"))
	f.Add([]byte("hello"), []byte("\x05\x05\xb0\x05\x00"))
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		if _, d, err := deltaVarint(delta); err == nil {
			if n, _, err := deltaVarint(d); err == nil && n > 1<<20 {
				return
			}
		}
		applyDelta(base, delta)
	})
}

func FuzzLoose(f *testing.F) {
	f.Add(appendStored(nil, []byte("blob 1\x00x")))
	f.Add([]byte("\x78\x9c"))
	p := filepath.Join(f.TempDir(), "o")
	f.Fuzz(func(t *testing.T, raw []byte) {
		looseHeader(raw)
		inflate(raw, 100)
		must(os.WriteFile(p, raw, 0o666))
		typ, data, err := readLoose(p)
		ht, size, herr := readLooseHeader(p)
		if err == nil && herr == nil && (ht != typ || size != int64(len(data))) {
			t.Errorf("read: %v %d, header: %v %d", typ, len(data), ht, size)
		}
	})
}

func FuzzParseTree(f *testing.F) {
	f.Add(AppendTreeEntry(AppendTreeEntry(nil, ModeFile, "a", Hash{1}), ModeTree, "b", Hash{}))
	f.Add([]byte("100644 \x0001234567890123456789"))
	f.Add([]byte("\x0001234567890123456789"))
	f.Fuzz(func(t *testing.T, b []byte) {
		es, err := ParseTree(b)
		if err != nil {
			return
		}
		var out []byte
		for _, e := range es {
			out = AppendTreeEntry(out, e.Mode, e.Name, e.Hash)
		}
		if len(b) > 0 && b[0] != '0' && !bytes.Contains(b, []byte{0}) || len(out) > len(b) {
			t.Errorf("%q becomes %q", b, out)
		}
	})
}

func FuzzParseCommit(f *testing.F) {
	f.Add([]byte("tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nparent 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor A <a> 1 -0000\ncommitter B <b> 2 +0130\ngpgsig a\n b\n\nx"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCommit(b)
		if err != nil {
			return
		}
		if got := c.Encode(); !bytes.Equal(got, b) {
			t.Errorf("%q becomes %q", b, got)
		}
	})
}

func FuzzIdent(f *testing.F) {
	for _, s := range []string{"A <a@x> 1 +0000", " <> -1 -0030", ">", "<", "A <b> 99999999999999999999 +9999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id := ParseIdent(s)
		if id.String() != s {
			t.Errorf("%q becomes %q", s, id)
		}
		id.Name = cleanIdent(id.Name) + "x"
		if again := ParseIdent(id.String()); again.Name != id.Name && legalIdent(id.Name) == again.Name {
			t.Errorf("%q is read back as %q", id.Name, again.Name)
		}
	})
}
