package cmd

import (
	"context"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/spf13/cobra"
)

type memberOptions struct {
	target, key, member string
	timestamp           string
	json                bool
}

func newSetAddCmd(a *app) *cobra.Command {
	return memberCmd(a, runSetAdd, cobra.Command{
		Use: "set:add [options] <TARGET> <KEY> <VALUE>",
		Long: `Add a member to a set. A missing set is created; adding a member that is there
already changes nothing.

` + exitStatus,
		Example: `  git meta set:add commit:HEAD reviewers alice@example.com
  git meta set:add project meta:filter 'exclude agent:transcript'`,
	})
}

func newSetRmCmd(a *app) *cobra.Command {
	return memberCmd(a, runSetRm, cobra.Command{
		Use: "set:rm [options] <TARGET> <KEY> <VALUE>",
		Long: `Remove a member from a set.

` + exitStatus,
		Example: `  git meta set:rm commit:HEAD reviewers alice@example.com
  git meta set:rm project meta:filter 'exclude agent:transcript'`,
	})
}

// memberCmd completes the two commands that work on a member.
func memberCmd(a *app, run func(context.Context, *app, memberOptions) error, c cobra.Command) *cobra.Command {
	var o memberOptions
	c.Args = takes(3, "TARGET", "KEY", "VALUE")
	c.RunE = func(c *cobra.Command, args []string) error {
		o.target, o.key, o.member = args[0], args[1], args[2]
		return run(c.Context(), a, o)
	}
	timestampFlag(c.Flags(), &o.timestamp)
	c.Flags().BoolVar(&o.json, "json", false, "print what was done as JSON")
	return &c
}

func runSetAdd(ctx context.Context, a *app, o memberOptions) error {
	ms, err := a.timestamp(o.timestamp)
	if err != nil {
		return err
	}
	k, err := a.keyRef(ctx, o.target, o.key)
	if err != nil {
		return err
	}
	if err := checkItem(k, meta.Set, o.member); err != nil {
		return err
	}
	if err := a.load(ctx, k); err != nil {
		return err
	}
	err = a.edit(ctx, ms, func(tx *store.Tx, e store.Edit) error {
		if err := a.notePast(ctx, tx, k, ms); err != nil {
			return err
		}
		if err := tx.SetAdd(k, o.member, e); err != nil {
			return err
		}
		return a.noteShort(tx, k.Target)
	})
	if err != nil {
		return err
	}
	if r, _ := meta.ParseRule(o.member); isFilterKey(k) && len(r.Dests) == 0 {
		a.note("keys that match are not published from now on; what has been published stays in the history")
	}
	a.done(o.json, "added", k)
	return nil
}

func runSetRm(ctx context.Context, a *app, o memberOptions) error {
	ms, err := a.timestamp(o.timestamp)
	if err != nil {
		return err
	}
	t, err := a.target(ctx, o.target)
	if err != nil {
		return err
	}
	k := meta.KeyRef{Target: t, Key: o.key}
	if err := a.loadForRemoval(ctx, k); err != nil {
		return err
	}
	if err := a.edit(ctx, ms, func(tx *store.Tx, e store.Edit) error { return tx.SetRemove(k, o.member, e) }); err != nil {
		return err
	}
	a.done(o.json, "removed", k)
	return nil
}
