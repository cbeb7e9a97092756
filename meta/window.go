package meta

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// WindowHint says how a window is written.
const WindowHint = "write a window as 90d, 6m (of 30 days), 1y (of 365 days) or 2025-01-31 (UTC)"

// ParseWindow reads a retention window and returns its cutoff: what is older goes. A
// window is Nd, Nm (30 days) or Ny (365 days) in either case, or YYYY-MM-DD, which
// means that day's midnight in UTC (design §7). A cutoff after now is returned as it
// is: the caller refuses it.
func ParseWindow(s string, now time.Time) (time.Time, error) {
	bad := func(why string) (time.Time, error) {
		return time.Time{}, Invalid(fmt.Sprintf("window %q", s), why, WindowHint)
	}
	t := strings.TrimSpace(s)
	if t == "" {
		return bad("empty")
	}
	if len(t) == 10 && t[4] == '-' && t[7] == '-' {
		d, err := time.Parse(time.DateOnly, t)
		if err != nil {
			return bad("no such date")
		}
		return d, nil
	}
	days := int64(0)
	switch t[len(t)-1] {
	case 'd', 'D':
		days = 1
	case 'm', 'M':
		days = 30
	case 'y', 'Y':
		days = 365
	}
	digits := strings.TrimPrefix(t[:len(t)-1], "+")
	negative := strings.HasPrefix(digits, "-")
	digits = strings.TrimPrefix(digits, "-")
	if days == 0 || !isDigits(digits) {
		return bad("not a window")
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > 100_000 {
		return bad("too long")
	}
	if negative {
		n = -n
	}
	return now.Add(-time.Duration(n*days) * 24 * time.Hour).UTC(), nil
}
