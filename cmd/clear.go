package cmd

import (
	"context"
	"fmt"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/spf13/cobra"
)

type clearOptions struct {
	pattern string
	target  string // a type or a target; "" means all
	dryRun  bool
	json    bool
}

func newClearCmd(a *app) *cobra.Command {
	var o clearOptions
	c := &cobra.Command{
		Use: "clear [options] <KEY>",
		Long: `Remove KEY and every key below it from every target. Whole segments count:
clear agent removes agent and agent:model, not agents. The removals are recorded
like those of git meta rm.

` + exitStatus,
		Example: `  git meta clear --dry-run agent
  git meta clear agent:transcript
  git meta clear -t commit ci
  git meta clear -t path:src owner`,
		Args: takes(1, "KEY"),
		RunE: func(c *cobra.Command, args []string) error {
			o.pattern = args[0]
			if o.pattern == "" {
				return usageOf(c, "the key is empty")
			}
			return runClear(c.Context(), a, o)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.target, "target", "t", "", "only on `TARGET`, or on all targets of that type")
	f.BoolVarP(&o.dryRun, "dry-run", "n", false, "list what would be removed")
	f.BoolVar(&o.json, "json", false, "print what was removed as JSON")
	return c
}

func runClear(ctx context.Context, a *app, o clearOptions) error {
	q, err := a.clearQuery(ctx, o)
	if err != nil {
		return err
	}
	var keys []meta.KeyRef
	has, err := a.hasStore(ctx)
	switch {
	case err != nil || !has:
	case o.dryRun:
		keys, err = a.matching(ctx, q)
	default:
		err = a.edit(ctx, 0, func(tx *store.Tx, e store.Edit) error {
			keys, err = tx.Clear(q, e)
			return err
		})
	}
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return meta.NotFound(fmt.Sprintf("key %q", o.pattern), "no such key or namespace"+onTarget(o.target),
			"git meta get TARGET lists the keys of a target")
	}
	if o.json {
		a.Out.Println(ui.JSON((&ui.Object{}).Add("dry_run", o.dryRun).Add("cleared", len(keys)).Add("keys", keyList(keys))))
		return nil
	}
	if o.dryRun {
		for _, k := range keys {
			a.Out.Println(ui.OneLine(k.String()))
		}
		a.Out.Printf("would clear %s\n", ui.Plural(len(keys), "entry", "entries"))
		return nil
	}
	a.confirm("cleared %s", ui.Plural(len(keys), "entry", "entries"))
	return nil
}

func onTarget(filter string) string {
	if filter == "" {
		return ""
	}
	return " on " + filter
}

// clearQuery turns the options into what is to be removed.
func (a *app) clearQuery(ctx context.Context, o clearOptions) (store.Query, error) {
	q := store.Query{Namespace: o.pattern}
	switch t := meta.TargetType(o.target); {
	case o.target == "":
	case t.Known():
		q.Type = t
	default:
		target, err := a.target(ctx, o.target)
		if err != nil {
			return q, err
		}
		q.Target = &target
	}
	all := q.Type == "" && q.Target == nil || q.Type == meta.Project || q.Target != nil && q.Target.Type == meta.Project
	if all && (o.pattern == "meta" || o.pattern == "local:meta" || o.pattern == "local") {
		return q, meta.Invalid(fmt.Sprintf("clear %q", o.pattern), "this would remove the project's settings",
			"name what is to go: git meta clear "+o.pattern+":NAME, or git meta config --unset KEY")
	}
	return q, nil
}

// matching returns the keys that q selects.
func (a *app) matching(ctx context.Context, q store.Query) ([]meta.KeyRef, error) {
	db, err := a.readStore(ctx)
	if err != nil {
		return nil, ignoreNoStore(err)
	}
	var keys []meta.KeyRef
	err = db.View(ctx, func(tx *store.Tx) error {
		for row, err := range tx.Rows(q) {
			if err != nil {
				return err
			}
			keys = append(keys, row.KeyRef)
		}
		return nil
	})
	return keys, err
}

// keyList returns keys for JSON.
func keyList(keys []meta.KeyRef) []any {
	out := make([]any, len(keys))
	for i, k := range keys {
		out[i] = (&ui.Object{}).Add("target_type", string(k.Target.Type)).
			Add("target_value", k.Target.Value).Add("key", k.Key)
	}
	return out
}
