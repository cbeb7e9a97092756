package meta

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// ValueType says what kind of value a key holds. The text is stored.
type ValueType string

// The value types.
const (
	String ValueType = "string"
	List   ValueType = "list"
	Set    ValueType = "set"
)

// Entry is one entry of a list. Time is in its name in a tree; 0 stands for a
// string that became a list.
type Entry struct {
	Time  int64 // ms
	Value string
}

// Name returns the entry's name in a tree: time, '-', five hex digits of the SHA-1 of
// its value (format.md §3).
func (e Entry) Name() string {
	sum := sha1.Sum([]byte(e.Value))
	return strconv.FormatInt(e.Time, 10) + "-" + hex.EncodeToString(sum[:3])[:5]
}

// SortEntries orders the entries of a list by time; those of one time keep their order.
func SortEntries(entries []Entry) {
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Time, b.Time) })
}

// IsEntryName reports whether s can name a list entry: digits, '-', five hex digits of
// either case.
func IsEntryName(s string) bool {
	i := strings.IndexByte(s, '-')
	if i < 1 || len(s)-i-1 != 5 {
		return false
	}
	return isDigits(s[:i]) && isHex(strings.ToLower(s[i+1:]))
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// EntryTime returns the time in an entry name; ok is false where it does not fit.
func EntryTime(name string) (ms int64, ok bool) {
	digits, _, _ := strings.Cut(name, "-")
	ms, err := strconv.ParseInt(digits, 10, 64)
	return ms, err == nil
}

// MemberID returns the name of a set member: its git blob id in hex.
func MemberID(member string) string {
	h := sha1.New()
	h.Write([]byte("blob " + strconv.Itoa(len(member)) + "\x00"))
	var buf [4096]byte // a value may be large: it is not copied whole
	for len(member) > 0 {
		n := copy(buf[:], member)
		h.Write(buf[:n])
		member = member[n:]
	}
	return hex.EncodeToString(h.Sum(nil))
}

// IsMemberID reports whether s can be the id of a member: 40 lower-case hex digits.
func IsMemberID(s string) bool { return len(s) == 40 && isHex(s) }

// Value is what a key holds; the field that Type names is the one in use.
type Value struct {
	Type    ValueType
	String  string
	Entries []Entry  // in the order of time, then insertion
	Members []string // sorted byte by byte
}

// Equal reports whether v and o hold the same.
func (v Value) Equal(o Value) bool {
	return v.Type == o.Type && v.String == o.String && slices.Equal(v.Entries, o.Entries) && slices.Equal(v.Members, o.Members)
}

// Items returns the texts of v: the string, the entries or the members.
func (v Value) Items() []string {
	switch v.Type {
	case List:
		out := make([]string, len(v.Entries))
		for i, e := range v.Entries {
			out[i] = e.Value
		}
		return out
	case Set:
		return v.Members
	}
	return []string{v.String}
}

// TombstoneKind says what a tombstone removed. The text is stored.
type TombstoneKind string

// The tombstone kinds (format.md §3.1).
const (
	KeyTombstone    TombstoneKind = "metadata"
	MemberTombstone TombstoneKind = "set_member"
	EntryTombstone  TombstoneKind = "list_entry"
)

// Tombstone records a removal.
type Tombstone struct {
	Kind TombstoneKind
	KeyRef
	Name     string // entry name or member id; empty for a key
	Member   string // text of a removed member
	Time     int64  // ms
	Email    string
	Explicit bool // somebody removed the key knowingly (design §8)
}
