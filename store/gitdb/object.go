package gitdb

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"sync"

	"github.com/pjbgf/sha1cd"
)

type hasher struct {
	h   hash.Hash
	hdr []byte
	sum []byte
}

var hashers = sync.Pool{New: func() any { return &hasher{h: sha1cd.New()} }}

// HashObject returns the id of an object: git hash-object -t. The hash detects
// crafted collisions, as git's does. Safe for concurrent use.
func HashObject(t ObjectType, data []byte) Hash {
	h := hashers.Get().(*hasher)
	h.h.Reset()
	h.hdr = appendObjectHeader(h.hdr[:0], t, int64(len(data)))
	h.h.Write(h.hdr)
	h.h.Write(data)
	h.sum = h.h.Sum(h.sum[:0])
	id := Hash(h.sum)
	hashers.Put(h)
	return id
}

// appendObjectHeader writes "type size NUL".
func appendObjectHeader(dst []byte, t ObjectType, size int64) []byte {
	dst = append(dst, t.String()...)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, size, 10)
	return append(dst, 0)
}

func parseObjectType(s string) (ObjectType, bool) {
	switch s {
	case "commit":
		return CommitObject, true
	case "tree":
		return TreeObject, true
	case "blob":
		return BlobObject, true
	case "tag":
		return TagObject, true
	}
	return 0, false
}

// ParseHash reads 40 hexadecimal digits, in any case.
func ParseHash(s string) (Hash, bool) {
	var h Hash
	if len(s) != 2*len(h) {
		return h, false
	}
	if _, err := hex.Decode(h[:], []byte(s)); err != nil {
		return ZeroHash, false
	}
	return h, true
}

// parseHex reads an id that is followed by white space or the end.
func parseHex(b []byte) (Hash, bool) {
	if len(b) > 40 && !isConfigSpace(b[40]) {
		return ZeroHash, false
	}
	return ParseHash(string(b[:min(40, len(b))]))
}

// Modes of tree entries.
const (
	ModeTree    uint32 = 0o40000
	ModeFile    uint32 = 0o100644
	ModeExec    uint32 = 0o100755
	ModeSymlink uint32 = 0o120000
	ModeCommit  uint32 = 0o160000
)

// TreeEntry is one line of a tree.
type TreeEntry struct {
	Mode uint32
	Name string
	Hash Hash
}

// IsTree says whether the entry is a directory.
func (e TreeEntry) IsTree() bool { return e.Mode&0o170000 == ModeTree }

// ParseTree decodes a tree object. It checks the framing and nothing else:
// names may be anything but empty, in any order.
func ParseTree(data []byte) ([]TreeEntry, error) {
	n := 0
	for rest := data; len(rest) > 0; n++ {
		i := bytes.IndexByte(rest, 0)
		if i < 0 || len(rest)-i-1 < len(Hash{}) {
			return nil, fmt.Errorf("tree entry %d: %w: truncated", n+1, ErrCorrupt)
		}
		rest = rest[i+1+len(Hash{}):]
	}
	out := make([]TreeEntry, n)
	s := string(data) // all names share one allocation
	pos := 0
	for i := range out {
		e := &out[i]
		digits := 0
		for s[pos] >= '0' && s[pos] <= '7' && digits < 7 {
			e.Mode = e.Mode<<3 | uint32(s[pos]-'0')
			pos++
			digits++
		}
		if digits == 0 || s[pos] != ' ' {
			return nil, fmt.Errorf("tree entry %d: %w: bad mode", i+1, ErrCorrupt)
		}
		pos++
		end := pos + strings.IndexByte(s[pos:], 0)
		if end <= pos {
			return nil, fmt.Errorf("tree entry %d: %w: empty name", i+1, ErrCorrupt)
		}
		e.Name = s[pos:end]
		copy(e.Hash[:], s[end+1:])
		pos = end + 1 + len(e.Hash)
	}
	return out, nil
}

// AppendTreeEntry appends one entry in the encoding of tree objects. Order
// (a directory sorts as name + "/") and unique names are the caller's matter.
func AppendTreeEntry(dst []byte, mode uint32, name string, h Hash) []byte {
	dst = strconv.AppendUint(dst, uint64(mode), 8)
	dst = append(dst, ' ')
	dst = append(dst, name...)
	dst = append(dst, 0)
	return append(dst, h[:]...)
}
