package cmd

import (
	"context"
	"strings"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/serialize/exchange"
	"github.com/spf13/cobra"
)

type pushOptions struct {
	remote      string
	destination string
	readme      bool
	verbose     bool
	json        bool
}

func newPushCmd(a *app) *cobra.Command {
	var o pushOptions
	c := &cobra.Command{
		Use: "push [options] [<REMOTE>]",
		Long: `Publish the metadata of this repository on a remote. Local edits are serialized
first, and what the remote has that is not here is merged: nobody's changes are
overwritten, and nothing is ever forced. When somebody else is faster, it is
fetched, merged and tried again. REMOTE is the primary metadata remote if it is
not given. What a server says when it refuses is shown.

A side remote is only read. With --destination it gets what the filter rules of
the project send to NAME, and nothing else; git config
remote.REMOTE.metadestination NAME makes that its default.

` + exitStatus,
		Example: `  git meta push
  git meta push meta --json
  git meta push private --destination private`,
		Args: takes(0, "REMOTE"),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("destination") && o.destination == "" {
				return usageOf(c, "--destination is empty")
			}
			if err := exclusive(c, "readme", "destination"); err != nil {
				return err
			}
			o.remote = strings.Join(args, "")
			return runPush(c.Context(), a, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.destination, "destination", "", "push what filter rules send to `NAME`")
	f.BoolVar(&o.readme, "readme", false, "push a README to the empty branch main there, no metadata")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "say on standard error what is done")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	return c
}

func runPush(ctx context.Context, a *app, o pushOptions) error {
	env, warnings, err := a.exchangeFor(ctx, o.verbose, o.json)
	if err != nil || a.goesRound(env) {
		return err
	}
	r, err := env.Find(ctx, o.remote)
	if err != nil {
		return err
	}
	name := ui.OneLine(r.Name)
	if o.readme {
		a.step(o.json, "Pushing README to "+name+"...")
		if err := env.PushReadme(ctx, r); err != nil {
			return err
		}
		if o.json {
			a.Out.Println(ui.JSON((&ui.Object{}).Add("remote", r.Name).Add("ref", "refs/heads/main").Add("status", "pushed").Add("warnings", *warnings)))
			return nil
		}
		a.confirm("Pushed README to %s (refs/heads/main)", name)
		return nil
	}
	dest := o.destination
	if dest == "" && r.Side {
		dest = r.Destination
	}
	a.step(o.json, "Pushing to "+name+"...")
	var p *exchange.Pushed
	if dest != "" {
		p, err = env.PushDestination(ctx, r, dest)
	} else {
		p, err = env.Push(ctx, r)
	}
	if p != nil && !o.json { // also before an error: it has happened
		a.reportPush(p)
	}
	if err != nil {
		return err
	}
	a.autoSweep(ctx, warnings)
	if o.json {
		a.Out.Println(ui.JSON(pushJSON(p).Add("warnings", *warnings)))
		return nil
	}
	switch {
	case p.Nothing() && dest != "":
		a.confirm("nothing to push (no %s)", p.Local)
		a.note("what goes there is for a filter rule to say: git meta set:add project meta:filter %s", shellWord("route KEY "+dest))
	case p.Nothing():
		a.confirm("nothing to push (no local metadata ref)")
	case p.UpToDate:
		a.confirm("Everything up-to-date")
	default:
		a.confirm("Pushed metadata to %s (%s)", name, r.MainRef())
	}
	return nil
}

// reportPush tells on standard error what was merged and pruned on the way.
func (a *app) reportPush(p *exchange.Pushed) {
	for _, m := range p.Merges {
		reportMerge(a, m)
	}
	for _, x := range p.Retentions {
		a.step(false, retainedText(x))
	}
	for _, x := range p.AutoPrunes {
		a.step(false, "auto-pruned "+ui.Plural(x.KeysDropped, "key", "keys"))
	}
}

func pushJSON(p *exchange.Pushed) *ui.Object {
	status := "pushed"
	switch {
	case p.Nothing():
		status = "nothing"
	case p.UpToDate:
		status = "up-to-date"
	}
	serialized, merges, prunes, retentions := []any{}, []any{}, []any{}, []any{}
	for _, r := range p.Serialized {
		serialized = append(serialized, (&ui.Object{}).Add("ref", r.Ref).Add("commit", orNull(r.Commit)).Add("changes", r.Changes))
	}
	for _, m := range p.Merges {
		merges = append(merges, mergeJSON(m))
	}
	for _, x := range p.AutoPrunes {
		prunes = append(prunes, prunedJSON(x))
	}
	for _, x := range p.Retentions {
		retentions = append(retentions, retainedJSON(x))
	}
	return (&ui.Object{}).Add("remote", p.Remote.Name).Add("ref", p.Remote.MainRef()).Add("local_ref", p.Local).
		Add("status", status).Add("commit", orNull(p.Commit)).Add("attempts", p.Attempts).
		Add("serialized", serialized).Add("merges", merges).Add("auto_prunes", prunes).Add("retentions", retentions)
}

func prunedJSON(p *serialize.Pruned) *ui.Object {
	return (&ui.Object{}).Add("commit", orNull(p.Commit)).Add("keys_dropped", p.KeysDropped).Add("keys_retained", p.KeysRetained)
}

// step says on standard error what starts, unless the output is JSON.
func (a *app) step(asJSON bool, text string) {
	if !asJSON && !a.quiet {
		a.say(exchange.Step, text)
	}
}

// exchangeFor is exchange for a command that reads or publishes: with verbose it tells
// what serialize does, for JSON it is silent and collects the warnings.
func (a *app) exchangeFor(ctx context.Context, verbose, asJSON bool) (*exchange.Env, *[]string, error) {
	return a.exchangeOn(ctx, a.env, verbose, asJSON)
}

// exchangeOn is exchangeFor with another way to open the store.
func (a *app) exchangeOn(ctx context.Context, open func(context.Context) (*serialize.Env, error), verbose, asJSON bool) (*exchange.Env, *[]string, error) {
	env, err := a.exchange(ctx)
	if err != nil {
		return nil, nil, err
	}
	warnings := &[]string{}
	if asJSON {
		env.Say, env.Terminal = nil, nil
	}
	env.Open = func(ctx context.Context) (*serialize.Env, error) {
		s, err := open(ctx)
		if err != nil {
			return nil, err
		}
		if asJSON {
			s.Warn = func(text string) { *warnings = append(*warnings, text) }
		}
		if verbose {
			s.Logf = a.Errf
		}
		return s, nil
	}
	return env, warnings, nil
}

// goesRound reports, and says, that a hook of a running push, pull or sync started this.
func (a *app) goesRound(env *exchange.Env) bool {
	dir, ok := a.getenv(exchange.GuardVariable)
	if !ok || dir != env.Repo.CommonDir {
		return false
	}
	a.note("git meta is already exchanging metadata here; this call from a hook does nothing")
	return true
}
