package retention

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// HoldsString reports whether key is in the namespace of which [CheckSetting] accepts
// strings alone.
func HoldsString(key string) bool { return meta.InNamespace(key, Namespace) }

// CheckSetting validates a value before it is stored as a project string; others holds
// the project's present meta: strings, nil where there is no store yet. Below
// meta:retention only overrides of collections that the manifest declares and the
// interval are accepted. A lower meta:prune:max-keys is accepted with a warning for each
// bound above it. Other keys are accepted unread. Removing a setting needs no check.
func CheckSetting(ctx context.Context, repo *gitdb.Repo, key, value string, others map[string]string) (warnings []string, err error) {
	switch {
	case key == prune.KeyMaxKeys:
		return underCap(ctx, repo, value, others), nil
	case key == KeyInterval:
		if _, err := parseInterval(value); err != nil {
			return nil, &meta.Error{Op: key, Err: err, Hint: "git meta config " + key + " 1d"}
		}
		return nil, nil
	case !meta.InNamespace(key, Namespace):
		return nil, nil
	}
	name, x, ok := splitKey(key)
	entries, file, err := readEntries(ctx, repo)
	if err != nil {
		return nil, err
	}
	names := validNames(entries)
	if !ok {
		known := []string{KeyInterval}
		for _, n := range names {
			known = append(known, rowsAxis.key(n), ageAxis.key(n))
		}
		return nil, meta.Invalid(fmt.Sprintf("key %q", key), "no setting of retention", "did you mean "+prune.Nearest(key, known)+"?")
	}
	if !slices.Contains(names, name) {
		return nil, undeclared(name, names, file, meta.Invalid)
	}
	limit := int64(0)
	if text, ok := others[prune.KeyMaxKeys]; ok {
		limit = rowCap(text, true)
	}
	_, err = x.check(name, value, limit)
	return nil, err
}

// check reads the override of a declared collection.
func (x *axis) check(collection, value string, limit int64) (int64, error) {
	key := x.key(collection)
	n, err := x.parse(value)
	if err != nil {
		hint := meta.HintOf(err)
		if strings.Trim(value, "0-+. ") == "" {
			hint = "an override can't say \"none\"; to go back to the manifest: git meta config --unset " + meta.ShellWord(key)
		}
		return 0, &meta.Error{Op: key, Err: err, Hint: hint}
	}
	if x == rowsAxis && limit > 0 && n > limit {
		return 0, meta.Invalid(fmt.Sprintf("%s %d", key, n), fmt.Sprintf("%s is %d, and no collection can keep more", prune.KeyMaxKeys, limit),
			fmt.Sprintf("git meta config %s %d && git meta config %s %d", prune.KeyMaxKeys, n, meta.ShellWord(key), n))
	}
	return n, nil
}

// undeclared is the error that the manifest does not declare a collection; as says which
// sentinel it is.
func undeclared(name string, names []string, file string, as func(op, why, hint string) error) error {
	hint := "declare it in " + file + ": git meta retention -h shows how"
	if len(names) > 0 {
		hint = Command(prune.Nearest(name, names))
		if len(names) > 1 {
			hint += "; declared are " + strings.Join(names[:min(len(names), 5)], ", ")
			if len(names) > 5 {
				hint += ", …"
			}
		}
	}
	return as(fmt.Sprintf("collection %q", name), "not declared in "+file, hint)
}

// Command returns the command line that shows a collection, or with options changes it,
// as it can be pasted: a name that would be taken for a subcommand or an option stands
// behind --.
func Command(collection string, options ...string) string {
	word := meta.ShellWord(collection)
	parts := append([]string{"git meta retention"}, options...)
	if collection == "sweep" || strings.HasPrefix(collection, "-") {
		parts = append(parts, "--", word)
	} else {
		parts = slices.Insert(parts, 1, word)
	}
	return strings.Join(parts, " ")
}

func validNames(entries []entry) (names []string) {
	for _, e := range entries {
		if e.valid {
			names = append(names, e.name)
		}
	}
	slices.Sort(names)
	return names
}

// underCap names the bounds that a new meta:prune:max-keys stands below.
func underCap(ctx context.Context, repo *gitdb.Repo, value string, others map[string]string) (warnings []string) {
	limit := rowCap(value, true)
	if limit == 0 {
		return nil
	}
	for key, text := range others {
		if _, x, ok := splitKey(key); ok && x == rowsAxis {
			if n, err := x.parse(text); err == nil && n > limit {
				warnings = append(warnings, fmt.Sprintf("%s is %d and now counts as %d", key, n, limit))
			}
		}
	}
	entries, file, err := readEntries(ctx, repo)
	if err != nil {
		return warnings // a broken manifest is no reason against this setting
	}
	for _, e := range entries {
		if e.problem == nil && e.bounds.MaxRows > limit {
			warnings = append(warnings, fmt.Sprintf("collection %q: maxRows %d in %s:%d is above it and no longer enforced", e.name, e.bounds.MaxRows, file, e.lines.MaxRows))
		}
	}
	slices.Sort(warnings)
	return warnings
}

// parseInterval reads meta:retention:interval: Nd, Nh, or 0 for never.
func parseInterval(text string) (time.Duration, error) {
	bad := func(why string) (time.Duration, error) {
		return 0, meta.Invalid(fmt.Sprintf("%q", text), why, "write an interval as 1d, 12h, or 0 for never")
	}
	if text == "0" {
		return 0, nil
	}
	units := map[byte]time.Duration{'d': 24 * time.Hour, 'D': 24 * time.Hour, 'h': time.Hour, 'H': time.Hour}
	if text == "" || units[text[len(text)-1]] == 0 {
		return bad("not an interval")
	}
	unit := units[text[len(text)-1]]
	n, err := strconv.ParseUint(text[:len(text)-1], 10, 32)
	switch {
	case err != nil:
		return bad("not an interval")
	case n == 0:
		return bad("must be greater than zero")
	case time.Duration(n) > maxInterval/unit:
		return bad("too long")
	}
	return time.Duration(n) * unit, nil
}

const maxInterval = 36500 * 24 * time.Hour
