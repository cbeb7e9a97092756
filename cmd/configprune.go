package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune"
	"github.com/git-meta/git-meta-go/store"
	"github.com/spf13/cobra"
)

func newConfigPruneCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "config:prune",
		Long: `Ask for the auto-prune rules and save them, or switch auto-prune off. This needs
a terminal; in a script use git meta config.

` + exitStatus,
		Example: `  git meta config:prune
  git meta config meta:prune:max-keys 10000`,
		Args: takes(0),
		RunE: func(c *cobra.Command, _ []string) error { return runConfigPrune(c.Context(), a) },
	}
}

// axis is one of the two limits of auto-prune.
type axis struct {
	noun          string // "keys", "size"
	question      string
	prompt        string
	max, min      string // config keys
	defMax        string
	parse         func(string) (int64, error)
	complain      string // what is asked for instead of nonsense
	halve         func(string) string
	on            bool
	maxVal, minIn string // answers
}

func axes() []*axis {
	half := func(s string, suffix string) string {
		n, err := meta.ParseSize(s)
		if err != nil {
			return ""
		}
		n = max(n/2, 1)
		for _, u := range []struct {
			shift uint
			name  string
		}{{30, "g"}, {20, "m"}, {10, "k"}} {
			if suffix != "" && n>>u.shift > 0 && n&(1<<u.shift-1) == 0 {
				return strconv.FormatInt(n>>u.shift, 10) + u.name
			}
		}
		return strconv.FormatInt(n, 10)
	}
	return []*axis{
		{
			noun: "keys", question: "Limit the number of keys in the tree?", prompt: "Maximum keys before pruning",
			max: "meta:prune:max-keys", min: "meta:prune:min-keys", defMax: "10000",
			parse: meta.ParseCount, complain: "must be a whole number",
			halve: func(s string) string { return half(s, "") },
		},
		{
			noun: "size", question: "Limit the total size of the tree?", prompt: "Maximum size before pruning (e.g. 50m)",
			max: "meta:prune:max-size", min: "meta:prune:min-size", defMax: "50m",
			parse: meta.ParseSize, complain: "use a size like 512k, 10m or 1g",
			halve: func(s string) string { return half(s, "k") },
		},
	}
}

func runConfigPrune(ctx context.Context, a *app) error {
	if !a.InTTY {
		return failf("git meta config meta:prune:max-keys 10000", "config:prune: asks questions and needs a terminal; use git meta config")
	}
	if _, err := a.repo(ctx); err != nil {
		return err
	}
	w := wizard{app: a, ctx: ctx, in: bufio.NewReader(a.In), axes: axes()}
	return w.run()
}

// wizard asks questions on the error stream.
type wizard struct {
	*app
	ctx  context.Context
	in   *bufio.Reader
	axes []*axis
	now  map[string]string // the rules as they are
}

func (w *wizard) run() error {
	if err := w.read(); err != nil {
		return err
	}
	w.describe()
	for i, x := range w.axes {
		if err := w.ask(x, i == 0); err != nil {
			return err
		}
	}
	want := w.wanted()
	if len(want) == 0 {
		return w.switchOff()
	}
	w.Errf("\nConfiguration to save:")
	for _, x := range w.axes {
		if x.on {
			w.Errf("  %s = %s\n  %s = %s", x.max, x.maxVal, x.min, x.minIn)
		}
	}
	ok, err := w.confirmQuestion("Save these settings?", true)
	if err != nil {
		return err
	}
	if !ok {
		w.Out.Println("Aborted.")
		return nil
	}
	if err := w.save(want); err != nil {
		return err
	}
	w.Out.Println("Auto-prune rules saved.")
	return nil
}

// read fills w.now; a rule of another type than string shows as what it is.
func (w *wizard) read() error {
	w.now = map[string]string{}
	db, err := w.readStore(w.ctx)
	if err != nil {
		return ignoreNoStore(err)
	}
	return db.View(w.ctx, func(tx *store.Tx) error {
		for _, x := range w.axes {
			for _, key := range []string{x.max, x.min} {
				rec, err := tx.Get(meta.KeyRef{Target: meta.ProjectTarget, Key: key})
				switch {
				case errors.Is(err, meta.ErrNotFound):
				case err != nil:
					return err
				default:
					w.now[key] = strings.Join(rec.Value.Items(), ", ")
				}
			}
		}
		return nil
	})
}

func (w *wizard) describe() {
	configured := false
	for _, x := range w.axes {
		maxVal, ok := w.now[x.max]
		minVal, hasMin := w.now[x.min]
		if !ok && !hasMin {
			continue
		}
		if !configured {
			w.Out.Println("Current auto-prune configuration:")
			configured = true
		}
		if !ok {
			w.Out.Printf("  min-%s: %s (without a maximum it does nothing)\n", x.noun, minVal)
			continue
		}
		if !hasMin {
			minVal = x.halve(maxVal)
		}
		w.Out.Printf("  max-%s: %s (prunes back to %s)\n", x.noun, maxVal, minVal)
		if problem := x.problem(maxVal, minVal); problem != "" {
			w.warn(fmt.Sprintf("these %s rules do not work: %s; nothing is pruned until they are repaired", x.noun, problem))
		}
	}
	if !configured {
		w.Out.Println("No auto-prune rules configured yet.")
	}
	w.Out.Println("\nWhen the published tree grows past a maximum it is cut back to the minimum,\n" +
		"least recently modified keys first. To drop keys by age use\n" +
		"git meta prune --since 90d.\n")
	_ = w.Out.Flush()
}

// problem says what is wrong with a pair of rules, or "".
func (x *axis) problem(maxVal, minVal string) string {
	hi, why := x.number(maxVal)
	if why != "" {
		return "the maximum " + why
	}
	lo, why := x.number(minVal)
	if why != "" {
		return "the minimum " + why
	}
	if lo >= hi && hi > 1 {
		return "the minimum must be below the maximum"
	}
	return ""
}

// number reads one bound; why says what is wrong with it.
func (x *axis) number(s string) (n int64, why string) {
	n, err := x.parse(s)
	switch {
	case err != nil:
		return 0, x.complain
	case n == 0:
		return 0, "must be greater than zero"
	}
	return n, ""
}

func (w *wizard) ask(x *axis, first bool) error {
	_, has := w.now[x.max]
	def := has || first && w.now[w.axes[1].max] == ""
	var err error
	if x.on, err = w.confirmQuestion(x.question, def); err != nil || !x.on {
		return err
	}
	offer := x.defMax
	if has {
		if _, why := x.number(w.now[x.max]); why == "" {
			offer = w.now[x.max]
		}
	}
	x.maxVal, err = w.question("  "+x.prompt, offer, func(s string) string {
		_, why := x.number(s)
		return why
	})
	if err != nil {
		return err
	}
	hi, _ := x.number(x.maxVal)
	below := func(s string) string {
		lo, why := x.number(s)
		if why == "" && lo >= hi && hi > 1 {
			why = "must be below the maximum (" + x.maxVal + ")"
		}
		return why
	}
	offer = x.halve(x.maxVal)
	if old := w.now[x.min]; old != "" && below(old) == "" {
		offer = old
	}
	x.minIn, err = w.question("  Prune back down to", offer, below)
	return err
}

// wanted returns the rules to save.
func (w *wizard) wanted() map[string]string {
	want := map[string]string{}
	for _, x := range w.axes {
		if x.on {
			want[x.max], want[x.min] = x.maxVal, x.minIn
		}
	}
	return want
}

// switchOff offers to remove the rules there are.
func (w *wizard) switchOff() error {
	if len(w.now) == 0 {
		w.Out.Println("\nAt least one limit is needed for auto-pruning. Nothing saved.")
		return nil
	}
	ok, err := w.confirmQuestion("\nWithout a limit nothing is pruned. Remove the rules and switch auto-prune off?", false)
	if err != nil {
		return err
	}
	if !ok {
		w.Out.Println("Aborted.")
		return nil
	}
	if err := w.save(nil); err != nil {
		return err
	}
	w.Out.Println("Auto-prune is off.")
	return nil
}

// save makes the rules those in want, in one transaction.
func (w *wizard) save(want map[string]string) error {
	return w.edit(w.ctx, 0, func(tx *store.Tx, e store.Edit) error {
		for _, x := range w.axes {
			for _, key := range []string{x.max, x.min} {
				k := meta.KeyRef{Target: meta.ProjectTarget, Key: key}
				value, ok := want[key]
				var err error
				switch {
				case ok && w.now[key] == value:
				case ok:
					if _, err = prune.CheckConfig(key, value, nil); err == nil {
						err = tx.Set(k, value, e)
					}
				case w.now[key] != "":
					err = tx.Remove(k, e)
				}
				if err != nil && !errors.Is(err, meta.ErrNotFound) {
					return err
				}
			}
		}
		return nil
	})
}

// question asks until the answer is fine; an empty one means def.
func (w *wizard) question(text, def string, check func(string) string) (string, error) {
	for {
		_, _ = fmt.Fprintf(w.Err, "%s [%s]: ", text, def)
		line, err := w.line()
		if err != nil {
			return "", err
		}
		if line == "" {
			line = def
		}
		why := check(line)
		if why == "" {
			return line, nil
		}
		w.Errf("  %s", why)
	}
}

func (w *wizard) confirmQuestion(text string, def bool) (bool, error) {
	choice := "[y/N]"
	if def {
		choice = "[Y/n]"
	}
	for {
		_, _ = fmt.Fprintf(w.Err, "%s %s ", text, choice)
		line, err := w.line()
		if err != nil {
			return false, err
		}
		switch strings.ToLower(line) {
		case "":
			return def, nil
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
		w.Errf("  answer y or n")
	}
}

// line reads one line; it ends with the context, so that an interrupt at a prompt works.
func (w *wizard) line() (string, error) {
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		text, err := w.in.ReadString('\n')
		got <- answer{text, err}
	}()
	select {
	case <-w.ctx.Done():
		w.Errf("")
		return "", w.ctx.Err()
	case ans := <-got:
		text := strings.TrimSpace(ans.text)
		if ans.err != nil && (text == "" || !errors.Is(ans.err, io.EOF)) {
			w.Errf("")
			if errors.Is(ans.err, io.EOF) {
				ans.err = errors.New("the input ended")
			}
			return "", failf("", "config:prune: nothing saved: %w", ans.err)
		}
		return text, nil
	}
}
