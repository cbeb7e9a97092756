package cmd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/serialize/exchange"
	"github.com/spf13/cobra"
)

func newRemoteCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "remote <COMMAND>",
		Long: `Add, list and remove the remotes that metadata is shared through. They are
ordinary git remotes with the setting remote.NAME.meta; the first one is the
primary, later ones are side remotes, whose metadata is only read.

` + exitStatus,
		Example: `  git meta remote add https://example.com/team/metadata.git --init
  git meta remote list
  git meta remote remove meta`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageOf(c, "the argument <COMMAND> is missing")
			}
			if near := nearest(args[0], []string{"add", "list", "remove"}); near != "" {
				return usageErrorf("did you mean git meta remote "+near+"?", "remote: unknown command %q", args[0])
			}
			return usageOf(c, "unknown command %q", args[0])
		},
	}
	c.AddCommand(newRemoteAddCmd(a), newRemoteListCmd(a), newRemoteRemoveCmd(a))
	for _, sub := range c.Commands() {
		sub.Flags().SortFlags = false
		sub.DisableFlagsInUseLine = true
	}
	return c
}

func newRemoteAddCmd(a *app) *cobra.Command {
	var o exchange.AddOptions
	c := &cobra.Command{
		Use:   "add [options] <URL>",
		Short: "Add a remote",
		Long: `Add a remote for metadata. URL is what git takes; OWNER/REPO stands for
git@github.com:OWNER/REPO.git. The remote is asked first: nothing is configured
if it does not answer. What it holds is fetched and merged with what is here; if
that fails, nothing is configured. On a remote without metadata --init makes the
first commit, a README, and stores the default auto-prune rules (max-keys 10000,
min-keys 5000) for the next serialize, unless there are rules already.

` + exitStatus,
		Example: `  git meta remote add https://example.com/team/metadata.git --init
  git meta remote add team/metadata --name history`,
		Args: takes(1, "URL"),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("depth") && o.Depth < 1 {
				return usageOf(c, "--depth takes a number above 0; leave it out for the whole history")
			}
			for _, name := range []string{"name", "namespace"} {
				if f := c.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
					return usageOf(c, "--%s is empty", name)
				}
			}
			return runRemoteAdd(c.Context(), a, o, args[0])
		},
	}
	f := c.Flags()
	f.StringVar(&o.Name, "name", exchange.DefaultName, "call the remote `NAME`")
	f.StringVar(&o.Namespace, "namespace", "", "use refs/`NS`/main there, not the repository's namespace")
	f.BoolVar(&o.Init, "init", false, "start metadata there if there is none")
	f.IntVar(&o.Depth, "depth", 0, "fetch only the last `N` commits of its history")
	return c
}

func runRemoteAdd(ctx context.Context, a *app, o exchange.AddOptions, url string) error {
	env, err := a.exchange(ctx)
	if err != nil {
		return err
	}
	cfg, err := env.Repo.Config(ctx)
	if err != nil {
		return err
	}
	if _, is := cfg.Get("remote." + url + ".url"); is && !strings.ContainsAny(url, ":/") {
		return failf(`git meta remote add "$(git remote get-url `+shellWord(url)+`)"`,
			"url %q: the name of a git remote; its URL is needed", url)
	}
	if o.URL, err = exchange.ResolveURL(url, exchange.URLContext{Dir: a.dir()}); err != nil {
		return err
	}
	a.loadsMuch()
	added, err := env.Add(ctx, o)
	if err != nil {
		return err
	}
	a.confirmAdded(added)
	a.index(ctx, env)
	if added.OwnNamespace && added.Namespace != env.Namespace {
		a.note("push, pull and sync with it work on refs/%s; for git meta serialize: git config meta.namespace %s", added.Namespace, added.Namespace)
	}
	return nil
}

func (a *app) confirmAdded(added *exchange.Added) {
	what := "meta remote"
	if added.Side {
		what = "side meta remote"
	}
	verb := "Added"
	if added.Existed {
		verb = "Already set up:"
	}
	p := a.OutPainter()
	if b := added.Brought; b != nil {
		n := 0
		if b.Side != nil {
			n = b.Side.Loaded
		} else {
			n = b.Merge.Loaded
		}
		if !a.quiet {
			a.say(exchange.Done, "Loaded "+ui.Plural(n, "key", "keys"))
		}
		a.reportBrought(b)
	}
	a.confirm("%s %s '%s' -> %s", p.Paint(styleDone, verb), what, ui.OneLine(added.Name), ui.OneLine(exchange.Redact(added.URL)))
}

func newRemoteListCmd(a *app) *cobra.Command {
	var verbose, asJSON bool
	c := &cobra.Command{
		Use:   "list [options]",
		Short: "List the remotes",
		Long: `List the meta remotes by name, each with its URL after a tab. Passwords are not
shown.

` + exitStatus,
		Example: `  git meta remote list
  git meta remote list -v`,
		Args: takes(0),
		RunE: func(c *cobra.Command, _ []string) error { return runRemoteList(c.Context(), a, verbose, asJSON) },
	}
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "show the refs, and which is primary or side, too")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func runRemoteList(ctx context.Context, a *app, verbose, asJSON bool) error {
	env, err := a.exchange(ctx)
	if err != nil {
		return err
	}
	cfg, err := env.Repo.Config(ctx)
	if err != nil {
		return err
	}
	remotes := exchange.Remotes(cfg, env.Namespace)
	if asJSON {
		list := []any{}
		for _, r := range remotes {
			list = append(list, (&ui.Object{}).Add("name", r.Name).Add("url", exchange.Redact(r.URL)).Add("side", r.Side).
				Add("namespace", r.Namespace).Add("ref", r.MainRef()).Add("tracking_ref", r.TrackingRef()))
		}
		a.Out.Println(ui.JSON(list))
		return nil
	}
	if len(remotes) == 0 && !a.quiet {
		a.Out.Println("No metadata remotes configured.\nAdd one with: git meta remote add <url>")
	}
	for _, r := range remotes {
		line := ui.OneLine(r.Name) + "\t" + ui.OneLine(exchange.Redact(r.URL))
		if verbose {
			role := "primary"
			if r.Side {
				role = "side"
			}
			line += "\t" + role + "\t" + r.MainRef() + "\t" + r.TrackingRef()
		}
		a.Out.Println(line)
	}
	return nil
}

func newRemoteRemoveCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "remove <NAME>",
		Aliases: []string{"rm"},
		Short:   "Remove a remote",
		Long: `Remove a meta remote from the configuration, and its tracking ref. The store and
what is published in this repository stay, and so do other remotes.

` + exitStatus,
		Example: `  git meta remote remove meta`,
		Args:    takes(1, "NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "" {
				return usageOf(c, "the name is empty")
			}
			return runRemoteRemove(c.Context(), a, args[0])
		},
	}
}

func runRemoteRemove(ctx context.Context, a *app, name string) error {
	env, err := a.exchange(ctx)
	if err != nil {
		return err
	}
	removed, err := env.Remove(ctx, name)
	if err != nil {
		return err
	}
	if removed.Ref != "" {
		a.confirm("Deleted ref %s", removed.Ref)
	}
	a.confirm("Removed meta remote '%s'", ui.OneLine(name))
	if removed.Kept {
		a.note("the git remote %s stays, because it fetches other refs as well", name)
	}
	return nil
}

// The styles of what an exchange says.
const (
	styleStep = ui.Style("\x1b[1;36m")
	styleDone = ui.Style("\x1b[1;32m")
)

// exchange returns what the commands about remotes work with. The store is not opened.
func (a *app) exchange(ctx context.Context) (*exchange.Env, error) {
	ns, err := a.namespace(ctx)
	if err != nil {
		return nil, err
	}
	e := &exchange.Env{Repo: a.repository, Namespace: ns, Open: a.env, Pruner: autoPrune(), NoPrompt: !a.InTTY}
	if !a.quiet {
		e.Say = a.say
		if a.ErrTTY {
			e.Terminal = a.Err
		}
	}
	if a.InTTY && a.ErrTTY {
		e.Confirm = a.asker()
	}
	return e, nil
}

// say prints one line about what is being done, on the error stream.
func (a *app) say(k exchange.Kind, text string) {
	p := a.ErrPainter()
	first, rest, _ := strings.Cut(ui.Printable(text), " ")
	switch k {
	case exchange.Step:
		a.Errf("%s %s", p.Paint(styleStep, first), rest)
	case exchange.Done:
		a.Errf("%s %s", p.Paint(styleDone, first), rest)
	default:
		a.Errf("%s", p.Paint(ui.Dim, "  "+ui.Printable(text)))
	}
}

var errNoAnswer = errors.New("no answer; nothing was done")

// asker returns a function that asks yes-or-no questions on the terminal. It returns at
// once when the context ends, so that an interrupt at a prompt works.
func (a *app) asker() func(ctx context.Context, text string, def bool) (bool, error) {
	in := bufio.NewReader(a.In)
	type answer struct {
		text string
		err  error
	}
	return func(ctx context.Context, text string, def bool) (bool, error) {
		choice := " [y/N] "
		if def {
			choice = " [Y/n] "
		}
		for {
			_, _ = io.WriteString(a.Err, ui.Printable(text)+choice)
			got := make(chan answer, 1)
			go func() {
				line, err := in.ReadString('\n')
				got <- answer{strings.ToLower(strings.TrimSpace(line)), err}
			}()
			var ans answer
			select {
			case <-ctx.Done():
				a.Errf("")
				return false, ctx.Err()
			case ans = <-got:
			}
			switch {
			case ans.text == "y" || ans.text == "yes":
				return true, nil
			case ans.text == "n" || ans.text == "no":
				return false, nil
			case ans.err != nil:
				a.Errf("")
				return false, errNoAnswer
			case ans.text == "":
				return def, nil
			}
			a.Errf("  answer y or n")
		}
	}
}
