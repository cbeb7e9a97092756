package gitdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// errOddIdx: an index of another version, which git can read.
var errOddIdx = errors.New("pack index is not of version 2")

const (
	idxHeader = 8 + 256*4
	hashSize  = 20
	packTail  = hashSize
)

// pack is one pack with its index, opened at the first look into it. Safe for
// concurrent use. Format: gitformat-pack(5).
type pack struct {
	base string      // path without extension
	gone atomic.Bool // a file was not there when it was opened

	idxOnce sync.Once
	idxErr  error
	idxFile mapped
	n       int
	ids     []byte // n sorted ids
	offs    []byte // n 4-byte offsets
	offs64  []byte // 8-byte offsets

	dataOnce sync.Once
	dataErr  error
	dataFile mapped
	data     []byte // the pack without its trailer
}

// mapped is a file as bytes, in a mapping or, where that fails, in memory.
type mapped struct {
	b   []byte
	mem bool
}

func (m *mapped) close() error {
	b := m.b
	m.b = nil
	if m.mem || b == nil {
		return nil
	}
	return unmapFile(b)
}

func mapPath(p string) (mapped, error) {
	f, err := os.Open(p)
	if err != nil {
		return mapped{}, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return mapped{}, err
	}
	size := int(fi.Size())
	if int64(size) != fi.Size() || !fi.Mode().IsRegular() {
		return mapped{}, &os.PathError{Op: "mmap", Path: p, Err: ErrTooLarge}
	}
	if b, err := mapFile(f, size); err == nil {
		return mapped{b: b}, nil
	}
	b := make([]byte, size) // some network file systems cannot map
	if _, err := io.ReadFull(f, b); err != nil {
		return mapped{}, err
	}
	return mapped{b: b, mem: true}, nil
}

func (p *pack) openIdx() error {
	p.idxOnce.Do(func() {
		p.idxFile, p.idxErr = mapPath(p.base + ".idx")
		if p.idxErr == nil {
			p.idxErr = p.parseIdx(p.idxFile.b)
		}
		if p.idxErr != nil {
			p.gone.Store(notFound(p.idxErr))
			p.idxFile.close()
			p.ids, p.offs, p.offs64, p.n = nil, nil, nil, 0
		}
	})
	return p.idxErr
}

// parseIdx checks the frame of an index of version 2: everything that find
// relies on except the order of the ids.
func (p *pack) parseIdx(b []byte) error {
	bad := func(what string) error { return fmt.Errorf("%s.idx: %w: %s", p.base, ErrCorrupt, what) }
	if len(b) < idxHeader+2*hashSize {
		return bad("too short")
	}
	if string(b[:4]) != "\377tOc" || binary.BigEndian.Uint32(b[4:]) != 2 {
		return errOddIdx
	}
	prev := uint32(0)
	for i := range 256 {
		c := binary.BigEndian.Uint32(b[8+4*i:])
		if c < prev {
			return bad("fan-out not sorted")
		}
		prev = c
	}
	n := int64(prev)
	size, fixed := int64(len(b)), idxHeader+n*(hashSize+8)+2*hashSize
	if size < fixed || size > fixed+n*8 || (size-fixed)%8 != 0 {
		return bad("wrong size")
	}
	p.n = int(n)
	p.ids = b[idxHeader : idxHeader+p.n*hashSize]
	rest := b[idxHeader+p.n*(hashSize+4) : len(b)-2*hashSize]
	p.offs, p.offs64 = rest[:p.n*4], rest[p.n*4:]
	return nil
}

// find returns the offset of an object in the pack.
func (p *pack) find(id Hash) (int64, bool, error) {
	if err := p.openIdx(); err != nil {
		return 0, false, err
	}
	fan := p.idxFile.b[8:]
	lo, hi := 0, int(binary.BigEndian.Uint32(fan[4*int(id[0]):]))
	if id[0] > 0 {
		lo = int(binary.BigEndian.Uint32(fan[4*int(id[0])-4:]))
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		switch bytes.Compare(p.ids[mid*hashSize:(mid+1)*hashSize], id[:]) {
		case 0:
			off, err := p.offset(mid)
			return off, err == nil, err
		case -1:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 0, false, nil
}

func (p *pack) offset(i int) (int64, error) {
	v := binary.BigEndian.Uint32(p.offs[4*i:])
	if v>>31 == 0 {
		return int64(v), nil
	}
	j := int64(v&^(1<<31)) * 8
	if j+8 > int64(len(p.offs64)) {
		return 0, fmt.Errorf("%s.idx: %w: offset out of range", p.base, ErrCorrupt)
	}
	o := binary.BigEndian.Uint64(p.offs64[j:])
	if o>>63 != 0 {
		return 0, fmt.Errorf("%s.idx: %w: offset out of range", p.base, ErrCorrupt)
	}
	return int64(o), nil
}

// openData maps the pack and checks that it belongs to the index, as git
// does: signature, version, count and checksum.
func (p *pack) openData() error {
	if err := p.openIdx(); err != nil {
		return err
	}
	p.dataOnce.Do(func() {
		p.dataFile, p.dataErr = mapPath(p.base + ".pack")
		if p.dataErr != nil {
			p.gone.Store(notFound(p.dataErr))
			return
		}
		b, idx := p.dataFile.b, p.idxFile.b
		switch {
		case len(b) < 12+packTail, string(b[:4]) != "PACK":
			p.dataErr = fmt.Errorf("%s.pack: %w: not a pack", p.base, ErrCorrupt)
		case binary.BigEndian.Uint32(b[4:]) != 2 && binary.BigEndian.Uint32(b[4:]) != 3:
			p.dataErr = fmt.Errorf("%s.pack: %w: unknown version", p.base, ErrCorrupt)
		case int64(binary.BigEndian.Uint32(b[8:])) != int64(p.n),
			!bytes.Equal(b[len(b)-packTail:], idx[len(idx)-2*hashSize:len(idx)-hashSize]):
			p.dataErr = fmt.Errorf("%s.pack: %w: does not match its index", p.base, ErrCorrupt)
		}
		if p.dataErr != nil {
			p.dataFile.close()
			return
		}
		p.data = b[:len(b)-packTail]
	})
	return p.dataErr
}

func (p *pack) close() error {
	// Run the Once functions first, so that nothing is opened later.
	closed := errors.New("reader is closed")
	p.idxOnce.Do(func() { p.idxErr = closed })
	p.dataOnce.Do(func() { p.dataErr = closed })
	p.data, p.ids, p.n = nil, nil, 0
	return errors.Join(p.idxFile.close(), p.dataFile.close())
}
