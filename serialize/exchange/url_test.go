package exchange

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/git-meta/git-meta-go/meta"
)

func TestResolveURL(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	for _, d := range []string{"tree/own/repo", "out", "own/repo"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(tree, "own"), filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	user := URLContext{Dir: dir}
	file := URLContext{Dir: tree, Untrusted: true, Inside: []string{tree}}
	const refused = "\x00refused"
	for _, test := range []struct {
		text       string
		user, file string // "" means as it is
	}{
		{"https://example.com/a.git", "", ""},
		{"https://user:pass@example.com:8443/a", "", ""},
		{"ssh://git@example.com:22/~a/b", "", ""},
		{"git+ssh://example.com/a", "", ""},
		{"git://example.com/a", "", ""},
		{"git@example.com:a/b.git", "", ""},
		{"[git@example.com:22]:a", "", ""},
		{"git@[::1]:a", "", ""},
		{"host:a", "", ""},
		{"https://example.com/a b", "", ""},
		{"team/repo", "git@github.com:team/repo.git", "git@github.com:team/repo.git"},
		{"team/repo.git", "git@github.com:team/repo.git", "git@github.com:team/repo.git"},
		{"own/repo", filepath.Join(dir, "own/repo"), "git@github.com:own/repo.git"},
		{"a/b/c", filepath.Join(dir, "a/b/c"), refused},
		{"../out", filepath.Join(filepath.Dir(dir), "out"), filepath.Join(dir, "out")},
		{"./x", filepath.Join(dir, "x"), refused},
		{"x", filepath.Join(dir, "x"), refused},
		{dir + "/out", "", ""},
		{dir + "/out/", "", ""},
		{dir + "/nowhere/at/all", "", ""},
		{"file://" + dir + "/out", "", ""},
		{"file://" + tree, "", refused},
		{"file://" + dir + "/%74ree/x", "", refused},
		{"file://relative", refused, refused},
		{tree + "/x/y", "", refused},
		{dir + "/link/repo", "", refused},
		{dir + "/link/new", "", refused},

		{"", refused, refused},
		{" ", refused, refused},
		{"-x", refused, refused},
		{"--upload-pack=touch x", refused, refused},
		{"ext::sh -c x", refused, refused},
		{"fd::7", refused, refused},
		{"::x", refused, refused},
		{"hg::https://example.com", "", refused},
		{"ftp://example.com/x", "", refused},
		{"HTTPS://example.com/x", "", refused}, // git would look for git-remote-HTTPS
		{"ssh://-oProxyCommand=x/y", refused, refused},
		{"ssh://%2doProxyCommand=x/y", refused, refused},
		{"ssh://u@-o/y", refused, refused},
		{"https:///x", refused, refused},
		{"u@-o:x", refused, refused},
		{"[-o]:x", refused, refused},
		{"host:-x", refused, refused},
		{"https://example.com/\nx", refused, refused},
		{"https://example.com/\x7f", refused, refused},
		{"a\xff", refused, refused},
	} {
		for _, c := range []struct {
			ctx  URLContext
			want string
		}{{user, test.user}, {file, test.file}} {
			got, err := ResolveURL(test.text, c.ctx)
			want := c.want
			if want == "" {
				want = test.text
			}
			if err != nil {
				if !errors.Is(err, meta.ErrInvalid) {
					t.Errorf("ResolveURL(%q): %v is not ErrInvalid", test.text, err)
				}
				got = refused
			}
			if got != want {
				t.Errorf("ResolveURL(%q), untrusted %v = %q (%v), want %q", test.text, c.ctx.Untrusted, got, err, want)
			}
		}
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, shown, stripped string }{
		{"https://user:pass@example.com/x", "https://user:<redacted>@example.com/x", "https://example.com/x"},
		{"https://token@example.com/x", "https://<redacted>@example.com/x", "https://example.com/x"},
		{"https://u:p@ss@example.com/x@y", "https://u:<redacted>@example.com/x@y", "https://example.com/x@y"},
		{"https://example.com/x@y:z", "https://example.com/x@y:z", "https://example.com/x@y:z"},
		{"ssh://git:pass@example.com/x", "ssh://git:<redacted>@example.com/x", "ssh://git@example.com/x"},
		{"ssh://git@example.com/x", "ssh://git@example.com/x", "ssh://git@example.com/x"},
		{"git@example.com:x", "git@example.com:x", "git@example.com:x"},
		{"/a/b", "/a/b", "/a/b"},
	} {
		if got := Redact(test.text); got != test.shown {
			t.Errorf("Redact(%q) = %q, want %q", test.text, got, test.shown)
		}
		if got := StripUser(test.text); got != test.stripped {
			t.Errorf("StripUser(%q) = %q, want %q", test.text, got, test.stripped)
		}
	}
	err := error(&redactedError{errors.New("no https://u:secret@h/x there"), "https://u:secret@h/x"})
	if got, want := err.Error(), "no https://u:<redacted>@h/x there"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestIsLocal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"/a": true, "a/b": true, "file:///a": true, "./a:b": true,
		"https://a/b": false, "a:b": false, "x::y": false, "[a:1]:b": false,
	} {
		if got := IsLocal(text); got != want {
			t.Errorf("IsLocal(%q) = %v", text, got)
		}
	}
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"meta": true, "a.b-c_d": true, "été": true,
		"": false, "-a": false, "a b": false, "a/b": false, "main": false, "Main": false, "a..b": false, "a.lock": false, "a\n": false, "a~": false, ".": false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
	}
}

func TestMetaRefspec(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]bool{
		"+refs/meta/main:refs/meta/remotes/main": true, "refs/alt/main:refs/alt/remotes/x/main": true,
		"+refs/heads/*:refs/remotes/origin/*": false, "refs/heads/main:refs/heads/remotes/main": false, "refs/meta/main": false,
	} {
		if got := isMetaRefspec(spec); got != want {
			t.Errorf("isMetaRefspec(%q) = %v", spec, got)
		}
	}
}

func FuzzResolveURL(f *testing.F) {
	for _, s := range []string{"https://a/b", "team/metadata", "git@a:b", "../x.git", "-x", "ext::sh", "file:///x", "a\x00b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		url, err := ResolveURL(text, URLContext{Dir: "/", Untrusted: true})
		if err == nil && (url == "" || url[0] == '-') {
			t.Fatalf("%q becomes %q", text, url)
		}
	})
}
