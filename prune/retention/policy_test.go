package retention

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
)

func load(t *testing.T, env *serialize.Env) *policy {
	t.Helper()
	var p *policy
	err := env.DB.View(t.Context(), func(tx *store.Tx) (err error) {
		p, err = loadPolicy(t.Context(), env, tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// text shows a policy: name, effective, default, override, problem.
func (p *policy) text() string {
	var b strings.Builder
	bounds := func(x Bounds) string { return fmt.Sprintf(" %d/%d", x.MaxRows, x.MaxAgeDays) }
	for i, d := range slices.Concat(p.collections, p.detached) {
		if i >= len(p.collections) {
			b.WriteString("-")
		}
		b.WriteString(d.name + bounds(d.effective) + bounds(d.authorDefault) + bounds(d.override))
		if d.problem != nil {
			b.WriteString(" " + d.problem.Error())
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Per axis the override counts, else the default; the cap is above both.
func TestEffective(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		declared []string
		settings []string
		want     string
	}{
		{"no manifest, no override", nil, nil, ""},
		{"defaults", []string{"b 5 0", "a 0 7", "c 0 0"}, nil, "a 0/7 0/7 0/0\nb 5/0 5/0 0/0\nc 0/0 0/0 0/0\n"},
		{"overrides", []string{"a 5 6", "b 5 6", "c 5 6", "d 0 0"}, []string{
			"meta:retention:a:max-rows", "500", "meta:retention:b:max-age-days", "3",
			"meta:retention:c:max-rows", "1", "meta:retention:c:max-age-days", "2", "meta:retention:d:max-rows", "9",
		}, "a 500/6 5/6 500/0\nb 5/3 5/6 0/3\nc 1/2 5/6 1/2\nd 9/0 0/0 9/0\n"},
		{"names with colons", []string{"a 5 0", "a:max-rows 6 0", "a:b 7 0"}, []string{
			"meta:retention:a:max-rows", "1", "meta:retention:a:max-rows:max-rows", "2", "meta:retention:a:b:max-age-days", "3",
		}, "a 1/0 5/0 1/0\na:b 7/3 7/0 0/3\na:max-rows 2/0 6/0 2/0\n"},
		{"detached", []string{"a 5 0"}, []string{"meta:retention:gone:max-rows", "1", "meta:retention:interval", "1d", "meta:retention:max-rows", "3"}, "a 5/0 5/0 0/0\n-gone 0/0 0/0 1/0\n"},
		{
			"what came by a merge is never none",
			[]string{"a 5 6"},
			[]string{"meta:retention:a:max-rows", "0", "meta:retention:a:max-age-days", "soon"},
			`a 5/6 5/6 0/0 meta:retention:a:max-age-days: "soon": not a whole number in digits, from 1 up; it is not in force; meta:retention:a:max-rows: "0": must be greater than zero; it is not in force` + "\n",
		},
		{"capped override", []string{"a 5 0"}, []string{"meta:prune:max-keys", "100", "meta:retention:a:max-rows", "500"}, "a 100/0 5/0 500/0\n"},
		{
			"default above the cap",
			[]string{"a 500 6", "b 500 0"},
			[]string{"meta:prune:max-keys", "100", "meta:retention:b:max-rows", "50"},
			"a 0/6 500/6 0/0 .git-meta:4: collection \"a\": retention.maxRows: 500 is above meta:prune:max-keys, which is 100\n" +
				"b 50/0 500/0 50/0 .git-meta:8: collection \"b\": retention.maxRows: 500 is above meta:prune:max-keys, which is 100\n",
		},
		{"a cap that makes no sense is none", []string{"a 500 0"}, []string{"meta:prune:max-keys", "0"}, "a 500/0 500/0 0/0\n"},
		{"a cap is one beside a broken minimum", []string{"a 5 0"}, []string{"meta:prune:max-keys", "100", "meta:prune:min-keys", "x", "meta:retention:a:max-rows", "500"}, "a 100/0 5/0 500/0\n"},
		{
			"a faulty collection is not enforced, whatever the override",
			[]string{"a 5 x", "b 7 0"},
			[]string{"meta:retention:a:max-rows", "1"},
			"a 0/0 0/0 1/0 .git-meta:5: collection \"a\": retention.maxAgeDays: \"x\": not a whole number in digits, from 1 up\nb 7/0 7/0 0/0\n",
		},
		{"a name that is no key", []string{"a::b 5 0", "c 1 0"}, nil, "c 1/0 1/0 0/0\n-a::b 0/0 0/0 0/0 .git-meta:2: key \"a::b\": empty segment\n"},
	} {
		g := newRepo(t)
		if test.declared != nil {
			g.declare(test.declared...)
		}
		env := g.env("m")
		setProject(t, env, test.settings...)
		if diff := cmp.Diff(load(t, env).text(), test.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", test.name, diff)
		}
	}
}

// A list or a set in the place of an override, which only a merge can bring, is none.
func TestOverrideOfWrongType(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	g.declare("a 5 0")
	env := g.env("m")
	err := env.DB.Update(t.Context(), func(tx *store.Tx) error {
		k := meta.KeyRef{Target: meta.ProjectTarget, Key: "meta:retention:a:max-rows"}
		if err := tx.ListPush(k, "1", store.Edit{}); err != nil {
			return err
		}
		k.Key = "meta:prune:max-keys"
		return tx.SetAdd(k, "1", store.Edit{})
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "a 5/0 5/0 0/0 meta:retention:a:max-rows: a list: not a string; it is not in force\n"
	if diff := cmp.Diff(load(t, env).text(), want); diff != "" {
		t.Error(diff)
	}
}

// The longest declared name owns a key, by whole segments; a faulty one too.
func TestOwner(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	g.declare("agent 1 0", "agent:chat 5 0", "x:y:z 1 0", "bad x 0", "bad:not::key 1 0")
	p := load(t, g.env("m"))
	for key, want := range map[string]string{
		"agent": "agent", "agent:a": "agent", "agent:chat": "agent:chat", "agent:chat:1": "agent:chat", "agent:chats": "agent",
		"agents:c": "", "x:agent:d": "", "x:y": "", "x:y:z:a:b": "x:y:z", "bad:1": "bad", "": "",
	} {
		if got, ok := p.owner(key); got != want || ok != (want != "") {
			t.Errorf("owner of %q: %q, %v", key, got, ok)
		}
	}
	if diff := cmp.Diff(p.names(), []string{"agent", "agent:chat", "bad", "x:y:z"}); diff != "" {
		t.Error(diff)
	}
	if _, ok := (&policy{}).owner("a:b"); ok {
		t.Error("nothing declared")
	}
}

// A name that owns no keys is not taken by a binary search: names sort by bytes.
func TestOwnerOfRandomNames(t *testing.T) {
	t.Parallel()
	segs := []string{"a", "b", "a-", "a!", "é"}
	word := func(r *rand.Rand) string {
		parts := make([]string, 1+r.IntN(4))
		for i := range parts {
			parts[i] = segs[r.IntN(len(segs))]
		}
		return strings.Join(parts, ":")
	}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := &policy{index: map[string]int{}}
		for range 6 {
			p.index[word(r)] = 0
		}
		for range 50 {
			key, want := word(r), ""
			for name := range p.index {
				if meta.InNamespace(key, name) && len(name) > len(want) {
					want = name
				}
			}
			if got, _ := p.owner(key); got != want {
				t.Fatalf("%q in %v: %q, want %q", key, p.index, got, want)
			}
		}
	}
}

// What is confirmed is what is in force, on the keys it is in force on, and nothing else.
func TestConfirmed(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	g.declare("ci 10 5", "ci:log 1 0", "x 1 0")
	env := g.env("m")
	confirmed := func() string {
		var out []string
		for _, d := range load(t, env).collections {
			if d.confirmed {
				out = append(out, d.name)
			}
		}
		return strings.Join(out, " ")
	}
	step := func(what, want string) {
		t.Helper()
		if got := confirmed(); got != want {
			t.Errorf("%s: confirmed are %q, want %q", what, got, want)
		}
	}
	accept := func(names ...string) {
		t.Helper()
		if err := Accept(t.Context(), env, names...); err != nil {
			t.Fatal(err)
		}
	}
	step("at first", "")
	accept("ci")
	step("accepted", "ci")
	accept()
	step("all accepted", "ci ci:log x")
	g.declare("ci 11 5", "ci:log 1 0", "x 1 0")
	step("another default", "ci:log x")
	g.declare("ci 10 5", "ci:log 1 0", "x 1 0")
	step("and back", "ci ci:log x")
	g.declare("ci 10 5", "x 1 0")
	step("keys of ci:log are ci's now", "x")
	g.declare("ci 10 5", "ci:log 7 0", "x 1 0")
	step("ci:log declared with other bounds", "ci x")
	g.declare("ci 10 5", "ci:log 1 0", "ci:log:deep 1 0", "x 1 0")
	step("a collection below", "x")
	g.declare("ci 10 5", "ci:log 1 0", "x 1 0")
	setProject(t, env, "meta:retention:ci:max-rows", "10")
	step("an override that says what the default says", "ci:log x")
	accept("ci")
	setProject(t, env, "meta:retention:x:max-age-days", "3")
	step("an override", "ci ci:log")
	setProject(t, env, "meta:prune:max-keys", "5")
	step("a cap that bites", "ci:log")
	setProject(t, env, "meta:prune:max-keys", "10")
	step("a cap that does not", "ci ci:log")

	for _, name := range []string{"nope", "", "ci:"} {
		if err := Accept(t.Context(), env, "x", name); !errors.Is(err, meta.ErrNotFound) {
			t.Errorf("accept %q: %v", name, err)
		}
	}
	step("nothing of a refused acceptance stays", "ci ci:log")
	g.declare("ci 10 5")
	if err := Accept(t.Context(), env, "x"); !errors.Is(err, meta.ErrInvalid) || !strings.Contains(err.Error(), "detached") {
		t.Errorf("accept a detached one: %v", err)
	}
}

// The manifest of the checkout at hand counts; without a work tree that of HEAD.
func TestWhereTheManifestIs(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	env := g.env("m")
	at := func(dir string) string {
		t.Helper()
		e := *env
		e.Repo = discover(t, dir)
		return strings.TrimSpace(load(t, &e).text())
	}
	g.declare("a 1 0")
	g.git("add", ".git-meta")
	g.git("commit", "-qm", "one")
	g.declare("a 2 0")
	g.git("commit", "-qam", "two")
	g.declare("a 3 0")
	if err := os.MkdirAll(filepath.Join(g.dir, "sub", "dir"), 0o777); err != nil {
		t.Fatal(err)
	}
	g.write("sub/.git-meta", "collections: {no: {}}")
	g.git("worktree", "add", "-q", "../wt", "HEAD~1")
	g.git("clone", "-q", "--bare", ".", "../bare.git")
	g.git("clone", "-q", "--bare", ".", "../detached.git")
	up := filepath.Dir(g.dir)
	gitIn := func(dir string, args ...string) { g.git(append([]string{"-C", filepath.Join(up, dir)}, args...)...) }
	gitIn("detached.git", "update-ref", "--no-deref", "HEAD", "HEAD~1")
	g.git("init", "-q", "--bare", "../empty.git")
	for dir, want := range map[string]string{
		g.dir:                              "a 3/0 3/0 0/0", // also what is not committed
		filepath.Join(g.dir, "sub", "dir"): "a 3/0 3/0 0/0",
		filepath.Join(up, "wt"):            "a 1/0 1/0 0/0",
		filepath.Join(up, "bare.git"):      "a 2/0 2/0 0/0",
		filepath.Join(up, "detached.git"):  "a 1/0 1/0 0/0",
		filepath.Join(up, "empty.git"):     "",
		filepath.Join(g.dir, ".git"):       "a 2/0 2/0 0/0",
	} {
		if got := at(dir); got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
	if err := os.Remove(filepath.Join(g.dir, ".git-meta")); err != nil {
		t.Fatal(err)
	}
	if got := at(g.dir); got != "" {
		t.Errorf("without the file: %q", got)
	}
}

// What can't be used as a manifest stops everything, with its name.
func TestUnusableManifest(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	env := g.env("m")
	path := filepath.Join(g.dir, ".git-meta")
	check := func(repo string, want string) {
		t.Helper()
		e := *env
		e.Repo = discover(t, repo)
		if _, err := List(t.Context(), &e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	g.write("real", "collections: {a: {}}\n")
	if err := os.Symlink("real", path); err != nil {
		t.Skip(err)
	}
	check(g.dir, "not a regular file")
	g.git("add", "-A")
	g.git("commit", "-qm", "one")
	g.git("clone", "-q", "--bare", ".", "../bare.git")
	bare := filepath.Join(filepath.Dir(g.dir), "bare.git")
	check(bare, "HEAD:.git-meta: not a regular file")
	os.Remove(path)
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	check(g.dir, "not a regular file")
	os.Remove(path)
	g.write(".git-meta", "# "+strings.Repeat("x", 1<<20))
	check(g.dir, ".git-meta: larger than 1 MiB")
	g.git("add", "-A")
	g.git("commit", "-qm", "two")
	g.git("push", "-q", "../bare.git", "main")
	check(bare, "HEAD:.git-meta: larger than 1 MiB")
	g.write(".git-meta", "a: [\nb")
	check(g.dir, ".git-meta:2: not valid YAML")
	g.write(".git-meta", "collections: {a: {}}\ndepth: nonsense\nurl: [1]\n")
	if states, err := List(t.Context(), env); err != nil || len(states) != 1 {
		t.Errorf("a wrong depth is no matter of retention: %v, %v", states, err)
	}
}

func TestInterval(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{"0": 0, "1d": 24 * time.Hour, "12h": 12 * time.Hour, "2D": 48 * time.Hour, "1H": time.Hour, "36500d": 36500 * 24 * time.Hour} {
		if got, err := parseInterval(in); err != nil || got != want {
			t.Errorf("%s: %v, %v", in, got, err)
		}
	}
	for in, want := range map[string]string{
		"": "not an interval", "d": "not an interval", "1": "not an interval", "1m": "not an interval", "1.5d": "not an interval",
		"-1d": "not an interval", "+1d": "not an interval", " 1d": "not an interval", "1d ": "not an interval", "off": "not an interval",
		"0d": "must be greater than zero", "00h": "must be greater than zero", "36501d": "too long", "99999999999999999999h": "not an interval",
	} {
		if _, err := parseInterval(in); err == nil || !strings.HasSuffix(err.Error(), want) || !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%q: %v", in, err)
		}
	}
	env := newRepo(t).env("m")
	for _, test := range []struct {
		text string
		want time.Duration
		ok   bool
	}{{"", DefaultInterval, true}, {"2h", 2 * time.Hour, true}, {"0", 0, true}, {"soon", DefaultInterval, false}} {
		if test.text != "" {
			setProject(t, env, KeyInterval, test.text)
		}
		err := env.DB.View(t.Context(), func(tx *store.Tx) error {
			if d, err := interval(tx); d != test.want || (err == nil) != test.ok {
				t.Errorf("%q: %v, %v", test.text, d, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
