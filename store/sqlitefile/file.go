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
	"os"
	"sync"
)

// File is a database file that nobody else has open. Its trees may be filled by several
// goroutines.
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

// Open opens a file that SQLite has made and closed. It must not be in WAL mode.
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
	if _, err := d.f.ReadAt(h[:], 0); err != nil {
		return err
	}
	d.pageSize = int(binary.BigEndian.Uint16(h[16:]))
	d.pages = binary.BigEndian.Uint32(h[28:])
	fi, err := d.f.Stat()
	if err != nil {
		return err
	}
	switch {
	case !bytes.HasPrefix(h[:], []byte("SQLite format 3\x00")) || h[18] != 1 || h[19] != 1 || h[20] != 0:
		return errors.New("not a SQLite database with a rollback journal")
	case d.pageSize < 512 || d.pageSize&(d.pageSize-1) != 0:
		return fmt.Errorf("pages of %d bytes are not supported", d.pageSize)
	case fi.Size() != int64(d.pages)*int64(d.pageSize) || binary.BigEndian.Uint32(h[36:]) != 0:
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

// add appends pages and returns the number of the first.
func (d *File) add(pages []byte) uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.append(pages)
}

func (d *File) append(pages []byte) uint32 {
	first := d.pages + 1
	d.tail = append(d.tail, pages...)
	d.pages += uint32(len(pages) / d.pageSize)
	if len(d.tail) >= tailBytes {
		d.flush()
	}
	return first
}

// addChain appends overflow pages that hold data and returns the number of the first.
func (d *File) addChain(data []byte) uint32 {
	room := d.pageSize - 4
	n := (len(data) + room - 1) / room
	pages := make([]byte, n*d.pageSize)
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range n {
		page := pages[i*d.pageSize:]
		if i < n-1 {
			binary.BigEndian.PutUint32(page, d.pages+uint32(i)+2)
		}
		data = data[copy(page[4:d.pageSize], data):]
	}
	return d.append(pages)
}

// put writes a page that the file had from the beginning.
func (d *File) put(number uint32, page []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writeAt(page, int64(number-1)*int64(d.pageSize))
}
