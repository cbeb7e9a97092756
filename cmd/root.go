package cmd

import (
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/spf13/cobra"
)

// app is one run of the program: its streams, global options and, once a command
// asks for it, the repository.
type app struct {
	*ui.IO
	getenv func(string) (string, bool)
	now    func() time.Time

	dirs  []string // -C, each relative to the one before
	quiet bool
	json  bool // errors are JSON objects

	session
}

// Main runs the program and returns its exit code.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	a := &app{IO: ui.New(in, out, errOut, os.LookupEnv), getenv: os.LookupEnv, now: time.Now}
	ctx := context.Background()
	if !isQuick(args) {
		var stop func()
		ctx, stop = untilSignal(ctx)
		defer stop()
		catchPipeSignal(out)
	}
	err := a.run(ctx, args)
	if cerr := a.session.close(); err == nil {
		err = cerr
	}
	return a.exit(ctx, err)
}

// stopSignal is the cause of a context that a signal has cancelled.
type stopSignal struct{ os.Signal }

func (s stopSignal) Error() string { return s.String() }

// untilSignal returns a context that the first signal to stop cancels, with a [stopSignal]
// as its cause. A second signal ends the program at once.
func untilSignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(stopSignal{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

func isQuick(args []string) bool {
	name := commandWord(args)
	e, ok := find(name)
	return name == "" || ok && e.kind&quick != 0
}

// run finds the command in args and executes it.
func (a *app) run(ctx context.Context, args []string) error {
	for _, arg := range args {
		if arg == "--" {
			break
		}
		if arg == "--json" {
			a.json = true
		}
	}
	for i, arg := range args {
		if !utf8.ValidString(arg) {
			return usageErrorf("git meta -h", "argument %d: not valid UTF-8", i+1)
		}
	}
	root := a.newRoot()
	name := commandWord(args)
	switch {
	case name == "":
		// the root alone: help, version, or an unknown option
	case strings.HasPrefix(name, "__complete"):
		a.addAll(root)
	default:
		e, ok := find(name)
		if !ok {
			return unknownCommand(name)
		}
		root.AddCommand(e.build(a))
	}
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// commandWord returns the first word of args that is neither a global option nor
// the value of one; "" if there is none.
func commandWord(args []string) string {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "-C" || arg == "--directory":
			i++
		case arg == "--":
			return ""
		case !strings.HasPrefix(arg, "-"):
			return arg
		}
	}
	return ""
}

// newRoot returns the root command without any child.
func (a *app) newRoot() *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:               "git-meta",
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		Args:              cobra.ArbitraryArgs,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(args[0])
			}
			if version {
				a.Out.Println(versionLine())
				return nil
			}
			a.overview()
			return nil
		},
	}
	f := root.PersistentFlags()
	f.StringArrayVarP(&a.dirs, "directory", "C", nil, "run as if started in `DIR`; may be repeated, as in git")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print neither confirmations nor notes")
	f.BoolP("help", "h", false, "show this help")
	f.SortFlags = false
	root.Flags().BoolVarP(&version, "version", "V", false, "show the version")
	root.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		if cmd.HasParent() {
			a.commandHelp(cmd)
		} else {
			a.overview()
		}
	})
	root.SetFlagErrorFunc(flagError)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetIn(a.In)
	return root
}

// addAll adds every command of the table to root.
func (a *app) addAll(root *cobra.Command) {
	for _, e := range table() {
		root.AddCommand(e.build(a))
	}
}

// Tree returns the root with all commands, for documentation and completion.
func Tree() *cobra.Command {
	a := &app{IO: ui.New(strings.NewReader(""), io.Discard, io.Discard, os.LookupEnv), getenv: os.LookupEnv, now: time.Now}
	root := a.newRoot()
	a.addAll(root)
	return root
}

// dir is the directory to work in.
func (a *app) dir() string {
	dir := ""
	for _, d := range a.dirs {
		if filepath.IsAbs(d) {
			dir = d
		} else {
			dir = filepath.Join(dir, d)
		}
	}
	if dir == "" {
		return "."
	}
	return dir
}

// path returns a file name given by the user as seen from [app.dir].
func (a *app) path(name string) string {
	if filepath.IsAbs(name) || len(a.dirs) == 0 {
		return name
	}
	return filepath.Join(a.dir(), name)
}

// confirm prints one line of confirmation on the output stream.
func (a *app) confirm(format string, args ...any) {
	if !a.quiet {
		a.Out.Printf(format+"\n", args...)
	}
}

// note prints one line about something that went well but deserves attention.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		a.Errf("note: "+format, args...)
	}
}

// warn prints one line about something that may be wrong.
func (a *app) warn(text string) {
	a.Errf("%s %s", a.ErrPainter().Paint(ui.Warn, "warning:"), ui.Printable(text))
}
