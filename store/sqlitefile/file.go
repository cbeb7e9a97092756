// Package sqlitefile writes rows into a new SQLite database file, many times as fast as
// statements do, for one purpose: a statement INSERT INTO main.t SELECT * FROM other.t into
// an empty table of the same definition copies the entries of the table and of its indexes
// as they are (SQLite's "transfer optimization"). So SQLite itself writes everything that
// is kept; what this package writes is read once, in order, and thrown away.
//
// SQLite makes the file, with the tables and indexes but without rows. Then the rows of
// each table are added in the order of their rowids, and the entries of each index in the
// order of the index. All are checked by whoever calls: nothing here knows a schema.
//
// The format is that of https://www.sqlite.org/fileformat2.html.
package sqlitefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// File is a database file that nobody else has open. Its trees may be filled at
// the same time, each by one goroutine.
type File struct {
	f        *os.File
	pageSize int

	mu    sync.Mutex
	pages uint32 // in the file and in tail
	tail  []byte // the last pages, not yet written
	err   error
}

// tailBytes is how much is written at a time.
const tailBytes = 1 << 20

// headerSize is the size of the database header, at the start of the first page.
const headerSize = 100

// lockByte is the offset of the bytes that SQLite locks; it reads no page that holds them.
const lockByte = 1 << 30

// Open opens a file that SQLite has made and closed, with pages of 512 to 32768 bytes. It
// must not be in WAL mode, and as SQLite makes it by default else: texts in UTF-8, no
// auto-vacuum, no reserved space. It must not have free pages. The file is not changed
// before something is added.
func Open(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	d := &File{f: f}
	if err := d.readHeader(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

func (d *File) readHeader() error {
	var h [headerSize]byte
	if _, err := d.f.ReadAt(h[:], 0); err != nil && err != io.EOF { // of a short file the rest is zero
		return err
	}
	number := func(off int) uint32 { return binary.BigEndian.Uint32(h[off:]) }
	d.pageSize = int(binary.BigEndian.Uint16(h[16:]))
	if d.pageSize == 1 {
		d.pageSize = 1 << 16
	}
	d.pages = number(28)
	fi, err := d.f.Stat()
	if err != nil {
		return err
	}
	switch {
	case !bytes.HasPrefix(h[:], []byte("SQLite format 3\x00")) || h[18] != 1 || h[19] != 1 || h[20] != 0:
		return errors.New("not a SQLite database with a rollback journal")
	case d.pageSize < 512 || d.pageSize > 1<<15 || d.pageSize&(d.pageSize-1) != 0:
		return fmt.Errorf("pages of %d bytes are not supported", d.pageSize)
	case number(44) != 4 || number(52) != 0 || number(56) != 1: // schema format, auto-vacuum, encoding
		return errors.New("not a database with SQLite's default format")
	case fi.Size() != int64(d.pages)*int64(d.pageSize) || number(36) != 0:
		return errors.New("not a new database")
	}
	return nil
}

// Close ends the file: the trees must be finished. The error is the first that happened.
func (d *File) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flush()
	var n [4]byte
	binary.BigEndian.PutUint32(n[:], d.pages)
	d.writeAt(n[:], 28)
	if err := d.f.Close(); d.err == nil {
		d.err = err
	}
	return d.err
}

func (d *File) writeAt(b []byte, off int64) {
	if d.err == nil {
		_, d.err = d.f.WriteAt(b, off)
	}
}

func (d *File) flush() {
	size := int64(d.pageSize)
	d.writeAt(d.tail, int64(d.pages)*size-int64(len(d.tail)))
	d.tail = d.tail[:0]
}

// add appends a page and returns its number.
func (d *File) add(page []byte) uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.append(page)
}

func (d *File) append(page []byte) uint32 {
	number := d.after(d.pages)
	d.tail = append(d.tail, make([]byte, int(number-d.pages-1)*d.pageSize)...)
	d.tail = append(d.tail, page...)
	d.pages = number
	if len(d.tail) >= tailBytes {
		d.flush()
	}
	return number
}

// after returns the number of the page that is used after the one with this number.
func (d *File) after(number uint32) uint32 {
	number++
	if number == uint32(lockByte/d.pageSize)+1 {
		number++
	}
	return number
}

// addChain appends overflow pages that hold data and returns the number of the first.
func (d *File) addChain(data []byte) uint32 {
	page := make([]byte, d.pageSize)
	d.mu.Lock()
	defer d.mu.Unlock()
	first := d.after(d.pages)
	for len(data) > 0 {
		n := copy(page[4:], data)
		clear(page[4+n:])
		data = data[n:]
		next := uint32(0)
		if len(data) > 0 {
			next = d.after(d.after(d.pages))
		}
		binary.BigEndian.PutUint32(page, next)
		d.append(page)
	}
	return first
}

// put writes a page that the file had from the beginning.
func (d *File) put(number uint32, page []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writeAt(page, int64(number-1)*int64(d.pageSize))
}
