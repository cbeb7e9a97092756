package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/serialize/exchange"
	"github.com/spf13/cobra"
)

type materializeOptions struct {
	dryRun  bool
	verbose bool
	json    bool
}

func newMaterializeCmd(a *app) *cobra.Command {
	var o materializeOptions
	c := &cobra.Command{
		Use: "materialize [options] [<REMOTE>]",
		Long: `Bring what was fetched from a metadata remote into the store. Local edits are
serialized first. Then both histories are merged key by key: what one side
changed is taken, of two edits of one string the later wins, lists and sets are
united, and only a removal removes: a key that is missing stays readable here.
Without REMOTE every metadata remote's tracking ref is read.

` + exitStatus,
		Example: `  git meta materialize
  git meta materialize --dry-run`,
		Args: takes(0, "REMOTE"),
		RunE: func(c *cobra.Command, args []string) error {
			return runMaterialize(c.Context(), a, o, strings.Join(args, ""))
		},
	}
	f := c.Flags()
	f.BoolVarP(&o.dryRun, "dry-run", "n", false, "show what would change, change nothing")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "say on standard error what is done")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	return c
}

func runMaterialize(ctx context.Context, a *app, o materializeOptions, remote string) error {
	env, err := a.serializeEnv(ctx, o.dryRun)
	if err != nil {
		return err
	}
	warnings := a.collect(env, o.json)
	if o.verbose {
		env.Logf = a.Errf
	}
	refs, err := exchange.TrackingRefs(ctx, a.repository, env.Namespace, remote)
	if err != nil {
		return err
	}
	var results []*serialize.MergeResult
	for _, ref := range refs {
		res, err := serialize.Materialize(ctx, env, ref, serialize.MergeOptions{DryRun: o.dryRun, Pruner: autoPrune()})
		if err != nil {
			return err
		}
		results = append(results, res)
		if !o.json {
			printMaterialized(a, o, res)
		}
	}
	if o.json {
		a.Out.Println(ui.JSON(materializeJSON(results, *warnings)))
	} else if len(results) == 0 {
		a.confirm("no remote metadata refs found")
	}
	return nil
}

func printMaterialized(a *app, o materializeOptions, res *serialize.MergeResult) {
	if o.dryRun {
		printMergePlan(a, res)
		return
	}
	switch res.Strategy {
	case serialize.UpToDate:
		a.confirm("%s already up to date", res.Ref)
	case serialize.FastForward:
		a.confirm("materialized %s (fast-forward)", res.Ref)
	default:
		a.confirm("materialized %s", res.Ref)
	}
	reportMerge(a, res)
}

// reportMerge tells on standard error what a merge decided.
func reportMerge(a *app, res *serialize.MergeResult) {
	for _, c := range res.Conflicts {
		switch {
		case c.Resolution == "union":
		case c.Loser != "":
			a.Errf("conflict: %s: %s, %s wins over %s", ui.OneLine(c.KeyRef.String()), c.Reason, c.Resolution, ui.OneLine(fmt.Sprintf("%q", c.Loser)))
		default:
			a.Errf("conflict: %s: %s, %s wins", ui.OneLine(c.KeyRef.String()), c.Reason, c.Resolution)
		}
	}
	for _, k := range res.Unclear {
		a.Errf("%s: removed there, but not by anybody's rm; kept here, not published", ui.OneLine(k.String()))
	}
}

func printMergePlan(a *app, res *serialize.MergeResult) {
	if res.Strategy == serialize.UpToDate {
		a.Out.Printf("dry-run: %s already up to date\n", res.Ref)
		return
	}
	if res.Strategy == serialize.TwoWay {
		a.Out.Printf("dry-run: no common ancestor between local metadata ref and %s\n", res.Ref)
	}
	a.Out.Printf("dry-run: %s\ndry-run: strategy=%s\n", res.Ref, res.Strategy)
	if len(res.Conflicts) == 0 {
		a.Out.Printf("dry-run: no conflict resolutions\n")
	} else {
		a.Out.Printf("dry-run: conflict resolutions:\n")
		for _, c := range res.Conflicts {
			a.Out.Printf("  conflict %s %s reason=%s resolution=%s\n", ui.OneLine(c.Target.String()), ui.OneLine(c.Key), c.Reason, c.Resolution)
		}
	}
	if len(res.Changes) == 0 {
		a.Out.Printf("dry-run: no sqlite changes\n")
		return
	}
	a.Out.Printf("dry-run: planned sqlite changes:\n")
	for _, c := range res.Changes {
		name := ui.OneLine(c.Target.String()) + " " + ui.OneLine(c.Key)
		switch {
		case c.Remove:
			a.Out.Printf("  rm %s\n", name)
		case c.Value.Type == meta.List:
			a.Out.Printf("  set %s (list) = %d entries\n", name, len(c.Value.Entries))
		case c.Value.Type == meta.Set:
			a.Out.Printf("  set %s (set) = %d members\n", name, len(c.Value.Members))
		default:
			a.Out.Printf("  set %s (string) = %s\n", name, ui.OneLine(c.Value.String))
		}
	}
}

func materializeJSON(results []*serialize.MergeResult, warnings []string) *ui.Object {
	refs := []any{}
	for _, r := range results {
		conflicts := []any{}
		for _, c := range r.Conflicts {
			conflicts = append(conflicts, (&ui.Object{}).Add("target_type", string(c.Target.Type)).Add("target_value", c.Target.Value).
				Add("key", c.Key).Add("reason", string(c.Reason)).Add("resolution", c.Resolution).Add("loser", orNull(c.Loser)))
		}
		refs = append(refs, (&ui.Object{}).Add("ref", r.Ref).Add("strategy", string(r.Strategy)).Add("commit", orNull(r.Commit)).
			Add("loaded", r.Loaded).Add("removed", r.Removed).Add("conflicts", conflicts))
	}
	return (&ui.Object{}).Add("refs", refs).Add("warnings", append([]string{}, warnings...))
}
