package meta

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Reserved path components (format.md §3).
const (
	segValue      = "__value"
	segList       = "__list"
	segSet        = "__set"
	segTombstones = "__tombstones"
	segDeleted    = "__deleted"
	segTarget     = "__target__"
)

// BasePath returns the tree path of t, without a trailing slash (format.md §1.3). t
// must be publishable.
func (t Target) BasePath() string {
	switch t.Type {
	case Project:
		return string(Project)
	case Commit:
		return "commit/" + t.Value[:2] + "/" + t.Value
	case Path:
		var b strings.Builder
		b.WriteString("path/")
		for c := range strings.SplitSeq(t.Value, "/") {
			b.WriteString(EscapeSegment(c))
			b.WriteByte('/')
		}
		b.WriteString(segTarget)
		return b.String()
	default:
		return string(t.Type) + "/" + shard(t.Value) + "/" + t.Value
	}
}

// EscapeSegment returns a path target's component as it stands in a tree: with a '~'
// before what starts with '~' or "__" and before names that git gives a meaning.
func EscapeSegment(c string) string {
	if strings.HasPrefix(c, "~") || strings.HasPrefix(c, "__") || gitGivesMeaning(c) {
		return "~" + c
	}
	return c
}

// NeedsMarker reports whether t's paths would be read back as another target unless
// an empty blob at [MarkerPath] says where the value ends (design §11).
func (t Target) NeedsMarker() bool {
	if t.Type != Branch && t.Type != ChangeID || !strings.Contains(t.Value, "/") {
		return false
	}
	comps := strings.Split(t.BasePath(), "/")
	n := baseLength(append(comps, "k", segValue))
	return n != len(comps)
}

// MarkerPath returns the path of the blob that ends t's value.
func (t Target) MarkerPath() string { return t.BasePath() + "/" + segTarget }

// Paths of a key, given base = [Target.BasePath].

// KeyPath returns base + "/" + the segments of key.
func KeyPath(base, key string) string {
	return base + "/" + strings.ReplaceAll(key, ":", "/")
}

// ValuePath returns the path of a string below k = [KeyPath].
func ValuePath(k string) string { return k + "/" + segValue }

// ListPath returns the directory of list entries.
func ListPath(k string) string { return k + "/" + segList }

// ListTombstonesPath returns the directory of list-entry tombstones.
func ListTombstonesPath(k string) string { return k + "/" + segList + "/" + segTombstones }

// SetPath returns the directory of set members.
func SetPath(k string) string { return k + "/" + segSet }

// MemberTombstonesPath returns the directory of set-member tombstones.
func MemberTombstonesPath(k string) string { return k + "/" + segTombstones }

// TombstonePath returns the path of a key's own tombstone.
func TombstonePath(base, key string) string {
	return base + "/" + segTombstones + "/" + strings.ReplaceAll(key, ":", "/") + "/" + segDeleted
}

// PathKind says what a blob in a published tree is.
type PathKind int

// The kinds of blobs in a published tree (format.md §3).
const (
	PathUnknown PathKind = iota
	PathValue
	PathEntry           // list entry
	PathMember          // set member
	PathTombstone       // whole-key tombstone
	PathMemberTombstone // set-member tombstone
	PathEntryTombstone  // list-entry tombstone
	PathMarker          // end of a target's value
)

// TreePath is a decoded tree path. Name is the entry name or member id.
type TreePath struct {
	Kind PathKind
	KeyRef
	Name string
}

// ErrUnknownPath: a path below no known target type; a newer program's, or a README.
var ErrUnknownPath = errors.New("not a path of a known target")

// ParseTreePath decodes the path of a blob (format.md §1.5, §3.2). base is the number
// of leading components that make up the target, where the caller knows it from a
// marker blob, else 0. The error is ErrUnknownPath or says what is malformed.
func ParseTreePath(path string, base int) (TreePath, error) {
	var buf [24]string // on the stack: there are many paths
	comps := appendSplit(buf[:0], path)
	typ := TargetType(comps[0])
	if !typ.Known() || len(comps) < 2 {
		return TreePath{}, ErrUnknownPath
	}
	if !utf8.ValidString(path) {
		return TreePath{}, errors.New("not valid UTF-8")
	}
	t, n, err := parseTarget(typ, comps, base)
	if err != nil {
		return TreePath{}, err
	}
	p, err := parseKeyPath(comps[n:])
	if err != nil {
		return TreePath{}, err
	}
	p.Target = t
	if p.Kind == PathMarker && typ != Branch && typ != ChangeID {
		return TreePath{}, errors.New("a marker below " + string(typ))
	}
	return p, nil
}

// appendSplit appends the components of path to comps.
func appendSplit(comps []string, path string) []string {
	for {
		i := strings.IndexByte(path, '/')
		if i < 0 {
			return append(comps, path)
		}
		comps, path = append(comps, path[:i]), path[i+1:]
	}
}

func parseTarget(typ TargetType, comps []string, base int) (Target, int, error) {
	switch typ {
	case Project:
		return ProjectTarget, 1, nil
	case Path:
		for i, c := range comps {
			if c != segTarget {
				continue
			}
			if i < 2 || i == len(comps)-1 {
				break
			}
			return Target{Path, decodeSegments(comps[1:i])}, i + 1, nil
		}
		return Target{}, 0, errors.New("no path before __target__")
	case Commit:
		if len(comps) < 4 {
			return Target{}, 0, errors.New("too short for a commit")
		}
		return Target{Commit, comps[2]}, 3, nil
	}
	if len(comps) < 4 {
		return Target{}, 0, fmt.Errorf("too short for a %s", typ)
	}
	n := base
	if n == 0 && comps[len(comps)-1] == segTarget {
		n = len(comps) - 1
	}
	if n == 0 {
		n = baseLength(comps)
	}
	return Target{typ, strings.Join(comps[2:n], "/")}, n, nil
}

// decodeSegments undoes [EscapeSegment]: exactly one leading '~' goes.
func decodeSegments(comps []string) string {
	out := make([]string, len(comps))
	for i, c := range comps {
		out[i] = strings.TrimPrefix(c, "~")
	}
	return strings.Join(out, "/")
}

// baseLength returns how many components of a branch or change-id path make up the
// target: the shortest value whose shard fits, else one component (format.md §1.5).
func baseLength(comps []string) int {
	end := len(comps)
	for i := 3; i < len(comps); i++ {
		if c := comps[i]; c == segValue || c == segList || c == segSet || c == segTombstones {
			end = i
			break
		}
	}
	value := comps[2]
	for n := 3; ; n++ {
		if shard(value) == comps[1] {
			return n
		}
		if n >= end || n >= len(comps) {
			return 3
		}
		value += "/" + comps[n]
	}
}

// parseKeyPath decodes what follows the target (format.md §3.2, first match wins,
// with the list-entry tombstone before the member tombstone that hides it there).
func parseKeyPath(p []string) (TreePath, error) {
	n := len(p)
	at := func(i int) string {
		if i < 0 {
			return ""
		}
		return p[i]
	}
	var kind PathKind
	var segs []string
	name := at(n - 1)
	switch {
	case n == 1 && name == segTarget:
		return TreePath{Kind: PathMarker}, nil
	case n >= 3 && p[0] == segTombstones && name == segDeleted:
		kind, segs, name = PathTombstone, p[1:n-1], ""
	case n >= 4 && at(n-2) == segTombstones && at(n-3) == segList:
		if !IsEntryName(name) {
			return TreePath{}, fmt.Errorf("%q is no list entry name", name)
		}
		kind, segs = PathEntryTombstone, p[:n-3]
	case n >= 3 && at(n-2) == segTombstones:
		if !IsMemberID(name) {
			return TreePath{}, fmt.Errorf("%q is no member id", name)
		}
		kind, segs = PathMemberTombstone, p[:n-2]
	case n >= 3 && at(n-2) == segSet:
		kind, segs = PathMember, p[:n-2]
	case n >= 3 && at(n-2) == segList:
		if !IsEntryName(name) {
			return TreePath{}, fmt.Errorf("%q is no list entry name", name)
		}
		kind, segs = PathEntry, p[:n-2]
	case n >= 2 && name == segValue:
		kind, segs, name = PathValue, p[:n-1], ""
	default:
		return TreePath{}, errors.New("no value, entry, member or tombstone")
	}
	key := strings.Join(segs, ":")
	for _, s := range segs {
		if strings.Contains(s, ":") {
			return TreePath{}, fmt.Errorf("key segment %q holds a ':'", s)
		}
	}
	if err := KeyPublishable(key); err != nil {
		return TreePath{}, errors.Unwrap(err)
	}
	return TreePath{Kind: kind, KeyRef: KeyRef{Key: key}, Name: name}, nil
}
