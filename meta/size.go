package meta

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseSize reads a size in bytes: a whole number with an optional suffix k, m or g in
// either case, base 1024; blanks around it are dropped (format.md §7.1). 0 is read as 0.
func ParseSize(s string) (int64, error) {
	bad := func(why string) (int64, error) {
		return 0, Invalid(fmt.Sprintf("size %q", s), why, "use a size like 512k, 10m or 1g")
	}
	t := strings.TrimSpace(s)
	shift := 0
	if t != "" {
		switch t[len(t)-1] {
		case 'k', 'K':
			shift = 10
		case 'm', 'M':
			shift = 20
		case 'g', 'G':
			shift = 30
		}
		if shift > 0 {
			t = t[:len(t)-1]
		}
	}
	if !isDigits(strings.TrimPrefix(t, "+")) {
		return bad("not a whole number with an optional suffix k, m or g")
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(t, "+"), 10, 64)
	if err != nil || n > math.MaxInt64>>shift {
		return bad("too large")
	}
	return n << shift, nil
}

// ParseCount reads an unsigned decimal number without blanks (format.md §7.1).
func ParseCount(s string) (int64, error) {
	t := strings.TrimPrefix(s, "+")
	if !isDigits(t) {
		return 0, Invalid(fmt.Sprintf("number %q", s), "not a whole number", "use digits only, like 10000")
	}
	n, err := strconv.ParseInt(t, 10, 64)
	if err != nil {
		return 0, Invalid(fmt.Sprintf("number %q", s), "too large", "use digits only, like 10000")
	}
	return n, nil
}
