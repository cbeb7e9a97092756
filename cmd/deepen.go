package cmd

import (
	"context"
	"strings"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/serialize/exchange"
	"github.com/spf13/cobra"
)

func newDeepenCmd(a *app) *cobra.Command {
	var depth int
	c := &cobra.Command{
		Use: "deepen [options] [<REMOTE>]",
		Long: `Fetch more of a metadata history of which only the last commits are here, and
note which keys it knows: git meta get fetches their values on demand. Without
--depth the whole history is fetched. What is new on the remote is for git meta
pull to bring.

` + exitStatus,
		Example: `  git meta deepen
  git meta deepen --depth 100`,
		Args: takes(0, "REMOTE"),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("depth") && depth < 1 {
				return usageOf(c, "--depth takes a number above 0; leave it out for the whole history")
			}
			return runDeepen(c.Context(), a, strings.Join(args, ""), depth)
		},
	}
	c.Flags().IntVar(&depth, "depth", 0, "fetch `N` more commits")
	return c
}

func runDeepen(ctx context.Context, a *app, remote string, depth int) error {
	env, err := a.exchange(ctx)
	if err != nil {
		return err
	}
	r, err := env.Find(ctx, remote)
	if err != nil {
		return err
	}
	d, err := env.Deepen(ctx, r, depth)
	if err != nil {
		return err
	}
	if d.Index == nil && d.Complete && d.Commits == d.Was {
		a.tell(exchange.Done, "The metadata history is already complete; nothing to deepen.")
		return nil
	}
	if d.Commits == d.Was {
		a.tell(exchange.Done, "Nothing further to fetch.")
	} else {
		a.tell(exchange.Detail, ui.Plural(d.Commits-d.Was, "commit", "commits")+" added, "+ui.Plural(d.Commits, "commit", "commits")+" in all")
	}
	if rep := d.Index; rep != nil {
		switch {
		case rep.Busy != nil:
			a.noteBusy(rep)
		case rep.Index != nil && rep.Keys > 0:
			a.tell(exchange.Detail, "Indexed "+ui.Plural(rep.Keys, "key", "keys")+" from history (available on demand)")
		}
	}
	switch {
	case d.Complete:
		a.tell(exchange.Done, "The metadata history is complete now.")
	case d.Commits != d.Was:
		a.tell(exchange.Done, "Still shallow: git meta deepen again reaches further back.")
	}
	return nil
}
