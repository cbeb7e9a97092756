package store

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
)

// FeedCursor is a place in the feed of one store, between two records. The zero value is
// the beginning of whatever store is read. Its text ([FeedCursor.String]) is for keeping
// outside; readers must not take it apart.
type FeedCursor struct {
	store       string // FactStoreID, or unknownStore; "" only in the zero value
	watermark   int64  // FactWatermark when the cursor was made
	cut         int64  // how often the end of the log had been cut off by then
	rowid       int64  // of the record before the cursor; 0: none
	fingerprint string // of that record; "" for rowid 0
}

const (
	// feedVersion starts the text of a cursor. Another form gets another one.
	feedVersion = "c1"
	// unknownStore stands for the id of a store that has none, because only the peer has
	// written to it, or that is not there yet. Such a cursor is good for any store where
	// the rest agrees.
	unknownStore = "0"
	// feedPrint is how many hex digits of a record's fingerprint a cursor has.
	feedPrint = 10
)

// String returns the cursor as one short word without blanks that needs no quoting in a
// shell, a URL or a header: the version, the store, the watermark, the number of cuts and,
// behind a record, its rowid and the beginning of its fingerprint. For the zero value it
// returns "".
func (c FeedCursor) String() string {
	if c == (FeedCursor{}) {
		return ""
	}
	s := fmt.Sprintf("%s.%s.%d.%d.%d", feedVersion, c.store, c.watermark, c.cut, c.rowid)
	if c.rowid != 0 {
		s += "." + c.fingerprint
	}
	return s
}

// Watermark returns the number of the newest retention pass that the cursor knows of.
func (c FeedCursor) Watermark() int64 { return c.watermark }

// ParseFeedCursor reads the text of a cursor. An error is [meta.ErrInvalid] and names the
// text.
func ParseFeedCursor(s string) (FeedCursor, error) {
	c, ok := parseFeedCursor(s)
	if !ok || c.String() != s {
		why := "not a cursor of the feed"
		if v, _, _ := strings.Cut(s, "."); v != feedVersion && len(v) > 1 && v[0] == 'c' && strings.Trim(v[1:], "0123456789") == "" {
			why = "a cursor of another version of git-meta"
		}
		return FeedCursor{}, meta.Invalid(fmt.Sprintf("cursor %q", s), why, "take one from git meta changes --json, or start anew: git meta changes --since now")
	}
	return c, nil
}

func parseFeedCursor(s string) (c FeedCursor, ok bool) {
	f := strings.Split(s, ".")
	if len(f) < 5 || len(f) > 6 || f[0] != feedVersion || len(f[1]) > 64 || !isWord(f[1]) {
		return c, false
	}
	c.store = f[1]
	for i, to := range []*int64{&c.watermark, &c.cut, &c.rowid} {
		n, err := strconv.ParseInt(f[2+i], 10, 64)
		if err != nil || n < 0 {
			return c, false
		}
		*to = n
	}
	if c.rowid == 0 {
		return c, len(f) == 5
	}
	if len(f) != 6 || len(f[5]) != feedPrint || strings.Trim(f[5], "0123456789abcdef") != "" {
		return c, false
	}
	c.fingerprint = f[5]
	return c, true
}

// isWord reports whether s has only letters and digits of ASCII, at least one.
func isWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	})
}
