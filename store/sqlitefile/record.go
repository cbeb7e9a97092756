package sqlitefile

import "encoding/binary"

// Record is a row of a table or an index in SQLite's record format ("Record Format" in its
// file format): a header of serial types, then the values. Fill it from left to right, the
// zero Record is empty.
type Record struct {
	types, values []byte
	out           []byte
}

// Reset makes the record empty.
func (r *Record) Reset() *Record {
	r.types, r.values = r.types[:0], r.values[:0]
	return r
}

// Null appends NULL.
func (r *Record) Null() *Record {
	r.types = append(r.types, 0)
	return r
}

// Text appends a text, which must be valid UTF-8.
func (r *Record) Text(s string) *Record {
	r.types = appendVarint(r.types, uint64(len(s))*2+13)
	r.values = append(r.values, s...)
	return r
}

// Int appends an integer.
func (r *Record) Int(n int64) *Record {
	size, typ := 8, byte(6)
	switch {
	case n == 0 || n == 1:
		r.types = append(r.types, 8+byte(n))
		return r
	case n == int64(int8(n)):
		size, typ = 1, 1
	case n == int64(int16(n)):
		size, typ = 2, 2
	case n == n<<40>>40:
		size, typ = 3, 3
	case n == int64(int32(n)):
		size, typ = 4, 4
	case n == n<<16>>16:
		size, typ = 6, 5
	}
	r.types = append(r.types, typ)
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	r.values = append(r.values, b[8-size:]...)
	return r
}

// bytes returns the record, valid until the next call.
func (r *Record) bytes() []byte {
	n := uint64(len(r.types))
	size := n + 1 // the header's length counts itself
	if size >= 1<<7 {
		size = n + uint64(varintLen(n+3))
	}
	r.out = appendVarint(r.out[:0], size)
	r.out = append(r.out, r.types...)
	r.out = append(r.out, r.values...)
	return r.out
}

// appendVarint appends v in SQLite's form: seven bits a byte, the highest first, and all
// eight of a ninth byte.
func appendVarint(b []byte, v uint64) []byte {
	if v < 1<<7 {
		return append(b, byte(v))
	}
	if v >= 1<<56 {
		for shift := 57; shift >= 8; shift -= 7 {
			b = append(b, byte(v>>shift)&0x7f|0x80)
		}
		return append(b, byte(v))
	}
	for i := varintLen(v) - 1; i > 0; i-- {
		b = append(b, byte(v>>(7*i))&0x7f|0x80)
	}
	return append(b, byte(v)&0x7f)
}

func varintLen(v uint64) int {
	n := 1
	for ; v >= 1<<7 && n < 9; n++ {
		v >>= 7
	}
	return n
}
