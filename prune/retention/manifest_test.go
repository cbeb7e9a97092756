package retention

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize/manifest"
)

// TestParseEntries: what stands in a manifest, and what comes of it.
func TestParseEntries(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		want       string // a line for each collection: name rows days [problem]
		err        string // of the whole
	}{
		{name: "no collections", text: "url: a\n"},
		{name: "null", text: "collections:\n"},
		{name: "both", text: "collections: {ci: {retention: {maxRows: 500, maxAgeDays: 30}}}", want: "ci 500 30"},
		{name: "either", text: "collections:\n  a: {retention: {maxRows: 1}}\n  b: {retention: {maxAgeDays: 2}}\n", want: "a 1 0\nb 0 2"},
		{name: "block", text: "collections:\n  ci:\n    retention:\n      maxRows: 5\n      maxAgeDays: 7\n", want: "ci 5 7"},
		{name: "without bounds", text: "collections:\n  a:\n  b: {}\n  c: {retention: }\n  d: {retention: {}}\n  e: {retention: {maxRows: null, maxAgeDays: ~}}\n  f: {other: 1}\n", want: "a 0 0\nb 0 0\nc 0 0\nd 0 0\ne 0 0\nf 0 0"},
		{name: "fields beside", text: "other: [1]\ncollections: {a: {title: x, schema: {maxRows: 9}, retention: {maxRows: 3}, ? [1] : 2}}", want: "a 3 0"},
		{name: "names", text: "collections: {'a:b': {retention: {maxRows: 3}}, 5: {}, a b: {}, é: {}}", want: "5 0 0\na b 0 0\na:b 3 0\né 0 0"},
		{name: "aliases", text: "x: &r {maxRows: 4}\nn: &n 7\ncollections:\n  a: &a {retention: *r}\n  b: *a\n  c: {retention: {maxAgeDays: *n}}\n", want: "a 4 0\nb 4 0\nc 0 7"},
		{name: "alias of all", text: "x: &c {a: {retention: {maxRows: 4}}}\ncollections: *c\n", want: "a 4 0"},
		{name: "limits", text: "collections: {a: {retention: {maxRows: 1000000000000, maxAgeDays: 36500000}}}", want: "a 1000000000000 36500000"},

		{name: "zero", text: "collections:\n  a:\n    retention:\n      maxRows: 0\n", want: `a 0 0 f:4: collection "a": retention.maxRows: "0": must be greater than zero`},
		{name: "negative", text: "collections: {a: {retention: {maxRows: -1}}}", want: `a 0 0 f:1: collection "a": retention.maxRows: "-1": not a whole number in digits, from 1 up`},
		{name: "fraction", text: "collections: {a: {retention: {maxAgeDays: 1.5}}}", want: `a 0 0 f:1: collection "a": retention.maxAgeDays: "1.5": not a whole number in digits, from 1 up`},
		{name: "huge", text: "collections: {a: {retention: {maxRows: 99999999999999999999}}}", want: `a 0 0 f:1: collection "a": retention.maxRows: "99999999999999999999": too large; the greatest is 1000000000000`},
		{name: "above the limit", text: "collections: {a: {retention: {maxAgeDays: 36500001}}}", want: `a 0 0 f:1: collection "a": retention.maxAgeDays: "36500001": too large; the greatest is 36500000`},
		{name: "exponent", text: "collections: {a: {retention: {maxRows: 1e6}}}", want: `a 0 0 f:1: collection "a": retention.maxRows: "1e6": not a whole number in digits, from 1 up`},
		{name: "hexadecimal", text: "collections: {a: {retention: {maxRows: 0x10}}}", want: `a 0 0 f:1: collection "a": retention.maxRows: "0x10": not a whole number in digits, from 1 up`},
		{name: "octal", text: "collections: {a: {retention: {maxRows: 010}}}", want: `a 0 0 f:1: collection "a": retention.maxRows: "010": not a whole number in digits, from 1 up`},
		{name: "plus", text: "collections: {a: {retention: {maxRows: +1}}}", want: `a 0 0 f:1: collection "a": retention.maxRows: "+1": not a whole number in digits, from 1 up`},
		{name: "infinity", text: "collections: {a: {retention: {maxRows: .inf}}}", want: `a 0 0 f:1: collection "a": retention.maxRows: ".inf": not a whole number in digits, from 1 up`},
		{name: "text", text: "collections: {a: {retention: {maxRows: many}}}", want: `a 0 0 f:1: collection "a": retention.maxRows: "many": not a whole number in digits, from 1 up`},
		{name: "truth", text: "collections: {a: {retention: {maxRows: true}}}", want: `a 0 0 f:1: collection "a": retention.maxRows: "true": not a whole number in digits, from 1 up`},
		{name: "quoted", text: "collections: {a: {retention: {maxRows: '500'}}}", want: `a 0 0 f:1: collection "a": retention.maxRows: "500" is a text; write a number, without quotes`},
		{name: "tagged", text: "collections: {a: {retention: {maxRows: !!str 500}}}", want: `a 0 0 f:1: collection "a": retention.maxRows: "500" is not a number`},
		{name: "empty", text: "collections: {a: {retention: {maxRows: }}}", want: `a 0 0 f:1: collection "a": retention.maxRows: empty; write a number, or null for no bound`},
		{name: "list", text: "collections: {a: {retention: {maxRows: [5]}}}", want: `a 0 0 f:1: collection "a": retention.maxRows: not a number`},
		{name: "unknown field", text: "collections:\n  a:\n    retention:\n      maxRow: 5\n  b: {retention: {maxRows: 2}}\n", want: "a 0 0 f:4: collection \"a\": retention: unknown field \"maxRow\"; there are maxRows and maxAgeDays\nb 2 0"},
		{name: "one axis wrong", text: "collections: {a: {retention: {maxAgeDays: 5, maxRows: x}}}", want: `a 0 0 f:1: collection "a": retention.maxRows: "x": not a whole number in digits, from 1 up`},
		{name: "field twice", text: "collections:\n  a:\n    retention:\n      maxRows: 5\n      maxRows: 6\n", want: `a 0 0 f:5: collection "a": retention.maxRows stands here twice`},
		{name: "retention twice", text: "collections:\n  a:\n    retention: {maxRows: 5}\n    retention: {maxRows: 6}\n", want: `a 0 0 f:4: collection "a": retention stands here twice`},
		{name: "retention a number", text: "collections: {a: {retention: 500}}", want: `a 0 0 f:1: collection "a": retention: not a mapping like {maxRows: 500, maxAgeDays: 30}`},
		{name: "collection a number", text: "collections: {a: 500}", want: `a 0 0 f:1: collection "a": not a mapping like retention: {maxRows: 500}`},
		{name: "merge key", text: "x: &x {retention: {maxRows: 5}}\ncollections: {a: {<<: *x}}", want: `a 0 0 f:2: collection "a": merge keys are not read; name it with retention: *anchor`},
		{name: "name twice", text: "collections:\n  a: {retention: {maxRows: 5}}\n  b: {retention: {maxRows: 6}}\n  a: {retention: {maxRows: 7}}\n", want: "a 0 0 f:4: collection \"a\": line 2 has it already\nb 6 0"},
		{name: "no keys", text: "collections: {'a::b': {}, '': {}, 'a/b': {}, ':a': {}, __x: {}, \"a\\nb\": {}, ok: {}}", want: `! f:1: key "": key is empty
!:a f:1: key ":a": empty segment
!__x f:1: key "__x": segment "__x" is reserved
!a
b f:1: key "a\nb": holds a control character
!a/b f:1: key "a/b": segment "a/b" holds a '/'
!a::b f:1: key "a::b": empty segment
ok 0 0`},

		{name: "collections a list", text: "x: 1\ncollections:\n  - ci\n", err: "f:3: collections: not a mapping of names to collections"},
		{name: "collections a text", text: "collections: ci\n", err: "f:1: collections: not a mapping of names to collections"},
		{name: "name a list", text: "collections:\n  ? [a]\n  : {}\n", err: "f:2: collections: the name of a collection is a text"},
		{name: "merged collections", text: "x: &x {a: {}}\ncollections:\n  <<: *x\n", err: "f:3: collections: the name of a collection is a text"},
	} {
		f, err := manifest.Parse("f", []byte(test.text))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		entries, err := parseEntries(f)
		if test.err != "" || err != nil {
			if err == nil || err.Error() != test.err || !errors.Is(err, meta.ErrInvalid) {
				t.Errorf("%s: error %v, want %s", test.name, err, test.err)
			}
			continue
		}
		if diff := cmp.Diff(describe(entries), test.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", test.name, diff)
		}
	}
}

func describe(entries []entry) string {
	byName := map[string]string{}
	var names []string
	for _, e := range entries {
		d := e.declare(0)
		line := fmt.Sprintf("%s %d %d", e.name, d.effective.MaxRows, d.effective.MaxAgeDays)
		if !e.valid {
			line = "!" + e.name
		}
		if e.problem != nil {
			line += " " + e.problem.Error()
		}
		names = append(names, e.name)
		byName[e.name] = line
	}
	slices.Sort(names)
	for i, n := range names {
		names[i] = byName[n]
	}
	return strings.Join(names, "\n")
}

// Many aliases of one large collection cost no more than the text is long.
func TestParseEntriesAliases(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("big: &big\n")
	for i := range 40_000 {
		fmt.Fprintf(&b, "  k%d: 1\n", i)
	}
	b.WriteString("collections:\n")
	for i := range 20_000 {
		fmt.Fprintf(&b, "  c%d: *big\n", i)
	}
	f, err := manifest.Parse("f", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	entries, err := parseEntries(f)
	if err != nil || len(entries) != 20_000 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	if d := time.Since(start); d > time.Second {
		t.Errorf("took %v", d)
	}
}

func FuzzParseEntries(f *testing.F) {
	for _, s := range []string{
		"collections: {a: {retention: {maxRows: 5, maxAgeDays: 6}}}", "collections: {a: {retention: {maxRows: 0x5}}}",
		"x: &x {retention: *x}\ncollections: {a: *x}", "collections: &c {a: *c}", "collections: {? &a b : {}, *a : {}}",
		"collections: {a: {<<: {retention: {maxRows: 1}}}}", "collections: {a: {retention: {maxRows: !!int '5'}}}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := manifest.Parse("f", data)
		if err != nil {
			return
		}
		entries, err := parseEntries(m)
		if err != nil && !errors.Is(err, meta.ErrInvalid) {
			t.Fatalf("%v is not ErrInvalid", err)
		}
		for _, e := range entries {
			d := e.declare(0)
			if d.effective.MaxRows < 0 || d.effective.MaxRows > LimitRows || d.effective.MaxAgeDays < 0 || d.effective.MaxAgeDays > LimitAgeDays {
				t.Fatalf("%+v", d)
			}
			if e.problem != nil && d.effective != (Bounds{}) {
				t.Fatalf("a faulty collection is enforced: %+v", d)
			}
			if e.valid && meta.CheckKey(e.name) != nil {
				t.Fatalf("%q is no key", e.name)
			}
		}
	})
}
