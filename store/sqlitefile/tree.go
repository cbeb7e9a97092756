package sqlitefile

import (
	"encoding/binary"
	"errors"
)

// The types of pages.
const (
	indexInterior = 2
	tableInterior = 5
	indexLeaf     = 10
	tableLeaf     = 13
)

// tree is a b-tree that grows at its right edge: the page being filled on each level.
type tree struct {
	d      *File
	root   uint32
	index  bool
	levels []*page // the leaf first
	cell   []byte
}

// page collects the cells of one page, each with the child that is left of it unless it
// is a leaf.
type page struct {
	buf     []byte // the page: cells grow from its end
	head    int    // size of the page header
	cells   int
	content int   // where the last cell starts
	last    int   // where the one before it starts
	rowid   int64 // of the last cell of a table's leaf
}

// Table is the tree of a table that is being filled.
type Table struct{ t tree }

// Index is the tree of an index that is being filled.
type Index struct{ t tree }

// Table fills the table whose root page is root.
func (d *File) Table(root uint32) *Table {
	t := &Table{tree{d: d, root: root}}
	t.t.levels = []*page{d.newPage(tableLeaf)}
	return t
}

// Index fills the index whose root page is root.
func (d *File) Index(root uint32) *Index {
	x := &Index{tree{d: d, root: root, index: true}}
	x.t.levels = []*page{d.newPage(indexLeaf)}
	return x
}

// Add appends a row. Rowids must ascend: it is an error, and nothing is added, if not.
func (t *Table) Add(rowid int64, r *Record) error {
	leaf := t.t.levels[0]
	if leaf.cells > 0 && rowid <= leaf.rowid {
		return errors.New("sqlitefile: rowids must ascend")
	}
	payload := r.bytes()
	c := appendVarint(t.t.cell[:0], uint64(len(payload)))
	c = appendVarint(c, uint64(rowid))
	t.t.cell = t.t.payload(c, payload, t.t.d.pageSize-35)
	if !leaf.fits(t.t.cell) {
		number := t.t.d.add(leaf.bytes())
		t.t.up(1, number, appendVarint(nil, uint64(leaf.rowid)))
		leaf.reset(tableLeaf)
	}
	leaf.add(t.t.cell)
	leaf.rowid = rowid
	return nil
}

// Finish writes what is left. Nothing may be added after it.
func (t *Table) Finish() { t.t.finish() }

// Add appends an entry, which must not be before the last one.
func (x *Index) Add(r *Record) {
	payload := r.bytes()
	c := appendVarint(x.t.cell[:0], uint64(len(payload)))
	x.t.cell = x.t.payload(c, payload, x.t.d.maxIndexLocal())
	leaf := x.t.levels[0]
	if !leaf.fits(x.t.cell) { // each entry stands once: the last one goes up
		div := leaf.pop()
		number := x.t.d.add(leaf.bytes())
		x.t.up(1, number, div)
		leaf.reset(indexLeaf)
	}
	leaf.add(x.t.cell)
}

// Finish writes what is left. Nothing may be added after it.
func (x *Index) Finish() { x.t.finish() }

func (d *File) maxIndexLocal() int { return (d.pageSize-12)*64/255 - 23 }

// payload appends a payload to c: the start of it, and where the rest is.
func (t *tree) payload(c, payload []byte, maxLocal int) []byte {
	if len(payload) <= maxLocal {
		return append(c, payload...)
	}
	minLocal := (t.d.pageSize-12)*32/255 - 23
	local := minLocal + (len(payload)-minLocal)%(t.d.pageSize-4)
	if local > maxLocal {
		local = minLocal
	}
	c = append(c, payload[:local]...)
	return binary.BigEndian.AppendUint32(c, t.d.addChain(payload[local:]))
}

func (t *tree) interior() byte {
	if t.index {
		return indexInterior
	}
	return tableInterior
}

// up adds to a level a page of the level below that is written, and the cell between it
// and the next.
func (t *tree) up(level int, child uint32, cell []byte) {
	if level == len(t.levels) {
		t.levels = append(t.levels, t.d.newPage(t.interior()))
	}
	cell = append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(cell)), child), cell...)
	p := t.levels[level]
	if !p.fits(cell) {
		div := p.pop()
		p.right(div[:4])
		number := t.d.add(p.bytes())
		t.up(level+1, number, div[4:])
		p.reset(t.interior())
	}
	p.add(cell)
}

// finish writes the right edge from the leaf up, the top at the root's place.
func (t *tree) finish() {
	var right [4]byte
	for i, p := range t.levels {
		if i > 0 {
			p.right(right[:])
		}
		if i == len(t.levels)-1 {
			t.d.put(t.root, p.bytes())
			return
		}
		binary.BigEndian.PutUint32(right[:], t.d.add(p.bytes()))
	}
}

func (d *File) newPage(typ byte) *page {
	p := &page{buf: make([]byte, d.pageSize)}
	p.reset(typ)
	return p
}

func (p *page) reset(typ byte) {
	p.head = 8
	if typ == indexInterior || typ == tableInterior {
		p.head = 12
	}
	clear(p.buf)
	p.buf[0] = typ
	p.cells, p.content, p.last = 0, len(p.buf), len(p.buf)
}

func (p *page) fits(cell []byte) bool {
	return p.head+2*(p.cells+1)+max(len(cell), 4) <= p.content
}

func (p *page) add(cell []byte) {
	p.last = p.content
	p.content -= max(len(cell), 4)
	copy(p.buf[p.content:], cell)
	binary.BigEndian.PutUint16(p.buf[p.head+2*p.cells:], uint16(p.content))
	p.cells++
}

// pop removes the last cell that was added; one must be left.
func (p *page) pop() []byte {
	cell := append([]byte(nil), p.buf[p.content:p.last]...)
	p.content = p.last
	p.cells--
	return cell
}

// right sets the child that is right of all cells.
func (p *page) right(number []byte) { copy(p.buf[8:12], number) }

// bytes completes the page.
func (p *page) bytes() []byte {
	binary.BigEndian.PutUint16(p.buf[3:], uint16(p.cells))
	binary.BigEndian.PutUint16(p.buf[5:], uint16(p.content))
	return p.buf
}
