package meta

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
)

// TimesHeader is the commit header that carries edit times (design §5.5).
const TimesHeader = "git-meta-times"

// EncodeTimes returns the value of a git-meta-times header: "v1 " and base64 of one
// zigzag varint per time, each the difference to the one before, the first to
// authorSeconds × 1000. It returns "" where every time equals authorSeconds × 1000.
func EncodeTimes(ms []int64, authorSeconds int64) string {
	prev := authorSeconds * 1000
	plain := true
	buf := make([]byte, 0, 3*len(ms))
	for _, t := range ms {
		plain = plain && t == authorSeconds*1000
		buf = binary.AppendVarint(buf, t-prev)
		prev = t
	}
	if plain {
		return ""
	}
	return "v1 " + base64.RawStdEncoding.EncodeToString(buf)
}

// DecodeTimes reads a git-meta-times header for n keys, or for any number if n is negative.
// An error means that the header is to be ignored.
func DecodeTimes(header string, authorSeconds int64, n int) ([]int64, error) {
	body, ok := strings.CutPrefix(header, "v1 ")
	if !ok {
		return nil, errors.New("unknown version of " + TimesHeader)
	}
	buf, err := base64.RawStdEncoding.DecodeString(body)
	if err != nil {
		return nil, errors.New(TimesHeader + " is not base64")
	}
	limit := n
	if n < 0 {
		limit = len(buf) // each takes a byte at least
	}
	out := make([]int64, 0, min(limit, len(buf)))
	prev := authorSeconds * 1000
	for len(buf) > 0 {
		d, k := binary.Varint(buf)
		if k <= 0 || len(out) == limit {
			return nil, errors.New(TimesHeader + " does not fit its commit")
		}
		prev += d
		out, buf = append(out, prev), buf[k:]
	}
	if n >= 0 && len(out) != n {
		return nil, errors.New(TimesHeader + " does not fit its commit")
	}
	return out, nil
}
