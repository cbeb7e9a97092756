package cmd

import (
	"context"
	"errors"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/spf13/cobra"
)

type rmOptions struct {
	target, key   string
	ignoreMissing bool
}

func newRmCmd(a *app) *cobra.Command {
	var o rmOptions
	c := &cobra.Command{
		Use: "rm [options] <TARGET> <KEY>",
		Long: `Remove a key, whatever its type. The removal is recorded and, once published,
removes the key in other clones too. Keys below KEY stay: see git meta clear.

` + exitStatus,
		Example: `  git meta rm commit:HEAD review:status
  git meta rm --ignore-missing project build:log`,
		Args: takes(2, "TARGET", "KEY"),
		RunE: func(c *cobra.Command, args []string) error {
			o.target, o.key = args[0], args[1]
			return runRm(c.Context(), a, o)
		},
	}
	c.Flags().BoolVar(&o.ignoreMissing, "ignore-missing", false, "succeed if there is no such key")
	return c
}

func runRm(ctx context.Context, a *app, o rmOptions) error {
	t, err := a.target(ctx, o.target)
	if err != nil {
		return err
	}
	k := meta.KeyRef{Target: t, Key: o.key}
	err = a.loadForRm(ctx, k)
	if err == nil {
		err = a.edit(ctx, 0, func(tx *store.Tx, e store.Edit) error { return tx.Remove(k, e) })
	}
	if o.ignoreMissing && errors.Is(err, meta.ErrNotFound) {
		return nil
	}
	return err
}

// loadForRm is loadForRemoval for a command that does not care for the value: of a key
// that is known from history only none is fetched.
func (a *app) loadForRm(ctx context.Context, k meta.KeyRef) error {
	db, err := a.readStore(ctx)
	if err == nil {
		promised := false
		err = db.View(ctx, func(tx *store.Tx) error {
			row, ok, err := tx.Row(k)
			promised = ok && row.Promised
			return err
		})
		if promised {
			return nil
		}
	}
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		return err
	}
	return a.loadForRemoval(ctx, k)
}
