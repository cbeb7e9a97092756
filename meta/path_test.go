package meta

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// format.md §1.3
func TestBasePath(t *testing.T) {
	t.Parallel()
	for want, in := range map[string]Target{
		"project":                                 ProjectTarget,
		"commit/98/98afc48127":                    {Commit, "98afc48127"},
		"branch/b2/main":                          {Branch, "main"},
		"branch/45/feature/x":                     {Branch, "feature/x"},
		"change-id/7c/abcd1234":                   {ChangeID, "abcd1234"},
		"branch/73/sc-branch-1-deadbeef":          {Branch, "sc-branch-1-deadbeef"},
		"branch/a6/alex/trails-multi-pr-a57e52c3": {Branch, "alex/trails-multi-pr-a57e52c3"},
		"path/src/~__gen/~~t/f.rs/__target__":     {Path, "src/__gen/~t/f.rs"},
	} {
		if got := in.BasePath(); got != want {
			t.Errorf("%v: got %s, want %s", in, got, want)
		}
	}
}

func TestEscapeSegment(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"src": "src", "~": "~~", "~t": "~~t", "__gen": "~__gen", "_x": "_x", "x__": "x__",
		".gitmodules": "~.gitmodules", ".GITIGNORE": "~.GITIGNORE", ".gitattributes. ": "~.gitattributes. ",
		".mailmap": "~.mailmap", "GITMOD~1": "~GITMOD~1", ".gitx": ".gitx", "a~1": "a~1", ".git\u200cmodules": "~.git\u200cmodules",
	} {
		if got := EscapeSegment(in); got != want {
			t.Errorf("EscapeSegment(%q): got %q, want %q", in, got, want)
		}
	}
}

const id = "2e65efe2a145dda7ee51d1741299f848e5bf752e"

// format.md §1.5 and §3.2
func TestParseTreePath(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kind PathKind
		ref  string
		name string
	}{
		"project/p2/__value":                                    {PathValue, "project p2", ""},
		"project/a/b/__value":                                   {PathValue, "project a:b", ""},
		"commit/98/98afc48/agent/model/__value":                 {PathValue, "commit:98afc48 agent:model", ""},
		"commit/zz/98afc48/k/__value":                           {PathValue, "commit:98afc48 k", ""}, // the shard is not checked
		"branch/45/feature/x/review/status/__value":             {PathValue, "branch:feature/x review:status", ""},
		"branch/b2/main/k/__value":                              {PathValue, "branch:main k", ""},
		"branch/00/a/b/c/__value":                               {PathValue, "branch:a b:c", ""}, // no shard fits: one component
		"branch/b4/topic/299/review/status/__value":             {PathValue, "branch:topic 299:review:status", ""},
		"change-id/7c/abcd1234/k/__value":                       {PathValue, "change-id:abcd1234 k", ""},
		"path/src/~__gen/~~t/f.rs/__target__/owner/__value":     {PathValue, "path:src/__gen/~t/f.rs owner", ""},
		"path/~plain/__target__/k/__value":                      {PathValue, "path:plain k", ""}, // needlessly escaped
		"path/a/__target__/__target__x/k/__value":               {},
		"project/notes/__list/1700000000000-aaf4c":              {PathEntry, "project notes", "1700000000000-aaf4c"},
		"project/notes/__list/0-AAF4C":                          {PathEntry, "project notes", "0-AAF4C"},
		"project/notes/__list/__tombstones/1700000000002-78c9a": {PathEntryTombstone, "project notes", "1700000000002-78c9a"},
		"project/label/__set/" + id:                             {PathMember, "project label", id},
		"project/label/__set/anything":                          {PathMember, "project label", "anything"},
		"project/label/__tombstones/" + id:                      {PathMemberTombstone, "project label", id},
		"project/__tombstones/gone/__deleted":                   {PathTombstone, "project gone", ""},
		"project/__tombstones/a/b/__deleted":                    {PathTombstone, "project a:b", ""},
		"branch/45/feature/x/__tombstones/a/__deleted":          {PathTombstone, "branch:feature/x a", ""},
		"branch/b4/topic/299/__target__":                        {PathMarker, "branch:topic/299 ", "__target__"},
		"change-id/00/x/y/z/__target__":                         {PathMarker, "change-id:x/y/z ", "__target__"},
	}
	for path, want := range tests {
		got, err := ParseTreePath(path, 0)
		if want.kind == PathUnknown {
			if err == nil {
				t.Errorf("%s: got %v", path, got)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		w := TreePath{want.kind, keyRef(want.ref), want.name}
		if want.kind == PathMarker {
			got.Name, w.Name = "", ""
		}
		if diff := cmp.Diff(got, w); diff != "" {
			t.Errorf("%s: got -, want +\n%s", path, diff)
		}
	}
	// a marker that the caller has found says where the value ends
	got, err := ParseTreePath("branch/b4/topic/299/review/status/__value", 4)
	if err != nil || got.KeyRef != keyRef("branch:topic/299 review:status") {
		t.Errorf("with a marker: got %v, %v", got, err)
	}
}

func TestParseTreePathRefusals(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"README.md", "project", "branch", "", "unknown/ab/x/__value", "Project/k/__value"} {
		if _, err := ParseTreePath(p, 0); !errors.Is(err, ErrUnknownPath) {
			t.Errorf("%q: got error %v, want ErrUnknownPath", p, err)
		}
	}
	for path, want := range map[string]string{
		"project/__value":                                  "no value, entry, member or tombstone",
		"project/README.md":                                "no value, entry, member or tombstone",
		"project/k/__tombstones/__deleted":                 `"__deleted" is no member id`,
		"project/k/__deleted":                              "no value, entry, member or tombstone",
		"project/__tombstones/__deleted":                   "no value, entry, member or tombstone",
		"project/k/__list/notes.txt":                       `"notes.txt" is no list entry name`,
		"project/k/__list/1-abcde7":                        `"1-abcde7" is no list entry name`,
		"project/k/__list/__tombstones/x":                  `"x" is no list entry name`,
		"project/a/__x/__value":                            `segment "__x" is reserved`,
		"project/a:b/__value":                              `key segment "a:b" holds a ':'`,
		"project/.git/__value":                             `segment ".git" is a name that git protects`,
		"project/.gitmodules/__value":                      `segment ".gitmodules" is a name that git protects`,
		"project/\xff/__value":                             "not valid UTF-8",
		"project/__target__":                               "a marker below project",
		"commit/ab/abcd":                                   "too short for a commit",
		"branch/ab/abcd":                                   "too short for a branch",
		"path/__target__/k/__value":                        "no path before __target__",
		"path/a/b/k/__value":                               "no path before __target__",
		"path/a/__target__":                                "no path before __target__",
		"project/k/__list/__tombstones/__tombstones/" + id: `segment "__list" is reserved`,
	} {
		got, err := ParseTreePath(path, 0)
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, error %v, want error %s", path, got, err, want)
		}
	}
}

// Each path of a key reads back as what it is.
func TestKeyPaths(t *testing.T) {
	t.Parallel()
	k := keyRef("path:src/a agent:model")
	base := k.Target.BasePath()
	at := KeyPath(base, k.Key)
	for path, want := range map[string]TreePath{
		ValuePath(at):                       {PathValue, k, ""},
		ListPath(at) + "/1-abcde":           {PathEntry, k, "1-abcde"},
		ListTombstonesPath(at) + "/1-abcde": {PathEntryTombstone, k, "1-abcde"},
		SetPath(at) + "/" + id:              {PathMember, k, id},
		MemberTombstonesPath(at) + "/" + id: {PathMemberTombstone, k, id},
		TombstonePath(base, k.Key):          {PathTombstone, k, ""},
	} {
		got, err := ParseTreePath(path, 0)
		if err != nil || got != want {
			t.Errorf("%s: got %v, %v", path, got, err)
		}
	}
}

// Branch topic/299 has the shard of topic: it needs the marker.
func TestMarkers(t *testing.T) {
	t.Parallel()
	for in, want := range map[Target]bool{
		{Branch, "topic"}: false, {Branch, "topic/299"}: true, {ChangeID, "topic/299"}: true, {Branch, "feature/x"}: false,
		{Path, "topic/299"}: false, ProjectTarget: false,
	} {
		if got := in.NeedsMarker(); got != want {
			t.Errorf("%v: got %v", in, got)
		}
	}
	topic := Target{Branch, "topic/299"}
	if got := topic.MarkerPath(); got != "branch/b4/topic/299/__target__" {
		t.Error(got)
	}
	got, err := ParseTreePath(topic.MarkerPath(), 0)
	if err != nil || got.Kind != PathMarker || got.Target != topic {
		t.Errorf("got %v, %v", got, err)
	}
}
