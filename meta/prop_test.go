package meta

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pathsOf returns every kind of path that k has, with what it should read back as.
func pathsOf(k KeyRef, e Entry, member string) map[string]TreePath {
	base := k.Target.BasePath()
	at := KeyPath(base, k.Key)
	m := MemberID(member)
	return map[string]TreePath{
		ValuePath(at):                           {PathValue, k, ""},
		ListPath(at) + "/" + e.Name():           {PathEntry, k, e.Name()},
		ListTombstonesPath(at) + "/" + e.Name(): {PathEntryTombstone, k, e.Name()},
		SetPath(at) + "/" + m:                   {PathMember, k, m},
		MemberTombstonesPath(at) + "/" + m:      {PathMemberTombstone, k, m},
		TombstonePath(base, k.Key):              {PathTombstone, k, ""},
	}
}

func TestTreePathRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := KeyRef{anyTarget(t), anyKey(t)}
		e := Entry{rapid.Int64Min(0).Draw(t, "time"), rapid.String().Draw(t, "entry")}
		marked := 0
		if k.Target.NeedsMarker() {
			marked = strings.Count(k.Target.BasePath(), "/") + 1
		}
		for path, want := range pathsOf(k, e, rapid.String().Draw(t, "member")) {
			got, err := ParseTreePath(path, marked)
			if err != nil || got != want {
				t.Fatalf("%s: got %v, %v, want %v", path, got, err, want)
			}
			for c := range strings.SplitSeq(path, "/") {
				if gitProtects(c) || gitGivesMeaning(c) {
					t.Fatalf("%s: git protects %q", path, c)
				}
			}
		}
	})
}

// A target that is accepted reads back from its own text and from its marker.
func TestTargetRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := anyTarget(t)
		got, err := ParseTarget(want.String())
		if strings.HasPrefix(want.Value, "refs/heads/") {
			return
		}
		if err != nil || got != want {
			t.Fatalf("%v: got %v, %v", want, got, err)
		}
		if want.Type != Branch && want.Type != ChangeID {
			return
		}
		p, err := ParseTreePath(want.MarkerPath(), 0)
		if err != nil || p.Kind != PathMarker || p.Target != want {
			t.Fatalf("%s: got %v, %v", want.MarkerPath(), p, err)
		}
	})
}

// naiveMatch is format.md §5.5 word for word.
func naiveMatch(pat, segs []string) bool {
	if len(pat) == 0 {
		return len(segs) == 0
	}
	if pat[0] != "**" {
		return len(segs) > 0 && (pat[0] == "*" || pat[0] == segs[0]) && naiveMatch(pat[1:], segs[1:])
	}
	if len(pat) == 1 {
		return len(segs) > 0
	}
	for i := range len(segs) + 1 {
		if naiveMatch(pat[1:], segs[i:]) {
			return true
		}
	}
	return false
}

func TestMatchIsNaiveMatch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pat := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "*", "**"}), 1, 6).Draw(t, "pattern")
		segs := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 7).Draw(t, "segments")
		if got, want := (Rule{Pattern: pat}).matches(segs), naiveMatch(pat, segs); got != want {
			t.Fatalf("%q on %q: got %v, want %v", pat, segs, got, want)
		}
	})
}

func TestJSONRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		if got := DecodeJSONString(EncodeJSONString(s)); got != s {
			t.Fatalf("%q: got %q", s, got)
		}
		ms, explicit := rapid.Int64().Draw(t, "ms"), rapid.Bool().Draw(t, "explicit")
		gotMS, email, gotExplicit, err := DecodeTombstone(EncodeTombstone(ms, s, explicit))
		if err != nil || gotMS != ms || email != s || gotExplicit != explicit {
			t.Fatalf("got %d, %q, %v, %v", gotMS, email, gotExplicit, err)
		}
	})
}

func TestTimesRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Int64Range(-1<<40, 1<<40).Draw(t, "seconds")
		near := rapid.Map(rapid.Int64Range(-2, 2), func(d int64) int64 { return seconds*1000 + d })
		ms := rapid.SliceOfN(rapid.OneOf(near, rapid.Int64()), 0, 9).Draw(t, "ms")
		h := EncodeTimes(ms, seconds)
		if h == "" {
			if slices.ContainsFunc(ms, func(t int64) bool { return t != seconds*1000 }) {
				t.Fatal("the header is left out though a time differs")
			}
			return
		}
		got, err := DecodeTimes(h, seconds, len(ms))
		if err != nil || !slices.Equal(got, ms) {
			t.Fatalf("%s: got %v, %v, want %v", h, got, err, ms)
		}
		for _, n := range []int{len(ms) - 1, len(ms) + 1} {
			if _, err := DecodeTimes(h, seconds, n); err == nil {
				t.Fatalf("%s fits %d keys too", h, n)
			}
		}
	})
}

func TestSizeRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shift := rapid.SampledFrom([]int{0, 10, 20, 30}).Draw(t, "shift")
		n := rapid.Int64Range(0, 1<<63-1).Draw(t, "n") >> shift
		suffix := map[int]string{0: "", 10: "k", 20: "M", 30: "g"}[shift]
		if got, err := ParseSize(fmt.Sprint(n, suffix)); err != nil || got != n<<shift {
			t.Fatalf("%d%s: got %d, %v", n, suffix, got, err)
		}
	})
}
