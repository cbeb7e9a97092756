package meta

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// keyRef reads "project key" or "type:value key".
func keyRef(s string) KeyRef {
	target, key, _ := strings.Cut(s, " ")
	typ, value, _ := strings.Cut(target, ":")
	return KeyRef{Target{TargetType(typ), value}, key}
}

// refused checks that err is ErrInvalid, has the text want and the hint.
func refused(t *testing.T, err error, want, hint string) {
	t.Helper()
	if !errors.Is(err, ErrInvalid) {
		t.Errorf("got error %v, want one that is ErrInvalid", err)
		return
	}
	if err.Error() != want {
		t.Errorf("got error %s\n    want error %s", err, want)
	}
	if got := HintOf(err); got != hint {
		t.Errorf("got hint %q, want %q", got, hint)
	}
}

// git runs git in dir with a fixed environment and returns all it says.
func git(dir, stdin string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin:/usr/local/bin", "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

// words that names are drawn from: ordinary ones and those with a meaning somewhere.
var (
	segments = rapid.OneOf(
		rapid.SampledFrom([]string{"a", "b", "agent", "x__y", "_x", "~x", "~~", "-", "é", "日本", "A b", "con", "x.", "git~2", "0", "299"}),
		rapid.StringMatching(`[a-zA-Z0-9 ._~-]{1,6}`),
	)
	odd = rapid.SampledFrom([]string{
		"__value", "__list", "__set", "__tombstones", "__deleted", "__target__", "__x",
		".gitmodules", ".GitIgnore", "gitmod~1", "GI7EBA~1", ".mailmap", "~.gitattributes",
	})
)

// anyKey draws a key that may be written.
func anyKey(t *rapid.T) string {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(segments, 1, 4).Draw(t, "segments"), ":")
	}).Filter(func(k string) bool { return CheckKey(k) == nil }).Draw(t, "key")
}

// anyTarget draws a target that may be published.
func anyTarget(t *rapid.T) Target {
	return rapid.Custom(func(t *rapid.T) Target {
		typ := rapid.SampledFrom(TargetTypes).Draw(t, "type")
		switch typ {
		case Project:
			return ProjectTarget
		case Commit:
			return Target{Commit, rapid.StringMatching(`[0-9a-f]{40}`).Draw(t, "id")}
		case Path:
			c := rapid.SliceOfN(rapid.OneOf(segments, odd), 1, 4).Draw(t, "components")
			return Target{Path, strings.Join(c, "/")}
		}
		return Target{typ, strings.Join(rapid.SliceOfN(segments, 1, 4).Draw(t, "components"), "/")}
	}).Filter(func(t Target) bool { return t.Publishable() == nil }).Draw(t, "target")
}

// quoteInner is s as it stands inside %q.
func quoteInner(s string) string { q := strconv.Quote(s); return q[1 : len(q)-1] }

func sign(n int) int { return min(max(n, -1), 1) }
