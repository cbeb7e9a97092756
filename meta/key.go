package meta

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"
)

// LocalPrefix starts the keys that are never published, on any target.
const LocalPrefix = "local:"

// KeyRef names one key of one target. It is comparable and orders as the program
// and its peer do: type, value, key, each byte by byte.
type KeyRef struct {
	Target Target
	Key    string
}

// String returns "target key", for messages.
func (k KeyRef) String() string { return k.Target.String() + " " + k.Key }

// Compare orders by target type, target value, key.
func (k KeyRef) Compare(o KeyRef) int {
	if c := k.Target.Compare(o.Target); c != 0 {
		return c
	}
	return cmp.Compare(k.Key, o.Key)
}

// IsLocal reports whether key stays in this repository (starts with "local:").
func IsLocal(key string) bool { return strings.HasPrefix(key, LocalPrefix) }

// CheckKey returns nil if key may be written, else an error that is ErrInvalid and
// names the bad segment (format.md §2, design §11).
func CheckKey(key string) error {
	if err := checkText("key", key); err != nil {
		return err
	}
	return KeyPublishable(key)
}

// KeyPublishable returns nil if key can be part of a tree path that every reader
// takes for the same key. It is what rows written by others are held to.
func KeyPublishable(key string) error {
	bad := func(why string, a ...any) error {
		return Invalid(fmt.Sprintf("key %q", key), fmt.Sprintf(why, a...), "segments are joined by ':', as in agent:model")
	}
	if key == "" {
		return bad("key is empty")
	}
	if !utf8.ValidString(key) {
		return bad("not valid UTF-8")
	}
	for seg := range strings.SplitSeq(key, ":") {
		switch {
		case seg == "":
			return bad("empty segment")
		case strings.Contains(seg, "/"):
			return bad("segment %q holds a '/'", seg)
		case strings.Contains(seg, "\x00"):
			return bad("segment %q holds a null byte", seg)
		case strings.HasPrefix(seg, "__"):
			return bad("segment %q is reserved", seg)
		case gitProtects(seg) || gitGivesMeaning(seg):
			return bad("segment %q is a name that git protects", seg)
		}
	}
	return nil
}

const oneLineHint = "names are printable text on one line"

// checkText refuses what must not stand in any name: bytes that are not UTF-8 and
// control characters.
func checkText(what, s string) error {
	if !utf8.ValidString(s) {
		return Invalid(fmt.Sprintf("%s %q", what, s), "not valid UTF-8", "")
	}
	if strings.ContainsFunc(s, IsControl) {
		return Invalid(fmt.Sprintf("%s %q", what, s), "holds a control character", oneLineHint)
	}
	return nil
}

// InNamespace reports whether key is ns or below it: whole segments, byte by byte.
func InNamespace(key, ns string) bool {
	return strings.HasPrefix(key, ns) && (len(key) == len(ns) || key[len(ns)] == ':')
}

// Namespaces is a set of namespaces, of which there may be thousands.
type Namespaces map[string]bool

// NamespacesOf returns the set of the given namespaces.
func NamespacesOf(names []string) Namespaces {
	s := make(Namespaces, len(names))
	for _, n := range names {
		s[n] = true
	}
	return s
}

// Longest returns the longest namespace of the set that key is in, "" if it is in none.
func (s Namespaces) Longest(key string) string {
	ns, _ := LongestNamespace(s, key)
	return ns
}

// LongestNamespace returns the longest of the namespaces, keys of a map, that key is in.
func LongestNamespace[V any](namespaces map[string]V, key string) (ns string, ok bool) {
	for ns = key; len(namespaces) > 0; {
		if _, ok := namespaces[ns]; ok {
			return ns, true
		}
		i := strings.LastIndexByte(ns, ':')
		if i < 0 {
			break
		}
		ns = ns[:i]
	}
	return "", false
}
