package gitdb

import (
	"bufio"
	"bytes"
	"context"
	"hash/crc32"
	"io"
	"os"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zlib"
	"golang.org/x/sync/semaphore"
)

const (
	batchBytes    = 64 << 10 // of data, before a batch goes to a worker
	bigObject     = 4 << 20  // from here on deflated straight into the file
	inFlightBytes = 32 << 20 // of batches that are not written yet
	storedBelow   = 100      // hashes do not deflate
)

// packWriter streams objects into a pack: put copies them into batches,
// workers deflate batches, one goroutine writes them in order.
type packWriter struct {
	ctx   context.Context
	stop  context.CancelCauseFunc
	dir   string
	share sharing
	f     *os.File
	tmp   []string // files to remove on abort
	bw    *bufio.Writer
	off   int64
	ents  []idxEntry

	cur    *batch
	free   sync.Pool
	budget *semaphore.Weighted
	work   chan *batch
	order  chan *batch
	wg     sync.WaitGroup
	ended  bool
}

type batchItem struct {
	id    Hash
	typ   ObjectType
	data  int // end in data
	start int // in out
	crc   uint32
}

type batch struct {
	data  []byte
	items []batchItem
	out   bytes.Buffer
	cost  int64
	ready chan struct{} // out is complete

	big     []byte // instead of data: one object, still the caller's
	written chan struct{}
}

func newPackWriter(ctx context.Context, dir string, share sharing) (*packWriter, error) {
	f, err := createTemp(dir, "tmp_pack_")
	if err != nil {
		return nil, err
	}
	workers := min(runtime.GOMAXPROCS(0), 16)
	p := &packWriter{
		dir: dir, share: share, f: f, tmp: []string{f.Name()}, bw: bufio.NewWriterSize(f, 1<<20),
		budget: semaphore.NewWeighted(inFlightBytes),
		work:   make(chan *batch, 2*workers), order: make(chan *batch, 4*workers),
	}
	p.ctx, p.stop = context.WithCancelCause(ctx)
	p.free.New = func() any { return new(batch) }
	p.bw.WriteString("PACK\x00\x00\x00\x02\x00\x00\x00\x00") // the count comes last
	p.off = 12
	for range workers {
		p.wg.Go(p.deflate)
	}
	p.wg.Go(p.write)
	return p, nil
}

func (p *packWriter) newBatch() *batch {
	b := p.free.Get().(*batch)
	b.data, b.items, b.big, b.written = b.data[:0], b.items[:0], nil, nil
	b.out.Reset()
	b.ready = make(chan struct{})
	return b
}

// failed returns why the writer cannot go on: its own failure, or the
// caller's context.
func (p *packWriter) failed() error {
	if p.ctx.Err() == nil {
		return nil
	}
	return context.Cause(p.ctx)
}

func (p *packWriter) put(t ObjectType, id Hash, data []byte) error {
	if len(data) >= bigObject {
		return p.putBig(t, id, data)
	}
	if p.cur == nil {
		p.cur = p.newBatch()
	}
	b := p.cur
	b.data = append(b.data, data...)
	b.items = append(b.items, batchItem{id: id, typ: t, data: len(b.data)})
	if len(b.data) < batchBytes && len(b.items) < batchBytes/32 {
		return nil
	}
	return p.flush()
}

func (p *packWriter) flush() error {
	b := p.cur
	p.cur = nil
	if b == nil {
		return p.failed()
	}
	b.cost = int64(len(b.data))
	if p.budget.Acquire(p.ctx, b.cost) != nil {
		return p.failed()
	}
	return p.send(b, true)
}

func (p *packWriter) send(b *batch, deflate bool) error {
	select {
	case p.order <- b:
	case <-p.ctx.Done():
		return p.failed()
	}
	if !deflate {
		return nil
	}
	select {
	case p.work <- b:
		return nil
	case <-p.ctx.Done():
		return p.failed()
	}
}

// putBig waits until the object is in the file, so that it is never copied.
func (p *packWriter) putBig(t ObjectType, id Hash, data []byte) error {
	if err := p.flush(); err != nil {
		return err
	}
	b := p.newBatch()
	b.items = append(b.items, batchItem{id: id, typ: t})
	b.big, b.cost, b.written = data, 0, make(chan struct{})
	close(b.ready)
	written := b.written
	if err := p.send(b, false); err != nil {
		return err
	}
	// The data is the caller's again only when the writing goroutine has
	// let go of it, also after a cancellation.
	<-written
	return p.failed()
}

// deflate is a worker.
func (p *packWriter) deflate() {
	z, err := zlib.NewWriterLevel(io.Discard, zlib.BestSpeed)
	if err != nil {
		p.stop(err)
		return
	}
	for {
		var b *batch
		var ok bool
		select {
		case b, ok = <-p.work:
			if !ok {
				return
			}
		case <-p.ctx.Done():
			return
		}
		start := 0
		for i := range b.items {
			it := &b.items[i]
			data := b.data[start:it.data]
			start = it.data
			it.start = b.out.Len()
			b.out.Write(appendEntryHeader(b.out.AvailableBuffer(), it.typ, len(data)))
			if len(data) < storedBelow {
				b.out.Write(appendStored(b.out.AvailableBuffer(), data))
			} else {
				z.Reset(&b.out)
				z.Write(data)
				if err := z.Close(); err != nil {
					p.stop(err)
					return
				}
			}
			it.crc = crc32.ChecksumIEEE(b.out.Bytes()[it.start:])
		}
		close(b.ready)
	}
}

// write is the goroutine that owns the file until finish.
func (p *packWriter) write() {
	for b := range p.order {
		select {
		case <-b.ready:
		case <-p.ctx.Done():
		}
		if p.ctx.Err() == nil {
			if err := p.writeBatch(b); err != nil {
				p.stop(err)
			}
		}
		if b.written != nil {
			close(b.written)
		}
		if p.ctx.Err() == nil {
			p.budget.Release(b.cost)
			if b.out.Cap() <= 4*batchBytes && b.big == nil {
				p.free.Put(b)
			}
		}
	}
}

func (p *packWriter) writeBatch(b *batch) error {
	if b.big != nil {
		return p.writeBig(b)
	}
	for i := range b.items {
		it := &b.items[i]
		p.ents = append(p.ents, idxEntry{it.id, it.crc, p.off + int64(it.start)})
	}
	p.off += int64(b.out.Len())
	_, err := p.bw.Write(b.out.Bytes())
	return err
}

func (p *packWriter) writeBig(b *batch) error {
	it := b.items[0]
	c := &crcWriter{w: p.bw}
	c.Write(appendEntryHeader(nil, it.typ, len(b.big)))
	z, err := zlib.NewWriterLevel(c, zlib.BestSpeed)
	if err != nil {
		return err
	}
	for rest := b.big; len(rest) > 0; { // in pieces, to stop soon
		n := min(len(rest), 1<<20)
		if _, err := z.Write(rest[:n]); err != nil {
			return err
		}
		if p.ctx.Err() != nil {
			return p.failed()
		}
		rest = rest[n:]
	}
	if err := z.Close(); err != nil {
		return err
	}
	p.ents = append(p.ents, idxEntry{it.id, c.crc, p.off})
	p.off += c.n
	return nil
}

type crcWriter struct {
	w   io.Writer
	crc uint32
	n   int64
}

func (c *crcWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.crc = crc32.Update(c.crc, crc32.IEEETable, b[:n])
	c.n += int64(n)
	return n, err
}

// end stops the goroutines; everything sent is written or dropped then.
func (p *packWriter) end() {
	if !p.ended {
		p.ended = true
		close(p.work)
		close(p.order)
	}
	p.wg.Wait()
}

func (p *packWriter) abort() {
	p.stop(errWriterDone)
	p.end()
	p.f.Close()
	for _, t := range p.tmp {
		os.Remove(t)
	}
	p.tmp = nil
}
