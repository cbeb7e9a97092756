package meta

import (
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
)

// AppendJSONString appends s as the peer writes JSON strings: only '"', '\' and
// control bytes below 0x20 are escaped (format.md §3).
func AppendJSONString(dst []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// EncodeJSONString returns s as a JSON string, as rows of the store hold it.
func EncodeJSONString(s string) string {
	return string(AppendJSONString(make([]byte, 0, len(s)+2), s))
}

// DecodeJSONString reads a JSON string. A text that is none is returned as it is:
// the peer publishes such rows raw (format.md §4.3).
func DecodeJSONString(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	plain := true
	for i := 1; i < len(s)-1; i++ {
		if c := s[i]; c == '\\' || c == '"' || c < 0x20 {
			plain = false
			break
		}
	}
	if plain {
		return s[1 : len(s)-1]
	}
	var out string
	if json.Unmarshal([]byte(s), &out) != nil {
		return s
	}
	return out
}

// EncodeTombstone returns the blob of a key or list-entry tombstone (format.md §3).
// explicit adds a field that the peer ignores (design §8).
func EncodeTombstone(ms int64, email string, explicit bool) []byte {
	b := append([]byte(`{"timestamp":`), strconv.FormatInt(ms, 10)...)
	b = append(b, `,"email":`...)
	b = AppendJSONString(b, email)
	if explicit {
		b = append(b, `,"explicit":true`...)
	}
	return append(b, '}')
}

// DecodeTombstone reads the blob of a key or list-entry tombstone. Fields that it does
// not know, or does not understand, are left alone.
func DecodeTombstone(data []byte) (ms int64, email string, explicit bool, err error) {
	if !utf8.Valid(data) {
		return 0, "", false, errors.New("tombstone is not valid UTF-8")
	}
	var fields map[string]json.RawMessage // a struct would take names in any case
	if err := json.Unmarshal(data, &fields); err != nil {
		return 0, "", false, errors.New("tombstone is not the JSON object it should be")
	}
	var when *int64
	var mail *string
	if json.Unmarshal(fields["timestamp"], &when) != nil || json.Unmarshal(fields["email"], &mail) != nil || when == nil || mail == nil {
		return 0, "", false, errors.New("tombstone lacks timestamp or email")
	}
	return *when, *mail, string(fields["explicit"]) == "true", nil
}
