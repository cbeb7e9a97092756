package cmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// WriteManPage writes the manual page git-meta(1), which git meta --help shows, in roff.
// date is the day of the release, for example 2026-01-31.
func WriteManPage(w io.Writer, date string) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH GIT\\-META 1 %s %s \"Git Manual\"\n", roffArg(date), roffArg("git-meta "+Version()))
	b.WriteString(".SH NAME\ngit\\-meta \\- attach structured metadata to a git repository\n")
	b.WriteString(".SH SYNOPSIS\n\\fBgit meta\\fR [\\-C \\fIDIR\\fR] [\\-q] \\fIcommand\\fR [\\fIoptions\\fR]\n")
	b.WriteString(".SH DESCRIPTION\n" + roff(manDescription) + "\n")
	root := Tree()
	b.WriteString(".SH OPTIONS\n")
	manFlags(&b, root.PersistentFlags())
	manFlags(&b, root.Flags())
	b.WriteString(".SH COMMANDS\n")
	for _, e := range table() {
		if c, _, err := root.Find([]string{e.name}); err == nil && !c.Hidden {
			manCommand(&b, c)
		}
	}
	b.WriteString(".SH EXIT STATUS\n" + roff(exitStatus) + "\n")
	b.WriteString(".SH ENVIRONMENT\n" + roff(manEnvironment) + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

const manDescription = `git meta keeps strings, lists and sets beside commits, branches, paths, change-ids and the project. Values live in the file git-meta.sqlite in the git directory and are published as git trees below refs/meta, where they are shared like any other ref.

A target is project, commit:REV, branch:NAME, change-id:ID or path:PATH. The segments of a key are joined by ':', as in agent:model. Keys that start with local: are never published; keys of the project that start with meta: are settings, see config.`

const manEnvironment = `GIT_DIR, GIT_WORK_TREE and git's other variables work as in git. NO_COLOR switches colour off, CLICOLOR_FORCE on.`

func manCommand(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, ".SS %s\n", roffArg(strings.TrimPrefix(c.UseLine(), "git-meta ")))
	long, _, _ := strings.Cut(c.Long, exitStatus)
	if long = strings.TrimSpace(long); long == "" {
		long = c.Short + "."
	}
	b.WriteString(roff(long) + "\n")
	manFlags(b, c.NonInheritedFlags())
	if c.Example != "" {
		b.WriteString(".PP\n.nf\n.RS 4\n" + roff(strings.TrimRight(c.Example, "\n")) + "\n.RE\n.fi\n")
	}
	for _, s := range c.Commands() {
		if s.IsAvailableCommand() {
			manCommand(b, s)
		}
	}
}

func manFlags(b *strings.Builder, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, text := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n")
		if f.Shorthand != "" {
			fmt.Fprintf(b, "\\fB\\-%s\\fR, ", f.Shorthand)
		}
		fmt.Fprintf(b, "\\fB\\-\\-%s\\fR", roff(f.Name))
		if value != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", roff(value))
		}
		b.WriteString("\n" + roff(strings.ReplaceAll(text, "\n", " ")) + "\n")
	})
}

// roff protects text: backslashes, hyphens, and dots and quotes at the start of a line.
// An empty line starts a paragraph.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		switch {
		case l == "":
			lines[i] = ".PP"
		case l[0] == '.' || l[0] == '\'':
			lines[i] = `\&` + l
		}
	}
	return strings.Join(lines, "\n")
}

func roffArg(s string) string { return `"` + strings.ReplaceAll(roff(s), `"`, `\(dq`) + `"` }
