package gitdb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// Limits of what is written as loose objects. A loose object costs two syncs (file and
// folder), a pack four in all: from about 30 objects on, which is some six edited keys,
// a pack is faster (50 objects: 20 against 50 ms).
const (
	DefaultLooseObjects = 30
	DefaultLooseBytes   = 8 << 20
)

// Writer writes objects: up to 100 new ones, of 8 MiB in all, as loose files,
// more as one pack. Not safe for concurrent use.
//
// The way is Put…, Finish, move the ref, Release; Abort undoes everything up
// to Finish, and can be deferred.
type Writer struct {
	ctx   context.Context
	repo  *Repo
	share sharing
	rd    *Reader

	looseObjects int
	looseBytes   int64

	seen     map[Hash]struct{}
	small    []smallObject
	smallLen int64
	pack     *packWriter
	state    writerState
	keep     string
	packPath string
	err      error
}

type writerState int

const (
	writing writerState = iota
	finished
	aborted
)

type smallObject struct {
	typ  ObjectType
	id   Hash
	data []byte
}

// WriterOption changes how a [Writer] works.
type WriterOption func(*Writer)

// WithReader makes what is written loose readable through rd before Finish
// (see [Reader.Add]), and uses rd to see what exists.
func WithReader(rd *Reader) WriterOption { return func(w *Writer) { w.rd = rd } }

// WithLooseLimit sets how many objects are written as loose files; 0 writes a
// pack whenever there is an object.
func WithLooseLimit(n int) WriterOption { return func(w *Writer) { w.looseObjects = n } }

// NewWriter returns a Writer. Nothing is created on disk before there are
// more objects than are written loose, or Finish.
func (r *Repo) NewWriter(ctx context.Context, opts ...WriterOption) (*Writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	share, err := r.sharing(ctx)
	if err != nil {
		return nil, err
	}
	w := &Writer{
		ctx: ctx, repo: r, share: share, seen: make(map[Hash]struct{}),
		looseObjects: DefaultLooseObjects, looseBytes: DefaultLooseBytes,
	}
	for _, o := range opts {
		o(w)
	}
	return w, nil
}

var errWriterDone = errors.New("writer is finished")

// Put adds an object with its id, which must be HashObject(t, data). A second
// Put of the same id costs nothing. data is free for reuse when Put returns.
// After an error every further call returns it.
func (w *Writer) Put(t ObjectType, id Hash, data []byte) error {
	if w.err != nil {
		return w.err
	}
	if w.state != writing {
		return errWriterDone
	}
	if _, ok := w.seen[id]; ok {
		return nil
	}
	w.seen[id] = struct{}{}
	if w.pack == nil {
		if len(w.small) < w.looseObjects && w.smallLen+int64(len(data)) <= w.looseBytes {
			o := smallObject{t, id, append(make([]byte, 0, len(data)), data...)}
			w.small = append(w.small, o)
			w.smallLen += int64(len(data))
			if w.rd != nil {
				w.rd.Add(t, id, o.data)
			}
			return nil
		}
		if w.err = w.startPack(); w.err != nil {
			return w.err
		}
	}
	if err := w.pack.put(t, id, data); err != nil {
		w.err = w.explain(err)
	}
	return w.err
}

// Has says whether the object was put into this writer.
func (w *Writer) Has(id Hash) bool {
	_, ok := w.seen[id]
	return ok
}

// Count returns the number of distinct objects put.
func (w *Writer) Count() int { return len(w.seen) }

// PackPath returns the pack, after Finish; "" if the objects are loose.
func (w *Writer) PackPath() string { return w.packPath }

func (w *Writer) startPack() error {
	dir := filepath.Join(w.repo.ObjectDir, "pack")
	if _, err := w.share.mkdir(dir); err != nil {
		return w.explain(err)
	}
	removeStaleKeeps(dir)
	p, err := newPackWriter(w.ctx, dir, w.share)
	if err != nil {
		return w.explain(err)
	}
	w.pack = p
	for _, o := range w.small {
		if err := p.put(o.typ, o.id, o.data); err != nil {
			return w.explain(err)
		}
	}
	return nil
}

// explain says what was being done, except to a cancellation, and turns a
// refusal by the file system into ErrReadOnly.
func (w *Writer) explain(err error) error {
	var known *Error
	if errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	e := &Error{Op: "write objects", Path: w.repo.ObjectDir, Err: err}
	if isFull(err) {
		e.Hint = "free some space and run the command again; nothing was published"
	}
	if isReadOnly(err) {
		e.Err = wrapped{ErrReadOnly, fmt.Errorf("%w: %w", ErrReadOnly, err)}
	}
	return e
}

// Finish makes everything durable and visible to git. A pack gets a .keep
// file, so that a git gc before the ref is moved cannot drop it: call Release
// after that. On an error, and when the context is cancelled, temporary files
// are removed.
func (w *Writer) Finish(ctx context.Context) error {
	if w.err == nil && w.state == aborted {
		w.err = errWriterDone
	}
	if w.err == nil {
		w.err = ctx.Err()
	}
	if w.err != nil {
		err := w.err
		w.Abort()
		return err
	}
	if w.state == finished {
		return nil
	}
	var err error
	if w.pack != nil {
		w.packPath, w.keep, err = w.pack.finish(ctx)
	} else {
		err = w.writeLoose(ctx)
	}
	if err != nil {
		w.err = w.explain(err)
		w.Abort()
		return w.err
	}
	w.state, w.pack = finished, nil
	w.forget()
	return nil
}

// forget gives the buffered objects back.
func (w *Writer) forget() {
	if w.rd != nil && len(w.small) > 0 {
		ids := make([]Hash, len(w.small))
		for i, o := range w.small {
			ids[i] = o.id
		}
		w.rd.Forget(ids...)
	}
	w.small = nil
}

// Release removes the .keep file, after the ref has moved. Idempotent.
func (w *Writer) Release() error {
	if w.keep == "" {
		return nil
	}
	err := os.Remove(w.keep)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err == nil {
		w.keep = ""
	}
	return err
}

// Abort removes temporary files and the .keep file. After Finish the objects
// themselves stay; git gc removes them in its time. Idempotent.
func (w *Writer) Abort() {
	if w.pack != nil {
		w.pack.abort()
		w.pack = nil
	}
	w.Release()
	w.forget()
	if w.state == writing {
		w.state = aborted
	}
}

// createTemp makes a new file with the mode that git gives to objects, 0444
// less the umask; it can be written through this handle only. git prune
// removes leftovers, which it knows by "tmp_".
func createTemp(dir, prefix string) (*os.File, error) {
	for range 100 {
		p := filepath.Join(dir, prefix+strconv.FormatUint(rand.Uint64()|1<<63, 36))
		f, err := os.OpenFile(p, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o444)
		if !errors.Is(err, os.ErrExist) {
			return f, err
		}
	}
	return nil, &os.PathError{Op: "create", Path: filepath.Join(dir, prefix), Err: os.ErrExist}
}
