package cmd

import (
	"context"
	"strings"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/serialize/exchange"
	"github.com/spf13/cobra"
)

type pullOptions struct {
	remote  string
	verbose bool
	json    bool
}

func newPullCmd(a *app) *cobra.Command {
	var o pullOptions
	c := &cobra.Command{
		Use: "pull [options] [<REMOTE>]",
		Long: `Fetch a metadata remote and read what it holds into the store. Local edits are
serialized first, then both histories are merged as git meta materialize does.
REMOTE is the primary metadata remote if it is not given. What a side remote
holds becomes readable here and is never published from here.

` + exitStatus,
		Example: `  git meta pull
  git meta pull history`,
		Args: takes(0, "REMOTE"),
		RunE: func(c *cobra.Command, args []string) error {
			o.remote = strings.Join(args, "")
			return runPull(c.Context(), a, o)
		},
	}
	f := c.Flags()
	f.BoolVarP(&o.verbose, "verbose", "v", false, "say on standard error what is done")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	return c
}

func runPull(ctx context.Context, a *app, o pullOptions) error {
	env, warnings, err := a.exchangeFor(ctx, o.verbose, o.json)
	if err != nil || a.goesRound(env) {
		return err
	}
	r, err := env.Find(ctx, o.remote)
	if err != nil {
		return err
	}
	a.step(o.json, "Pulling from "+ui.OneLine(r.Name)+"...")
	p, err := env.Pull(ctx, r)
	if err != nil {
		return err
	}
	a.index(ctx, env)
	a.autoSweep(ctx, warnings)
	if o.json {
		a.Out.Println(ui.JSON(pullJSON(p).Add("warnings", *warnings)))
		return nil
	}
	a.reportBrought(&p.Brought)
	if p.UpToDate() {
		a.confirm("Already up-to-date.")
	} else {
		a.confirm("Pulled metadata from %s", ui.OneLine(r.Name))
	}
	return nil
}

// reportBrought tells on standard error what reading a tracking ref decided.
func (a *app) reportBrought(b *exchange.Brought) {
	switch {
	case b.Side != nil && b.Side.Skipped > 0:
		a.note("%s from %s: ours stay", ui.Plural(b.Side.Skipped, "key that is here already was not taken", "keys that are here already were not taken"), ui.OneLine(b.Remote.Name))
	case b.Merge != nil:
		reportMerge(a, b.Merge)
		if x := b.Merge.Retention; x != nil {
			a.step(false, retainedText(x))
		}
		if x := b.Merge.AutoPrune; x != nil {
			a.step(false, "auto-pruned "+ui.Plural(x.KeysDropped, "key", "keys"))
		}
	}
}

func pullJSON(p *exchange.Pulled) *ui.Object {
	o := (&ui.Object{}).Add("remote", p.Remote.Name).Add("ref", p.Ref).Add("up_to_date", p.UpToDate()).
		Add("old", orNull(p.Old)).Add("new", orNull(p.New)).Add("rewritten", p.Rewritten)
	addBrought(o, &p.Brought)
	return o
}

// addBrought adds what reading a tracking ref did.
func addBrought(o *ui.Object, b *exchange.Brought) {
	var merge, side any
	if b.Merge != nil {
		merge = mergeJSON(b.Merge)
	}
	if b.Side != nil {
		side = (&ui.Object{}).Add("loaded", b.Side.Loaded).Add("skipped", b.Side.Skipped)
	}
	o.Add("merge", merge).Add("side", side)
}
