package cmd

import (
	"context"
	"os"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/serialize/hooks"
	"github.com/git-meta/git-meta-go/store"
	"github.com/spf13/cobra"
)

func newHooksCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "hooks <COMMAND>",
		Long: `Let git call git-meta: with a push of code push metadata too (pre-push), after a
merge pull it (post-merge) and, with --rewrite, carry the metadata of amended
and rebased commits over to the new ones (post-rewrite). What is carried follows
the settings meta.rewrite.amend, meta.rewrite.rebase and meta.rewriteMode, else
those of notes.rewrite. Hooks that are there already stay and still run. A
failure is told and stops nothing, unless --block is given.

` + exitStatus,
		Example: `  git meta hooks install
  git meta hooks install --rewrite
  git meta hooks status
  git meta hooks uninstall`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageOf(c, "the argument <COMMAND> is missing")
			}
			return usageOf(c, "unknown command %q", args[0])
		},
	}
	var o hooks.Options
	install := &cobra.Command{
		Use: "install [options]", Short: "Add git-meta to the hooks",
		Long: "Add git-meta to pre-push and post-merge, beside what is there. It can be\nrepeated.\n\n" + exitStatus,
		Example: `  git meta hooks install
  git meta hooks install --rewrite --block`,
		Args: takes(0),
		RunE: func(c *cobra.Command, _ []string) error { return runHooksInstall(c.Context(), a, o) },
	}
	install.Flags().BoolVar(&o.Rewrite, "rewrite", false, "also carry metadata of rewritten commits over")
	install.Flags().BoolVar(&o.Block, "block", false, "stop a push of code where that of metadata fails")
	var asJSON bool
	status := &cobra.Command{
		Use: "status [options]", Short: "Tell what the hooks are",
		Long: "Tell which hooks git-meta stands in, and whether git runs them.\n\n" + exitStatus,
		Example: `  git meta hooks status
  git meta hooks status --json`,
		Args: takes(0),
		RunE: func(c *cobra.Command, _ []string) error { return runHooksStatus(c.Context(), a, asJSON) },
	}
	status.Flags().BoolVar(&asJSON, "json", false, "print the state as JSON")
	uninstall := &cobra.Command{
		Use: "uninstall", Short: "Take git-meta out of the hooks",
		Long: "Take git-meta out of the hooks again; what others put there stays.\n\n" + exitStatus,
		Example: `  git meta hooks uninstall
  git meta -C ../other hooks uninstall`,
		Args: takes(0),
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := a.repo(c.Context())
			if err != nil {
				return err
			}
			states, err := hooks.Uninstall(c.Context(), r)
			if err != nil {
				return err
			}
			a.printHooks(states)
			return nil
		},
	}
	run := &cobra.Command{
		Use: "run <HOOK> [<ARG>]...", Hidden: true, Short: "Do what a hook is there for",
		Long: "Do what a hook is there for. Git calls this through the hooks themselves.\n\n" + exitStatus,
		Example: `  git meta hooks run post-merge 0
  git meta hooks run pre-push origin`,
		Args: cobra.MinimumNArgs(1), DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error { return runHook(c.Context(), a, args[0], args[1:]) },
	}
	c.AddCommand(install, status, uninstall, run)
	for _, sub := range c.Commands() {
		sub.Flags().SortFlags = false
		sub.DisableFlagsInUseLine = true
	}
	return c
}

func runHooksInstall(ctx context.Context, a *app, o hooks.Options) error {
	r, err := a.repo(ctx)
	if err != nil {
		return err
	}
	states, err := hooks.Install(ctx, r, o)
	if err != nil {
		return err
	}
	a.printHooks(states)
	return nil
}

func runHooksStatus(ctx context.Context, a *app, asJSON bool) error {
	r, err := a.repo(ctx)
	if err != nil {
		return err
	}
	states, err := hooks.Status(ctx, r)
	if err != nil {
		return err
	}
	if !asJSON {
		a.printHooks(states)
		return nil
	}
	list := []any{}
	for _, s := range states {
		list = append(list, (&ui.Object{}).Add("hook", s.Name).Add("path", s.Path).Add("installed", s.Installed).
			Add("others", s.Others).Add("disabled", s.Disabled))
	}
	a.Out.Println(ui.JSON(list))
	return nil
}

func (a *app) printHooks(states []hooks.State) {
	for _, s := range states {
		text := "not installed"
		if s.Installed {
			text = "installed"
		}
		switch {
		case s.Disabled:
			text += ", but not executable: git ignores it"
		case s.Aside != "":
			text += ", calls " + ui.OneLine(s.Aside)
		case s.Others && s.Installed:
			text += ", beside what was there"
		}
		a.confirm("%s  %s", ui.Pad(s.Name, 12), text)
	}
}

// hookRuns is set for what a hook calls: a push of metadata must not call itself.
const hookRuns = "GIT_META_HOOK"

// runHook does what a hook is there for.
func runHook(ctx context.Context, a *app, name string, args []string) error {
	if os.Getenv(hookRuns) != "" {
		return nil
	}
	if err := os.Setenv(hookRuns, name); err != nil {
		return err
	}
	switch name {
	case hooks.PrePush, hooks.PostMerge:
		return runExchangeHook(ctx, a, name, args)
	case hooks.PostRewrite:
		return runRewriteHook(ctx, a, args)
	}
	return usageErrorf("git meta hooks install", "hooks run: unknown hook %q", name)
}

// runExchangeHook pushes or pulls where a meta remote is configured; the push of the
// meta remote itself brings no other.
func runExchangeHook(ctx context.Context, a *app, name string, args []string) error {
	env, _, err := a.exchangeFor(ctx, false, false)
	if err != nil {
		return err
	}
	r, err := env.Find(ctx, "")
	if err != nil || len(args) > 0 && args[0] == r.Name {
		return nil // nothing is configured, or git pushes there already
	}
	if name == hooks.PrePush {
		return runPush(ctx, a, pushOptions{remote: r.Name})
	}
	return runPull(ctx, a, pullOptions{remote: r.Name})
}

func runRewriteHook(ctx context.Context, a *app, args []string) error {
	command := "rebase"
	if len(args) > 0 {
		command = args[0]
	}
	pairs, err := hooks.ReadPairs(a.In)
	if err != nil {
		return err
	}
	has, err := a.hasStore(ctx)
	if err != nil || !has || len(pairs) == 0 {
		return err
	}
	r, err := a.repo(ctx)
	if err != nil {
		return err
	}
	cfg, err := r.Config(ctx)
	if err != nil {
		return err
	}
	s, err := hooks.ReadSettings(cfg, command)
	if err != nil || !s.Enabled {
		return err
	}
	db, err := a.writeStore(ctx)
	if err != nil {
		return err
	}
	n := 0
	err = db.Update(ctx, func(tx *store.Tx) error {
		n, err = hooks.Carry(tx, pairs, s.Mode)
		return err
	})
	if err == nil && n > 0 {
		a.note("carried %s over to rewritten commits", ui.Plural(int64(n), "key", "keys"))
	}
	return err
}
