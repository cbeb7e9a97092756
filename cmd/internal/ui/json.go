package ui

import (
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/git-meta/git-meta-go/meta"
)

// Object is a JSON object whose fields keep the order in which they are added.
type Object struct {
	names  []string
	values []any
}

// Add appends a field and returns o.
func (o *Object) Add(name string, value any) *Object {
	o.names = append(o.names, name)
	o.values = append(o.values, value)
	return o
}

// Sort orders the fields by name, byte by byte.
func (o *Object) Sort() { sort.Sort((*byName)(o)) }

type byName Object

func (o *byName) Len() int           { return len(o.names) }
func (o *byName) Less(i, j int) bool { return o.names[i] < o.names[j] }
func (o *byName) Swap(i, j int) {
	o.names[i], o.names[j] = o.names[j], o.names[i]
	o.values[i], o.values[j] = o.values[j], o.values[i]
}

// JSON returns v on one line. v is nil, a bool, an int, an int64, a string, a
// []string, a []any, a *Object or a map[string]string.
func JSON(v any) string { return string(appendJSON(nil, v, -1)) }

// PrettyJSON returns v with an indentation of two blanks.
func PrettyJSON(v any) string { return string(appendJSON(nil, v, 0)) }

// appendJSON writes v; depth < 0 means on one line.
func appendJSON(b []byte, v any, depth int) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case string:
		return appendString(b, v)
	case []string:
		return appendSeq(b, '[', ']', len(v), depth, func(b []byte, i int, d int) []byte { return appendString(b, v[i]) })
	case []any:
		return appendSeq(b, '[', ']', len(v), depth, func(b []byte, i int, d int) []byte { return appendJSON(b, v[i], d) })
	case map[string]string:
		o := &Object{}
		for name, s := range v {
			o.Add(name, s)
		}
		o.Sort()
		return appendJSON(b, o, depth)
	case *Object:
		if v == nil {
			return append(b, "null"...)
		}
		return appendSeq(b, '{', '}', len(v.names), depth, func(b []byte, i int, d int) []byte {
			b = append(appendString(b, v.names[i]), ':')
			if d >= 0 {
				b = append(b, ' ')
			}
			return appendJSON(b, v.values[i], d)
		})
	}
	panic("ui: a value that JSON cannot show")
}

func appendSeq(b []byte, open, end byte, n, depth int, item func([]byte, int, int) []byte) []byte {
	b = append(b, open)
	inner := depth
	if depth >= 0 {
		inner++
	}
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = newline(b, inner)
		b = item(b, i, inner)
	}
	if n > 0 {
		b = newline(b, depth)
	}
	return append(b, end)
}

func newline(b []byte, depth int) []byte {
	if depth < 0 {
		return b
	}
	b = append(b, '\n')
	for range depth {
		b = append(b, ' ', ' ')
	}
	return b
}

// appendString writes s with the escapes of [meta.AppendJSONString], and escapes
// control characters beyond ASCII as well: the text may go to a terminal.
func appendString(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	start := len(b)
	b = meta.AppendJSONString(b, s)
	high := func(r rune) bool { return r >= 0x7f && meta.IsControl(r) }
	if !strings.ContainsFunc(s, high) {
		return b
	}
	const hexDigits = "0123456789abcdef"
	out := b[:start:start]
	for _, r := range string(b[start:]) {
		if high(r) {
			out = append(out, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}
