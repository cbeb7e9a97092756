package gitdb

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var nastyConfigs = map[string]string{
	"plain":        "[core]\n\tbare = false\n[a \"Sub.X\"]\n\tB-c9=1\n[A]\nd = 2 ; c\n",
	"no value":     "[a]\n\tb\n\tc =\n  d=\n e  \n f # x\n",
	"quotes":       "[a]\nb = \"  x ; # y  \"  z\nc = a\\\"b\\\\c\\nd\\te\\bf\nd = \"a\"\"b\"\n",
	"continued":    "[a]\nb = one \\\n  two\\\nthree\nc = \"q \\\n r\"\n",
	"crlf":         "[a]\r\nb = 1\r\n[c \"d\"]\r\ne = f\\\r\n g\r\n",
	"bom":          "\xef\xbb\xbf[a]\nb = 1\n",
	"comments":     "# x\n; y\n[a] # z\nb = 1 # c\nc = 2;d\n",
	"subsection":   "[a \"x\\\"y\\\\z\\q\"]\nb=1\n[a.Old.Style]\nc=2\n[a \"]\"]\nd=3\n[a   \"sp\"] e=4\n[a \"\"]\nf=5\n",
	"same line":    "[a] b = 1\n[c]d=2\n",
	"case":         "[AbC \"DeF\"]\nGhI = JkL\n[abc \"def\"]\nghi=2\n",
	"no newline":   "[a]\nb = 1",
	"spaces":       "[a]\nb =    x  y   z   \n",
	"tab inside":   "[a]\nb = x\ty\n",
	"cr inside":    "[a]\nb = x\ry\n",
	"bytes":        "[a]\nb = \xff\xfe caf\xc3\xa9\n[s \"\xfft\"]\nc=1\n",
	"empty":        "",
	"dash section": "[a-b.c]\nd=1\n",
	"eof escape":   "[a]\nb = x\\",
	"dup":          "[a]\nb=1\nb=2\n[a]\nb=3\n",
	"url":          "[url \"git@github.com:\"]\n\tinsteadOf = https://github.com/\n[remote \"o\"]\n\tfetch = +refs/heads/*:refs/remotes/o/*\n",
	"ff vt":        "[a]\nb = x\fy\vz\n",
}

func TestParseConfig(t *testing.T) {
	dir := t.TempDir()
	for name, text := range nastyConfigs {
		p := filepath.Join(dir, "c")
		write(t, p, text)
		out, err := gitErr(dir, "", "config", "--file", p, "--list", "-z")
		got, gotErr := parseConfig([]byte(text))
		if gotErr != nil {
			// Leaving it to git is always right, but these are common.
			if err == nil && name != "tab inside" && name != "cr inside" {
				t.Errorf("%s: left to git", name)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: git refuses: %s", name, out)
			continue
		}
		if d := cmp.Diff(got, parseConfigList([]byte(out))); d != "" {
			t.Errorf("%s: got -, git +:\n%s", name, d)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	for _, s := range nastyConfigs {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		es, err := parseConfig(b)
		if err != nil {
			return
		}
		for _, e := range es {
			if !strings.Contains(e.Key, ".") || e.NoValue && e.Value != "" {
				t.Errorf("entry %+v", e)
			}
			e.bool()
			CanonicalKey(e.Key)
		}
	})
}

func TestConfigSources(t *testing.T) {
	dir := newRepo(t)
	git(t, dir, "worktree", "add", "-q", "../wt")
	wt := filepath.Join(filepath.Dir(dir), "wt")
	git(t, dir, "config", "a.local", "1")
	write(t, filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "git/config"), "[a]\n\txdg = 1\n")
	defer os.RemoveAll(os.Getenv("XDG_CONFIG_HOME"))
	inc := filepath.Join(t.TempDir(), "inc")
	write(t, inc, "[a]\n\tincluded = yes\n")
	sys := filepath.Join(t.TempDir(), "sys")
	write(t, sys, "[a]\n\tsystem = yes\n")
	list := func(t *testing.T, dir string, plain bool) *Config {
		t.Helper()
		r := discover(t, dir)
		c, err := r.Config(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out := parseConfigList([]byte(git(t, dir, "config", "--list", "-z")))
		if d := cmp.Diff(slices.Collect(c.Entries()), out); d != "" {
			t.Errorf("got -, git +:\n%s", d)
		}
		if _, err := r.plainConfig(); (err == nil) != plain {
			t.Errorf("plain: %v", err)
		}
		return c
	}
	t.Run("plain", func(t *testing.T) { list(t, dir, true) })
	t.Run("system", func(t *testing.T) {
		t.Setenv("GIT_CONFIG_NOSYSTEM", "0")
		t.Setenv("GIT_CONFIG_SYSTEM", sys)
		if v, _ := list(t, dir, true).Get("A.System"); v != "yes" {
			t.Error(v)
		}
	})
	t.Run("global", func(t *testing.T) {
		t.Setenv("GIT_CONFIG_GLOBAL", sys)
		list(t, dir, true)
	})
	t.Run("env", func(t *testing.T) {
		t.Setenv("GIT_CONFIG_COUNT", "1")
		t.Setenv("GIT_CONFIG_KEY_0", "a.env")
		t.Setenv("GIT_CONFIG_VALUE_0", "x\ny")
		t.Setenv("GIT_CONFIG", sys)
		r := discover(t, dir)
		c, err := r.Config(t.Context())
		if v, _ := c.Get("a.env"); err != nil || v != "x\ny" {
			t.Error(v, err)
		}
		if _, ok := c.Get("a.system"); ok {
			t.Error("GIT_CONFIG is obeyed")
		}
	})
	t.Run("include", func(t *testing.T) {
		git(t, dir, "config", "include.path", inc)
		defer git(t, dir, "config", "--unset", "include.path")
		if !list(t, dir, false).Bool("a.included", false) {
			t.Error("not included")
		}
	})
	t.Run("worktree", func(t *testing.T) {
		git(t, dir, "config", "extensions.worktreeConfig", "true")
		git(t, wt, "config", "--worktree", "a.wt", "1")
		list(t, wt, true)
		list(t, dir, true)
	})
}

func TestConfigGetters(t *testing.T) {
	es, err := parseConfig([]byte("[a]\nt\nf=no\nn=0x10\nk=2k\nbad=maybe\nneg=-1\n[r \"B.c\"]\nu=1\n[r \"B.c\"]\nu=2\n[r \"a\"]\nv=\n"))
	must(err)
	c := newConfig(es)
	got := []any{
		c.Bool("a.T", false), c.Bool("a.f", true), c.Bool("a.n", false), c.Bool("a.bad", true), c.Bool("a.none", true),
		c.Bool("a.neg", false), c.Int("a.k", 0), c.Int("a.n", 0), c.Int("a.bad", 7), c.GetAll("R.B.c.U"), c.GetAll("r.b.c.u"), c.Subsections("R"),
	}
	want := []any{true, false, true, true, true, true, int64(2048), int64(16), int64(7), []string{"1", "2"}, []string(nil), []string{"B.c", "a"}}
	if d := cmp.Diff(got, want); d != "" {
		t.Error(d)
	}
}
