package cmd

import (
	"context"
	"errors"
	"time"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/spf13/cobra"
)

type pruneOptions struct {
	since   string
	dryRun  bool
	force   bool
	verbose bool
	json    bool
}

func newPruneCmd(a *app) *cobra.Command {
	var o pruneOptions
	c := &cobra.Command{
		Use: "prune [options] [--since <WHEN>]",
		Long: `Drop keys that have not been modified since WHEN from the published tree, as a
commit on the local ref. Project metadata and keys with changes that are not
serialized stay. The values stay in the store and can still be read; an edit
publishes them again. WHEN is 90d, 6m (of 30 days), 1y (of 365 days) or a date
like 2025-01-31 (UTC); without it meta:prune:since is used.

` + exitStatus,
		Example: `  git meta prune --dry-run --since 6m
  git meta prune --since 90d
  git meta prune --since 2025-01-01`,
		Args: takes(0),
		RunE: func(c *cobra.Command, _ []string) error { return runPrune(c.Context(), a, o) },
	}
	f := c.Flags()
	f.Var((*givenText)(&o.since), "since", "drop keys not modified since `WHEN`")
	f.BoolVarP(&o.dryRun, "dry-run", "n", false, "show what would go, write nothing")
	f.BoolVar(&o.force, "force", false, "accept a window that drops everything")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "name each key")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	return c
}

func runPrune(ctx context.Context, a *app, o pruneOptions) error {
	if err := a.checkWindow(ctx, o.since); err != nil {
		return noWindow(err, "prune")
	}
	env, err := a.pruneEnv(ctx, o.dryRun)
	if err != nil {
		return err
	}
	warnings := a.collect(env, o.json)
	res, err := prune.Manual(ctx, env, prune.ManualOptions{Since: o.since, DryRun: o.dryRun, Force: o.force})
	if err != nil {
		return noWindow(err, "prune")
	}
	if o.json {
		a.Out.Println(ui.JSON(pruneJSON(o, res).Add("warnings", *warnings)))
		return nil
	}
	printManual(a, o, res)
	return nil
}

// pruneEnv returns what the prune commands work on. A dry run only reads, and without a
// store none is created: then DB is nil.
func (a *app) pruneEnv(ctx context.Context, dryRun bool) (*serialize.Env, error) {
	has, err := a.hasStore(ctx)
	if err != nil {
		return nil, err
	}
	if has {
		return a.dryEnv(ctx, dryRun)
	}
	return a.envOf(ctx, nil)
}

// checkWindow refuses a window that makes no sense before anything is created.
func (a *app) checkWindow(ctx context.Context, since string) error {
	if since != "" {
		_, err := meta.ParseWindow(since, a.now())
		return err
	}
	if has, err := a.hasStore(ctx); err != nil || has {
		return err
	}
	return prune.ErrNoWindow
}

// noWindow makes a missing window a usage error.
func noWindow(err error, name string) error {
	if errors.Is(err, prune.ErrNoWindow) {
		return usageErrorf("git meta "+name+" --since 6m, or set a default: git meta config meta:prune:since 6m", "%s: no retention window given", name)
	}
	return err
}

const cutoffFormat = "2006-01-02 15:04:05 UTC"

// windowText says which window is used, and where it came from if not from the command
// line.
func windowText(since, from string) string {
	if from == "" || from == "--since" {
		return since
	}
	return since + ", from " + from
}

func printManual(a *app, o pruneOptions, res *prune.ManualResult) {
	if !a.quiet && !res.NoTree {
		a.Errf("Pruning %s (cutoff: %s -- entries older than %s)", res.Ref, res.Cutoff.UTC().Format(cutoffFormat), windowText(res.Since, res.SinceFrom))
	}
	switch {
	case res.NoTree:
		a.note("nothing is serialized yet at %s; publish first: git meta serialize", res.Ref)
		return
	case res.NothingToPrune || res.Commit == "" && !o.dryRun:
		a.confirm("Nothing to prune -- all entries are within the retention window.")
		return
	}
	if o.verbose {
		for _, k := range res.Keys {
			a.Out.Printf("%s\t%s\t%s\n", ui.OneLine(k.KeyRef.String()), ui.Plural(k.Bytes, "byte", "bytes"), time.UnixMilli(k.Time).UTC().Format(time.RFC3339))
		}
	}
	if o.dryRun || o.verbose {
		for _, t := range meta.TargetTypes {
			if n := res.ByType[t]; n > 0 {
				a.Out.Printf("  %s %s\n", ui.Pad(string(t)+":", 10), ui.Plural(n, "key", "keys"))
			}
		}
		a.Out.Printf("  %s %s\n", ui.Pad("in all:", 10), ui.Plural(res.Dropped, "key", "keys")+
			", "+ui.Plural(res.Tombstones, "tombstone", "tombstones")+", "+ui.Plural(res.Bytes, "byte", "bytes"))
	}
	if o.dryRun {
		a.Out.Printf("Would drop %d keys, retaining %d. Run without --dry-run to apply.\n", res.Dropped, res.Retained)
		return
	}
	a.confirm("pruned to %s (%s) -- dropped %d keys, retained %d", res.Ref, res.Commit[:min(8, len(res.Commit))], res.Dropped, res.Retained)
}

func pruneJSON(o pruneOptions, res *prune.ManualResult) *ui.Object {
	byType := &ui.Object{}
	for _, t := range meta.TargetTypes {
		if n := res.ByType[t]; n > 0 {
			byType.Add(string(t), n)
		}
	}
	out := (&ui.Object{}).
		Add("ref", res.Ref).Add("commit", orNull(res.Commit)).Add("dry_run", o.dryRun).
		Add("since", res.Since).Add("cutoff", res.Cutoff.UTC().Format(time.RFC3339)).
		Add("keys_dropped", res.Dropped).Add("keys_retained", res.Retained).
		Add("tombstones_dropped", res.Tombstones).Add("bytes_dropped", res.Bytes).
		Add("by_type", byType)
	if o.verbose {
		keys := []any{}
		for _, k := range res.Keys {
			keys = append(keys, (&ui.Object{}).Add("target_type", string(k.Target.Type)).Add("target_value", k.Target.Value).
				Add("key", k.Key).Add("bytes", k.Bytes).Add("timestamp", k.Time))
		}
		out.Add("keys", keys)
	}
	return out
}

type localPruneOptions struct {
	pruneOptions
	skipDate bool
}

func newLocalPruneCmd(a *app) *cobra.Command {
	var o localPruneOptions
	c := &cobra.Command{
		Use: "local-prune [options] [--since <WHEN>]",
		Long: `Delete published keys that have not been modified since WHEN from the store of
this repository. Refs and project metadata stay, and no other clone loses
anything. Keys whose value is not published yet are kept and listed, unless
--force is given. WHEN is 90d, 6m (of 30 days), 1y (of 365 days) or a date like
2025-01-31 (UTC); without it meta:prune:since is used.

` + exitStatus,
		Example: `  git meta local-prune --dry-run --since 6m
  git meta local-prune --since 90d`,
		Args: takes(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if o.skipDate && !o.force {
				return usageOf(c, "--skip-date drops every key, whatever its age; it needs --force")
			}
			if err := exclusive(c, "since", "skip-date"); err != nil {
				return err
			}
			return runLocalPrune(c.Context(), a, o)
		},
	}
	f := c.Flags()
	f.Var((*givenText)(&o.since), "since", "delete keys not modified since `WHEN`")
	f.BoolVar(&o.skipDate, "skip-date", false, "delete all keys but project metadata; needs --force")
	f.BoolVarP(&o.dryRun, "dry-run", "n", false, "show what would go, write nothing")
	f.BoolVar(&o.force, "force", false, "delete unpublished values too, and accept a window that drops everything")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "name each key")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	return c
}

func runLocalPrune(ctx context.Context, a *app, o localPruneOptions) error {
	if !o.skipDate {
		if err := a.checkWindow(ctx, o.since); err != nil {
			return noWindow(err, "local-prune")
		}
	}
	env, err := a.pruneEnv(ctx, o.dryRun)
	if err != nil {
		return err
	}
	warnings := a.collect(env, o.json)
	res, err := prune.Local(ctx, env, prune.LocalOptions{Since: o.since, SkipDate: o.skipDate, DryRun: o.dryRun, Force: o.force})
	if err != nil {
		return noWindow(err, "local-prune")
	}
	if o.json {
		a.Out.Println(ui.JSON(localPruneJSON(o, res).Add("warnings", *warnings)))
		return nil
	}
	printLocal(a, o, res)
	return nil
}

// listedUnpublished is how many unpublished keys are named without --verbose.
const listedUnpublished = 10

func printLocal(a *app, o localPruneOptions, res *prune.LocalResult) {
	if !a.quiet {
		if o.skipDate {
			a.Errf("Pruning all non-project metadata (--skip-date)")
		} else {
			a.Errf("Pruning metadata older than %s (cutoff: %s)", windowText(res.Since, res.SinceFrom), res.Cutoff.UTC().Format(cutoffFormat))
		}
		if o.dryRun {
			a.Errf("(dry run -- no changes will be made)")
		}
	}
	if n := len(res.Unpublished); n > 0 {
		a.Errf("note: %s:", unpublishedText(n, o.force))
		for i, k := range res.Unpublished {
			if i == listedUnpublished && !o.verbose {
				a.Errf("  … and %d more; --verbose names them", n-i)
				break
			}
			a.Errf("  %s", ui.OneLine(k.String()))
		}
	}
	if o.verbose {
		for _, k := range res.Dropped {
			a.Out.Println(ui.OneLine(k.String()))
		}
	}
	rows := res.Keys + res.Tombstones + res.LogRecords
	if !a.quiet || o.dryRun {
		a.Out.Printf("  %d metadata keys to prune (%d remaining)\n", res.Keys, res.Remaining)
		a.Out.Printf("  %d tombstones to prune\n", res.Tombstones)
		a.Out.Printf("  %d log entries to prune\n\n", res.LogRecords)
	}
	switch {
	case rows == 0:
		a.confirm("Nothing to prune.")
	case o.dryRun:
		a.Out.Printf("Would prune %d total rows. Run without --dry-run to apply.\n", rows)
	default:
		a.confirm("Pruned %d rows.", rows)
	}
}

func unpublishedText(n int, force bool) string {
	keys, stay, they := ui.Plural(n, "key", "keys"), "stays because it is", "it"
	if n > 1 {
		stay, they = "stay because they are", "them"
	}
	if force {
		return keys + " with values that are not published, deleted all the same"
	}
	return keys + " " + stay + " not published (git meta serialize publishes " + they + ")"
}

func localPruneJSON(o localPruneOptions, res *prune.LocalResult) *ui.Object {
	var since, cutoff any
	if !o.skipDate {
		since, cutoff = res.Since, res.Cutoff.UTC().Format(time.RFC3339)
	}
	out := (&ui.Object{}).
		Add("dry_run", o.dryRun).Add("since", since).Add("cutoff", cutoff).
		Add("keys_dropped", res.Keys).Add("keys_remaining", res.Remaining).
		Add("tombstones_dropped", res.Tombstones).Add("log_records_dropped", res.LogRecords).
		Add("unpublished", keyList(res.Unpublished))
	if o.verbose {
		out.Add("keys", keyList(res.Dropped))
	}
	return out
}
