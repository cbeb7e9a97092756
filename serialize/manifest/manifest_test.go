package manifest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/meta"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		url        string
		depth      int
		err        string // of parsing, or else of RequireURL
	}{
		{name: "plain", text: "url: https://a/b\n", url: "https://a/b"},
		{name: "blanks and slash", text: "url: '  https://a/b/ '\r\n", url: "https://a/b"},
		{name: "one slash only", text: "url: https://a/b//\n", url: "https://a/b/"},
		{name: "depth", text: "depth: 7\nurl: a:b\n", url: "a:b", depth: 7},
		{name: "null depth", text: "depth:\nurl: a:b\n", url: "a:b"},
		{name: "unknown keys", text: "x: [1, {y: 2}]\nurl: a:b\n? [1, 2]\n: 3\n", url: "a:b"},
		{name: "byte order mark", text: "\ufeffurl: a:b\n", url: "a:b"},
		{name: "json", text: `{"url": "a:b", "depth": 3}`, url: "a:b", depth: 3},
		{name: "alias", text: "x: &u a:b\nurl: *u\n", url: "a:b"},
		{name: "document marks", text: "---\nurl: a:b\n...\n", url: "a:b"},
		{name: "empty", text: "", err: "f: the file is empty or contains no metadata remote URL"},
		{name: "comments", text: "# x\n", err: "f: the file is empty or contains no metadata remote URL"},
		{name: "null", text: "~\n", err: "f: the file is empty or contains no metadata remote URL"},
		{name: "empty mapping", text: "{}", err: "f: the file is empty or contains no metadata remote URL"},
		{name: "no url", text: "collections: {}\n", err: `f: missing field "url"`},
		{name: "null url", text: "depth: 1\nurl:\n", err: "f:2: empty url value"},
		{name: "slash", text: "url: /\n", err: "f:1: empty url value"},
		{name: "number", text: "url: 5\n", err: "f:1: url: not a text; put it in quotes"},
		{name: "list", text: "url: [a]\n", err: "f:1: url: not a text; put it in quotes"},
		{name: "text", text: "https://a/b\n", err: "f:1: not a mapping of names to values like url: https://example.com/metadata.git"},
		{name: "twice", text: "url: a\nurl: b\n", err: `f:2: duplicate field "url", which line 1 has already`},
		{name: "zero", text: "url: a\ndepth: 0\n", err: "f:2: depth: 0; omit depth for the whole history"},
		{name: "negative", text: "depth: -1\n", err: `f:1: depth: "-1" is not a whole number above 0`},
		{name: "fraction", text: "depth: 1.5\n", err: `f:1: depth: "1.5" is not a whole number above 0`},
		{name: "huge", text: "depth: 4294967296\n", err: `f:1: depth: "4294967296" is not a whole number above 0`},
		{name: "quoted", text: "depth: '3'\n", err: `f:1: depth: "3" is not a whole number above 0`},
		{name: "two documents", text: "url: a\n---\nurl: b\n", err: "f: more than one document"},
		{name: "tab", text: "url: a\n\tb: c\n", err: "f:2: not valid YAML: found a tab character that violates indentation"},
		{name: "not text", text: "url: \xff\n", err: "f: not valid YAML: invalid leading UTF-8 octet"},
		{name: "too large", text: "#" + strings.Repeat("x", maxBytes), err: "f: larger than 1 MiB"},
	} {
		m, err := Parse("f", []byte(test.text))
		if err == nil {
			err = m.RequireURL()
		}
		if test.err != "" {
			if err == nil || !strings.HasPrefix(err.Error(), test.err) || !errors.Is(err, meta.ErrInvalid) {
				t.Errorf("%s: error %v, want %s", test.name, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		} else if m.URL != test.url || m.Depth != test.depth {
			t.Errorf("%s: url %q, depth %d", test.name, m.URL, m.Depth)
		}
	}
}

func TestKeepsAliasesShort(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("a: &a [x, x, x, x, x, x, x, x, x, x]\n")
	for c := 'b'; c <= 'k'; c++ { // ten thousand million x
		fmt.Fprintf(&b, "%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 10), ", "))
	}
	start := time.Now()
	if _, err := Parse("f", []byte(b.String()+"url: a\n")); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d > time.Second {
		t.Errorf("took %v", d)
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"https://a/b", "git@a:b", "a: b", "#x", "null", "5", "*x"} {
		text, err := Format(url)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Parse("f", text)
		if err != nil || m.URL != url {
			t.Errorf("%q: %q, %v", url, text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"url: a\n", "url: a\ndepth: 3\n", "# x", "a: &a [*a]\n", "url: *x", "<<: {url: b}\n", "? ? a\n: b\n", "---\n---\n", "url: !!binary aGk=\n", "depth: 0x10\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse("f", data)
		if err != nil {
			if !errors.Is(err, meta.ErrInvalid) {
				t.Fatalf("%v is not ErrInvalid", err)
			}
			return
		}
		if m.Depth < 0 {
			t.Fatalf("%+v", m)
		}
		if m.URL == "" && m.RequireURL() == nil {
			t.Fatal("no url and no error")
		}
	})
}
