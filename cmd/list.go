package cmd

import (
	"context"
	"fmt"
	"strconv"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/spf13/cobra"
)

func newListPushCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list:push <TARGET> <KEY> <VALUE>",
		Long: `Append an entry to a list. A missing list is created; a string becomes the
first entry of a new list.

` + exitStatus,
		Example: `  git meta list:push commit:HEAD comments 'looks good'
  git meta list:push project todo -- '--force needs a test'`,
		Args: takes(3, "TARGET", "KEY", "VALUE"),
		RunE: func(c *cobra.Command, args []string) error {
			return runListPush(c.Context(), a, args[0], args[1], args[2])
		},
	}
}

func runListPush(ctx context.Context, a *app, target, key, value string) error {
	k, err := a.keyRef(ctx, target, key)
	if err != nil {
		return err
	}
	if err := checkItem(k, meta.List, value); err != nil {
		return err
	}
	if err := a.load(ctx, k); err != nil {
		return err
	}
	return a.edit(ctx, 0, func(tx *store.Tx, e store.Edit) error {
		if err := tx.ListPush(k, value, e); err != nil {
			return err
		}
		return a.noteShort(tx, k.Target)
	})
}

func newListPopCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list:pop <TARGET> <KEY> <VALUE>",
		Long: `Remove the last entry of a list that equals VALUE.

` + exitStatus,
		Example: `  git meta list:pop commit:HEAD comments 'looks good'
  git meta list:pop project todo 'write tests'`,
		Args: takes(3, "TARGET", "KEY", "VALUE"),
		RunE: func(c *cobra.Command, args []string) error {
			return runListPop(c.Context(), a, args[0], args[1], args[2])
		},
	}
}

func runListPop(ctx context.Context, a *app, target, key, value string) error {
	t, err := a.target(ctx, target)
	if err != nil {
		return err
	}
	k := meta.KeyRef{Target: t, Key: key}
	if err := a.loadForRemoval(ctx, k); err != nil {
		return err
	}
	return a.edit(ctx, 0, func(tx *store.Tx, e store.Edit) error { return tx.ListPop(k, value, e) })
}

type listRmOptions struct {
	target, key string
	json        bool
}

func newListRmCmd(a *app) *cobra.Command {
	var o listRmOptions
	c := &cobra.Command{
		Use: "list:rm [options] <TARGET> <KEY> [<INDEX>]",
		Long: `Without INDEX show the entries of a list with their numbers, long ones cut;
with INDEX remove that entry. The first entry has the number 0.

` + exitStatus,
		Example: `  git meta list:rm commit:HEAD comments
  git meta list:rm commit:HEAD comments 0`,
		Args: takes(2, "TARGET", "KEY", "INDEX"),
		RunE: func(c *cobra.Command, args []string) error {
			o.target, o.key = args[0], args[1]
			if len(args) == 2 {
				return runListShow(c.Context(), a, o)
			}
			i, err := strconv.Atoi(args[2])
			if err != nil || i < 0 {
				return usageOf(c, "index %q: not a whole number from 0", args[2])
			}
			return runListRm(c.Context(), a, o, i)
		},
	}
	c.Flags().BoolVar(&o.json, "json", false, "show the entries as JSON")
	return c
}

func runListShow(ctx context.Context, a *app, o listRmOptions) error {
	t, err := a.target(ctx, o.target)
	if err != nil {
		return err
	}
	k := meta.KeyRef{Target: t, Key: o.key}
	rec, err := a.record(ctx, k)
	if err != nil {
		return err
	}
	if rec.Type != meta.List {
		return &meta.Error{
			Op: fmt.Sprintf("key %q", k.Key), Err: store.ErrType,
			Hint: fmt.Sprintf("it holds a %s: git meta get %s %s", rec.Type, shellWord(t.String()), shellWord(k.Key)),
		}
	}
	if o.json {
		out := make([]any, len(rec.Value.Entries))
		for i, e := range rec.Value.Entries {
			out[i] = (&ui.Object{}).Add("index", i).Add("timestamp", e.Time).Add("value", e.Value)
		}
		a.Out.Println(ui.JSON(out))
		return nil
	}
	for i, e := range rec.Value.Entries {
		a.Out.Printf("[%d] %s\n", i, ui.Cut(ui.OneLine(e.Value), 80))
	}
	if len(rec.Value.Entries) == 0 {
		a.Out.Println("(empty list)")
	}
	return nil
}

func runListRm(ctx context.Context, a *app, o listRmOptions, index int) error {
	t, err := a.target(ctx, o.target)
	if err != nil {
		return err
	}
	k := meta.KeyRef{Target: t, Key: o.key}
	if err := a.loadForRemoval(ctx, k); err != nil {
		return err
	}
	return a.edit(ctx, 0, func(tx *store.Tx, e store.Edit) error { return tx.ListRemove(k, index, e) })
}
