package gitdb

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

func loosePath(dir string, id Hash) string {
	h := id.String()
	return filepath.Join(dir, h[:2], h[2:])
}

// looseHeaderMax bounds "type size NUL".
const looseHeaderMax = 32

// readLoose decodes a loose object file; os.ErrNotExist if there is none.
func readLoose(path string) (ObjectType, []byte, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, nil, err
	}
	typ, size, n, err := looseHeader(raw)
	if err != nil {
		return 0, nil, err
	}
	if size > maxObject {
		return 0, nil, ErrTooLarge
	}
	all, err := inflate(raw, uint64(n)+uint64(size))
	if err != nil {
		return 0, nil, err
	}
	return typ, all[n:], nil
}

// readLooseHeader reads no more of the file than the header takes.
func readLooseHeader(path string) (ObjectType, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	var buf [1024]byte
	n, err := f.Read(buf[:])
	if n == 0 {
		return 0, 0, fmt.Errorf("%w: empty or unreadable file", ErrCorrupt)
	}
	if err != nil {
		return 0, 0, err
	}
	typ, size, _, err := looseHeader(buf[:n])
	return typ, size, err
}

// looseHeader returns type, size, and the length of the header.
func looseHeader(raw []byte) (ObjectType, int64, int, error) {
	b, err := inflatePrefix(raw, looseHeaderMax)
	if err != nil {
		return 0, 0, 0, err
	}
	h, _, ok := bytes.Cut(b, []byte{0})
	name, digits, ok2 := bytes.Cut(h, []byte{' '})
	typ, ok3 := parseObjectType(string(name))
	size, err := strconv.ParseUint(string(digits), 10, 62)
	if !ok || !ok2 || !ok3 || err != nil || len(digits) > 1 && digits[0] == '0' {
		return 0, 0, 0, fmt.Errorf("%w: bad header", ErrCorrupt)
	}
	return typ, int64(size), len(h) + 1, nil
}

func notFound(err error) bool { return errors.Is(err, os.ErrNotExist) || isNotDir(err) }
