package cmd

import (
	"context"
	"strings"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/serialize/exchange"
	"github.com/spf13/cobra"
)

type teardownOptions struct {
	force, dryRun, json, verbose bool
}

func newTeardownCmd(a *app) *cobra.Command {
	var o teardownOptions
	c := &cobra.Command{
		Use: "teardown [options]",
		Long: `Remove the store and the refs that git-meta has made in this repository:
refs/meta/local/* and refs/meta/remotes/*. Nothing changes on a remote, and
remotes stay in the configuration. Values that are published nowhere are named,
and then you are asked; without a terminal they are a reason to stop.

` + exitStatus,
		Example: `  git meta teardown --dry-run
  git meta teardown --force`,
		Args: takes(0),
		RunE: func(c *cobra.Command, _ []string) error { return runTeardown(c.Context(), a, o) },
	}
	f := c.Flags()
	f.BoolVar(&o.force, "force", false, "ask nothing, and remove unpublished values too")
	f.BoolVarP(&o.dryRun, "dry-run", "n", false, "show what would be removed, remove nothing")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "name every unpublished key")
	f.BoolVar(&o.json, "json", false, "print what was removed as JSON")
	return c
}

func runTeardown(ctx context.Context, a *app, o teardownOptions) error {
	env, err := a.exchange(ctx)
	if err != nil {
		return err
	}
	plan, err := env.PlanTeardown(ctx, func(ctx context.Context) (*serialize.Env, error) {
		db, err := a.readStore(ctx)
		if err != nil {
			return nil, err
		}
		return &serialize.Env{Repo: env.Repo, DB: db, Namespace: env.Namespace, Now: a.now}, nil
	})
	if err != nil {
		return err
	}
	a.printLosses(o, plan)
	if o.dryRun {
		a.printTeardownPlan(o, env, plan)
		return nil
	}
	if err := a.agree(ctx, o, env, plan); err != nil {
		return err
	}
	if a.db != nil { // an open file would be written to once more, or not be removed
		err := a.db.Close()
		if a.db = nil; err != nil && plan.StoreErr == nil {
			return err
		}
	}
	var refs, files []string
	err = plan.Execute(ctx, env, func(what, name string) {
		switch what {
		case "ref":
			refs = append(refs, name)
			if !o.json {
				a.confirm("Deleted ref %s", name)
			}
		default:
			files = append(files, name)
			if !o.json {
				a.confirm("Removed %s", ui.OneLine(name))
			}
		}
	})
	if err != nil {
		return err
	}
	if o.json {
		a.Out.Println(ui.JSON(teardownJSON(o, plan, refs, files)))
		return nil
	}
	if len(refs) == 0 {
		a.confirm("No meta refs found under refs/%s/", env.Namespace)
	}
	a.confirm("Teardown complete.")
	for _, r := range plan.Remotes {
		a.note("the remote %s is still configured; to remove it: git meta remote remove %s", ui.OneLine(r.Name), shellWord(r.Name))
	}
	return nil
}

// printLosses says what would be gone for good.
func (a *app) printLosses(o teardownOptions, plan *exchange.Teardown) {
	if n := len(plan.Unpublished); n > 0 {
		a.Errf("note: %s not published anywhere:", ui.Plural(n, "key is", "keys are"))
		for i, k := range plan.Unpublished {
			if i == listedUnpublished && !o.verbose {
				a.Errf("  … and %d more; --verbose names them", n-i)
				break
			}
			a.Errf("  %s", ui.OneLine(k.String()))
		}
	}
	if plan.StoreErr != nil {
		a.warn("what is unpublished cannot be told: " + plan.StoreErr.Error())
	}
	if plan.Unpushed {
		a.Errf("note: the local metadata ref has commits that were not pushed")
	}
	if ref := plan.OnlyHere; ref.Name != "" {
		a.note("%s is on no remote; to bring it back afterwards: git update-ref %s %s", ref.Name, ref.Name, ref.Hash)
	}
}

// agree returns nil if everything in plan may be removed.
func (a *app) agree(ctx context.Context, o teardownOptions, env *exchange.Env, plan *exchange.Teardown) error {
	switch {
	case o.force || len(plan.Refs)+len(plan.Files) == 0:
		return nil
	case env.Confirm != nil:
		question := "Remove the store and the refs of git-meta from this repository?"
		if plan.Loses() {
			question = "Remove them all the same, with the store and the refs of git-meta?"
		}
		yes, err := env.Confirm(ctx, question, false)
		if err == nil && !yes {
			err = failf("", "teardown: nothing was removed")
		}
		return err
	case plan.Loses():
		var why []string
		if n := len(plan.Unpublished); n > 0 {
			why = append(why, ui.Plural(n, "unpublished key", "unpublished keys"))
		}
		if plan.StoreErr != nil {
			why = append(why, "an unreadable store")
		}
		if plan.Unpushed {
			why = append(why, "unpushed commits")
		}
		return failf("git meta teardown --force removes them all the same",
			"teardown: nothing was removed: %s would be lost", strings.Join(why, " and "))
	}
	return nil
}

func (a *app) printTeardownPlan(o teardownOptions, env *exchange.Env, plan *exchange.Teardown) {
	var refs []string
	for _, ref := range plan.Refs {
		refs = append(refs, ref.Name)
	}
	if o.json {
		a.Out.Println(ui.JSON(teardownJSON(o, plan, refs, plan.Files)))
		return
	}
	for _, ref := range refs {
		a.Out.Printf("Would delete ref %s\n", ref)
	}
	for _, file := range plan.Files {
		a.Out.Printf("Would remove %s\n", ui.OneLine(file))
	}
	if len(refs)+len(plan.Files) == 0 {
		a.Out.Printf("Nothing to remove: no store, no meta refs under refs/%s/\n", env.Namespace)
	}
}

func teardownJSON(o teardownOptions, plan *exchange.Teardown, refs, files []string) *ui.Object {
	remotes := []string{}
	for _, r := range plan.Remotes {
		remotes = append(remotes, r.Name)
	}
	return (&ui.Object{}).Add("dry_run", o.dryRun).
		Add("refs", append([]string{}, refs...)).Add("files", append([]string{}, files...)).
		Add("unpublished", keyList(plan.Unpublished)).Add("remotes", remotes)
}
