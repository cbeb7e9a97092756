package meta

import (
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// mergeVersion reads "text@time", "[a b]@time", "{m n -gone}@time"; "" is nil.
func mergeVersion(s string) *Version {
	if s == "" {
		return nil
	}
	body, at, _ := strings.Cut(s, "@")
	v := &Version{Content: &Content{Type: String, Text: body}}
	for _, c := range at {
		v.Time = v.Time*10 + int64(c-'0')
	}
	if body[0] == '[' || body[0] == '{' {
		v.Content = &Content{Type: List, Items: map[string]string{}, Gone: map[string]string{}}
		if body[0] == '{' {
			v.Content.Type = Set
		}
		for item := range strings.FieldsSeq(body[1 : len(body)-1]) {
			if name, gone := strings.CutPrefix(item, "-"); gone {
				v.Content.Gone[name] = name
			} else {
				v.Content.Items[item] = item
			}
		}
	}
	return v
}

// mergeSide is a line of history: its last value (hidden with a leading '?') and, after a
// '!', the time of a removal in it.
func mergeSide(s string) Side {
	value, removed, isRemoved := strings.Cut(s, "!")
	hidden := strings.HasPrefix(value, "?")
	v := mergeVersion(strings.TrimPrefix(value, "?"))
	out := Side{Last: v, Shown: v != nil && !hidden, Removed: isRemoved}
	if isRemoved {
		out.RemovedAt = mergeVersion("x@" + removed).Time
	}
	return out
}

func sameVersions(a, b *Version) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Content.Same(b.Content) && a.Time == b.Time && maps.Equal(a.Content.Gone, b.Content.Gone) &&
		(a.Content.Type == b.Content.Type)
}

// TestMergeTable is the table of design §8, every row with the sides swapped too.
func TestMergeTable(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, base, local, remote string // base hidden with '?'
		want                      string // hidden with '?'; "": none
		reason                    MergeReason
		loser                     string
	}{
		{name: "same, same", base: "a@1", local: "a@1", remote: "a@1", want: "a@1"},
		{name: "same, changed", base: "a@1", local: "a@1", remote: "b@2", want: "b@2"},
		{name: "same, changed with an older time", base: "a@5", local: "a@5", remote: "b@2", want: "b@2"},
		{name: "strings: the later edit", base: "a@1", local: "b@2", remote: "c@3", want: "c@3", reason: BothChanged, loser: "b@2"},
		{name: "strings at one time: the greater", base: "a@1", local: "c@2", remote: "b@2", want: "c@2", reason: BothChanged, loser: "b@2"},
		{name: "strings, the same on both sides", base: "a@1", local: "b@2", remote: "b@3", want: "b@3"},
		{name: "sets: by member", base: "{a b}@1", local: "{b c -a}@2", remote: "{a b d}@3", want: "{b c d -a}@3", reason: BothChanged},
		{name: "sets: removed on both sides", base: "{a b}@1", local: "{b -a}@2", remote: "{b -a}@3", want: "{b -a}@3"},
		{name: "sets: removed and added again", base: "{-a}@1", local: "{a}@2", remote: "{b -a}@3", want: "{a b}@3", reason: BothChanged},
		{name: "sets: a tombstone dropped by one side", base: "{a -x}@1", local: "{a}@1", remote: "{a b -x}@3", want: "{a b}@3"},
		{name: "lists: by entry", base: "[1 2]@1", local: "[2 3 -1]@2", remote: "[1 2 4]@3", want: "[2 3 4 -1]@3", reason: BothChanged},
		{name: "lists: emptied, and added", base: "[1]@1", local: "[-1]@2", remote: "[1 2]@3", want: "[2 -1]@3", reason: BothChanged},
		{name: "an empty collection is a value", base: "{a}@1", local: "{-a}@2", remote: "{a}@1", want: "{-a}@2"},
		{name: "an empty collection against an edit", base: "{a}@1", local: "{-a}@2", remote: "s@3", want: "s@3", reason: BothChanged, loser: "{-a}@2"},
		{name: "empty list, empty set", base: "s@1", local: "{-a}@2", remote: "[-b]@3", want: "[-b]@3"},
		{name: "types: the later edit", base: "a@1", local: "[x]@2", remote: "{y}@3", want: "{y}@3", reason: BothChanged, loser: "[x]@2"},
		{name: "types: string and list", base: "", local: "s@4", remote: "[x]@3", want: "s@4", reason: ConcurrentAdd, loser: "[x]@3"},

		{name: "same, removed", base: "a@5", local: "a@5", remote: "!2", want: ""},
		{name: "changed, removed later", base: "a@1", local: "b@2", remote: "!3", want: "", reason: LocalEdit, loser: "b@2"},
		{name: "changed, removed earlier", base: "a@1", local: "b@3", remote: "!2", want: "b@3", reason: LocalEdit},
		{name: "changed, removed at one time", base: "a@1", local: "b@3", remote: "!3", want: "b@3", reason: LocalEdit},
		{name: "collection changed, removed later", base: "{a}@1", local: "{a b}@2", remote: "!3", want: "", reason: LocalEdit, loser: "{a b}@2"},
		{name: "removed on both sides", base: "a@1", local: "!2", remote: "!3", want: ""},
		{name: "removed and set again", base: "a@1", local: "a@1", remote: "b@4!3", want: "b@4"},
		{name: "new, removed: no base", base: "", local: "b@3", remote: "!2", want: "b@3", reason: LocalEdit},

		{name: "same, pruned", base: "a@1", local: "a@1", remote: "?a@1", want: "?a@1"},
		{name: "changed, pruned", base: "a@1", local: "b@2", remote: "?a@1", want: "b@2"},
		{name: "changed, changed and pruned", base: "a@1", local: "b@2", remote: "?c@3", want: "?c@3", reason: BothChanged, loser: "b@2"},
		{name: "changed, changed earlier and pruned", base: "a@1", local: "b@4", remote: "?c@3", want: "b@4", reason: BothChanged, loser: "c@3"},
		{name: "sets: united although one was pruned", base: "{a}@1", local: "{a b}@2", remote: "?{a c}@3", want: "{a b c}@3", reason: BothChanged},
		{name: "pruned on both sides", base: "a@1", local: "?a@1", remote: "?a@1", want: "?a@1"},
		{name: "hidden at the base, shown by one", base: "?a@1", local: "?a@1", remote: "a@1", want: "a@1"},
		{name: "removed, pruned", base: "a@1", local: "!2", remote: "?a@1", want: ""},
		{name: "same and hidden, removed", base: "?a@1", local: "?a@1", remote: "!2", want: ""},
		{name: "changed and hidden, removed earlier", base: "a@1", local: "?b@3", remote: "!2", want: "?b@3", reason: LocalEdit},

		{name: "no base: one side", base: "", local: "a@1", remote: "", want: "a@1"},
		{name: "no base: strings", base: "", local: "a@1", remote: "b@2", want: "b@2", reason: ConcurrentAdd, loser: "a@1"},
		{name: "no base: sets", base: "", local: "{a -b}@1", remote: "{b}@2", want: "{a b}@2", reason: ConcurrentAdd},
		{name: "no base: lists", base: "", local: "[1]@1", remote: "[2]@2", want: "[1 2]@2", reason: ConcurrentAdd},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := mergeSide(tt.base)
			in := MergeInput{Base: base.Last, BaseShown: base.Shown, Local: mergeSide(tt.local), Remote: mergeSide(tt.remote)}
			want := mergeSide(tt.want)
			for _, way := range []string{"", " swapped"} {
				out := Merge(in)
				if !sameVersions(out.Result, want.Last) || out.Shown != want.Shown {
					t.Errorf("%s: result %+v shown %v, want %s", way, show(out.Result), out.Shown, tt.want)
				}
				reason := tt.reason
				if way != "" && reason == LocalEdit {
					reason = RemoteEdit
				}
				if out.Reason != reason {
					t.Errorf("%s: reason %q, want %q", way, out.Reason, reason)
				}
				if !sameVersions(out.Loser, mergeVersion(tt.loser)) {
					t.Errorf("%s: loser %s, want %s", way, show(out.Loser), tt.loser)
				}
				in.Local, in.Remote = in.Remote, in.Local
			}
		})
	}
}

func show(v *Version) string {
	if v == nil {
		return "nothing"
	}
	return strings.Join([]string{string(v.Content.Type), v.Content.Text, keysOf(v.Content.Items), "-" + keysOf(v.Content.Gone)}, " ")
}

func keysOf(m map[string]string) string {
	var b strings.Builder
	for _, k := range []string{"a", "b", "c", "d", "x", "1", "2", "3", "4"} {
		if _, ok := m[k]; ok {
			b.WriteString(k)
		}
	}
	return b.String()
}

// TestMergeRows says what becomes of the row.
func TestMergeRows(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, base, local, remote string
		row, withheld             bool
		load, unload              bool
	}{
		{name: "taken over", base: "a@1", local: "a@1", remote: "b@2", row: true, load: true},
		{name: "new", remote: "b@2", load: true},
		{name: "new, but pruned", remote: "?b@2"},
		{name: "local-pruned, changed there", base: "a@1", local: "a@1", remote: "b@2", withheld: true, load: true},
		{name: "local-pruned, the same", base: "a@1", local: "a@1", remote: "a@1", withheld: true},
		{name: "local edit alone", base: "a@1", local: "b@2", remote: "a@1", row: true},
		{name: "removed there", base: "a@1", local: "a@1", remote: "!2", row: true, unload: true},
		{name: "withheld and removed there", base: "a@1", local: "?a@1", remote: "!2", row: true, withheld: true, unload: true},
		{name: "withheld and changed there", base: "a@1", local: "?a@1", remote: "b@2", row: true, withheld: true, load: true},
		{name: "pruned there", base: "a@1", local: "a@1", remote: "?a@1", row: true, load: true},
		{name: "removed here, edited there", base: "a@1", local: "!2", remote: "b@3", load: true},
		{name: "removed here", base: "a@1", local: "!2", remote: "a@1"},
		{name: "swept there", base: "a@1", local: "a@1", remote: "", row: true},
		{name: "swept here", base: "a@1", local: "", remote: "a@1"},
	}
	for _, tt := range tests {
		base := mergeSide(tt.base)
		out := Merge(MergeInput{
			Base: base.Last, BaseShown: base.Shown, Local: mergeSide(tt.local), Remote: mergeSide(tt.remote),
			Row: tt.row, Withheld: tt.withheld,
		})
		if out.Load != tt.load || out.Unload != tt.unload {
			t.Errorf("%s: load %v, unload %v, want %v, %v", tt.name, out.Load, out.Unload, tt.load, tt.unload)
		}
	}
}

// anyVersion draws a value of one of the given types; strings have few texts and times, so
// that they meet.
func anyVersion(t *rapid.T, label string, types ...ValueType) *Version {
	v := &Version{Content: &Content{Type: rapid.SampledFrom(types).Draw(t, label+" type")}}
	v.Time = rapid.Int64Range(1, 6).Draw(t, label+" time")
	if v.Content.Type == String {
		v.Content.Text = rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, label+" text")
		return v
	}
	v.Content.Items, v.Content.Gone = map[string]string{}, map[string]string{}
	for _, m := range []string{"a", "b", "c"} {
		switch rapid.IntRange(0, 2).Draw(t, label+" "+m) {
		case 1:
			v.Content.Items[m] = m
		case 2:
			v.Content.Gone[m] = m
		}
	}
	return v
}

// anySide draws a line of history that may remove and hide.
func anySide(t *rapid.T, label string, base *Version, removals, hides bool, types ...ValueType) Side {
	s := Side{Last: base, Shown: base != nil}
	kinds := []string{"same", "edit"}
	if removals && base != nil {
		kinds = append(kinds, "remove", "remove+edit")
	}
	kind := rapid.SampledFrom(kinds).Draw(t, label)
	if strings.HasPrefix(kind, "remove") {
		s = Side{Removed: true, RemovedAt: rapid.Int64Range(1, 6).Draw(t, label+" removed at")}
	}
	if strings.HasSuffix(kind, "edit") {
		s.Last, s.Shown = anyVersion(t, label, types...), true
	}
	if hides && s.Last != nil {
		s.Shown = rapid.Bool().Draw(t, label+" shown")
	}
	return s
}

// after is the line of history that a merge leaves: both lines, with its result.
func (in MergeInput) after() Side {
	out := Merge(in)
	return Side{
		Last: out.Result, Shown: out.Shown, Removed: in.Local.Removed || in.Remote.Removed,
		RemovedAt: max(in.Local.RemovedAt, in.Remote.RemovedAt),
	}
}

func anyBase(t *rapid.T, types ...ValueType) *Version {
	if rapid.Bool().Draw(t, "base") {
		return anyVersion(t, "base", types...)
	}
	return nil
}

// TestMergeSymmetric swaps the sides.
func TestMergeSymmetric(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		types := []ValueType{String, List, Set}
		base := anyBase(t, types...)
		in := MergeInput{Base: base, BaseShown: base != nil}
		in.Local, in.Remote = anySide(t, "local", base, true, true, types...), anySide(t, "remote", base, true, true, types...)
		a := Merge(in)
		in.Local, in.Remote = in.Remote, in.Local
		b := Merge(in)
		if !sameVersions(a.Result, b.Result) || a.Shown != b.Shown || !sameVersions(a.Loser, b.Loser) {
			t.Fatalf("%s shown %v loser %s; swapped %s shown %v loser %s", show(a.Result), a.Shown, show(a.Loser), show(b.Result), b.Shown, show(b.Loser))
		}
	})
}

// TestMergeIdempotent merges a line with itself, and a merge with one of its sides.
func TestMergeIdempotent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		types := []ValueType{String, List, Set}
		base := anyBase(t, types...)
		a, b := anySide(t, "a", base, true, false, types...), anySide(t, "b", base, true, false, types...)
		self := MergeInput{Base: base, BaseShown: base != nil, Local: a, Remote: a}
		if got := Merge(self); !sameVersions(got.Result, a.Last) {
			t.Fatalf("with itself: %s, want %s", show(got.Result), show(a.Last))
		}
		// what comes of a merge contains a: its base with a is a
		m := MergeInput{Base: base, BaseShown: base != nil, Local: a, Remote: b}.after()
		again := Merge(MergeInput{Base: a.Last, BaseShown: a.Shown, Local: a, Remote: m})
		if want := m.Last; !sameVersions(again.Result, want) && !(m.Last == nil && a.Last == nil) {
			t.Fatalf("merged again with a: %s, want %s", show(again.Result), show(want))
		}
	})
}

// TestMergeAssociative merges three lines in both orders. A removal stands beside strings
// only: what a collection held before a removal that a third line edits again is kept or
// not, by who meets first. So is an edit that meets a line which removed the base's value
// and set it again: the time of that removal counts only where another line removed it too.
// And an edit is not older than the removal that it follows in its own line.
func TestMergeAssociative(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]ValueType{String, List, Set}).Draw(t, "type")
		base := anyBase(t, typ)
		if base != nil {
			base.Time = 0
		}
		var s [3]Side
		for i, l := range []string{"a", "b", "c"} {
			s[i] = anySide(t, l, base, typ == String, false, typ)
			if s[i].Last != nil && base != nil && s[i].Last.Content.Same(base.Content) {
				s[i].Removed, s[i].RemovedAt = false, 0
			}
			if s[i].Last != nil && s[i].Removed {
				s[i].Last.Time = max(s[i].Last.Time, s[i].RemovedAt)
			}
		}
		in := func(l, r Side) MergeInput {
			return MergeInput{Base: base, BaseShown: base != nil, Local: l, Remote: r}
		}
		left := Merge(in(in(s[0], s[1]).after(), s[2]))
		right := Merge(in(s[0], in(s[1], s[2]).after()))
		if !sameVersions(left.Result, right.Result) || left.Shown != right.Shown {
			t.Fatalf("(ab)c = %s shown %v, a(bc) = %s shown %v", show(left.Result), left.Shown, show(right.Result), right.Shown)
		}
	})
}
