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
	dryRun    bool
	forceFull bool
	verbose   bool
	json      bool
}

func newMaterializeCmd(a *app) *cobra.Command {
	var o materializeOptions
	c := &cobra.Command{
		Use: "materialize [options] [<REMOTE>]",
		Long: `Bring what was fetched from a metadata remote into the store. Local edits are
serialized first. Then both histories are merged key by key: what one side
changed is taken, of two edits of one string the later wins, lists and sets are
united, and only a removal removes: a key that is missing stays readable here.
Without REMOTE every metadata remote's tracking ref is read. Of a side remote
the values are taken over where there are none here; they are not published.

` + exitStatus,
		Example: `  git meta materialize
  git meta materialize --dry-run`,
		Args: takes(0, "REMOTE"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := exclusive(c, "dry-run", "force-full"); err != nil {
				return err
			}
			return runMaterialize(c.Context(), a, o, strings.Join(args, ""))
		},
	}
	f := c.Flags()
	f.BoolVarP(&o.dryRun, "dry-run", "n", false, "show what would change, change nothing")
	f.BoolVar(&o.forceFull, "force-full", false, "index the whole history again, for get to fetch older keys")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "say on standard error what is done")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	return c
}

func runMaterialize(ctx context.Context, a *app, o materializeOptions, remote string) error {
	open := a.env
	if o.dryRun {
		open = func(ctx context.Context) (*serialize.Env, error) { return a.dryEnv(ctx, true) }
	}
	env, warnings, err := a.exchangeOn(ctx, open, o.verbose, o.json)
	if err != nil {
		return err
	}
	refs, err := env.Tracked(ctx, remote)
	if err != nil {
		return err
	}
	results := []any{}
	for _, t := range refs {
		b, err := env.Materialize(ctx, t, o.dryRun)
		if err != nil {
			return err
		}
		switch {
		case b.Side != nil:
			results = append(results, sideJSON(b))
			if !o.json {
				printSide(a, o, b)
			}
		default:
			results = append(results, mergeJSON(b.Merge))
			if !o.json {
				printMaterialized(a, o, b.Merge)
			}
		}
	}
	var indexed *serialize.IndexReport
	switch {
	case o.forceFull:
		if indexed, err = env.Index(ctx, serialize.UpdateIndexOptions{Full: true}); err != nil {
			return err
		}
	case !o.dryRun && len(results) > 0:
		a.index(ctx, env)
	}
	if !o.dryRun {
		a.autoSweep(ctx, warnings)
	}
	if o.json {
		a.Out.Println(ui.JSON(addIndexed((&ui.Object{}).Add("refs", results), indexed).Add("warnings", *warnings)))
		return nil
	}
	if len(results) == 0 {
		a.confirm("no remote metadata refs found")
	}
	switch {
	case indexed == nil:
	case indexed.Keys == 0:
		a.confirm("full history already indexed")
	default:
		a.confirm("indexed %s from full history", ui.Plural(indexed.Keys, "key", "keys"))
	}
	return nil
}

// addIndexed adds what a full index found, if there was one.
func addIndexed(o *ui.Object, rep *serialize.IndexReport) *ui.Object {
	if rep == nil {
		return o
	}
	return o.Add("indexed", rep.Keys)
}

// printSide says what was read from a side remote.
func printSide(a *app, o materializeOptions, b *exchange.Brought) {
	keys := ui.Plural(b.Side.Loaded, "key", "keys")
	switch {
	case o.dryRun && b.Side.UpToDate:
		a.Out.Printf("dry-run: %s already up to date\n", b.Ref)
	case o.dryRun:
		a.Out.Printf("dry-run: %s\ndry-run: strategy=side-import\ndry-run: %s to be read\n", b.Ref, keys)
	case b.Side.UpToDate:
		a.confirm("%s already up to date", b.Ref)
	default:
		a.confirm("materialized %s (side remote, %s)", b.Ref, keys)
	}
}

func sideJSON(b *exchange.Brought) *ui.Object {
	strategy := "side-import"
	if b.Side.UpToDate {
		strategy = string(serialize.UpToDate)
	}
	return (&ui.Object{}).Add("ref", b.Ref).Add("strategy", strategy).Add("commit", nil).
		Add("loaded", b.Side.Loaded).Add("removed", 0).Add("conflicts", []any{})
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

func mergeJSON(r *serialize.MergeResult) *ui.Object {
	conflicts := []any{}
	for _, c := range r.Conflicts {
		conflicts = append(conflicts, (&ui.Object{}).Add("target_type", string(c.Target.Type)).Add("target_value", c.Target.Value).
			Add("key", c.Key).Add("reason", string(c.Reason)).Add("resolution", c.Resolution).Add("loser", orNull(c.Loser)))
	}
	var auto, kept any
	if r.AutoPrune != nil {
		auto = prunedJSON(r.AutoPrune)
	}
	if r.Retention != nil {
		kept = retainedJSON(r.Retention)
	}
	return (&ui.Object{}).Add("ref", r.Ref).Add("strategy", string(r.Strategy)).Add("commit", orNull(r.Commit)).
		Add("loaded", r.Loaded).Add("removed", r.Removed).Add("conflicts", conflicts).Add("auto_prune", auto).Add("retention", kept)
}
