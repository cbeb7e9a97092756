package cmd

import (
	"context"
	"strings"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/serialize/exchange"
	"github.com/spf13/cobra"
)

type syncOptions struct {
	remote  string
	verbose bool
	json    bool
}

func newSyncCmd(a *app) *cobra.Command {
	var o syncOptions
	c := &cobra.Command{
		Use: "sync [options] [<REMOTE>]",
		Long: `Pull from every metadata remote, then push to the primary one; with REMOTE only
with that one. Side remotes are read and never pushed to. An empty primary
remote is started with what is published here.

` + exitStatus,
		Example: `  git meta sync
  git meta sync meta --json`,
		Args: takes(0, "REMOTE"),
		RunE: func(c *cobra.Command, args []string) error {
			o.remote = strings.Join(args, "")
			return runSync(c.Context(), a, o)
		},
	}
	f := c.Flags()
	f.BoolVarP(&o.verbose, "verbose", "v", false, "say on standard error what is done")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	return c
}

func runSync(ctx context.Context, a *app, o syncOptions) error {
	env, warnings, err := a.exchangeFor(ctx, o.verbose, o.json)
	if err != nil || a.goesRound(env) {
		return err
	}
	remotes, err := env.All(ctx, o.remote)
	if err != nil {
		return err
	}
	var report exchange.SyncReport
	if !o.json {
		report = a.syncReport()
	}
	res, err := env.Sync(ctx, remotes, report)
	if err != nil {
		return err
	}
	a.index(ctx, env)
	a.autoSweep(ctx, warnings)
	if o.json {
		pulled := []any{}
		for _, p := range res.Pulled {
			pulled = append(pulled, pullJSON(p))
		}
		var push any
		if res.Pushed != nil {
			push = pushJSON(res.Pushed)
		}
		a.Out.Println(ui.JSON((&ui.Object{}).Add("pulled", pulled).Add("pushed", push).Add("warnings", *warnings)))
		return nil
	}
	if len(remotes) > 1 {
		a.confirm("Synced metadata with %d remotes.", len(remotes))
	}
	return nil
}

// syncReport prints what a sync does, as it happens.
func (a *app) syncReport() exchange.SyncReport {
	name := func(r exchange.Remote) string { return ui.OneLine(r.Name) }
	return exchange.SyncReport{
		Pulling: func(r exchange.Remote) { a.step(false, "Pulling from "+name(r)+"...") },
		Pushing: func(r exchange.Remote) { a.step(false, "Pushing to "+name(r)+"...") },
		Empty:   func(r exchange.Remote) { a.note("there is no metadata on %s yet", name(r)) },
		Pulled: func(p *exchange.Pulled) {
			a.reportBrought(&p.Brought)
			if p.UpToDate() {
				a.confirm("Already up-to-date from %s.", name(p.Remote))
			} else {
				a.confirm("Pulled metadata from %s", name(p.Remote))
			}
			_ = a.Out.Flush() // before the push says what it does
		},
		Pushed: func(p *exchange.Pushed) {
			a.reportPush(p)
			switch {
			case p.Nothing():
				a.confirm("nothing to push (no local metadata ref)")
			case p.UpToDate:
				a.confirm("Everything up-to-date on %s", name(p.Remote))
			default:
				a.confirm("Pushed metadata to %s (%s)", name(p.Remote), p.Remote.MainRef())
			}
		},
	}
}
