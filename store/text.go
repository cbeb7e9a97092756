package store

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"

	"github.com/git-meta/git-meta-go/meta"
)

// encodeString is [meta.EncodeJSONString] with a buffer of the right size from the
// start: for a value of many MB that halves the memory.
func encodeString(s string) string {
	n := len(s) + 2
	for i := range len(s) {
		n += int(escaped[s[i]])
	}
	if n == len(s)+2 {
		return `"` + s + `"`
	}
	buf := meta.AppendJSONString(make([]byte, 0, n), s)
	return unsafe.String(unsafe.SliceData(buf), len(buf)) // buf is not used again
}

// escaped is how many bytes escaping a byte adds.
var escaped = func() (t [256]uint8) {
	for c := range 0x20 {
		t[c] = 5
	}
	for _, c := range "\"\\\b\t\n\f\r" {
		t[c] = 1
	}
	return t
}()

// decodeString is [meta.DecodeJSONString] without its copies: a value of many MB with
// line breaks is unescaped straight into the result.
func decodeString(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	body := s[1 : len(s)-1]
	if strings.IndexByte(body, '\\') < 0 {
		return meta.DecodeJSONString(s)
	}
	out, n := unescape(body)
	if n != len(body) {
		return meta.DecodeJSONString(s) // not written by either program
	}
	return out
}

// decodePrefix decodes the beginning of a JSON string.
func decodePrefix(s string) string {
	if s == "" || s[0] != '"' {
		return s
	}
	out, _ := unescape(s[1:])
	return out
}

// unescape undoes JSON escapes up to the end of s or the first thing that cannot stand
// in a JSON string, and returns how far it came.
func unescape(s string) (string, int) {
	var b strings.Builder
	b.Grow(len(s))
	i := 0
	for i < len(s) {
		n := strings.IndexByte(s[i:], '\\')
		plain := s[i:]
		if n >= 0 {
			plain = s[i : i+n]
		}
		if q := strings.IndexByte(plain, '"'); q >= 0 {
			b.WriteString(plain[:q])
			return b.String(), i + q
		}
		b.WriteString(plain)
		i += len(plain)
		if n < 0 {
			break
		}
		if i+1 >= len(s) {
			return b.String(), i
		}
		size := 2
		switch c := s[i+1]; c {
		case '"', '\\', '/':
			b.WriteByte(c)
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'u':
			r, ok := hex4(s[i+2:])
			if !ok {
				return b.String(), i
			}
			size = 6
			if utf16.IsSurrogate(r) {
				low, ok := rune(0), false
				if strings.HasPrefix(s[i+6:], `\u`) {
					low, ok = hex4(s[i+8:])
				}
				if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
					return b.String(), i
				}
				size = 12
			}
			b.WriteRune(r)
		default:
			return b.String(), i
		}
		i += size
	}
	return b.String(), i
}

func hex4(s string) (r rune, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for _, c := range []byte(s[:4]) {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// cutAt returns at most n bytes of s, ending between characters.
func cutAt(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
