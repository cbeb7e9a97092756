package prune

import (
	"context"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// part is what one subtree holds; one goroutine fills it.
type part struct {
	rd     *gitdb.Reader
	sizes  bool
	folder gitdb.Hash // the subtree, zero for the levels above
	known  bool       // below a target type that this program knows
	keys   []item
	tombs  []tombstone
	total  store.Stats
	whole  []wholeTarget
	good   map[string]bool // key segments judged so far
}

// wholeTarget is a commit whose folder holds nothing but so many keys.
type wholeTarget struct {
	meta.Target
	keys int
}

func newPart(rd *gitdb.Reader, sizes, known bool) *part {
	return &part{rd: rd, sizes: sizes, known: known, good: map[string]bool{}}
}

func (p *part) count(e gitdb.TreeEntry) {
	if serialize.IsKeyEntry(e) {
		p.total.Keys++
	}
}

// size returns the blob's size, where sizes are wanted, and adds it to the total.
func (p *part) size(ctx context.Context, e gitdb.TreeEntry) (int64, error) {
	if !p.sizes || e.Mode&0o170000 == 0o160000 {
		return 0, nil
	}
	_, n, err := p.rd.Header(ctx, e.Hash)
	p.total.Bytes += n
	return n, err
}

// leaf files one blob by its path.
func (p *part) leaf(ctx context.Context, path string, e gitdb.TreeEntry) error {
	return p.file(ctx, serialize.Leaf{Path: path, Mode: e.Mode, Hash: e.Hash}, e)
}

func (p *part) file(ctx context.Context, l serialize.Leaf, e gitdb.TreeEntry) error {
	n, err := p.size(ctx, e)
	if err != nil {
		return err
	}
	d, err := l.Decode()
	if err != nil {
		return nil // bytes that count, no key
	}
	switch d.Kind {
	case meta.PathValue, meta.PathEntry, meta.PathMember:
		k := p.key(d.KeyRef)
		k.paths = append(k.paths, l.Path)
		k.bytes += n
	case meta.PathTombstone, meta.PathMemberTombstone, meta.PathEntryTombstone:
		p.tombs = append(p.tombs, tombstone{TreePath: d, path: l.Path, hash: l.Hash, bytes: n, time: -1})
	}
	return nil
}

// key returns the item of ref, which is the last one or a new one.
func (p *part) key(ref meta.KeyRef) *item {
	if n := len(p.keys); n == 0 || p.keys[n-1].KeyRef != ref {
		p.keys = append(p.keys, item{KeyRef: ref})
	}
	return &p.keys[len(p.keys)-1]
}

// subtree files what lies below a folder, by path.
func (p *part) subtree(ctx context.Context, id gitdb.Hash, path string) error {
	return serialize.WalkFolders(ctx, p.rd, id, path+"/", p.count, func(l serialize.Leaf) error {
		return p.file(ctx, l, gitdb.TreeEntry{Mode: l.Mode, Hash: l.Hash})
	})
}

// commits files a folder of commits without making a path of every blob: nearly all of a
// large tree is below commit/.
func (p *part) commits(ctx context.Context, id gitdb.Hash, path string) error {
	entries, err := p.rd.Tree(ctx, id)
	if err != nil {
		return err
	}
	for _, e := range entries {
		p.count(e)
		t := meta.Target{Type: meta.Commit, Value: e.Name}
		at := path + "/" + e.Name
		switch {
		case e.Mode != modeTree:
			err = p.leaf(ctx, at, e)
		case t.Publishable() != nil || t.BasePath() != at:
			err = p.subtree(ctx, e.Hash, at)
		default:
			n := len(p.keys)
			var odd bool
			if odd, err = p.keysBelow(ctx, e.Hash, at, t, ""); err == nil && !odd {
				p.whole = append(p.whole, wholeTarget{t, len(p.keys) - n})
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keysBelow files a folder of a target; key is what the folder stands for, "" for the
// target itself. odd tells that it holds more than values.
func (p *part) keysBelow(ctx context.Context, id gitdb.Hash, path string, t meta.Target, key string) (odd bool, err error) {
	if err := ctx.Err(); err != nil {
		return true, err
	}
	entries, err := p.rd.Tree(ctx, id)
	if err != nil {
		return true, err
	}
	// the key's own value first, then the keys below it: keys come in order, pieces of
	// one key together
	var own item
	for _, e := range entries {
		p.count(e)
		if key == "" || !strings.HasPrefix(e.Name, "__") {
			continue
		}
		more, err := p.value(ctx, e, path, &own)
		if err != nil {
			return true, err
		}
		odd = odd || more
	}
	if own.entries > 0 {
		own.KeyRef = meta.KeyRef{Target: t, Key: key}
		p.keys = append(p.keys, own)
	}
	for _, e := range entries {
		if key != "" && strings.HasPrefix(e.Name, "__") {
			continue
		}
		at := path + "/" + e.Name
		more := true
		switch {
		case e.Mode != modeTree:
			err = p.leaf(ctx, at, e)
		case !p.segment(e.Name):
			err = p.subtree(ctx, e.Hash, at)
		case key == "":
			more, err = p.keysBelow(ctx, e.Hash, at, t, e.Name)
		default:
			more, err = p.keysBelow(ctx, e.Hash, at, t, key+":"+e.Name)
		}
		if err != nil {
			return true, err
		}
		odd = odd || more
	}
	return odd, nil
}

// segment reports whether name can be part of a key.
func (p *part) segment(name string) bool {
	ok, known := p.good[name]
	if !known {
		ok = !strings.Contains(name, ":") && meta.KeyPublishable(name) == nil
		p.good[name] = ok
	}
	return ok
}

// value files one reserved entry of a key's folder into own; odd tells that it is, or
// holds, something else than the key's value.
func (p *part) value(ctx context.Context, e gitdb.TreeEntry, path string, own *item) (odd bool, err error) {
	at := path + "/" + e.Name
	if e.Mode != modeTree {
		if e.Name != "__value" || e.Mode&0o170000 != 0o100000 {
			return true, p.leaf(ctx, at, e)
		}
		n, err := p.size(ctx, e)
		own.entries, own.bytes = own.entries+1, own.bytes+n
		return false, err
	}
	if e.Name != "__list" && e.Name != "__set" {
		return true, p.subtree(ctx, e.Hash, at)
	}
	entries, err := p.rd.Tree(ctx, e.Hash)
	if err != nil {
		return true, err
	}
	values := false
	for _, c := range entries {
		p.count(c)
		switch {
		case c.Mode == modeTree:
			odd = true
			err = p.subtree(ctx, c.Hash, at+"/"+c.Name)
		case c.Mode&0o170000 != 0o100000 || e.Name == "__list" && !meta.IsEntryName(c.Name):
			odd = true
			err = p.leaf(ctx, at+"/"+c.Name, c)
		default:
			var n int64
			n, err = p.size(ctx, c)
			own.bytes += n
			values = true
		}
		if err != nil {
			return true, err
		}
	}
	if values {
		own.entries++
	}
	return odd || !values, nil
}
