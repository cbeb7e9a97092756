package gitdb

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"hash/adler32"
	"io"
	"slices"
)

// appendEntryHeader writes type and size of an object in a pack.
func appendEntryHeader(dst []byte, t ObjectType, size int) []byte {
	n := uint64(size)
	c := byte(t)<<4 | byte(n&15)
	for n >>= 4; n > 0; n >>= 7 {
		dst = append(dst, c|0x80)
		c = byte(n & 0x7f)
	}
	return append(dst, c)
}

// appendStored writes data, less than 64 KiB, as a zlib stream of one stored
// block.
func appendStored(dst, data []byte) []byte {
	n := uint16(len(data))
	dst = append(dst, 0x78, 1, 1, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
	dst = append(dst, data...)
	return binary.BigEndian.AppendUint32(dst, adler32.Checksum(data))
}

type idxEntry struct {
	id  Hash
	crc uint32
	off int64
}

// writeIdx writes a pack index of version 2; it sorts entries. Format:
// gitformat-pack(5), "pack-*.idx files".
func writeIdx(out io.Writer, entries []idxEntry, packSum Hash) error {
	slices.SortFunc(entries, func(a, b idxEntry) int { return bytes.Compare(a.id[:], b.id[:]) })
	h := sha1.New()
	w := bufio.NewWriterSize(io.MultiWriter(out, h), 1<<18)
	w.WriteString("\377tOc\x00\x00\x00\x02")
	var fan [256]uint32
	for i := range entries {
		fan[entries[i].id[0]]++
	}
	put32 := func(v uint32) { w.Write(binary.BigEndian.AppendUint32(w.AvailableBuffer(), v)) }
	sum := uint32(0)
	for _, n := range fan {
		sum += n
		put32(sum)
	}
	for i := range entries {
		w.Write(entries[i].id[:])
	}
	for i := range entries {
		put32(entries[i].crc)
	}
	var big []int64
	for i := range entries {
		off := entries[i].off
		if off < 1<<31 {
			put32(uint32(off))
			continue
		}
		put32(1<<31 | uint32(len(big)))
		big = append(big, off)
	}
	for _, off := range big {
		w.Write(binary.BigEndian.AppendUint64(w.AvailableBuffer(), uint64(off)))
	}
	w.Write(packSum[:])
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := out.Write(h.Sum(nil))
	return err
}
