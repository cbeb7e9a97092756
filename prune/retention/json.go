package retention

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/git-meta/git-meta-go/meta"
)

// MarshalJSON returns s as the command line and HTTP show it, on one line: the fields
// collection, effective, authorDefault, override (each an object of maxRows and
// maxAgeDays), wouldPrune, rows, bytes, confirmed, detached and problem. A
// bound that is not set and a problem that there is not are null.
func (s *State) MarshalJSON() ([]byte, error) {
	b := appendText([]byte(`{"collection":`), s.Collection)
	b = s.Effective.append(append(b, `,"effective":`...))
	b = s.AuthorDefault.append(append(b, `,"authorDefault":`...))
	b = s.Override.append(append(b, `,"override":`...))
	b = strconv.AppendInt(append(b, `,"wouldPrune":`...), s.WouldPrune, 10)
	b = strconv.AppendInt(append(b, `,"rows":`...), s.Rows, 10)
	b = strconv.AppendInt(append(b, `,"bytes":`...), s.Bytes, 10)
	b = strconv.AppendBool(append(b, `,"confirmed":`...), s.Confirmed)
	b = strconv.AppendBool(append(b, `,"detached":`...), s.Detached)
	b = append(b, `,"problem":`...)
	if s.Problem == nil {
		b = append(b, "null"...)
	} else {
		b = appendText(b, meta.OneLine(s.Problem.Error()))
	}
	return append(b, '}'), nil
}

// MarshalJSON returns {"maxRows":N,"maxAgeDays":N}, null for a bound that is not set.
func (b Bounds) MarshalJSON() ([]byte, error) { return b.append(nil), nil }

func (b Bounds) append(dst []byte) []byte {
	bound := func(n int64) {
		if n == 0 {
			dst = append(dst, "null"...)
		} else {
			dst = strconv.AppendInt(dst, n, 10)
		}
	}
	dst = append(dst, `{"maxRows":`...)
	bound(b.MaxRows)
	dst = append(dst, `,"maxAgeDays":`...)
	bound(b.MaxAgeDays)
	return append(dst, '}')
}

// appendText appends s as JSON that may go to a terminal: control characters beyond ASCII
// are written out too, and bytes that are not UTF-8 replaced.
func appendText(b []byte, s string) []byte {
	for _, r := range string(meta.AppendJSONString(nil, s)) {
		if r >= 0x7f && meta.IsControl(r) {
			b = fmt.Appendf(b, `\u%04x`, r)
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

var _ json.Marshaler = (*State)(nil)
