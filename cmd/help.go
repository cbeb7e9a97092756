package cmd

import (
	"fmt"
	"strings"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/spf13/cobra"
)

const exitStatus = `Exit status: 0 done or nothing to do; 1 failed, or the answer is no;
2 wrong usage; 130 interrupted.`

func newHelpCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "help [<COMMAND>]",
		Long: `Show the overview, or the help of one command. The manual page is shown by
git meta --help, where it is installed.

` + exitStatus,
		Example: `  git meta help
  git meta help set`,
		Args: takes(0, "COMMAND", "SUBCOMMAND"),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				a.overview()
				return nil
			}
			e, ok := find(args[0])
			if !ok {
				return unknownCommand(args[0])
			}
			root := a.newRoot()
			c := e.build(a)
			root.AddCommand(c)
			if len(args) == 2 {
				sub, rest, err := c.Find(args[1:])
				if err != nil || len(rest) > 0 {
					return usageErrorf(helpOf(c), "%s: unknown command %q", c.Name(), args[1])
				}
				c = sub
			}
			a.commandHelp(c)
			return nil
		},
	}
}

// overview prints all commands in their groups.
func (a *app) overview() {
	p := a.OutPainter()
	var b strings.Builder
	fmt.Fprintf(&b, "%s git meta [-C <DIR>] [-q] <command> [options]\n\n", p.Paint(ui.Bold, "usage:"))
	b.WriteString("Keep structured metadata beside commits, branches, paths and the project, and\n" +
		"share it as ordinary git objects.\n")
	var last heading
	lastGroup := group(-1)
	for _, e := range table() {
		if e.kind&hidden != 0 {
			continue
		}
		if e.group != lastGroup {
			b.WriteByte('\n')
			if h := e.group.heading(); h != last {
				if h.title != last.title {
					b.WriteString(p.Paint(ui.Heading, h.title) + "\n")
				}
				if h.label != "" {
					b.WriteString("   " + p.Paint(ui.Dim, h.label) + "\n")
				}
				last = h
			}
			lastGroup = e.group
		}
		fmt.Fprintf(&b, "   %s%s\n", p.Paint(ui.Name, ui.Pad(e.name, 15)), e.short)
	}
	b.WriteByte('\n')
	b.WriteString(p.Paint(ui.Dim, "Run 'git meta <command> -h' for the options of a command, and") + "\n")
	b.WriteString(p.Paint(ui.Dim, "'git meta --help' for the manual page.") + "\n")
	_, _ = a.Out.WriteString(b.String())
}

// commandHelp prints the help of one command.
func (a *app) commandHelp(c *cobra.Command) {
	p := a.OutPainter()
	var b strings.Builder
	if c.Short != "" {
		b.WriteString(c.Short + "\n\n")
	}
	fmt.Fprintf(&b, "%s %s\n", p.Paint(ui.Bold, "Usage:"), c.UseLine())
	long, status := c.Long, ""
	if i := strings.LastIndex(long, exitStatus); i >= 0 {
		long, status = strings.TrimSpace(long[:i]), long[i:]
	}
	if long != "" {
		b.WriteString("\n" + long + "\n")
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\n" + p.Paint(ui.Bold, "Commands:") + "\n")
		for _, s := range c.Commands() {
			if s.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %s%s\n", p.Paint(ui.Name, ui.Pad(s.Name(), 12)), s.Short)
			}
		}
	}
	if c.HasAvailableLocalFlags() {
		b.WriteString("\n" + p.Paint(ui.Bold, "Options:") + "\n" + c.LocalFlags().FlagUsagesWrapped(80))
	}
	if c.HasAvailableInheritedFlags() {
		b.WriteString("\n" + p.Paint(ui.Bold, "Global options:") + "\n" + c.InheritedFlags().FlagUsagesWrapped(80))
	}
	if c.Example != "" {
		b.WriteString("\n" + p.Paint(ui.Bold, "Examples:") + "\n" + c.Example + "\n")
	}
	if status != "" {
		b.WriteString("\n" + status + "\n")
	}
	_, _ = a.Out.WriteString(b.String())
}
