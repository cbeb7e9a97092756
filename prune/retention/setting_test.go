package retention

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune"
)

func TestCheckSetting(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	g.declare("agent 100 0", "agent:chat 0 5", "bad x 0", "big 5000 0")
	capped := map[string]string{prune.KeyMaxKeys: "1000"}
	for _, test := range []struct {
		key, value string
		others     map[string]string
		want, hint string // of the error
		warnings   []string
	}{
		{key: "meta:retention:agent:max-rows", value: "2"},
		{key: "meta:retention:agent:chat:max-age-days", value: "36500000"},
		{key: "meta:retention:agent:max-rows", value: "1000", others: capped},
		{key: "meta:retention:agent:max-age-days", value: "1001", others: capped},
		{key: "meta:retention:bad:max-rows", value: "7"}, // declared, though its default is faulty
		{key: "meta:retention:interval", value: "12h"},
		{key: "meta:other", value: "x"},
		{key: "meta:retentions:x", value: "x"},

		{
			key: "meta:retention:agent:max-rows", value: "1001", others: capped,
			want: "meta:retention:agent:max-rows 1001: meta:prune:max-keys is 1000, and no collection can keep more",
			hint: "git meta config meta:prune:max-keys 1001 && git meta config meta:retention:agent:max-rows 1001",
		},
		{
			key: "meta:retention:agent:max-rows", value: "0", want: `meta:retention:agent:max-rows: "0": must be greater than zero`,
			hint: `an override can't say "none"; to go back to the manifest: git meta config --unset meta:retention:agent:max-rows`,
		},
		{key: "meta:retention:agent:max-rows", value: "-1", want: `meta:retention:agent:max-rows: "-1": not a whole number in digits, from 1 up`, hint: "use a whole number like 500"},
		{key: "meta:retention:agent:max-age-days", value: "1.5", want: `meta:retention:agent:max-age-days: "1.5": not a whole number in digits, from 1 up`, hint: "use a whole number like 30"},
		{key: "meta:retention:agent:max-age-days", value: "1e6", want: `meta:retention:agent:max-age-days: "1e6": not a whole number in digits, from 1 up`, hint: "use a whole number like 30"},
		{key: "meta:retention:agent:max-rows", value: "none", want: `meta:retention:agent:max-rows: "none": not a whole number in digits, from 1 up`, hint: "use a whole number like 500"},
		{key: "meta:retention:agent:max-rows", value: "007", want: `meta:retention:agent:max-rows: "007": not a whole number in digits, from 1 up`, hint: "use a whole number like 500"},
		{key: "meta:retention:agent:max-rows", value: "99999999999999999999", want: `meta:retention:agent:max-rows: "99999999999999999999": too large; the greatest is 1000000000000`, hint: "use a whole number like 500"},
		{
			key: "meta:retention:agent:max-rows", value: "", want: `meta:retention:agent:max-rows: "": empty`,
			hint: `an override can't say "none"; to go back to the manifest: git meta config --unset meta:retention:agent:max-rows`,
		},
		{key: "meta:retention:agnet:max-rows", value: "5", want: `collection "agnet": not declared in .git-meta`, hint: "git meta retention agent; declared are agent, agent:chat, bad, big"},
		{key: "meta:retention:agent:max-row", value: "5", want: `key "meta:retention:agent:max-row": no setting of retention`, hint: "did you mean meta:retention:agent:max-rows?"},
		{key: "meta:retention:intervall", value: "1d", want: `key "meta:retention:intervall": no setting of retention`, hint: "did you mean meta:retention:interval?"},
		{key: "meta:retention", value: "1d", want: `key "meta:retention": no setting of retention`, hint: "did you mean meta:retention:interval?"},
		{key: "meta:retention:max-rows", value: "5", want: `key "meta:retention:max-rows": no setting of retention`, hint: "did you mean meta:retention:bad:max-rows?"},
		{key: "meta:retention:interval", value: "1w", want: `meta:retention:interval: "1w": not an interval`, hint: "git meta config meta:retention:interval 1d"},

		{key: prune.KeyMaxKeys, value: "10000"},
		{key: prune.KeyMaxKeys, value: "x"}, // for prune to refuse
		{
			key: prune.KeyMaxKeys, value: "50", others: map[string]string{"meta:retention:agent:max-rows": "60", "meta:retention:gone:max-rows": "x", "meta:retention:agent:max-age-days": "70"},
			warnings: []string{
				`collection "agent": maxRows 100 in .git-meta:4 is above it and no longer enforced`,
				`collection "big": maxRows 5000 in .git-meta:13 is above it and no longer enforced`,
				"meta:retention:agent:max-rows is 60 and now counts as 50",
			},
		},
	} {
		warnings, err := CheckSetting(t.Context(), g.repo, test.key, test.value, test.others)
		if diff := cmp.Diff(warnings, test.warnings); diff != "" {
			t.Errorf("%s %q: warnings (-got +want)\n%s", test.key, test.value, diff)
		}
		if test.want == "" {
			if err != nil {
				t.Errorf("%s %q: %v", test.key, test.value, err)
			}
			continue
		}
		if err == nil || err.Error() != test.want || meta.HintOf(err) != test.hint || !errors.Is(err, meta.ErrInvalid) {
			t.Errorf("%s %q: got %v, hint %q", test.key, test.value, err, meta.HintOf(err))
		}
	}
	g.write(".git-meta", "url: x\n")
	_, err := CheckSetting(t.Context(), g.repo, "meta:retention:agent:max-rows", "5", nil)
	if err == nil || meta.HintOf(err) != "declare it in .git-meta: git meta retention -h shows how" {
		t.Errorf("nothing declared: %v, %q", err, meta.HintOf(err))
	}
	g.write(".git-meta", "url: [\n")
	if _, err := CheckSetting(t.Context(), g.repo, "meta:retention:agent:max-rows", "5", nil); err == nil || !strings.Contains(err.Error(), "not valid YAML") {
		t.Errorf("broken manifest: %v", err)
	}
	for key, want := range map[string]bool{"meta:retention": true, "meta:retention:x:y": true, "meta:retentions": false, "meta:prune:max-keys": false} {
		if HoldsString(key) != want {
			t.Errorf("HoldsString(%q)", key)
		}
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"git meta retention ci":                             {"ci"},
		"git meta retention 'a b' --clear-rows --clear-age": {"a b", "--clear-rows", "--clear-age"},
		"git meta retention -- sweep":                       {"sweep"},
		"git meta retention --accept -- sweep":              {"sweep", "--accept"},
		"git meta retention --max-rows 5 -- -x":             {"-x", "--max-rows", "5"},
		"git meta retention sweep:a --accept":               {"sweep:a", "--accept"},
		`git meta retention 'it'\''s' --accept`:             {"it's", "--accept"},
	} {
		if got := Command(args[0], args[1:]...); got != want {
			t.Errorf("%q: got %s, want %s", args, got, want)
		}
	}
}
