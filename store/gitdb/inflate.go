package gitdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"math"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// maxObject bounds what is read into memory as one object.
const maxObject = math.MaxInt32

// maxRatio is the most that deflate can expand: a match of 258 bytes in two
// bits, rounded up.
const maxRatio = 1032

type inflater struct {
	src bytes.Reader
	z   io.ReadCloser
}

var inflaters = sync.Pool{New: func() any { return new(inflater) }}

func (f *inflater) reset(src []byte) error {
	f.src.Reset(src)
	if f.z == nil {
		z, err := zlib.NewReader(&f.src)
		if err != nil {
			return err
		}
		f.z = z
		return nil
	}
	return f.z.(zlib.Resetter).Reset(&f.src, nil)
}

// inflate decodes a zlib stream at the start of src that must hold exactly
// size bytes, checksum included.
func inflate(src []byte, size uint64) ([]byte, error) {
	if size > maxObject {
		return nil, ErrTooLarge
	}
	if b, ok := inflateStored(src, size); ok {
		return b, nil
	}
	if size/maxRatio > uint64(len(src)) {
		return nil, fmt.Errorf("%w: truncated", ErrCorrupt)
	}
	f := inflaters.Get().(*inflater)
	defer inflaters.Put(f)
	if err := f.reset(src); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	out := make([]byte, size)
	if _, err := io.ReadFull(f.z, out); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, noEOF(err))
	}
	var one [1]byte
	switch n, err := io.ReadFull(f.z, one[:]); {
	case n > 0:
		return nil, fmt.Errorf("%w: longer than its header says", ErrCorrupt)
	case err != io.EOF:
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return out, nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("truncated")
	}
	return err
}

// inflateStored reads a stream of one stored block, as this package's writer
// makes for small objects; anything else is not ok.
func inflateStored(src []byte, size uint64) ([]byte, bool) {
	if len(src) < 11 || size > 1<<16-1 || uint64(len(src)) < 11+size {
		return nil, false
	}
	if src[0] != 0x78 || src[1]&0x20 != 0 || (uint(src[0])<<8|uint(src[1]))%31 != 0 || src[2] != 1 {
		return nil, false
	}
	n := binary.LittleEndian.Uint16(src[3:])
	if uint64(n) != size || ^n != binary.LittleEndian.Uint16(src[5:]) {
		return nil, false
	}
	b := src[7 : 7+size]
	if adler32.Checksum(b) != binary.BigEndian.Uint32(src[7+size:]) {
		return nil, false
	}
	return append(make([]byte, 0, size), b...), true
}

// inflatePrefix decodes the first bytes of a stream, at most n.
func inflatePrefix(src []byte, n int) ([]byte, error) {
	f := inflaters.Get().(*inflater)
	defer inflaters.Put(f)
	if err := f.reset(src); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	out := make([]byte, n)
	m, err := io.ReadFull(f.z, out)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return out[:m], nil
}
