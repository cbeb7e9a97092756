package gitdb

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Objects reads git objects by id. Implementations are safe for concurrent
// use. The bytes may be shared: callers must not modify them.
//
// Read and Header return [ErrObjectMissing], in an [*ObjectError], if there
// is no such object. Objects replaced by refs/replace are read as they are.
type Objects interface {
	Read(ctx context.Context, id Hash) (ObjectType, []byte, error)
	Header(ctx context.Context, id Hash) (ObjectType, int64, error)
	Has(ctx context.Context, id Hash) bool
}

// DefaultCacheBytes is what a [Reader] keeps of trees and commits.
const DefaultCacheBytes = 64 << 20

// deltaCacheBytes is what a Reader keeps of the bases of deltas.
const deltaCacheBytes = 16 << 20

// Reader implements [Objects] over packs, loose objects and alternates, in
// this process. What is missing or cannot be decoded is put to git cat-file,
// if the repository is a partial clone (git then fetches it) or its layout is
// not one the Reader knows.
//
// Cost: opening is free; the first look into a pack maps its index. An object
// is one binary search per pack, most recently hit first, and one inflate per
// delta. A miss looks at the pack folders again if they may have changed.
type Reader struct {
	repo *Repo
	dirs []string // object folders

	packs   atomic.Pointer[[]*pack]
	lastHit atomic.Pointer[pack]
	odd     atomic.Bool // something only git can read has been seen
	scanMu  sync.Mutex
	scans   []scan // one per dir
	closed  []*pack

	trees cache[Hash]
	bases cache[baseKey]

	overlayMu sync.RWMutex
	overlay   map[Hash]cached

	git      *CatFile
	promisor func(context.Context) bool
}

type scan struct {
	mtime time.Time
	at    time.Time
	done  bool
}

var _ Objects = (*Reader)(nil)

// Objects returns the reader of the repository, the same at each call. It is
// closed by [Repo.Close].
func (r *Repo) Objects(ctx context.Context) (*Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.objects == nil {
		r.objects = r.newReader()
	}
	return r.objects, nil
}

func (r *Repo) newReader() *Reader {
	rd := &Reader{repo: r, dirs: r.objectDirs(), git: r.NewCatFile()}
	rd.scans = make([]scan, len(rd.dirs))
	rd.trees.budget, rd.trees.maxItem = DefaultCacheBytes, 2<<20
	rd.bases.budget, rd.bases.maxItem = deltaCacheBytes, 2<<20
	rd.promisor = r.isPromisor
	return rd
}

// isPromisor says whether missing objects can be fetched from a promisor.
func (r *Repo) isPromisor(ctx context.Context) bool {
	if r.promisor {
		return true
	}
	c, err := r.Config(ctx)
	if err != nil {
		return false
	}
	for _, name := range c.Subsections("remote") {
		if c.Bool("remote."+name+".promisor", false) {
			return true
		}
	}
	return false
}

// SetCacheBytes changes how much the Reader keeps of trees and commits;
// 0 keeps nothing.
func (rd *Reader) SetCacheBytes(n int64) { rd.trees.resize(n) }

// Add makes an object readable that is not on disk yet. data is kept.
func (rd *Reader) Add(t ObjectType, id Hash, data []byte) {
	rd.overlayMu.Lock()
	defer rd.overlayMu.Unlock()
	if rd.overlay == nil {
		rd.overlay = make(map[Hash]cached)
	}
	rd.overlay[id] = cached{t, data}
}

// Forget drops what [Reader.Add] has added: these ids, or all without any.
func (rd *Reader) Forget(ids ...Hash) {
	rd.overlayMu.Lock()
	defer rd.overlayMu.Unlock()
	if len(ids) == 0 {
		rd.overlay = nil
	}
	for _, id := range ids {
		delete(rd.overlay, id)
	}
}

func (rd *Reader) added(id Hash) (cached, bool) {
	rd.overlayMu.RLock()
	defer rd.overlayMu.RUnlock()
	c, ok := rd.overlay[id]
	return c, ok
}

// Close ends the child process, if there is one, and unmaps the packs. No
// other method may run at the same time or later.
func (rd *Reader) Close() error {
	rd.scanMu.Lock()
	defer rd.scanMu.Unlock()
	err := rd.git.Close()
	if ps := rd.packs.Swap(nil); ps != nil {
		rd.closed = append(rd.closed, *ps...)
	}
	for _, p := range rd.closed {
		err = errors.Join(err, p.close())
	}
	rd.closed = nil
	rd.trees.resize(0)
	rd.bases.resize(0)
	return err
}

// Read returns an object.
func (rd *Reader) Read(ctx context.Context, id Hash) (ObjectType, []byte, error) {
	return rd.read(ctx, id, true)
}

func (rd *Reader) read(ctx context.Context, id Hash, fetch bool) (ObjectType, []byte, error) {
	if err := ctx.Err(); err != nil {
		return 0, nil, err
	}
	if c, ok := rd.added(id); ok {
		return c.typ, c.data, nil
	}
	if c, ok := rd.trees.get(id); ok {
		return c.typ, c.data, nil
	}
	typ, data, err := ObjectType(0), []byte(nil), errTryAll
	if p, off := rd.findPacked(id); p != nil {
		typ, data, err = p.read(off, &rd.bases)
	}
	if err != nil {
		typ, data, err = rd.readAnywhere(ctx, id, fetch)
	}
	if err != nil {
		return 0, nil, err
	}
	if typ == TreeObject || typ == CommitObject {
		rd.trees.add(id, typ, data)
	}
	return typ, data, nil
}

// readAnywhere tries all copies.
func (rd *Reader) readAnywhere(ctx context.Context, id Hash, fetch bool) (typ ObjectType, data []byte, err error) {
	err = rd.locate(ctx, id, fetch, func(p *pack, off int64) (err error) {
		typ, data, err = p.read(off, &rd.bases)
		return err
	}, func(path string) (err error) {
		typ, data, err = readLoose(path)
		return err
	}, func() (err error) {
		typ, data, err = rd.git.Read(ctx, id)
		return err
	})
	return typ, data, err
}

// Header returns type and size without decoding the object.
func (rd *Reader) Header(ctx context.Context, id Hash) (ObjectType, int64, error) {
	return rd.header(ctx, id, true)
}

func (rd *Reader) header(ctx context.Context, id Hash, fetch bool) (ObjectType, int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	if c, ok := rd.added(id); ok {
		return c.typ, int64(len(c.data)), nil
	}
	if c, ok := rd.trees.get(id); ok {
		return c.typ, int64(len(c.data)), nil
	}
	if p, off := rd.findPacked(id); p != nil {
		if t, n, err := p.header(off); err == nil {
			return t, n, nil
		}
	}
	var typ ObjectType
	var size int64
	err := rd.locate(ctx, id, fetch, func(p *pack, off int64) (err error) {
		typ, size, err = p.header(off)
		return err
	}, func(path string) (err error) {
		typ, size, err = readLooseHeader(path)
		return err
	}, func() (err error) {
		typ, size, err = rd.git.Header(ctx, id)
		return err
	})
	return typ, size, err
}

// Has says whether the object is here or in an alternate; it never fetches.
func (rd *Reader) Has(ctx context.Context, id Hash) bool {
	_, _, err := rd.header(ctx, id, false)
	return err == nil
}

// Local is a view that never fetches from the promisor of a partial clone:
// what is not here is missing.
func (rd *Reader) Local() Objects { return localReader{rd} }

type localReader struct{ rd *Reader }

func (l localReader) Has(ctx context.Context, id Hash) bool { return l.rd.Has(ctx, id) }

func (l localReader) Header(ctx context.Context, id Hash) (ObjectType, int64, error) {
	return l.rd.header(ctx, id, false)
}

func (l localReader) Read(ctx context.Context, id Hash) (ObjectType, []byte, error) {
	return l.rd.read(ctx, id, false)
}

// Tree returns the entries of a tree.
func (rd *Reader) Tree(ctx context.Context, id Hash) ([]TreeEntry, error) {
	return ReadTree(ctx, rd, id)
}

// Commit returns a decoded commit.
func (rd *Reader) Commit(ctx context.Context, id Hash) (*Commit, error) {
	return ReadCommit(ctx, rd, id)
}

// ReadTree reads and decodes a tree.
func ReadTree(ctx context.Context, o Objects, id Hash) ([]TreeEntry, error) {
	data, err := readTyped(ctx, o, id, TreeObject)
	if err != nil {
		return nil, err
	}
	es, err := ParseTree(data)
	if err != nil {
		return nil, &ObjectError{ID: id, Err: err}
	}
	return es, nil
}

// ReadCommit reads and decodes a commit.
func ReadCommit(ctx context.Context, o Objects, id Hash) (*Commit, error) {
	data, err := readTyped(ctx, o, id, CommitObject)
	if err != nil {
		return nil, err
	}
	c, err := ParseCommit(data)
	if err != nil {
		return nil, &ObjectError{ID: id, Err: err}
	}
	return c, nil
}

func readTyped(ctx context.Context, o Objects, id Hash, want ObjectType) ([]byte, error) {
	t, data, err := o.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	if t != want {
		err := errors.New("is a " + t.String() + ", not a " + want.String())
		if want == CommitObject {
			err = wrapped{ErrNotCommit, err}
		}
		return nil, &ObjectError{ID: id, Err: err}
	}
	return data, nil
}
