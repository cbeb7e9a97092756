package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune"
	"github.com/git-meta/git-meta-go/store"
	"github.com/spf13/cobra"
)

type configOptions struct {
	list, unset bool
	nul, json   bool
}

func newConfigCmd(a *app) *cobra.Command {
	var o configOptions
	c := &cobra.Command{
		Use: "config [options] [<KEY> [<VALUE>]]",
		Long: `Show or change the project's settings: the keys that start with meta:. They are
ordinary values of the target project and travel with the metadata, so that all
clones share them. config get, set, list and unset are accepted as well.

Auto-prune: when a serialized tree holds more than meta:prune:max-keys keys or
meta:prune:max-size bytes, it is cut back to meta:prune:min-keys and
meta:prune:min-size (half the maximum where they are missing), oldest keys
first. meta:prune:since is the default window of git meta prune.

Retention: meta:retention:COLLECTION:max-rows and :max-age-days override what
.git-meta says of a collection, and meta:retention:interval (1d) is how often
the automatic sweep is due at most; git meta retention -h explains them.

` + exitStatus,
		Example: `  git meta config meta:prune:max-keys 10000
  git meta config meta:prune:max-size 50m
  git meta config --list
  git meta config --unset meta:prune:max-keys`,
		Args: takes(0, "KEY", "VALUE", "VALUE"),
		RunE: func(c *cobra.Command, args []string) error {
			return o.dispatch(c, a, args)
		},
	}
	f := c.Flags()
	f.BoolVarP(&o.list, "list", "l", false, "show all settings")
	f.BoolVar(&o.unset, "unset", false, "remove a setting")
	f.BoolVarP(&o.nul, "null", "z", false, "end values with a NUL byte; with --list print key, newline, value")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return c
}

// dispatch finds out which of the four jobs is meant, in either spelling.
func (o configOptions) dispatch(c *cobra.Command, a *app, args []string) error {
	if err := exclusive(c, "list", "unset"); err != nil {
		return err
	}
	if err := exclusive(c, "null", "json"); err != nil {
		return err
	}
	verb := ""
	if len(args) > 0 {
		switch args[0] {
		case "get", "set", "list", "unset":
			if o.list || o.unset {
				return usageOf(c, "%s and an option that says the same cannot be used together", args[0])
			}
			verb, args = args[0], args[1:]
		}
	}
	switch {
	case verb != "":
	case o.list:
		verb = "list"
	case o.unset:
		verb = "unset"
	case len(args) == 0:
		return usageErrorf("git meta config --list shows the settings", "config: the argument <KEY> is missing")
	case len(args) == 1:
		verb = "get"
	default:
		verb = "set"
	}
	names := map[string][]string{"get": {"KEY"}, "set": {"KEY", "VALUE"}, "list": {}, "unset": {"KEY"}}[verb]
	if err := takes(len(names), names...)(c, args); err != nil {
		return err
	}
	ctx := c.Context()
	if verb == "list" {
		return runConfigList(ctx, a, o)
	}
	k, err := configKey(verb, args)
	if err != nil {
		return err
	}
	switch verb {
	case "get":
		return runConfigGet(ctx, a, o, k)
	case "unset":
		return runConfigUnset(ctx, a, k)
	}
	return runConfigSet(ctx, a, o, k, args[1])
}

// configKey checks that the key is one that config works on.
func configKey(verb string, args []string) (meta.KeyRef, error) {
	key := args[0]
	k := meta.KeyRef{Target: meta.ProjectTarget, Key: key}
	if strings.HasPrefix(key, "meta:") {
		return k, meta.CheckKey(key)
	}
	do := "get"
	if verb == "unset" {
		do = "rm"
	}
	word := do + " project " + shellWord(key)
	if len(args) == 2 {
		word = "set project " + shellWord(key) + " " + shellWord(args[1])
	}
	return k, meta.Invalid(fmt.Sprintf("key %q", key), "settings start with meta:", "for any other key: git meta "+word)
}

func runConfigSet(ctx context.Context, a *app, o configOptions, k meta.KeyRef, value string) error {
	if err := a.checkAlone(ctx, k, value); err != nil {
		return err
	}
	err := a.edit(ctx, 0, func(tx *store.Tx, e store.Edit) error {
		if err := a.checkSetting(ctx, tx, k, value); err != nil {
			return err
		}
		return tx.Set(k, value, e)
	})
	if err == nil && o.json {
		a.Out.Println(ui.JSON((&ui.Object{}).Add(k.Key, value)))
	}
	return err
}

func runConfigGet(ctx context.Context, a *app, o configOptions, k meta.KeyRef) error {
	var rec store.Record
	db, err := a.readStore(ctx)
	if err == nil {
		err = db.View(ctx, func(tx *store.Tx) error {
			rec, err = tx.Get(k)
			return err
		})
	}
	if errors.Is(err, meta.ErrNotFound) {
		return meta.NotFound(fmt.Sprintf("key %q", k.Key), "not set", a.unloadedHint(ctx))
	}
	if err != nil {
		return err
	}
	if o.json {
		a.Out.Println(ui.JSON((&ui.Object{}).Add(k.Key, jsonValue(rec.Value))))
		return nil
	}
	g := getter{app: a, o: getOptions{nul: o.nul}}
	return g.showValue(rec)
}

func runConfigList(ctx context.Context, a *app, o configOptions) error {
	recs := map[string]meta.Value{}
	var keys []string
	db, err := a.readStore(ctx)
	if err == nil {
		project := meta.ProjectTarget
		err = db.View(ctx, func(tx *store.Tx) error {
			for rec, err := range tx.Records(store.Query{Target: &project, Namespace: "meta"}) {
				if err != nil {
					return err
				}
				if rec.Key != "meta" {
					keys = append(keys, rec.Key)
					recs[rec.Key] = rec.Value
				}
			}
			return nil
		})
	}
	if err = ignoreNoStore(err); err != nil {
		return err
	}
	prune.ConfigOrder(keys)
	if o.json {
		out := &ui.Object{}
		for _, key := range keys {
			out.Add(key, jsonValue(recs[key]))
		}
		a.Out.Println(ui.JSON(out))
		return nil
	}
	for _, key := range keys {
		for _, item := range recs[key].Items() {
			if o.nul {
				_, _ = a.Out.WriteString(key + "\n" + item + "\x00")
			} else {
				a.Out.Println(ui.OneLine(key) + " = " + ui.OneLine(item))
			}
		}
	}
	return nil
}

func runConfigUnset(ctx context.Context, a *app, k meta.KeyRef) error {
	err := a.loadForRemoval(ctx, k)
	if err == nil {
		err = a.edit(ctx, 0, func(tx *store.Tx, e store.Edit) error { return tx.Remove(k, e) })
	}
	if errors.Is(err, meta.ErrNotFound) {
		return meta.NotFound(fmt.Sprintf("key %q", k.Key), "not set", "git meta config --list shows the settings")
	}
	if err != nil {
		return err
	}
	if (meta.InNamespace(k.Key, "meta:prune") || meta.InNamespace(k.Key, "meta:sqlite")) && a.published(ctx) {
		a.warn(fmt.Sprintf("fresh clones that run the Rust git-meta cannot serialize once %s is unset; with such clones set another value instead", k.Key))
	}
	return nil
}

// published reports whether anything is published here.
func (a *app) published(ctx context.Context) bool {
	ns, err := a.namespace(ctx)
	if err != nil {
		return false
	}
	refs, err := a.repository.Refs(ctx, "refs/"+ns+"/")
	return err == nil && len(refs) > 0
}
