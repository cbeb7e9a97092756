package prune

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/git-meta/git-meta-go/meta"
)

func parse(m map[string]string) (Rules, error) {
	return ParseRules(func(k string) (string, bool) { v, ok := m[k]; return v, ok })
}

// policy turns "max-keys 10 min-keys 5" into the project's strings.
func policy(s string) map[string]string {
	m := map[string]string{}
	f := strings.Fields(s)
	for i := 0; i+1 < len(f); i += 2 {
		m[Namespace+":"+f[i]] = f[i+1]
	}
	return m
}

func TestParseRules(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Rules{
		"":                                      {},
		"max-keys 10000":                        {MaxKeys: 10000, MinKeys: 5000},
		"max-keys 10000 min-keys 9999":          {MaxKeys: 10000, MinKeys: 9999},
		"max-keys 1":                            {MaxKeys: 1, MinKeys: 1}, // half, never less than 1
		"max-keys 3":                            {MaxKeys: 3, MinKeys: 1},
		"max-size 50m":                          {MaxSize: 50 << 20, MinSize: 25 << 20},
		"max-size 50m min-size 512k":            {MaxSize: 50 << 20, MinSize: 512 << 10},
		"max-keys 10 max-size 1g min-size 3":    {MaxKeys: 10, MinKeys: 5, MaxSize: 1 << 30, MinSize: 3},
		"min-keys 5":                            {}, // a minimum alone is inert
		"min-keys x min-size y":                 {},
		"since 90d":                             {},
		"max-keys 10 min-size 7 since nonsense": {MaxKeys: 10, MinKeys: 5},
	} {
		got, err := parse(policy(in))
		if diff := cmp.Diff(got, want); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", in, err, diff)
		}
		if got.Active() != (want != Rules{}) {
			t.Errorf("%s: active %v", in, got.Active())
		}
	}
	for in, want := range map[string]string{
		"max-keys abc":                      `meta:prune:max-keys: number "abc": not a whole number`,
		"max-keys 0":                        `meta:prune:max-keys: "0": must be greater than zero`,
		"max-keys 10k":                      `meta:prune:max-keys: number "10k": not a whole number`,
		"max-keys 10 min-keys 0":            `meta:prune:min-keys: "0": must be greater than zero`,
		"max-keys 5 min-keys 5":             `meta:prune:min-keys (5) is not below meta:prune:max-keys`,
		"max-keys 1 min-keys 1":             `meta:prune:min-keys (1) is not below meta:prune:max-keys`,
		"max-size 1m min-size 2m":           `meta:prune:min-size (2m) is not below meta:prune:max-size`,
		"max-size 1.5m":                     `meta:prune:max-size: size "1.5m": not a whole number with an optional suffix k, m or g`,
		"max-size 0k":                       `meta:prune:max-size: "0k": must be greater than zero`,
		"max-keys 10 max-size 99999999999g": `meta:prune:max-size: size "99999999999g": too large`,
	} {
		got, err := parse(policy(in))
		if err == nil || err.Error() != want || got.Active() {
			t.Errorf("%s: got %+v, error %v, want %s", in, got, err, want)
		}
	}
}

func TestCheckConfig(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"max-keys", "10", ""},
		{"max-keys", "1", ""},
		{"min-keys", "5", ""},
		{"min-keys", "9", "max-keys 10"},
		{"max-keys", "6", "min-keys 5"},
		{"max-size", "50m", "min-size 25m"},
		{"max-size", "1k", ""},
		{"min-size", "1", "max-size 2"},
		{"since", "90d", ""},
		{"since", "2020-01-31", ""},
		{"max-keys", "5", "min-keys broken"}, // the other one is broken already
	} {
		if warning, err := CheckConfig(Namespace+":"+c[0], c[1], policy(c[2])); warning != "" || err != nil {
			t.Errorf("%v: %q, %v", c, warning, err)
		}
	}
	for _, c := range []struct{ key, value, others, want, hint string }{
		{KeyMaxKeys, "abc", "", `number "abc": not a whole number`, "use digits only, like 10000"},
		{KeyMaxKeys, "0", "", `"0": must be greater than zero`, "to switch the rule off: git meta config --unset meta:prune:max-keys"},
		{KeyMinKeys, "-1", "", `number "-1": not a whole number`, "use digits only, like 10000"},
		{KeyMaxSize, "0k", "", `"0k": must be greater than zero`, "to switch the rule off: git meta config --unset meta:prune:max-size"},
		{KeyMinSize, "10mb", "", `size "10mb": not a whole number with an optional suffix k, m or g`, "use a size like 512k, 10m or 1g"},
		{KeyMaxSize, "9999999999g", "", `size "9999999999g": too large`, "use a size like 512k, 10m or 1g"},
		{KeySince, "1w", "", `window "1w": not a window`, meta.WindowHint},
		{KeySince, "2999-01-01", "", `window "2999-01-01": the cutoff is not in the past`, meta.WindowHint},
		{KeySince, "0d", "", `window "0d": the cutoff is not in the past`, meta.WindowHint},
		{"meta:short-targets", "yes", "", `"yes": neither true nor false`, "git meta config meta:short-targets true"},
		{keyObjectMaxSize, "x", "", `size "x": not a whole number with an optional suffix k, m or g`, "use a size like 512k, 10m or 1g"},
		{"local:" + keyObjectMaxSize, "", "", `size "": not a whole number with an optional suffix k, m or g`, "use a size like 512k, 10m or 1g"},
	} {
		_, err := CheckConfig(c.key, c.value, policy(c.others))
		if err == nil || err.Error() != c.key+": "+c.want || meta.HintOf(err) != c.hint || !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%s %s: got %v, hint %q", c.key, c.value, err, meta.HintOf(err))
		}
	}
	for key, want := range map[string]string{
		"meta:prune:max-kyes": "meta:prune:max-kyes is no rule that git-meta knows; did you mean meta:prune:max-keys?",
		"meta:prune:sinze":    "meta:prune:sinze is no rule that git-meta knows; did you mean meta:prune:since?",
		"meta:prune":          "meta:prune is no rule that git-meta knows; did you mean meta:prune:since?",
		"meta:prunes:x":       "", "meta:other": "", "other": "",
	} {
		if got, err := CheckConfig(key, "1", nil); err != nil || got != want {
			t.Errorf("%s: got %q, %v", key, got, err)
		}
	}
	for _, k := range append(slices.Clone(ruleKeys), "meta:short-targets", keyObjectMaxSize, "local:"+keyObjectMaxSize) {
		if !HoldsString(k) {
			t.Errorf("%s", k)
		}
	}
	if HoldsString("meta:filter") || HoldsString("meta:prune:max-kyes") {
		t.Error("HoldsString")
	}
}

// A pair that makes no sense is refused with commands that, pasted in their order, work
// and set what was asked for.
func TestPairHints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ key, value, others, why, hint string }{
		{
			KeyMinKeys, "10", "max-keys 10", "min-keys 10: meta:prune:max-keys is 10, and a minimum must be below its maximum",
			"git meta config meta:prune:max-keys 20 && git meta config meta:prune:min-keys 10",
		},
		{
			KeyMaxKeys, "4", "min-keys 5", "max-keys 4: meta:prune:min-keys is 5, and a minimum must be below its maximum",
			"git meta config meta:prune:min-keys 2 && git meta config meta:prune:max-keys 4",
		},
		{
			KeyMaxKeys, "1", "min-keys 1", "max-keys 1: meta:prune:min-keys is 1, and a minimum must be below its maximum",
			"git meta config --unset meta:prune:min-keys && git meta config meta:prune:max-keys 1",
		},
		{
			KeyMinSize, "2m", "max-size 1m", "min-size 2m: meta:prune:max-size is 1m, and a minimum must be below its maximum",
			"git meta config meta:prune:max-size 4m && git meta config meta:prune:min-size 2m",
		},
		{
			KeyMaxSize, "1k", "min-size 1500", "max-size 1k: meta:prune:min-size is 1500, and a minimum must be below its maximum",
			"git meta config meta:prune:min-size 512 && git meta config meta:prune:max-size 1k",
		},
		{
			KeyMaxSize, "1000", "min-size 1k", "max-size 1000: meta:prune:min-size is 1k, and a minimum must be below its maximum",
			"git meta config meta:prune:min-size 500 && git meta config meta:prune:max-size 1000",
		},
		{
			KeyMinKeys, "9223372036854775807", "max-keys 10", "min-keys 9223372036854775807: meta:prune:max-keys is 10, and a minimum must be below its maximum",
			"use a smaller number: no maximum is above this one",
		},
		{KeyMinKeys, "9223372036854775806", "max-keys 10", "", ""},
		{KeyMinSize, "6442450944g", "max-size 1m", "", ""},
	} {
		_, err := CheckConfig(c.key, c.value, policy(c.others))
		if err == nil || !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%s %s with %s: got %v", c.key, c.value, c.others, err)
			continue
		}
		hint := meta.HintOf(err)
		if got := strings.TrimPrefix(err.Error(), "meta:prune:"); c.why != "" && (got != c.why || hint != c.hint) {
			t.Errorf("%s %s with %s: got %q, hint %q", c.key, c.value, c.others, got, hint)
		}
		if !strings.HasPrefix(hint, "git ") {
			continue
		}
		now := paste(t, policy(c.others), hint)
		if now[c.key] != c.value {
			t.Errorf("%q leaves %v", hint, now)
		}
		if r, err := parse(now); err != nil || !r.Active() {
			t.Errorf("%q leaves %v: %v", hint, now, err)
		}
	}
}

// paste runs the commands of a hint.
func paste(t *testing.T, strings_ map[string]string, hint string) map[string]string {
	t.Helper()
	now := maps.Clone(strings_)
	for c := range strings.SplitSeq(hint, " && ") {
		f := strings.Fields(c)
		if f[3] == "--unset" {
			delete(now, f[4])
			continue
		}
		if _, err := CheckConfig(f[3], f[4], now); err != nil {
			t.Errorf("%q: %q: %v", hint, c, err)
		}
		now[f[3]] = f[4]
	}
	return now
}

func TestConfigOrder(t *testing.T) {
	t.Parallel()
	keys := []string{"meta:z", KeySince, KeyMinSize, "meta:a", KeyMaxKeys, KeyMaxSize, "meta:prune:x", KeyMinKeys}
	ConfigOrder(keys)
	want := []string{KeyMaxKeys, KeyMinKeys, KeyMaxSize, KeyMinSize, KeySince, "meta:a", "meta:prune:x", "meta:z"}
	if diff := cmp.Diff(keys, want); diff != "" {
		t.Error(diff)
	}
}
