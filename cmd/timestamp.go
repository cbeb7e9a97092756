package cmd

import (
	"errors"
	"strconv"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/spf13/pflag"
)

func timestampFlag(f *pflag.FlagSet, p *string) {
	f.Var((*givenText)(p), "timestamp", "date the edit `MS` milliseconds after 1970-01-01 UTC, for imports")
}

// timestamp reads the value of --timestamp; 0 means now.
func (a *app) timestamp(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	now := a.now().UnixMilli()
	hint := "timestamps are milliseconds since 1970-01-01 UTC; now is --timestamp " + strconv.FormatInt(now, 10)
	ms, err := strconv.ParseInt(s, 10, 64)
	bad := func(why string) error { return meta.Invalid("timestamp "+strconv.Quote(s), why, hint) }
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, usageErrorf(hint, "timestamp %q: too large", s)
	case err != nil:
		return 0, usageErrorf(hint, "timestamp %q: not a whole number", s)
	case ms < 0:
		return 0, bad("negative")
	case ms >= 1e9 && ms < 1e10:
		return 0, meta.Invalid("timestamp "+strconv.Quote(s), "these are seconds, not milliseconds", "--timestamp "+s+"000")
	case ms > now+(24*time.Hour).Milliseconds():
		return 0, bad("more than a day ahead")
	case ms < time.Date(2005, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli():
		a.warn("timestamp " + s + " is " + time.UnixMilli(ms).UTC().Format(time.RFC3339) + "; are these really milliseconds?")
	}
	return max(ms, 1), nil // 0 would mean now
}
