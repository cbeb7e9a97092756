package gitdb

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/klauspost/compress/zlib"
	"golang.org/x/sync/errgroup"
)

// parallelSyncs is how many files are flushed at once; the disk joins them.
const parallelSyncs = 8

type looseFile struct {
	tmp, final string
}

// writeLoose writes the buffered objects that do not exist yet: all contents
// first, flushed, then the names, then the folders; where one journal keeps the order,
// one sync at the end instead of one for each.
func (w *Writer) writeLoose(ctx context.Context) (err error) {
	rd := w.rd
	if rd == nil {
		if rd, err = w.repo.Objects(ctx); err != nil {
			return err
		}
	}
	var todo []smallObject
	for _, o := range w.small {
		if !existsOnDisk(ctx, rd, o.id) {
			todo = append(todo, o)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(todo) == 0 {
		return nil
	}
	batch := oneJournal(w.repo.ObjectDir)
	files := make([]looseFile, len(todo))
	defer func() {
		for _, f := range files {
			if f.tmp != "" {
				os.Remove(f.tmp)
			}
		}
	}()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelSyncs)
	for i, o := range todo {
		g.Go(func() error {
			if err := gctx.Err(); err != nil {
				return err
			}
			files[i].final = loosePath(w.repo.ObjectDir, o.id)
			return w.writeTemp(&files[i], o, batch)
		})
	}
	if err := g.Wait(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return w.explain(err)
	}
	dirs := map[string]bool{}
	for i := range files {
		f := &files[i]
		dir := filepath.Dir(f.final)
		if !dirs[dir] {
			made, err := w.share.mkdir(dir)
			if err != nil {
				return w.explain(err)
			}
			dirs[dir] = true
			if made {
				dirs[w.repo.ObjectDir] = true
			}
		}
		if err := os.Rename(f.tmp, f.final); err != nil {
			return w.explain(err)
		}
		f.tmp = ""
	}
	if batch {
		if err := syncFile(files[len(files)-1].final); err != nil {
			return w.explain(err)
		}
		return nil
	}
	g, _ = errgroup.WithContext(ctx)
	g.SetLimit(parallelSyncs)
	for dir := range dirs {
		g.Go(func() error { return syncDir(dir) })
	}
	if err := g.Wait(); err != nil {
		return w.explain(err)
	}
	return nil
}

// existsOnDisk says whether the object need not be written. As git does, it
// gives the file that has it a new time stamp, so that a git prune at the same
// time keeps it; without the right to do so the object is written once more.
func existsOnDisk(ctx context.Context, rd *Reader, id Hash) bool {
	now := time.Now()
	err := rd.locate(ctx, id, false, func(p *pack, off int64) error {
		if _, _, err := p.header(off); err != nil {
			return err
		}
		return os.Chtimes(p.base+".pack", time.Time{}, now)
	}, func(path string) error {
		if _, _, err := readLooseHeader(path); err != nil {
			return err
		}
		return os.Chtimes(path, time.Time{}, now)
	}, func() error { return &ObjectError{ID: id, Err: ErrObjectMissing} })
	return err == nil
}

type looseDeflater struct {
	buf bytes.Buffer
	z   *zlib.Writer
}

var looseDeflaters = sync.Pool{New: func() any { return new(looseDeflater) }}

// syncFile makes the file at path, and what its journal holds before, durable.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (w *Writer) writeTemp(lf *looseFile, o smallObject, batch bool) (err error) {
	d := looseDeflaters.Get().(*looseDeflater)
	defer looseDeflaters.Put(d)
	d.buf.Reset()
	if d.z == nil {
		if d.z, err = zlib.NewWriterLevel(&d.buf, zlib.BestSpeed); err != nil {
			return err
		}
	} else {
		d.z.Reset(&d.buf)
	}
	d.z.Write(appendObjectHeader(nil, o.typ, int64(len(o.data))))
	d.z.Write(o.data)
	if err := d.z.Close(); err != nil {
		return err
	}
	f, err := createTemp(w.repo.ObjectDir, "tmp_obj_")
	if err != nil {
		return err
	}
	lf.tmp = f.Name()
	_, err = f.Write(d.buf.Bytes())
	switch {
	case err != nil:
	case batch:
		err = flushData(f)
	default:
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return w.share.adjust(lf.tmp)
}
