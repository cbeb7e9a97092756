package cmd

import (
	"context"
	"fmt"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune"
	"github.com/git-meta/git-meta-go/prune/retention"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
)

// The keys that hold filter rules: sets, not strings.
const (
	keyFilter      = "meta:filter"
	keyLocalFilter = "local:meta:filter"
)

func isFilterKey(k meta.KeyRef) bool {
	return k.Target.Type == meta.Project && (k.Key == keyFilter || k.Key == keyLocalFilter)
}

// isSetting reports whether k steers the program.
func isSetting(k meta.KeyRef) bool {
	return k.Target.Type == meta.Project &&
		(meta.InNamespace(k.Key, "meta") || meta.InNamespace(k.Key, "local:meta"))
}

// checkSetting refuses a string that makes no sense as the setting k.
func (a *app) checkSetting(ctx context.Context, tx *store.Tx, k meta.KeyRef, value string) error {
	if !isSetting(k) {
		return nil
	}
	if isFilterKey(k) {
		return meta.Invalid(fmt.Sprintf("key %q", k.Key), "holds a set of rules, not a string",
			"git meta set:add project "+k.Key+" "+shellWord(value))
	}
	others, err := tx.ProjectStrings("meta")
	if err != nil {
		return err
	}
	warning, err := prune.CheckConfig(k.Key, value, others)
	if err != nil {
		return err
	}
	warnings, err := retention.CheckSetting(ctx, a.repository, k.Key, value, others)
	if err != nil {
		return err
	}
	if warning != "" {
		warnings = append(warnings, warning)
	}
	for _, w := range warnings {
		a.warn(w)
	}
	return nil
}

// checkAlone refuses what checkSetting refuses whatever the other settings are: before a
// store is opened, or made.
func (a *app) checkAlone(ctx context.Context, k meta.KeyRef, value string) error {
	if !isSetting(k) || isFilterKey(k) {
		return nil
	}
	if _, err := prune.CheckConfig(k.Key, value, nil); err != nil || !retention.HoldsString(k.Key) {
		return err
	}
	r, err := a.repo(ctx)
	if err == nil {
		_, err = retention.CheckSetting(ctx, r, k.Key, value, nil)
	}
	return err
}

// checkItem refuses an entry or a member that makes no sense in the setting k.
func checkItem(k meta.KeyRef, typ meta.ValueType, item string) error {
	name := fmt.Sprintf("key %q", k.Key)
	switch {
	case isFilterKey(k) && typ == meta.List:
		return meta.Invalid(name, "holds a set of rules, not a list", "git meta set:add project "+k.Key+" "+shellWord(item))
	case isFilterKey(k):
		_, err := meta.ParseRule(item)
		return err
	case isSetting(k) && (prune.HoldsString(k.Key) || retention.HoldsString(k.Key)):
		return meta.Invalid(name, "holds a string, not a "+string(typ), "git meta set project "+k.Key+" "+shellWord(item))
	}
	return nil
}

// noteShort says that a target of one or two bytes is published only where the project
// allows it.
func (a *app) noteShort(tx *store.Tx, t meta.Target) error {
	if !t.Short() {
		return nil
	}
	v, ok, err := tx.ProjectString(serialize.KeyShortTargets)
	if err != nil && !ok {
		v = ""
	}
	if v != "true" {
		a.note("targets of one or two bytes like %s are published only after: git meta config %s true", t, serialize.KeyShortTargets)
	}
	return nil
}

func shellWord(s string) string { return meta.ShellWord(s) }
