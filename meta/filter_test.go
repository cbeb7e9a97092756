package meta

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// format.md §5.5
func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pattern, match, not string }{
		{"review", "review", "review:status Review reviews"},
		{"review:status", "review:status", "review review:status:x"},
		{"*", "a b", "a:b"},
		{"review:*", "review:a review:**", "review review:a:b"},
		{"*:status", "a:status", "status a:b:status a:stat"},
		{"re*", "re*", "review"}, // a star inside a longer segment is literal
		{"**", "a a:b a:b:c", ""},
		{"draft:**", "draft:a draft:a:b", "draft drafts:a"},
		{"review:**:status", "review:status review:a:status review:a:b:status", "review review:a status"},
		{"**:status", "status a:status a:b:status", "status:a"},
		{"**:b:**", "b:c a:b:c a:b:b", "b a:b"},
		{"**:**", "a a:b", ""},
		{"a:**:**", "a:b a:b:c", "a b"},
	} {
		r, err := ParseRule("exclude " + c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		for k := range strings.FieldsSeq(c.match) {
			if !r.matches(strings.Split(k, ":")) {
				t.Errorf("%s does not match %s", c.pattern, k)
			}
		}
		for k := range strings.FieldsSeq(c.not) {
			if r.matches(strings.Split(k, ":")) {
				t.Errorf("%s matches %s", c.pattern, k)
			}
		}
	}
}

// A rule can come from anybody: however many wildcards it holds, it must not stop a serialize.
func TestPatternCost(t *testing.T) {
	t.Parallel()
	r, err := ParseRule("exclude " + strings.Repeat("**:a:", 30) + "b")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if r.matches(strings.Split(strings.Repeat("a:", 100)+"c", ":")) {
		t.Error("matches")
	}
	if d := time.Since(start); d > time.Second {
		t.Errorf("took %v", d)
	}
}

func TestParseRule(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Rule{
		"exclude a:b":             {Pattern: []string{"a", "b"}},
		"  exclude\t a  ignored ": {Pattern: []string{"a"}},
		"route a x":               {Pattern: []string{"a"}, Dests: []string{"x"}},
		"route a x,,y-z, more":    {Pattern: []string{"a"}, Dests: []string{"x", "y-z"}},
		"route a main,team.ci":    {Pattern: []string{"a"}, Dests: []string{"main", "team.ci"}},
	} {
		got, err := ParseRule(text)
		want.Text = text
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%q: got -, want +\n%s", text, diff)
		}
	}
	for text, why := range map[string]string{
		"":                "empty",
		" \t":             "empty",
		"drop a":          `unknown action "drop"`,
		"Exclude a":       `unknown action "Exclude"`,
		"exclude":         "the pattern is missing",
		"route":           "the pattern is missing",
		"route a":         "the destination is missing",
		"route a ,,":      "the destination is missing",
		"route a x/y":     `"x/y" cannot be part of a ref name`,
		"route a ok,x..y": `"x..y" cannot be part of a ref name`,
		"route a .x":      `".x" cannot be part of a ref name`,
		"route a x.":      `"x." cannot be part of a ref name`,
		"route a x.lock":  `"x.lock" cannot be part of a ref name`,
		"route a @":       `"@" cannot be part of a ref name`,
		"route a x@{1":    `"x@{1" cannot be part of a ref name`,
		"route a -x":      `"-x" cannot be part of a ref name`,
		"route a x~1":     `"x~1" cannot be part of a ref name`,
		"route a x:y":     `"x:y" cannot be part of a ref name`,
		`route a x\y`:     `"x\\y" cannot be part of a ref name`,
		"route a x\x7fy":  `"x\x7fy" cannot be part of a ref name`,
	} {
		r, err := ParseRule(text)
		refused(t, err, `filter rule "`+quoteInner(text)+`": `+why, ruleHint)
		if r.Dests != nil {
			t.Errorf("%q: a malformed rule routes to %v", text, r.Dests)
		}
	}
}

// Destinations that are accepted are ones git takes.
func TestDestinationsAreRefNames(t *testing.T) {
	t.Parallel()
	for _, d := range []string{"x", "x.y", "X_1", "é", "a,b", "@x", "x@", "HEAD", "{x}", "x#", "x%y", "'x'", "x.lock.y"} {
		if validDestination(d) {
			if out, err := git(t.TempDir(), "", "check-ref-format", "refs/meta/local/"+d); err != nil {
				t.Errorf("%q: %v %s", d, err, out)
			}
		}
	}
}

func TestRoute(t *testing.T) {
	t.Parallel()
	f := NewFilter([]string{"exclude secret:**", "route ci:** builds,archive", "route ci:log:** main", "route x", "exclude", "nonsense y:*"})
	for key, want := range map[string]string{
		"a": "main", "secret": "main", "secret:x": "", "local:x": "", "local": "main",
		"ci:url": "builds archive", "ci:log:x": "builds archive main",
		"x": "", "y:z": "", "y": "main", // malformed rules exclude what their pattern covers
	} {
		if got := strings.Join(f.Route(key), " "); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	if got := strings.Join(f.Destinations(), " "); got != "archive builds main" {
		t.Errorf("destinations: %s", got)
	}
	if len(f.Problems) != 3 || f.Empty() {
		t.Errorf("problems: %v", f.Problems)
	}
	if !f.Sends("ci:url", "archive") || f.Sends("ci:url", "main") {
		t.Error("Sends")
	}
	empty := NewFilter(nil)
	if !empty.Empty() || empty.ID() != "" || !empty.Sends("a", "main") || empty.Sends("local:a", "main") {
		t.Error("the empty filter")
	}
	a, b := NewFilter([]string{"exclude a", "exclude b"}), NewFilter([]string{"exclude a\nexclude b"})
	if a.ID() == b.ID() || a.ID() != NewFilter([]string{"exclude a", "exclude b"}).ID() {
		t.Error("IDs do not tell rules apart")
	}
}
