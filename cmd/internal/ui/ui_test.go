package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOneLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain é 東":     "plain é 東",
		"a\nb\tc\r":     `a\nb\tc\r`,
		"\x1b[31m\x7f":  `\x1b[31m\x7f`,
		"\u009b\u2028":  `\u009b\u2028`,
		"bad \xff \xc3": `bad \xff \xc3`,
		"\uFFFD stays":  "\uFFFD stays",
	} {
		if got := OneLine(in); got != want {
			t.Errorf("OneLine(%q) = %q, want %q", in, got, want)
		}
	}
	if got, want := Printable("a\tb\n\x1b[0m"), "a\tb\n\\x1b[0m"; got != want {
		t.Errorf("Printable = %q, want %q", got, want)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{"", ""},
		{"12345678", "12345678"},
		{"123456789", "12345..."},
		{"éééééééé", "éééééééé"},
		{"ééééééééé", "ééééé..."},
	} {
		if got := Cut(tc.in, 8); got != tc.want {
			t.Errorf("Cut(%q, 8) = %q, want %q", tc.in, got, tc.want)
		}
	}
}

func TestDisplayWidth(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{"": 0, "abc": 3, "é": 1, "e\u0301": 1, "東京": 4, "한": 2, "🙂": 2, "a\u200bb": 2} {
		if got := DisplayWidth(in); got != want {
			t.Errorf("DisplayWidth(%q) = %d, want %d", in, got, want)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	o := (&Object{}).Add("z", 1).Add("a", []any{nil, true, int64(-2), "<&>\u2028\x1b\u0085é\"\\"}).Add("e", &Object{}).Add("l", []string{})
	got := JSON(o)
	want := `{"z":1,"a":[null,true,-2,"<&>\u2028\u001b\u0085é\"\\"],"e":{},"l":[]}`
	if got != want {
		t.Errorf("JSON =\n%s, want\n%s", got, want)
	}
	wantPretty := "{\n  \"m\": [\n    \"x\"\n  ],\n  \"e\": []\n}"
	if got := PrettyJSON((&Object{}).Add("m", []string{"x"}).Add("e", []any{})); got != wantPretty {
		t.Errorf("PrettyJSON =\n%s, want\n%s", got, wantPretty)
	}
	if got, want := JSON("bad \xff"), `"bad `+"\uFFFD"+`"`; got != want {
		t.Errorf("JSON = %s, want %s", got, want)
	}
}

func FuzzJSONString(f *testing.F) {
	f.Add("a\x00\u0085\u2028\"\\\xff")
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal([]byte(JSON(s)), &got); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if want := strings.ToValidUTF8(s, "\uFFFD"); got != want {
			t.Errorf("%q came back as %q", s, got)
		}
	})
}

func TestColor(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		env  map[string]string
		tty  bool
		want bool
	}{
		{"pipe", nil, false, false},
		{"terminal", nil, true, true},
		{"dumb terminal", map[string]string{"TERM": "dumb"}, true, false},
		{"NO_COLOR empty", map[string]string{"NO_COLOR": ""}, true, false},
		{"forced", map[string]string{"CLICOLOR_FORCE": "1"}, false, true},
		{"not forced", map[string]string{"CLICOLOR_FORCE": "0"}, false, false},
		{"NO_COLOR wins", map[string]string{"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, true, false},
	} {
		s := &IO{OutTTY: tc.tty, getenv: func(k string) (string, bool) { v, ok := tc.env[k]; return v, ok }}
		if got := s.OutPainter().Paint(Bold, "x") != "x"; got != tc.want {
			t.Errorf("%s: colour %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := newProgress(&out, func() time.Time { return now })
	p.Start("Fast", 10)
	p.Add(10)
	p.Done()
	p.Start("Serializing keys", 10)
	for range 10 {
		now = now.Add(90 * time.Millisecond)
		p.Add(1)
	}
	p.Done()
	want := "Serializing keys:  30% (3/10)\rSerializing keys:  50% (5/10)\rSerializing keys:  70% (7/10)\r" +
		"Serializing keys:  90% (9/10)\rSerializing keys: 100% (10/10), done.\n"
	if diff := cmp.Diff(out.String(), want); diff != "" {
		t.Errorf("progress (-got +want):\n%s", diff)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestOutputRemembersErrors(t *testing.T) {
	t.Parallel()
	s := New(strings.NewReader(""), failingWriter{}, &bytes.Buffer{}, func(string) (string, bool) { return "", false })
	s.Out.Println(strings.Repeat("x", 1<<20))
	s.Out.Println("more")
	if err := s.Out.Flush(); err == nil || err.Error() != "full" {
		t.Errorf("Flush = %v, want the write error", err)
	}
}
