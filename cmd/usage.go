package cmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// takes checks the number of arguments: names are those of the usage line, the first
// required of them must be given.
func takes(required int, names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < required:
			return usageErrorf(helpOf(c), "%s: the argument <%s> is missing", c.Name(), names[len(args)])
		case len(args) > len(names):
			return usageErrorf(helpOf(c), "%s: unexpected argument %q", c.Name(), args[len(names)])
		}
		return nil
	}
}

// helpOf is the command that shows c's help.
func helpOf(c *cobra.Command) string {
	return "git meta" + strings.TrimPrefix(c.CommandPath(), "git-meta") + " -h"
}

// usageOf is a usage error of c.
func usageOf(c *cobra.Command, format string, args ...any) error {
	return usageErrorf(helpOf(c), "%s: %s", c.Name(), fmt.Sprintf(format, args...))
}

// exclusive refuses more than one of the named flags.
func exclusive(c *cobra.Command, names ...string) error {
	first := ""
	for _, n := range names {
		if !c.Flags().Changed(n) {
			continue
		}
		if first != "" {
			return usageOf(c, "%s and %s cannot be used together", dashes(first), dashes(n))
		}
		first = n
	}
	return nil
}

func dashes(name string) string { return "--" + name }

// flagError puts what pflag says into our words.
func flagError(c *cobra.Command, err error) error {
	prefix := c.Name() + ": "
	if !c.HasParent() {
		prefix = ""
	}
	fail := func(hint, format string, args ...any) error {
		return usageErrorf(hint, "%s%s", prefix, fmt.Sprintf(format, args...))
	}
	if e := (*pflag.NotExistError)(nil); errors.As(err, &e) {
		if s := e.GetSpecifiedShortnames(); s != "" {
			hint := helpOf(c)
			if c.HasParent() {
				hint = "put -- before a value that starts with '-', or see " + helpOf(c)
			}
			return fail(hint, "unknown option -%s", e.GetSpecifiedName())
		}
		if near := nearest(e.GetSpecifiedName(), flagNames(c)); near != "" {
			return fail("did you mean --"+near+"?", "unknown option --%s", e.GetSpecifiedName())
		}
		return fail(helpOf(c), "unknown option --%s", e.GetSpecifiedName())
	}
	if e := (*pflag.ValueRequiredError)(nil); errors.As(err, &e) {
		if f := e.GetFlag(); f != nil {
			return fail(helpOf(c), "the option --%s needs a value", f.Name)
		}
	}
	if e := (*pflag.InvalidValueError)(nil); errors.As(err, &e) {
		if f := e.GetFlag(); f != nil {
			return fail(helpOf(c), "the option --%s does not take the value %q", f.Name, e.GetValue())
		}
	}
	return fail(helpOf(c), "%v", err)
}

func flagNames(c *cobra.Command) []string {
	var out []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			out = append(out, f.Name)
		}
	})
	return out
}

// unknownCommand suggests what may have been meant.
func unknownCommand(name string) error {
	var names []string
	for _, e := range table() {
		names = append(names, e.name)
	}
	if near := nearest(name, names); near != "" {
		return usageErrorf("did you mean git meta "+near+"?", "unknown command %q", name)
	}
	return usageErrorf("git meta -h", "unknown command %q", name)
}

// nearest returns the name that is most like word, or "" if none is.
func nearest(word string, names []string) string {
	best, bestDist := "", max(1, len(word)/3)+1
	for _, n := range names {
		d := editDistance(word, n)
		if len(word) > 1 && (strings.HasPrefix(n, word) || strings.HasSuffix(n, ":"+word)) {
			d = min(d, 1)
		}
		if d < bestDist {
			best, bestDist = n, d
		}
	}
	return best
}

// editDistance counts insertions, deletions, replacements and swaps of neighbours.
func editDistance(a, b string) int {
	s, t := []rune(a), []rune(b)
	prev2 := make([]int, len(t)+1)
	prev := make([]int, len(t)+1)
	row := make([]int, len(t)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(s); i++ {
		row[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			row[j] = slices.Min([]int{prev[j] + 1, row[j-1] + 1, prev[j-1] + cost})
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(t)]
}

// givenText is the text of an option that, when it is given, must not be empty: an empty
// variable in a script must not act like the option left out.
type givenText string

func (t *givenText) String() string { return string(*t) }
func (t *givenText) Type() string   { return "string" }

func (t *givenText) Set(s string) error {
	if s == "" {
		return errors.New("empty")
	}
	*t = givenText(s)
	return nil
}
