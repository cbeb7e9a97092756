package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune/retention"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/spf13/cobra"
)

type retentionOptions struct {
	collection           string
	maxRows, maxAgeDays  string
	setRows, setAge      bool
	clearRows, clearAge  bool
	accept, json, writes bool
}

func newRetentionCmd(a *app) *cobra.Command {
	var o retentionOptions
	var show bool
	c := &cobra.Command{
		Use: "retention [options] [<COLLECTION>]",
		Long: `Show or change how much of a collection of keys is kept. A collection is a
namespace that the file .git-meta declares; its keys are ci, ci:url and so on,
on all targets but the project, and the longest declared name owns a key:

  collections:
    ci:
      retention:
        maxRows: 500       # keep only the newest 500 rows
        maxAgeDays: 30     # keep only rows younger than 30 days

A row is one key on one target. Newest and age go by creation; a row over either
bound goes. The numbers in .git-meta, of the checkout at hand, are the author's
defaults. --max-rows and --max-age-days override them, each on its own, for
everybody: an override is a project string (meta:retention:ci:max-rows) and
travels with the metadata. None can say "no bound", and none can pass
meta:prune:max-keys. Without an option, or with --show, nothing is changed:
without COLLECTION all are listed, with it the output says what decides each
bound and how many rows the next sweep would delete.

git meta retention sweep deletes them. The automatic sweep after a serialize
does so only for bounds that a sweep or --accept has confirmed in this
repository, since a manifest can come with anybody's branch; it is due once per
meta:retention:interval (1d; Nd, Nh, or 0 for never).

A collection with the name of a subcommand: git meta retention -- sweep

` + exitStatus,
		Example: `  git meta retention
  git meta retention ci
  git meta retention ci --max-rows 500
  git meta retention ci --clear-rows --accept
  git meta retention sweep ci --dry-run`,
		Args: takes(0, "COLLECTION"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.collection = args[0]
			}
			o.setRows, o.setAge = c.Flags().Changed("max-rows"), c.Flags().Changed("max-age-days")
			if err := o.check(c, len(args) == 1); err != nil {
				return err
			}
			return runRetention(c.Context(), a, o)
		},
	}
	f := c.Flags()
	f.BoolVar(&show, "show", false, "show what is in force (the default)")
	f.StringVar(&o.maxRows, "max-rows", "", "keep only the newest `N` rows")
	f.StringVar(&o.maxAgeDays, "max-age-days", "", "keep only rows younger than `N` days")
	f.BoolVar(&o.clearRows, "clear-rows", false, "go back to the manifest's maxRows")
	f.BoolVar(&o.clearAge, "clear-age", false, "go back to the manifest's maxAgeDays")
	f.BoolVar(&o.accept, "accept", false, "confirm the bounds for the automatic sweep here")
	f.BoolVar(&o.json, "json", false, "print JSON")
	sweep := newRetentionSweepCmd(a)
	sweep.Flags().SortFlags, sweep.DisableFlagsInUseLine = false, true
	c.AddCommand(sweep)
	return c
}

// check refuses options that contradict each other.
func (o *retentionOptions) check(c *cobra.Command, named bool) error {
	for _, change := range []string{"max-rows", "max-age-days", "clear-rows", "clear-age", "accept"} {
		if err := exclusive(c, "show", change); err != nil {
			return err
		}
	}
	if err := exclusive(c, "max-rows", "clear-rows"); err != nil {
		return err
	}
	if err := exclusive(c, "max-age-days", "clear-age"); err != nil {
		return err
	}
	o.writes = o.setRows || o.setAge || o.clearRows || o.clearAge
	switch {
	case named && o.collection == "":
		return usageOf(c, "the name of the collection is empty")
	case o.writes && !named:
		return usageErrorf(helpOf(c), "retention: which collection? Name one beside the change")
	}
	return nil
}

func runRetention(ctx context.Context, a *app, o retentionOptions) error {
	if o.writes || o.accept {
		return changeRetention(ctx, a, o)
	}
	env, err := a.retentionEnv(ctx)
	if err != nil {
		return err
	}
	if o.collection == "" {
		states, err := retention.List(ctx, env)
		if err != nil {
			return err
		}
		a.listRetention(o, states)
		return nil
	}
	s, err := retention.GetCollectionRetention(ctx, env, o.collection)
	if err != nil {
		return err
	}
	return a.showRetention(o, s)
}

func changeRetention(ctx context.Context, a *app, o retentionOptions) error {
	p, err := o.patch()
	if err == nil {
		err = a.checkCollection(ctx, o.collection)
	}
	if err != nil {
		return err
	}
	if none, err := a.nothingToAccept(ctx, o); err != nil || none {
		return err
	}
	env, err := a.env(ctx)
	if err != nil {
		return err
	}
	var s *retention.State
	if o.writes {
		if s, err = retention.SetCollectionRetention(ctx, env, o.collection, p); err != nil {
			return err
		}
	}
	if o.accept {
		if err := retention.Accept(ctx, env, o.names()...); err != nil {
			return err
		}
		if o.collection == "" {
			return runRetention(ctx, a, retentionOptions{json: o.json})
		}
		if s, err = retention.GetCollectionRetention(ctx, env, o.collection); err != nil {
			return err
		}
	}
	if a.quiet && !o.json {
		return nil
	}
	return a.showRetention(o, s)
}

func (o retentionOptions) names() []string {
	if o.collection == "" {
		return nil
	}
	return []string{o.collection}
}

// patch reads the numbers.
func (o retentionOptions) patch() (p retention.Patch, err error) {
	p.MaxRows.Clear, p.MaxAgeDays.Clear = o.clearRows, o.clearAge
	if o.setRows {
		p.MaxRows.Set = true
		if p.MaxRows.Value, err = retention.ParseRows(o.maxRows); err != nil {
			return p, o.badBound("max-rows", "clear-rows", o.maxRows, err)
		}
	}
	if o.setAge {
		p.MaxAgeDays.Set = true
		if p.MaxAgeDays.Value, err = retention.ParseAgeDays(o.maxAgeDays); err != nil {
			return p, o.badBound("max-age-days", "clear-age", o.maxAgeDays, err)
		}
	}
	return p, nil
}

func (o retentionOptions) badBound(name, clearer, text string, err error) error {
	hint := meta.HintOf(err)
	if strings.Trim(text, "0") == "" && text != "" {
		hint = "no override can say \"no bound\"; to go back to the manifest: " + retention.Command(o.collection, dashes(clearer))
	}
	return &meta.Error{Op: dashes(name), Err: err, Hint: hint}
}

// checkCollection refuses an unknown collection before a store is made for it.
func (a *app) checkCollection(ctx context.Context, name string) error {
	has, err := a.hasStore(ctx)
	if err != nil || has || name == "" {
		return err
	}
	env, err := a.envOf(ctx, nil)
	if err == nil {
		_, err = retention.GetCollectionRetention(ctx, env, name)
	}
	return err
}

// nothingToAccept makes no store for --accept where nothing is declared.
func (a *app) nothingToAccept(ctx context.Context, o retentionOptions) (bool, error) {
	if o.collection != "" {
		return false, nil
	}
	env, err := a.retentionEnv(ctx)
	if err != nil || env.DB != nil {
		return false, err
	}
	states, err := retention.List(ctx, env)
	if err == nil && len(states) == 0 {
		a.listRetention(o, nil)
	}
	return len(states) == 0, err
}

// retentionEnv returns what the reading commands work on. A store that can be written is
// opened so: what is counted stays counted. None is created.
func (a *app) retentionEnv(ctx context.Context) (*serialize.Env, error) {
	has, err := a.hasStore(ctx)
	if err != nil {
		return nil, err
	}
	if !has {
		return a.envOf(ctx, nil)
	}
	db, err := a.writeStore(ctx)
	if err != nil {
		db, err = a.readStore(ctx)
	}
	if err != nil {
		return nil, err
	}
	return a.envOf(ctx, db)
}

// notePast says that a key which is about to be made with an old time is over a bound from
// the start.
func (a *app) notePast(ctx context.Context, tx *store.Tx, k meta.KeyRef, ms int64) error {
	if ms == 0 || a.quiet {
		return nil
	}
	env, err := a.envOf(ctx, a.db)
	if err != nil {
		return err
	}
	name, days, past, err := retention.Past(ctx, env, tx, k, ms)
	if past {
		a.note("%s is past the limit of collection %s (%s): the next sweep would delete it; how many in all: %s",
			k, name, daysText(days), retention.Command(name))
	}
	return err
}

func daysText(n int64) string {
	if n == 1 {
		return "1 day"
	}
	return fmt.Sprintf("%d days", n)
}
