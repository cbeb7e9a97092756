package cmd

import (
	"context"
	"slices"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune/retention"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/spf13/cobra"
)

type retentionSweepOptions struct {
	collections  []string
	limit        string
	limited      bool
	dryRun, json bool
}

func newRetentionSweepCmd(a *app) *cobra.Command {
	var o retentionSweepOptions
	c := &cobra.Command{
		Use:   "sweep [options] [<COLLECTION>...]",
		Short: "Delete the rows that the bounds no longer keep",
		Long: `Delete the rows of the named collections, of all declared ones without a name,
that are over their bounds, oldest first and in small passes: other programs can
write in between, and after an interruption the next sweep goes on. Rows are
deleted for good, without a tombstone or a log record; project metadata and
detached collections are left alone. The next git meta serialize takes the same
keys out of the published tree.

A sweep confirms the bounds of what it sweeps: from then on the automatic sweep
acts on them in this repository. --dry-run only counts.

` + exitStatus,
		Example: `  git meta retention sweep --dry-run
  git meta retention sweep
  git meta retention sweep ci --limit 10000`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			o.collections, o.limited = args, c.Flags().Changed("limit")
			for _, name := range args {
				if name == "" {
					return usageOf(c, "the name of a collection is empty")
				}
			}
			return runRetentionSweep(c.Context(), a, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.limit, "limit", "", "delete at most `N` rows")
	f.BoolVarP(&o.dryRun, "dry-run", "n", false, "show what would go, write nothing")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	return c
}

func runRetentionSweep(ctx context.Context, a *app, o retentionSweepOptions) error {
	opts := retention.SweepOptions{Collections: o.collections, DryRun: o.dryRun}
	if o.limited {
		n, err := meta.ParseCount(o.limit)
		if err == nil && n == 0 {
			err = meta.Invalid("number \"0\"", "must be greater than zero", "leave --limit out for no limit")
		}
		if err != nil {
			return &meta.Error{Op: "--limit", Err: err}
		}
		opts.Limit = n
	}
	env, err := a.retentionEnv(ctx)
	if err != nil {
		return err
	}
	if env.DB != nil && !o.dryRun {
		if env, err = a.env(ctx); err != nil {
			return err
		}
	}
	warnings := a.collect(env, o.json)
	res, err := retention.Sweep(ctx, env, opts)
	if err != nil {
		if res != nil && res.Rows+res.Leftover > 0 && !o.dryRun {
			a.note("deleted before that: %s", sweptText(res.Rows, res.Bytes, res.Leftover))
		}
		return err
	}
	faulty, err := o.faulty(ctx, env)
	if err != nil {
		return err
	}
	if o.json {
		for _, s := range faulty {
			*warnings = append(*warnings, s.Problem.Error())
		}
		a.Out.Println(ui.JSON(sweptJSON(o, res).Add("warnings", *warnings)))
		return nil
	}
	for i := range faulty {
		a.retentionProblem(&faulty[i])
	}
	a.printSwept(ctx, o, res, len(faulty) > 0)
	return nil
}

// faulty returns the collections, of those to sweep, of which a bound is not enforced.
func (o retentionSweepOptions) faulty(ctx context.Context, env *serialize.Env) ([]retention.State, error) {
	states, err := retention.List(ctx, env)
	return slices.DeleteFunc(states, func(s retention.State) bool {
		return s.Problem == nil || s.Detached || len(o.collections) > 0 && !slices.Contains(o.collections, s.Collection)
	}), err
}

func sweptText(rows, bytes, leftover int64) string {
	s := rowsText(rows) + ", " + ui.Plural(bytes, "byte", "bytes")
	if leftover > 0 {
		s += ", and " + rowsText(leftover) + " left over from another clone's retention"
	}
	return s
}

// printSwept says what was deleted; faulty: there are bounds that are not enforced.
func (a *app) printSwept(ctx context.Context, o retentionSweepOptions, res *retention.SweepResult, faulty bool) {
	if len(res.Collections) == 0 {
		if faulty {
			a.confirm("Nothing to sweep -- every other collection is within its bounds.")
		} else {
			a.confirm("Nothing to sweep -- every collection is within its bounds.")
		}
		return
	}
	verb, print := "deleted", a.confirm
	if o.dryRun {
		verb, print = "would delete", func(format string, args ...any) { a.Out.Printf(format+"\n", args...) }
	}
	for _, c := range res.Collections {
		print("%s: %s %s", ui.OneLine(c.Collection), verb, sweptText(c.Rows, c.Bytes, c.Leftover))
	}
	if len(res.Collections) > 1 {
		print("in all: %s", sweptText(res.Rows, res.Bytes, res.Leftover))
	}
	switch {
	case o.dryRun:
		print("Run without --dry-run to apply.")
	case !res.Done:
		a.note("more rows are over their bounds; git meta retention sweep goes on")
	case a.published(ctx):
		a.note("the next git meta serialize takes them out of the published tree as well")
	}
}

func sweptJSON(o retentionSweepOptions, res *retention.SweepResult) *ui.Object {
	list := []any{}
	for _, c := range res.Collections {
		list = append(list, (&ui.Object{}).Add("collection", c.Collection).
			Add("rows", c.Rows).Add("bytes", c.Bytes).Add("leftover", c.Leftover))
	}
	return (&ui.Object{}).Add("dry_run", o.dryRun).Add("collections", list).
		Add("rows", res.Rows).Add("bytes", res.Bytes).Add("leftover", res.Leftover).
		Add("passes", res.Passes).Add("done", res.Done)
}
