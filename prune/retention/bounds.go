package retention

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
)

// The greatest bounds that are accepted; what is above them is a slip of the keyboard.
const (
	LimitRows    = 1_000_000_000_000
	LimitAgeDays = 36_500_000 // some 100,000 years; in ms it fits 63 bits
)

// axis is one of the two bounds, in the words of each place where it is named.
type axis struct {
	field   string // in the manifest and in JSON
	suffix  string // last segment of its override's key
	limit   int64
	example string
	of      func(*Bounds) *int64
}

var (
	rowsAxis = &axis{"maxRows", "max-rows", LimitRows, "500", func(b *Bounds) *int64 { return &b.MaxRows }}
	ageAxis  = &axis{"maxAgeDays", "max-age-days", LimitAgeDays, "30", func(b *Bounds) *int64 { return &b.MaxAgeDays }}

	axes = []*axis{rowsAxis, ageAxis}
)

// parse reads a bound: digits alone, from 1 to the limit. There is no way to say "none".
func (x *axis) parse(text string) (int64, error) {
	bad := func(why string) (int64, error) {
		return 0, meta.Invalid(fmt.Sprintf("%q", text), why, "use a whole number like "+x.example)
	}
	digits := strings.Trim(text, "0123456789") == ""
	switch {
	case text == "":
		return bad("empty")
	case digits && strings.Trim(text, "0") == "":
		return bad("must be greater than zero")
	case !digits || text[0] == '0':
		return bad("not a whole number in digits, from 1 up")
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > x.limit {
		return bad(fmt.Sprintf("too large; the greatest is %d", x.limit))
	}
	return n, nil
}

// key returns the project key that holds the override of a collection.
func (x *axis) key(collection string) string {
	return Namespace + ":" + collection + ":" + x.suffix
}

// splitKey takes the key of an override apart. The name may contain ':'.
func splitKey(key string) (collection string, x *axis, ok bool) {
	rest, ok := strings.CutPrefix(key, Namespace+":")
	if !ok {
		return "", nil, false
	}
	for _, x := range axes {
		if name, ok := strings.CutSuffix(rest, ":"+x.suffix); ok && name != "" {
			return name, x, true
		}
	}
	return "", nil, false
}

// ParseRows reads what a user gives for maxRows: digits, from 1 to [LimitRows]. Errors are
// [meta.ErrInvalid].
func ParseRows(text string) (int64, error) { return rowsAxis.parse(text) }

// ParseAgeDays reads what a user gives for maxAgeDays: digits, from 1 to [LimitAgeDays].
// Errors are [meta.ErrInvalid].
func ParseAgeDays(text string) (int64, error) { return ageAxis.parse(text) }
