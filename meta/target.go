package meta

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
)

// TargetType says what a target is. The text is stored and published.
type TargetType string

// The target types (format.md §1.1).
const (
	Branch   TargetType = "branch"
	ChangeID TargetType = "change-id"
	Commit   TargetType = "commit"
	Path     TargetType = "path"
	Project  TargetType = "project"
)

// TargetTypes lists every type in the order of their names.
var TargetTypes = []TargetType{Branch, ChangeID, Commit, Path, Project}

// Known reports whether t is one of [TargetTypes].
func (t TargetType) Known() bool {
	switch t {
	case Branch, ChangeID, Commit, Path, Project:
		return true
	}
	return false
}

// Target is what metadata hangs on. Value is empty for the project.
type Target struct {
	Type  TargetType
	Value string
}

// ProjectTarget is the target of project-wide metadata and configuration.
var ProjectTarget = Target{Type: Project}

const targetHint = "a target is project, commit:REV, branch:NAME, change-id:ID or path:PATH"

// ParseTarget reads "type:value" or "project" as a user types it. A path is cleaned
// as git does. A commit's value is returned as typed: the caller resolves it to a
// full id. Errors are ErrInvalid.
func ParseTarget(s string) (Target, error) {
	op := fmt.Sprintf("target %q", s)
	if err := checkText("target", s); err != nil {
		return Target{}, err
	}
	typ, value, colon := strings.Cut(s, ":")
	t := Target{TargetType(typ), value}
	switch {
	case !colon && s != string(Project):
		return Target{}, Invalid(op, "not in the form type:value", targetHint)
	case !t.Type.Known():
		return Target{}, Invalid(op, fmt.Sprintf("unknown target type %q", typ), targetHint)
	case t.Type == Project && value != "":
		return Target{}, Invalid(op, "the project has no value", "use the target project")
	case t.Type == Project:
		return ProjectTarget, nil
	case value == "":
		return Target{}, Invalid(op, "the value is missing", targetHint)
	}
	if short, ok := strings.CutPrefix(value, "refs/heads/"); ok && t.Type == Branch {
		return Target{}, Invalid(op, "a branch is named without refs/heads/", "branch:"+short)
	}
	if t.Type == Path {
		clean, why := cleanPath(value)
		if why != "" {
			return Target{}, Invalid(op, why, "give the path from the top of the repository, as in path:src/main.go")
		}
		t.Value = clean
	}
	if t.Type == Commit {
		return t, nil
	}
	if why := t.unpublishable(); why != "" {
		return Target{}, Invalid(op, why, "take another name: git trees cannot hold this one")
	}
	return t, nil
}

// cleanPath drops "." and empty components; why is set for a path that leaves the
// repository or names nothing.
func cleanPath(p string) (clean, why string) {
	if strings.HasPrefix(p, "/") {
		return "", "the path is absolute"
	}
	var out []string
	for c := range strings.SplitSeq(p, "/") {
		switch c {
		case "", ".":
		case "..":
			return "", "the path holds '..'"
		default:
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return "", "the path names nothing; for the whole repository use the target project"
	}
	return strings.Join(out, "/"), ""
}

// Publishable returns nil if t can be published in a tree, else an error that is
// ErrInvalid. One- and two-byte values are publishable only where the project
// allows them: see [Target.Short].
func (t Target) Publishable() error {
	if why := t.unpublishable(); why != "" {
		return Invalid(fmt.Sprintf("target %q", t.String()), why, "")
	}
	return nil
}

func (t Target) unpublishable() string {
	if t.Type == Project {
		if t.Value != "" {
			return "a project row with a value"
		}
		return ""
	}
	if t.Value == "" {
		return "the value is missing"
	}
	for c := range strings.SplitSeq(t.Value, "/") {
		switch {
		case c == "":
			return "an empty component"
		case gitProtects(c):
			return fmt.Sprintf("component %q is a name that git protects", c)
		case strings.Contains(c, "\x00"):
			return "a null byte"
		case t.Type != Path && gitGivesMeaning(c):
			return fmt.Sprintf("component %q is a name that git protects", c)
		case t.Type != Path && isReserved(c):
			return fmt.Sprintf("component %q is reserved", c)
		}
	}
	if t.Type == Commit && (len(t.Value) < 2 || strings.Contains(t.Value, "/")) {
		return "not a commit id"
	}
	return ""
}

func isReserved(c string) bool {
	switch c {
	case segValue, segList, segSet, segTombstones, segDeleted, segTarget:
		return true
	}
	return false
}

// Short reports whether the value is so short (1 or 2 bytes) that a clone that runs
// the peer stops at it (design §11).
func (t Target) Short() bool { return t.Type != Project && len(t.Value) < 3 }

// IsCommitID reports whether s is a full commit id: 40 (or 64) lower-case hex digits.
func IsCommitID(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	return isHex(s)
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// String returns "project" or "type:value", as typed and as written in commit
// messages.
func (t Target) String() string {
	if t.Type == Project {
		return string(Project)
	}
	return string(t.Type) + ":" + t.Value
}

// Label returns the form used in confirmations: "project" or "type value".
func (t Target) Label() string {
	if t.Type == Project {
		return string(Project)
	}
	return string(t.Type) + " " + t.Value
}

// Compare orders by type, then value, byte by byte.
func (t Target) Compare(o Target) int {
	if c := cmp.Compare(t.Type, o.Type); c != 0 {
		return c
	}
	return cmp.Compare(t.Value, o.Value)
}

// shard returns the two characters that fan out branches and change-ids.
func shard(value string) string {
	sum := sha1.Sum([]byte(value))
	return hex.EncodeToString(sum[:1])
}
