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
	if s == "" {
		return bad("empty")
	}
	if len(s) == 10 && s[4] == '-' && s[7] == '-' {
		d, err := time.Parse(time.DateOnly, s)
		if err != nil {
			return bad("no such date")
		}
		return d, nil
	}
	days := 0
	switch s[len(s)-1] {
	case 'd', 'D':
		days = 1
	case 'm', 'M':
		days = 30
	case 'y', 'Y':
		days = 365
	}
	number := s[:len(s)-1]
	if days == 0 || !isDigits(strings.TrimLeft(number[:min(len(number), 1)], "+-")+number[min(len(number), 1):]) {
		return bad("not a window")
	}
	n, err := strconv.Atoi(number)
	if err != nil || n > maxDays/days || n < -maxDays/days {
		return bad("too long")
	}
	return now.UTC().AddDate(0, 0, -n*days), nil // in UTC a day has 24 hours
}

// maxDays is about as far as a date of four digits can be away.
const maxDays = 1000 * 365
