package cmd

import (
	"context"
	"errors"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune/retention"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store/gitdb"
	"github.com/spf13/cobra"
)

type serializeOptions struct {
	verbose   bool
	dryRun    bool
	forceFull bool
	json      bool
}

func newSerializeCmd(a *app) *cobra.Command {
	var o serializeOptions
	c := &cobra.Command{
		Use: "serialize [options]",
		Long: `Write what has changed in the store as git trees, commit it on the local ref
refs/meta/local/main (and on the refs that meta:filter rules name), drop from
them what git meta retention sweep has deleted, then prune the tree if it is
over the project's limits: see git meta config -h. Without changes nothing is
written. A published tree that the store has not seen yet is loaded first.

` + exitStatus,
		Example: `  git meta serialize
  git meta serialize --dry-run
  git meta serialize --json`,
		Args: takes(0),
		RunE: func(c *cobra.Command, _ []string) error { return runSerialize(c.Context(), a, o) },
	}
	f := c.Flags()
	f.BoolVarP(&o.verbose, "verbose", "v", false, "say on standard error what is done")
	f.BoolVarP(&o.dryRun, "dry-run", "n", false, "show what would be written, write nothing")
	f.BoolVar(&o.forceFull, "force-full", false, "write every value, pruned ones included")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	return c
}

func runSerialize(ctx context.Context, a *app, o serializeOptions) error {
	if !o.forceFull {
		idle, err := a.nothingToSerialize(ctx)
		if err != nil {
			return err
		}
		if idle {
			a.finishSerialize(ctx, o, &serialize.Result{}, &[]string{})
			return nil
		}
	}
	env, err := a.serializeEnv(ctx, o.dryRun)
	if err != nil {
		return err
	}
	if env == nil {
		a.note("the published tree is not loaded here yet; git meta serialize loads it")
		a.printSerialized(o, &serialize.Result{}, nil, nil)
		return nil
	}
	warnings := a.collect(env, o.json)
	if o.verbose {
		env.Logf = a.Errf
	}
	res, err := serialize.Run(ctx, env, serialize.Options{ForceFull: o.forceFull, DryRun: o.dryRun, Pruner: autoPrune()})
	if err != nil {
		return err
	}
	if res.Loaded > 0 && !o.json {
		a.note("loaded %s from the published tree", ui.Plural(res.Loaded, "key", "keys"))
	}
	a.finishSerialize(ctx, o, res, warnings)
	return nil
}

// finishSerialize sweeps if that is due, and says what was done.
func (a *app) finishSerialize(ctx context.Context, o serializeOptions, res *serialize.Result, warnings *[]string) {
	var swept *retention.SweepResult
	if !o.dryRun {
		swept = a.autoSweep(ctx, warnings)
	}
	a.printSerialized(o, res, swept, *warnings)
}

// serializeEnv returns what serialize works on. A dry run only reads; it gets nil where
// there is no store yet.
func (a *app) serializeEnv(ctx context.Context, dryRun bool) (*serialize.Env, error) {
	if !dryRun {
		return a.env(ctx)
	}
	db, err := a.readStore(ctx)
	if err != nil {
		return nil, ignoreNoStore(err)
	}
	return a.envOf(ctx, db)
}

// nothingToSerialize reports whether a run would do nothing, without writing. Without
// a store and a published tree there is nothing either, and no store is created.
func (a *app) nothingToSerialize(ctx context.Context) (bool, error) {
	ns, err := a.namespace(ctx)
	if err != nil {
		return false, err
	}
	db, err := a.readStore(ctx)
	if errors.Is(err, meta.ErrNotFound) {
		_, err := a.repository.Ref(ctx, serialize.LocalRef(ns, meta.MainDestination))
		if errors.Is(err, gitdb.ErrRefNotFound) {
			return true, nil
		}
		return false, err
	}
	if err != nil {
		return false, err
	}
	return serialize.NothingToDo(ctx, a.repository, db, ns)
}

// collect makes env's warnings part of the JSON output where there is one.
func (a *app) collect(env *serialize.Env, asJSON bool) *[]string {
	warnings := []string{}
	if asJSON {
		env.Warn = func(text string) { warnings = append(warnings, text) }
	}
	return &warnings
}

func (a *app) printSerialized(o serializeOptions, res *serialize.Result, swept *retention.SweepResult, warnings []string) {
	if o.json {
		refs := []any{}
		for _, r := range res.Refs {
			refs = append(refs, (&ui.Object{}).Add("ref", r.Ref).Add("commit", orNull(r.Commit)).Add("changes", r.Changes))
		}
		var auto any
		if res.WouldPrune {
			auto = (&ui.Object{}).Add("commit", nil).Add("keys_dropped", nil).Add("keys_retained", nil)
		}
		if p := res.AutoPrune; p != nil {
			auto = (&ui.Object{}).Add("commit", orNull(p.Commit)).
				Add("keys_dropped", p.KeysDropped).Add("keys_retained", p.KeysRetained)
		}
		var kept any
		if res.Retention != nil {
			kept = retainedJSON(res.Retention)
		}
		a.Out.Println(ui.JSON((&ui.Object{}).Add("refs", refs).Add("auto_prune", auto).Add("retention", kept).
			Add("sweep", autoSweptJSON(swept)).Add("warnings", append([]string{}, warnings...))))
		return
	}
	if a.quiet {
		return
	}
	would := ""
	if o.dryRun {
		would = "would be "
	}
	for _, r := range res.Refs {
		if o.dryRun {
			a.Out.Printf("%sserialized to %s (%s)\n", would, r.Ref, ui.Plural(r.Changes, "change", "changes"))
		} else {
			a.Out.Printf("serialized to %s\n", r.Ref)
		}
	}
	switch r := res.Retention; {
	case r == nil:
	case o.dryRun:
		a.Out.Printf("%s would be dropped by retention\n", ui.Plural(r.KeysDropped, "key", "keys"))
	default:
		a.Out.Println(retainedText(r))
	}
	if res.WouldPrune {
		a.Out.Println("would be auto-pruned: the tree passes a maximum")
	}
	if p := res.AutoPrune; p != nil {
		a.Out.Printf("%sauto-pruned %d entries\n", would, p.KeysDropped)
	}
	if len(res.Refs) == 0 && res.AutoPrune == nil && res.Retention == nil {
		a.Out.Println("no metadata to serialize")
	}
}

// retainedText says what retention took out of the published tree.
func retainedText(r *serialize.Retained) string {
	return "dropped " + ui.Plural(r.KeysDropped, "key", "keys") + " by retention"
}

func retainedJSON(r *serialize.Retained) *ui.Object {
	var left any
	if r.KeysRetained >= 0 {
		left = r.KeysRetained
	}
	refs := []any{}
	for _, x := range r.Refs {
		refs = append(refs, (&ui.Object{}).Add("ref", x.Ref).Add("commit", orNull(x.Commit)).Add("keys_dropped", x.Changes))
	}
	return (&ui.Object{}).Add("commit", orNull(r.Commit)).Add("keys_dropped", r.KeysDropped).Add("keys_retained", left).Add("refs", refs)
}

// orNull returns s, or null for JSON if it is empty.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
