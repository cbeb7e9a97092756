package meta

import (
	"maps"
	"strings"
)

// Content is a value as a merge sees it: by ids, not by text.
type Content struct {
	Type  ValueType
	Text  string            // String: the id of the text
	Items map[string]string // List: entry name → id; Set: member id → id
	Gone  map[string]string // tombstones of entries or members, by name → id
}

// Same reports whether c and o are the same value; both may be nil. Tombstones do not
// count. An empty collection is the same whatever its type.
func (c *Content) Same(o *Content) bool {
	switch {
	case c == nil || o == nil:
		return c == o
	case c.Type == String || o.Type == String:
		return c.Type == o.Type && c.Text == o.Text
	case len(c.Items)+len(o.Items) == 0:
		return true
	}
	return c.Type == o.Type && maps.Equal(c.Items, o.Items)
}

// Version is a value with the edit that made it.
type Version struct {
	Content *Content
	Time    int64 // ms
	Email   string
}

// Side is what one line of history says of a key since the last common commit.
type Side struct {
	Last      *Version // the value it has or, if it was pruned, last had; nil: removed, swept or never there
	Shown     bool     // the tree at the end of the line holds the value
	Removed   bool     // a removal that counts lies in the line
	RemovedAt int64    // ms; of the latest one
}

// MergeInput is one key to be merged (design §8).
type MergeInput struct {
	Base          *Version // value at the last common commit, or the one it last had before
	BaseShown     bool     // the tree of the last common commit holds it
	Local, Remote Side     // Local.Last is the row where there is one
	Row           bool     // the store has a row of the key
	Withheld      bool     // the row, or its absence, is withheld
	// Greater breaks the tie of two strings edited at the same time: whether a's text is
	// greater than b's, byte by byte.
	Greater func(a, b *Content) bool
}

// MergeReason says why an edit was not simply taken over.
type MergeReason string

// The reasons reported.
const (
	BothChanged   MergeReason = "both-changed"
	ConcurrentAdd MergeReason = "concurrent-add"
	LocalEdit     MergeReason = "local-modified-remote-removed"
	RemoteEdit    MergeReason = "remote-modified-local-removed"
)

// MergeOutcome is the decision on one key.
type MergeOutcome struct {
	Result     *Version // the value; nil: none
	Shown      bool     // the value is in the merged tree; else it is withheld
	Load       bool     // the row becomes Result
	Unload     bool     // the row goes: removed on the other side
	Reason     MergeReason
	Resolution string   // "local", "remote" or "union", with Reason
	Loser      *Version // the string or value of another type that lost
}

// Both reports whether the value has to be decided from both sides: neither removed it,
// and it is not the local edit alone.
func (in MergeInput) Both() bool {
	mine, theirs, was := in.Local.Last, in.Remote.Last, content(in.Base)
	return mine != nil && theirs != nil && (!theirs.Content.Same(was) || mine.Content.Same(was))
}

// Merge decides one key. It is symmetric: with the sides swapped it gives the same
// result, and idempotent and associative for one base.
func Merge(in MergeInput) MergeOutcome {
	mine, theirs := in.Local.Last, in.Remote.Last
	was := content(in.Base)
	switch {
	case theirs == nil && in.Remote.Removed:
		return in.removedThere(mine, was)
	case mine == nil && in.Local.Removed:
		return in.removedHere(theirs, was)
	case theirs == nil || mine != nil && theirs.Content.Same(was) && !mine.Content.Same(was):
		if mine == nil {
			return MergeOutcome{}
		}
		swept := theirs == nil && in.Base != nil && mine.Content.Same(was)
		out := MergeOutcome{Result: mine, Shown: in.Local.Shown && !swept}
		if theirs != nil {
			out.Result = withGone(mine, in.Base, mine, theirs)
			out.Load = in.Row && !maps.Equal(out.Result.Content.Gone, mine.Content.Gone)
		}
		return out
	case mine == nil:
		if in.Base != nil && theirs.Content.Same(was) {
			return MergeOutcome{} // swept here
		}
		return MergeOutcome{Result: theirs, Shown: in.Remote.Shown, Load: in.Remote.Shown}
	}
	out := in.both(mine, theirs, was)
	out.Result = withGone(out.Result, in.Base, mine, theirs)
	out.Load = in.Row || out.Shown && !(in.Withheld && theirs.Content.Same(was))
	return out
}

func content(v *Version) *Content {
	if v == nil {
		return nil
	}
	return v.Content
}

// removedThere decides a key that the remote removed.
func (in MergeInput) removedThere(mine *Version, was *Content) MergeOutcome {
	if mine == nil {
		return MergeOutcome{Unload: in.Row}
	}
	if mine.Content.Same(was) {
		return MergeOutcome{Unload: true}
	}
	if mine.Time >= in.Remote.RemovedAt {
		return MergeOutcome{Result: mine, Shown: in.Local.Shown, Reason: LocalEdit, Resolution: "local"}
	}
	return MergeOutcome{Unload: true, Reason: LocalEdit, Resolution: "remote", Loser: mine}
}

// removedHere decides a key that was removed here.
func (in MergeInput) removedHere(theirs *Version, was *Content) MergeOutcome {
	if theirs == nil || theirs.Content.Same(was) {
		return MergeOutcome{}
	}
	if theirs.Time >= in.Local.RemovedAt {
		return MergeOutcome{Result: theirs, Shown: in.Remote.Shown, Load: true, Reason: RemoteEdit, Resolution: "remote"}
	}
	return MergeOutcome{Reason: RemoteEdit, Resolution: "local", Loser: theirs}
}

// both decides a key that has a value on both sides.
func (in MergeInput) both(mine, theirs *Version, was *Content) MergeOutcome {
	local, remote := in.Local.Shown, in.Remote.Shown
	if mine.Content.Same(theirs.Content) {
		out := MergeOutcome{Result: mine, Shown: local || remote}
		if in.BaseShown {
			out.Shown = local && remote
		}
		if theirs.Time > mine.Time || theirs.Time == mine.Time && theirs.Content.Type > mine.Content.Type {
			out.Result = theirs
		}
		return out
	}
	if in.Base != nil && mine.Content.Same(was) {
		return MergeOutcome{Result: theirs, Shown: remote}
	}
	out := in.join(mine, theirs, was)
	out.Reason = BothChanged
	if in.Base == nil {
		out.Reason = ConcurrentAdd
	}
	switch {
	case out.Result.Content.Same(theirs.Content):
		out.Shown = remote
	case out.Result.Content.Same(mine.Content):
		out.Shown = local
	default:
		out.Shown = local || remote
	}
	return out
}

// join unites two values that differ from the base and from each other: collections by
// entry or member, everything else by the later edit.
func (in MergeInput) join(mine, theirs *Version, was *Content) MergeOutcome {
	a, b := mine.Content, theirs.Content
	if a.Type != b.Type || a.Type == String {
		if in.later(mine, theirs) {
			return MergeOutcome{Result: mine, Resolution: "local", Loser: theirs}
		}
		return MergeOutcome{Result: theirs, Resolution: "remote", Loser: mine}
	}
	var base map[string]string
	if was != nil && was.Type == a.Type {
		base = was.Items
	}
	v := &Version{Content: &Content{Type: a.Type, Items: threeWay(base, a.Items, b.Items)}, Time: mine.Time, Email: mine.Email}
	if theirs.Time > mine.Time {
		v.Time, v.Email = theirs.Time, theirs.Email
	}
	return MergeOutcome{Result: v, Resolution: "union"}
}

// later reports whether a is the later edit; equal times: the greater text; different
// types at one time: the greater type.
func (in MergeInput) later(a, b *Version) bool {
	switch {
	case a.Time != b.Time:
		return a.Time > b.Time
	case a.Content.Type != b.Content.Type:
		return a.Content.Type > b.Content.Type
	case in.Greater != nil:
		return in.Greater(a.Content, b.Content)
	}
	return strings.Compare(a.Content.Text, b.Content.Text) > 0
}

// threeWay unites two sets: what one side dropped is gone, what one side added is in.
func threeWay(base, a, b map[string]string) map[string]string {
	out := make(map[string]string, max(len(a), len(b)))
	for k, v := range a {
		_, inBase := base[k]
		if w, inB := b[k]; inB {
			out[k] = max(v, w)
		} else if !inBase {
			out[k] = v
		}
	}
	for k, v := range b {
		_, inBase := base[k]
		if _, inA := a[k]; !inA && !inBase {
			out[k] = v
		}
	}
	return out
}

// withGone returns v, if it is a list or set, with the tombstones of both sides merged,
// without those of items that are there. A side without the key's type has none.
func withGone(v, base, mine, theirs *Version) *Version {
	if v.Content.Type == String {
		return v
	}
	gone := func(x *Version) map[string]string {
		if x == nil || x.Content.Type != v.Content.Type {
			return nil
		}
		return x.Content.Gone
	}
	g := threeWay(gone(base), gone(mine), gone(theirs))
	for name := range v.Content.Items {
		delete(g, name)
	}
	c := *v.Content
	c.Gone = g
	return &Version{Content: &c, Time: v.Time, Email: v.Email}
}
