package gitdb

import (
	"fmt"
)

// maxChain bounds a chain of deltas; git writes at most 4095.
const maxChain = 5000

const (
	ofsDelta = 6
	refDelta = 7
)

// packEntry is the decoded header of an object in a pack.
type packEntry struct {
	typ  int
	size uint64 // inflated, of the delta for deltas
	body []byte // from the zlib stream to the end of the pack
	base int64  // offset of the base, for deltas
}

type baseKey struct {
	p   *pack
	off int64
}

func (p *pack) corrupt(off int64, what string) error {
	return fmt.Errorf("%s.pack: %w: %s at offset %d", p.base, ErrCorrupt, what, off)
}

// entry decodes the header at off.
func (p *pack) entry(off int64) (packEntry, error) {
	var e packEntry
	if off < 12 || off >= int64(len(p.data)) {
		return e, p.corrupt(off, "offset outside of the pack")
	}
	b := p.data[off:]
	c := b[0]
	e.typ, e.size = int(c>>4&7), uint64(c&15)
	n, shift := 1, 4
	for c&0x80 != 0 {
		if n >= len(b) || shift > 57 {
			return e, p.corrupt(off, "bad size")
		}
		c = b[n]
		n++
		e.size |= uint64(c&0x7f) << shift
		shift += 7
	}
	switch e.typ {
	case 1, 2, 3, 4:
	case ofsDelta:
		var o uint64
		for {
			if n >= len(b) || o >= 1<<55 {
				return e, p.corrupt(off, "bad delta base")
			}
			c = b[n]
			n++
			o = o<<7 | uint64(c&0x7f)
			if c&0x80 == 0 {
				break
			}
			o++
		}
		e.base = off - int64(o)
		if o == 0 || e.base < 12 {
			return e, p.corrupt(off, "bad delta base")
		}
	case refDelta:
		if len(b) < n+hashSize {
			return e, p.corrupt(off, "truncated")
		}
		id := Hash(b[n : n+hashSize])
		n += hashSize
		base, ok, err := p.find(id)
		if err != nil {
			return e, err
		}
		if !ok {
			return e, p.corrupt(off, "delta base "+id.String()+" is not in the pack")
		}
		e.base = base
	default:
		return e, p.corrupt(off, "unknown object type")
	}
	e.body = b[n:]
	return e, nil
}

// read decodes the object at off. bases keeps the bases of deltas, which
// their siblings share.
func (p *pack) read(off int64, bases *cache[baseKey]) (ObjectType, []byte, error) {
	if err := p.openData(); err != nil {
		return 0, nil, err
	}
	type step struct {
		off int64
		e   packEntry
	}
	var chain []step
	var typ ObjectType
	var data []byte
	for at := off; ; {
		e, err := p.entry(at)
		if err != nil {
			return 0, nil, err
		}
		if len(chain) > 0 || e.typ == ofsDelta || e.typ == refDelta {
			if b, ok := bases.get(baseKey{p, at}); ok {
				typ, data = b.typ, b.data
				break
			}
		}
		if e.typ != ofsDelta && e.typ != refDelta {
			if data, err = inflate(e.body, e.size); err != nil {
				return 0, nil, fmt.Errorf("%s.pack: %w at offset %d", p.base, err, at)
			}
			typ = ObjectType(e.typ)
			if len(chain) > 0 {
				bases.add(baseKey{p, at}, typ, data)
			}
			break
		}
		if len(chain) >= maxChain {
			return 0, nil, p.corrupt(off, "delta chain too long")
		}
		chain = append(chain, step{at, e})
		at = e.base
	}
	for i := len(chain) - 1; i >= 0; i-- {
		s := chain[i]
		delta, err := inflate(s.e.body, s.e.size)
		if err == nil {
			data, err = applyDelta(data, delta)
		}
		if err != nil {
			return 0, nil, fmt.Errorf("%s.pack: %w at offset %d", p.base, err, s.off)
		}
		bases.add(baseKey{p, s.off}, typ, data) // likely a base itself
	}
	return typ, data, nil
}

// header finds type and size without decoding the object: for a delta the
// size stands at the start of the delta, the type at the end of the chain.
func (p *pack) header(off int64) (ObjectType, int64, error) {
	if err := p.openData(); err != nil {
		return 0, 0, err
	}
	e, err := p.entry(off)
	if err != nil {
		return 0, 0, err
	}
	size := e.size
	if e.typ == ofsDelta || e.typ == refDelta {
		d, err := inflatePrefix(e.body, int(min(e.size, 20)))
		if err == nil {
			_, d, err = deltaVarint(d)
		}
		if err == nil {
			size, _, err = deltaVarint(d)
		}
		if err != nil {
			return 0, 0, fmt.Errorf("%s.pack: %w at offset %d", p.base, err, off)
		}
	}
	for n := 0; e.typ == ofsDelta || e.typ == refDelta; n++ {
		if n >= maxChain {
			return 0, 0, p.corrupt(off, "delta chain too long")
		}
		if e, err = p.entry(e.base); err != nil {
			return 0, 0, err
		}
	}
	if size >= 1<<62 {
		return 0, 0, p.corrupt(off, "bad size")
	}
	return ObjectType(e.typ), int64(size), nil
}

func deltaError(what string) error { return fmt.Errorf("%w: delta: %s", ErrCorrupt, what) }

func deltaVarint(d []byte) (uint64, []byte, error) {
	var v uint64
	for i, c := range d {
		if i >= 9 {
			break
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c&0x80 == 0 {
			return v, d[i+1:], nil
		}
	}
	return 0, nil, deltaError("bad size")
}

// applyDelta rebuilds an object. The instructions are summed up before memory
// is taken, so that a small delta cannot ask for more than it fills.
func applyDelta(base, delta []byte) ([]byte, error) {
	from, d, err := deltaVarint(delta)
	if err != nil {
		return nil, err
	}
	to, d, err := deltaVarint(d)
	if err != nil {
		return nil, err
	}
	if from != uint64(len(base)) {
		return nil, deltaError("base has another size")
	}
	if to > maxObject {
		return nil, ErrTooLarge
	}
	var sum uint64
	for ops := d; len(ops) > 0 && sum <= to; {
		op, err := nextDeltaOp(ops, len(base))
		if err != nil {
			return nil, err
		}
		sum += uint64(op.size)
		ops = ops[op.len:]
	}
	if sum != to {
		return nil, deltaError("result has another size")
	}
	out := make([]byte, 0, to)
	for len(d) > 0 {
		op, _ := nextDeltaOp(d, len(base))
		if op.copy {
			out = append(out, base[op.off:op.off+op.size]...)
		} else {
			out = append(out, d[1:op.len]...)
		}
		d = d[op.len:]
	}
	return out, nil
}

// deltaOp copies size bytes, from the base or from the delta itself.
type deltaOp struct {
	copy      bool
	off, size int
	len       int // of the instruction
}

func nextDeltaOp(d []byte, baseLen int) (deltaOp, error) {
	c := d[0]
	op := deltaOp{len: 1}
	if c&0x80 == 0 {
		op.size = int(c)
		op.len += op.size
		if c == 0 || op.len > len(d) {
			return op, deltaError("bad insert")
		}
		return op, nil
	}
	var v [7]byte
	for i := range v {
		if c>>i&1 == 0 {
			continue
		}
		if op.len >= len(d) {
			return op, deltaError("truncated copy")
		}
		v[i] = d[op.len]
		op.len++
	}
	off := int64(v[0]) | int64(v[1])<<8 | int64(v[2])<<16 | int64(v[3])<<24
	size := int64(v[4]) | int64(v[5])<<8 | int64(v[6])<<16
	if size == 0 {
		size = 0x10000
	}
	if off+size > int64(baseLen) {
		return op, deltaError("copy outside of the base")
	}
	op.copy, op.off, op.size = true, int(off), int(size)
	return op, nil
}
