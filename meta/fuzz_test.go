package meta

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func seeds(f *testing.F, texts ...string) {
	for _, s := range texts {
		f.Add(s)
	}
}

func FuzzParseTarget(f *testing.F) {
	seeds(f, "project", "commit:HEAD", "branch:feature/x", "path:./a//b/", "path:.gitmodules", "change-id:a:b", "branch:a/../b", "x", "path:~1000000", `path:a\.git`)
	f.Fuzz(func(t *testing.T, s string) {
		target, err := ParseTarget(s)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%q: %v is not ErrInvalid", s, err)
			}
			return
		}
		if target.Type == Commit { // as typed: the caller resolves it
			return
		}
		if err := target.Publishable(); err != nil {
			t.Errorf("%q: %v", s, err)
		}
		if again, err := ParseTarget(target.String()); err != nil || again != target {
			t.Errorf("%q: %v reads as %v, %v", s, target, again, err)
		}
		for c := range strings.SplitSeq(target.BasePath(), "/") {
			if c == "" || gitProtects(c) || gitGivesMeaning(c) {
				t.Errorf("%q: component %q", s, c)
			}
		}
	})
}

func FuzzParseTreePath(f *testing.F) {
	seeds(f, "project/a/__value", "commit/98/98af/k/__set/x", "branch/b4/topic/299/k/__value", "path/~__x/a/__target__/k/__list/1-abcde",
		"project/__tombstones/a/b/__deleted", "project/k/__list/__tombstones/1-abcde", "branch/b4/topic/299/__target__", "path/~/__target__/k/__value", "README.md")
	f.Fuzz(func(t *testing.T, path string) {
		p, err := ParseTreePath(path, 0)
		if err != nil {
			return
		}
		if p.Kind == PathMarker {
			if p.Target.MarkerPath() == "" {
				t.Error("no path")
			}
			return
		}
		if err := KeyPublishable(p.Key); err != nil || p.Kind == PathUnknown || !utf8.ValidString(path) {
			t.Errorf("%q: got %v, %v", path, p, err)
		}
		if p.Target.Publishable() != nil || p.Target.NeedsMarker() {
			return
		}
		// what is read can be written, and reads the same
		for q, want := range pathsOf(p.KeyRef, Entry{1, "x"}, "x") {
			if got, err := ParseTreePath(q, 0); err != nil || got != want {
				t.Errorf("%q: %q: got %v, %v, want %v", path, q, got, err, want)
			}
		}
	})
}

func FuzzParseRule(f *testing.F) {
	seeds(f, "exclude a:**", "route a:*:b x,y", "route", "drop x", "route a x/y", "exclude **:**:**:**:x")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRule(s)
		if err != nil && (!errors.Is(err, ErrInvalid) || r.Dests != nil) {
			t.Errorf("%q: %v, %v", s, r, err)
		}
		for _, d := range r.Dests {
			if strings.ContainsAny(d, "/ ,") || d == "" {
				t.Errorf("%q: destination %q", s, d)
			}
		}
		for _, k := range []string{"a", "a:b", "x:a:b:y"} {
			got := NewFilter([]string{s}).Route(k)
			if err == nil && r.Dests == nil && r.matches(strings.Split(k, ":")) && got != nil {
				t.Errorf("%q excludes %s, and it goes to %v", s, k, got)
			}
		}
	})
}

func FuzzParseWindow(f *testing.F) {
	seeds(f, "90d", "6M", "1y", "2025-01-31", "2025-02-30", "-5d", "300y", "99999999999d", "+-1d", "5é")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		at, err := ParseWindow(s, now)
		switch {
		case err != nil:
			if !errors.Is(err, ErrInvalid) || HintOf(err) == "" {
				t.Errorf("%q: %v", s, err)
			}
		case len(s) != 10 && s[0] != '-' && at.After(now):
			t.Errorf("%q is after now: %v", s, at)
		case strings.ContainsAny(s, " \t\n"):
			t.Errorf("%q is accepted", s)
		}
	})
}

func FuzzParseSize(f *testing.F) {
	seeds(f, "0", "512k", "10M", "1g", "9223372036854775807", "8589934592g", "1.5m", "-1", "+7", " 2k")
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseSize(s); n < 0 || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %d, %v", s, n, err)
		}
		if n, err := ParseCount(s); err == nil {
			if size, err := ParseSize(s); err != nil || size != n {
				t.Errorf("%q is the count %d and the size %d, %v", s, n, size, err)
			}
		}
	})
}

func FuzzDecodeTombstone(f *testing.F) {
	seeds(f, `{"timestamp":1,"email":"a"}`, `{"email":"\u0000","timestamp":-5,"explicit":true}`, `{"timestamp":1.0,"email":""}`, `null`, `[`, `{"timestamp":1,"email":"a","explicit":3}`)
	f.Fuzz(func(t *testing.T, s string) {
		ms, email, explicit, err := DecodeTombstone([]byte(s))
		if err != nil {
			return
		}
		ms2, email2, explicit2, err := DecodeTombstone(EncodeTombstone(ms, email, explicit))
		if err != nil || ms2 != ms || email2 != email || explicit2 != explicit {
			t.Errorf("%s: %d %q %v, then %d %q %v, %v", s, ms, email, explicit, ms2, email2, explicit2, err)
		}
	})
}

func FuzzDecodeTimes(f *testing.F) {
	for _, s := range []string{"v1 CgA", "v1 AAI", "v1 ", "v2 x", "v1 gICAgICAgICAgICAgIA"} {
		f.Add(s, int64(1_700_000_000), 2)
	}
	f.Fuzz(func(t *testing.T, h string, seconds int64, n int) {
		n &= 0xff
		ms, err := DecodeTimes(h, seconds, n)
		if err != nil {
			return
		}
		if len(ms) != n {
			t.Fatalf("%q: %d times of %d", h, len(ms), n)
		}
		again := EncodeTimes(ms, seconds)
		if again == "" {
			return
		}
		if got, err := DecodeTimes(again, seconds, n); err != nil || len(got) != n {
			t.Errorf("%q, %q: %v", h, again, err)
		}
	})
}
