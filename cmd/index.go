package cmd

import (
	"context"
	"strings"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/serialize/exchange"
	"github.com/git-meta/git-meta-go/store/gitdb"
	"github.com/spf13/cobra"
)

func newIndexHistoryCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "index-history [options]",
		Long: `Note which keys the history of the metadata remote knows besides those that are
published now: git meta get fetches their values on demand. Pull, sync and
remote add do this by themselves; an index that was interrupted goes on.

` + exitStatus,
		Example: `  git meta index-history
  git meta index-history --quiet`,
		Args: takes(0),
		RunE: func(c *cobra.Command, _ []string) error { return runIndexHistory(c.Context(), a) },
	}
}

func runIndexHistory(ctx context.Context, a *app) error {
	env, err := a.exchange(ctx)
	if err != nil {
		return err
	}
	rep, err := env.Index(ctx, serialize.UpdateIndexOptions{Begin: func(rep *serialize.IndexReport) {
		if rep.Resume > 0 {
			a.tell(exchange.Step, "Resuming from "+ui.Plural(rep.Resume, "commit", "commits")+" in.")
		}
	}})
	switch {
	case err != nil:
		return err
	case rep == nil:
		a.tell(exchange.Step, "No metadata remote to index. Add one with: git meta remote add <url>")
	case rep.Busy != nil:
		a.noteBusy(rep)
	case rep.Index == nil:
		a.tell(exchange.Step, "History already indexed ("+ui.Plural(rep.Total, "key", "keys")+").")
	default:
		a.tell(exchange.Done, "Indexed "+ui.Plural(rep.Total, "key", "keys")+" in "+ui.Plural(rep.Commits, "commit", "commits")+" (available on demand)")
	}
	return nil
}

// noteBusy says that another process is indexing.
func (a *app) noteBusy(rep *serialize.IndexReport) {
	a.note("Another indexer is already running (pid %d, %s so far).", rep.Busy.PID, ui.Plural(rep.Busy.CommitsIndexed, "commit", "commits"))
}

// tell is say, unless --quiet.
func (a *app) tell(k exchange.Kind, text string) {
	if !a.quiet {
		a.say(k, text)
	}
}

// index brings the index of the history up to date after a tip was brought in. Nothing
// that was asked for depends on it: a failure is a warning.
func (a *app) index(ctx context.Context, env *exchange.Env) {
	rep, err := env.Index(ctx, serialize.UpdateIndexOptions{})
	switch {
	case err != nil && ctx.Err() != nil:
	case err != nil:
		a.warn("the history is not indexed: " + err.Error())
	case rep == nil || rep.Index == nil || rep.Keys == 0:
	case env.Say != nil:
		env.Say(exchange.Done, "Indexed "+ui.Plural(rep.Keys, "key", "keys")+" from history (available on demand)")
	}
}

func newPromisorCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "promisor [options]",
		Long: `Index the whole history again, as git meta index-history does, and tell of each
commit on standard error.

` + exitStatus,
		Example: `  git meta promisor`,
		Args:    takes(0),
		RunE:    func(c *cobra.Command, _ []string) error { return runPromisor(c.Context(), a) },
	}
}

func runPromisor(ctx context.Context, a *app) error {
	env, err := a.exchange(ctx)
	if err != nil {
		return err
	}
	rep, err := env.Index(ctx, serialize.UpdateIndexOptions{Full: true, Step: func(id gitdb.Hash, c *gitdb.Commit, lost int) {
		if !a.quiet {
			subject, _, _ := strings.Cut(c.Message, "\n")
			a.Errf("%.12s %s (%s)", id, ui.OneLine(subject), ui.Plural(lost, "key", "keys"))
		}
	}})
	if err != nil {
		return err
	}
	if rep == nil {
		return failf("git meta pull", "no metadata was fetched yet: there is no tracking ref to read")
	}
	a.Out.Printf("Walked %s\n", ui.Plural(rep.Commits, "commit", "commits"))
	a.Out.Printf("Inserted %s (%d already existed, %d removed ones skipped)\n", ui.Plural(rep.Keys, "promisor key", "promisor keys"), rep.Known, rep.Removed)
	return nil
}
