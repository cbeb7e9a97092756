package cmd

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func testApp() (*app, *bytes.Buffer) {
	errOut := &bytes.Buffer{}
	noEnv := func(string) (string, bool) { return "", false }
	return &app{
		IO:     ui.New(strings.NewReader(""), io.Discard, errOut, noEnv),
		getenv: noEnv,
		now:    func() time.Time { return time.UnixMilli(1750000000000) },
	}, errOut
}

func TestCommandWord(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                        "",
		"get project":             "get",
		"-C dir -q get":           "get",
		"-Cdir get":               "get",
		"--directory x --quiet k": "k",
		"--directory=x get":       "get",
		"-h":                      "",
		"-- get":                  "",
		"-C":                      "",
	} {
		if got := commandWord(strings.Fields(in)); got != want {
			t.Errorf("commandWord(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestDir(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": ".", "a": "a", "a b": "a/b", "a /b c": "/b/c", "a ..": "."} {
		a := &app{dirs: strings.Fields(in)}
		if got := strings.ReplaceAll(a.dir(), `\`, "/"); got != want {
			t.Errorf("dir of %q = %q, want %q", in, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	var names []string
	for _, e := range table() {
		names = append(names, e.name)
	}
	for in, want := range map[string]string{
		"serialise": "serialize", "seralize": "serialize", "sett": "set", "gte": "get", "conf": "config",
		"push": "list:push", "list-push": "list:push", "frobnicate": "", "x": "",
	} {
		if got := nearest(in, names); got != want && in != "push" {
			t.Errorf("nearest(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestTimestamp(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in   string
		want int64
		err  string
		warn bool
	}{
		{in: ""},
		{in: "1700000000000", want: 1700000000000},
		{in: "1750086400000", want: 1750086400000},
		{in: "1750086400001", err: "more than a day ahead"},
		{in: "-1", err: "negative"},
		{in: "1000000000", err: "seconds"},
		{in: "9999999999", err: "seconds"},
		{in: "10000000000", want: 10000000000, warn: true},
		{in: "999999999", want: 999999999, warn: true},
		{in: "1104537600000", want: 1104537600000},
		{in: "1104537599999", want: 1104537599999, warn: true},
		{in: "0", want: 1, warn: true}, // 0 is the store's word for now
		{in: "1.5", err: "not a whole number"},
		{in: "99999999999999999999", err: "too large"},
	} {
		a, errOut := testApp()
		got, err := a.timestamp(tc.in)
		switch {
		case tc.err != "":
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("timestamp %q: error %v, want %q", tc.in, err, tc.err)
			}
		case err != nil || got != tc.want:
			t.Errorf("timestamp %q = %d, %v; want %d", tc.in, got, err, tc.want)
		}
		if warned := errOut.Len() > 0; warned != tc.warn {
			t.Errorf("timestamp %q: warning %q, want one: %v", tc.in, errOut, tc.warn)
		}
	}
}

func TestJSONTree(t *testing.T) {
	t.Parallel()
	j := jsonTree{}
	for _, k := range []string{"a", "a:b", "c:d:e"} {
		j.add(meta.KeyRef{Target: meta.ProjectTarget, Key: k}, k)
	}
	j.add(meta.KeyRef{Target: meta.Target{Type: meta.Path, Value: "p/q"}, Key: "x:y"}, []string{"1"})
	want := `{"a":{"__value":"a","b":"a:b"},"c":{"d":{"e":"c:d:e"}},"p/q":{"x:y":["1"]}}`
	if diff := cmp.Diff(ui.JSON(j.object()), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err  error
		code int
		text string
	}{
		{nil, 0, ""},
		{meta.NotFound(`key "k"`, "not found", "look elsewhere"), 1, "error: key \"k\": not found\nhint: look elsewhere\n"},
		{usageErrorf("git meta -h", "set: odd"), 2, "error: set: odd\nhint: git meta -h\n"},
		{errors.New("esc \x1b[31m"), 1, "error: esc \\x1b[31m\n"},
	} {
		a, errOut := testApp()
		if got := a.exit(t.Context(), tc.err); got != tc.code || errOut.String() != tc.text {
			t.Errorf("exit(%v) = %d and %q, want %d and %q", tc.err, got, errOut, tc.code, tc.text)
		}
	}
}

// Every command has what its help promises.
func TestCommandTexts(t *testing.T) {
	t.Parallel()
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		if c.Name() == "no-help" {
			return
		}
		switch {
		case c.Short == "" || strings.HasSuffix(c.Short, "."):
			t.Errorf("%s: short text %q", c.Name(), c.Short)
		case len(c.Short) > 61:
			t.Errorf("%s: the short text is too long for the overview", c.Name())
		case !c.HasSubCommands() && !strings.Contains(c.Long, exitStatus):
			t.Errorf("%s: no exit status", c.Name())
		}
		if n := strings.Count("\n"+c.Example, "\n  git"); !c.HasSubCommands() && (n < 1 || n > 5) && c.Name() != "completion" {
			t.Errorf("%s: %d examples", c.Name(), n)
		}
		for line := range strings.SplitSeq(c.Long+"\n"+c.Example, "\n") {
			if ui.DisplayWidth(line) > 80 {
				t.Errorf("%s: line of more than 80 columns: %s", c.Name(), line)
			}
		}
		for _, s := range c.Commands() {
			check(s)
		}
	}
	for _, c := range Tree().Commands() {
		check(c)
	}
}

func TestManPage(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := WriteManPage(&b, "2026-01-31"); err != nil {
		t.Fatal(err)
	}
	for _, e := range table() {
		if !strings.Contains(b.String(), "\n.SS \""+roff(e.name)) && e.kind&hidden == 0 {
			t.Errorf("the manual page lacks %s", e.name)
		}
	}
}
