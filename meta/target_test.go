package meta

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTarget(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Target{
		"project":                     ProjectTarget,
		"project:":                    ProjectTarget,
		"commit:HEAD~2":               {Commit, "HEAD~2"},
		"commit:refs/heads/main":      {Commit, "refs/heads/main"},
		"branch:main":                 {Branch, "main"},
		"branch:feature/x":            {Branch, "feature/x"},
		"branch:ab":                   {Branch, "ab"},
		"branch:refs/tags/x":          {Branch, "refs/tags/x"},
		"change-id:a:b:c":             {ChangeID, "a:b:c"},
		"change-id:abcd1234":          {ChangeID, "abcd1234"},
		"path:src/main.go":            {Path, "src/main.go"},
		"path:./src//x/":              {Path, "src/x"},
		"path:src/./a/.":              {Path, "src/a"},
		"path:src/__gen/~t/f.rs":      {Path, "src/__gen/~t/f.rs"},
		"path:.gitmodules":            {Path, ".gitmodules"},
		"path:sub/.gitignore":         {Path, "sub/.gitignore"},
		"path:__target__":             {Path, "__target__"},
		"path:a b/c\u00e9/\U0001f600": {Path, "a b/c\u00e9/\U0001f600"},
		"path:..x/x..":                {Path, "..x/x.."},
		"path:.gitx/.git.x/git~2":     {Path, ".gitx/.git.x/git~2"},
	} {
		got, err := ParseTarget(in)
		if err != nil {
			t.Errorf("ParseTarget(%q): %v", in, err)
			continue
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("ParseTarget(%q): got -, want +\n%s", in, diff)
		}
	}
}

func TestParseTargetRefusals(t *testing.T) {
	t.Parallel()
	const otherName = "take another name: git trees cannot hold this one"
	fromTop := "give the path from the top of the repository, as in path:src/main.go"
	for _, c := range []struct{ in, why, hint string }{
		{"", "not in the form type:value", targetHint},
		{"main", "not in the form type:value", targetHint},
		{"Project", "not in the form type:value", targetHint},
		{":x", `unknown target type ""`, targetHint},
		{"tag:v1", `unknown target type "tag"`, targetHint},
		{"Commit:abc", `unknown target type "Commit"`, targetHint},
		{"project:x", "the project has no value", "use the target project"},
		{"commit:", "the value is missing", targetHint},
		{"branch:", "the value is missing", targetHint},
		{"branch:refs/heads/a/b", "a branch is named without refs/heads/", "branch:a/b"},
		{"path:/abs", "the path is absolute", fromTop},
		{"path:a/../b", "the path holds '..'", fromTop},
		{"path:..", "the path holds '..'", fromTop},
		{"path:.", "the path names nothing; for the whole repository use the target project", fromTop},
		{"path:.//.", "the path names nothing; for the whole repository use the target project", fromTop},
		{"path:src/.git/config", `component ".git" is a name that git protects`, otherName},
		{"path:.GIT", `component ".GIT" is a name that git protects`, otherName},
		{"path:x/git~1", `component "git~1" is a name that git protects`, otherName},
		{"path:.git. .", `component ".git. ." is a name that git protects`, otherName},
		{"branch:a//b", "an empty component", otherName},
		{"branch:x/", "an empty component", otherName},
		{"branch:/x", "an empty component", otherName},
		{"branch:a/./b", `component "." is a name that git protects`, otherName},
		{"branch:a/..", `component ".." is a name that git protects`, otherName},
		{"branch:a/.gitmodules", `component ".gitmodules" is a name that git protects`, otherName},
		{"change-id:.mailmap", `component ".mailmap" is a name that git protects`, otherName},
		{"branch:a/__value", `component "__value" is reserved`, otherName},
		{"branch:__target__/x", `component "__target__" is reserved`, otherName},
		{"change-id:__deleted", `component "__deleted" is reserved`, otherName},
	} {
		_, err := ParseTarget(c.in)
		refused(t, err, `target "`+c.in+`": `+c.why, c.hint)
	}
	for in, want := range map[string]string{
		"branch:a\tb":     `target "branch:a\tb": holds a control character`,
		"path:a\x00b":     `target "path:a\x00b": holds a control character`,
		"path:a\u2028b":   `target "path:a\u2028b": holds a control character`,
		"path:a\u0085b":   `target "path:a\u0085b": holds a control character`,
		"path:a\x7f":      `target "path:a\x7f": holds a control character`,
		"path:\xff":       `target "path:\xff": not valid UTF-8`,
		"path:.g\u200cit": `target "path:.g\u200cit": component ".g\u200cit" is a name that git protects`,
	} {
		_, err := ParseTarget(in)
		hint := otherName
		if strings.Contains(want, "control character") {
			hint = oneLineHint
		} else if strings.Contains(want, "UTF-8") {
			hint = ""
		}
		refused(t, err, want, hint)
	}
}

func TestPublishable(t *testing.T) {
	t.Parallel()
	for in, why := range map[Target]string{
		{Project, "x"}:                 "a project row with a value",
		{Path, ""}:                     "the value is missing",
		{Commit, "a"}:                  "not a commit id",
		{Commit, "ab/cd"}:              "not a commit id",
		{Path, "a//b"}:                 "an empty component",
		{Branch, "a\x00b"}:             "a null byte",
		{Path, "a/.git"}:               `component ".git" is a name that git protects`,
		{Branch, "x/__list"}:           `component "__list" is reserved`,
		{ChangeID, "x/.gitattributes"}: `component ".gitattributes" is a name that git protects`,
	} {
		err := in.Publishable()
		if err == nil {
			t.Errorf("%v is publishable", in)
			continue
		}
		refused(t, err, `target "`+quoteInner(in.String())+`": `+why, "")
	}
	for _, in := range []Target{ProjectTarget, {Commit, "ab"}, {Path, "__list/.gitmodules"}, {Branch, "a"}} {
		if err := in.Publishable(); err != nil {
			t.Errorf("%v: %v", in, err)
		}
	}
	for in, want := range map[Target]bool{ProjectTarget: false, {Branch, "ab"}: true, {Branch, "é"}: true, {Branch, "éa"}: false, {Path, "abc"}: false} {
		if got := in.Short(); got != want {
			t.Errorf("%v.Short(): got %v, want %v", in, got, want)
		}
	}
}

func TestTargetTexts(t *testing.T) {
	t.Parallel()
	type texts struct{ String, Label string }
	for in, want := range map[Target]texts{
		ProjectTarget:         {"project", "project"},
		{Branch, "feature/x"}: {"branch:feature/x", "branch feature/x"},
		{ChangeID, "a:b"}:     {"change-id:a:b", "change-id a:b"},
	} {
		if got := (texts{in.String(), in.Label()}); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	for in, want := range map[string]bool{
		"98afc48127dd62ab6e54b17aa86aac61885501e6":                         true,
		"98AFC48127dd62ab6e54b17aa86aac61885501e6":                         false,
		"98afc48127dd62ab6e54b17aa86aac61885501e":                          false,
		"98afc48127dd62ab6e54b17aa86aac61885501e698afc48127dd62ab6e54b17a": true,
		"zzafc48127dd62ab6e54b17aa86aac61885501e6":                         false,
	} {
		if got := IsCommitID(in); got != want {
			t.Errorf("IsCommitID(%q): got %v", in, got)
		}
	}
	order := []Target{{Branch, "A"}, {Branch, "a"}, {Branch, "a/b"}, {ChangeID, "a"}, {Commit, "0"}, {Path, "a"}, ProjectTarget}
	for i := range order {
		for j := range order {
			if got := sign(order[i].Compare(order[j])); got != sign(i-j) {
				t.Errorf("Compare(%v, %v): got %d", order[i], order[j], got)
			}
		}
	}
}

func TestCheckKey(t *testing.T) {
	t.Parallel()
	for _, k := range []string{"a", "agent:model", "A b", "_x", "x__y", "~x", "-", "é", "local", "local:x", "git~2", ".gitx", "a.b", "...", "con", `a\b`, "@"} {
		if err := CheckKey(k); err != nil {
			t.Errorf("CheckKey(%q): %v", k, err)
		}
	}
	const hint = "segments are joined by ':', as in agent:model"
	for _, c := range []struct{ key, why, hint string }{
		{"", "key is empty", hint},
		{":", "empty segment", hint},
		{"a::b", "empty segment", hint},
		{"a:", "empty segment", hint},
		{":a", "empty segment", hint},
		{"a/b", `segment "a/b" holds a '/'`, hint},
		{"x:__y", `segment "__y" is reserved`, hint},
		{"__value", `segment "__value" is reserved`, hint},
		{"a:.", `segment "." is a name that git protects`, hint},
		{"..:a", `segment ".." is a name that git protects`, hint},
		{".git", `segment ".git" is a name that git protects`, hint},
		{"a:git~1", `segment "git~1" is a name that git protects`, hint},
		{"a:GIT~1 .", `segment "GIT~1 ." is a name that git protects`, hint},
		{".gitmodules", `segment ".gitmodules" is a name that git protects`, hint},
		{"a:GI7EBA~1", `segment "GI7EBA~1" is a name that git protects`, hint},
	} {
		refused(t, CheckKey(c.key), `key "`+c.key+`": `+c.why, c.hint)
	}
	refused(t, CheckKey("a\x00b"), `key "a\x00b": holds a control character`, oneLineHint)
	refused(t, CheckKey("a\nb"), `key "a\nb": holds a control character`, oneLineHint)
	refused(t, CheckKey("a\xffb"), `key "a\xffb": not valid UTF-8`, "")
	// what others wrote is held to less: a tab can be published
	if err := KeyPublishable("a\tb"); err != nil {
		t.Error(err)
	}
	refused(t, KeyPublishable("a\x00b"), `key "a\x00b": segment "a\x00b" holds a null byte`, hint)
	for k, want := range map[string]bool{"local:a": true, "local": false, "localx:a": false, "Local:a": false} {
		if got := IsLocal(k); got != want {
			t.Errorf("IsLocal(%q): got %v", k, got)
		}
	}
	for k, want := range map[string]bool{"ci": true, "ci:url": true, "cix": false, "CI:url": false, "c": false, "ci:": true} {
		if got := InNamespace(k, "ci"); got != want {
			t.Errorf("InNamespace(%q): got %v", k, got)
		}
	}
}
