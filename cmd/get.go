package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
	"github.com/spf13/cobra"
)

type getOptions struct {
	target, key    string
	hasKey         bool
	json           bool
	withAuthorship bool
	raw            bool
	nul            bool
	def            string
	hasDefault     bool
	all            bool
}

func newGetCmd(a *app) *cobra.Command {
	var o getOptions
	c := &cobra.Command{
		Use: "get [options] <TARGET> [<KEY>]",
		Long: `Show all values of a target, or those of KEY and the keys below it. If exactly
one key matches KEY its value is printed, lists and sets with one item per line;
else one line per key, long values cut. A path stands for everything below it
too. Where a target has no values, a name that only one target starts with is
enough: get branch:feat shows branch:feature.

` + exitStatus + ` With nothing to
show the exit status is 1 and nothing is printed on standard output.`,
		Example: `  git meta get commit:HEAD
  git meta get commit:HEAD review:status
  git meta get --json path:src
  git meta get --default open commit:HEAD review:status`,
		Args: takes(1, "TARGET", "KEY"),
		RunE: func(c *cobra.Command, args []string) error {
			o.target = args[0]
			if o.hasKey = len(args) == 2; o.hasKey {
				o.key = args[1]
			}
			o.hasDefault = c.Flags().Changed("default")
			switch {
			case o.withAuthorship && !o.json:
				return usageOf(c, "--with-authorship needs --json")
			case o.raw && !o.hasKey:
				return usageOf(c, "--raw needs a <KEY>")
			case o.hasDefault && !o.hasKey:
				return usageOf(c, "--default needs a <KEY>")
			case o.hasKey && o.key == "":
				return usageOf(c, "the key is empty")
			}
			if err := exclusive(c, "json", "raw", "null"); err != nil {
				return err
			}
			return runGet(c.Context(), a, o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.json, "json", false, "print a JSON object, key segments nested")
	f.BoolVar(&o.withAuthorship, "with-authorship", false, "with --json: author and time of each value too")
	f.BoolVar(&o.raw, "raw", false, "print the bytes of one string, without a newline after them")
	f.BoolVarP(&o.nul, "null", "z", false, "end each value with a NUL byte; where several keys match, print\nkey, newline, value")
	f.BoolVar(&o.all, "all", false, "also values kept here after an unclear removal elsewhere")
	f.StringVar(&o.def, "default", "", "print `VALUE` if there is no such key")
	return c
}

func runGet(ctx context.Context, a *app, o getOptions) error {
	t, err := a.getTarget(ctx, o.target)
	if err != nil {
		return err
	}
	db, err := a.readStore(ctx)
	if errors.Is(err, meta.ErrNotFound) {
		return a.getNothing(ctx, o, t)
	}
	if err != nil {
		return err
	}
	found, unclear := false, 0
	var promised []meta.KeyRef
	err = db.View(ctx, func(tx *store.Tx) error {
		g := getter{app: a, tx: tx, o: o}
		found, err = g.show(t)
		promised, unclear = g.promised, g.unclear
		return err
	})
	if err == nil && len(promised) > 0 {
		found, err = a.getPromised(ctx, o, t, promised)
	}
	if err == nil && !found {
		if unclear > 0 && !o.hasDefault {
			return failf("see it: git meta get --all "+shellWord(o.target)+" "+shellWord(o.key)+"; then set it again or rm it",
				"%s: gone from the published tree, though nobody is known to have removed it; kept here", o.what(t))
		}
		return a.getNothing(ctx, o, t)
	}
	return err
}

// getTarget reads the target of a get. An abbreviated commit id that this repository
// cannot resolve may still be the beginning of one that the store knows.
func (a *app) getTarget(ctx context.Context, arg string) (meta.Target, error) {
	t, err := a.target(ctx, arg)
	if err != nil && errors.Is(err, gitdb.ErrUnknownRevision) && len(t.Value) >= 4 && len(t.Value) < 40 && isLowerHex(t.Value) {
		return t, nil
	}
	return t, err
}

func isLowerHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// getNothing answers a get that matches nothing.
func (a *app) getNothing(ctx context.Context, o getOptions, t meta.Target) error {
	if o.hasDefault {
		a.printDefault(o, t)
		return nil
	}
	if hint := a.unloadedHint(ctx); hint != "" {
		return meta.NotFound(o.what(t), "not found", hint)
	}
	if o.hasKey {
		return meta.NotFound(o.what(t), "not found", "git meta get "+shellWord(t.String())+" lists the keys of this target")
	}
	return meta.NotFound(o.what(t), "no values", "git meta set "+shellWord(t.String())+" KEY VALUE")
}

func (o getOptions) what(t meta.Target) string {
	if o.hasKey {
		return fmt.Sprintf("key %q", o.key)
	}
	return fmt.Sprintf("target %q", t.String())
}

func (a *app) printDefault(o getOptions, t meta.Target) {
	switch {
	case o.json:
		v := any(o.def)
		if o.withAuthorship {
			v = authored("", 0, v)
		}
		j := jsonTree{}
		j.add(meta.KeyRef{Target: t, Key: o.key}, v)
		a.Out.Println(ui.PrettyJSON(j.object()))
	case o.raw:
		_, _ = a.Out.WriteString(o.def)
	case o.nul:
		_, _ = a.Out.WriteString(o.def + "\x00")
	default:
		a.Out.Println(o.def)
	}
}

// unloadedHint returns what to do if the store is empty or missing although metadata is
// published here.
func (a *app) unloadedHint(ctx context.Context) string {
	if a.db != nil {
		var rows int64
		var known []string // refs whose tree this store has seen: rows were taken out since
		err := a.db.View(ctx, func(tx *store.Tx) (err error) {
			if rows, _, err = tx.Counts(); err != nil {
				return err
			}
			known, err = tx.CursorRefs()
			return err
		})
		if err != nil || rows > 0 || len(known) > 0 {
			return ""
		}
	}
	ns, err := a.namespace(ctx)
	if err != nil {
		return ""
	}
	if _, err := a.repository.Ref(ctx, serialize.LocalRef(ns, meta.MainDestination)); err != nil {
		return ""
	}
	return "the store is empty, but metadata is published here; load it: git meta serialize"
}

// getter answers one get inside a transaction.
type getter struct {
	*app
	tx   *store.Tx
	o    getOptions
	here bool // promised keys have been fetched: what has no value now has none

	// promised are the keys that match and are known from history only. As long as there
	// are any, nothing is printed.
	promised []meta.KeyRef
	unclear  int // keys not shown because their removal is unclear
}

// show prints what matches; found is false if nothing does or keys have to be fetched
// first.
func (g *getter) show(t meta.Target) (found bool, err error) {
	found, err = g.showTarget(t)
	if found || err != nil || len(g.promised) > 0 || t.Type == meta.Path || t.Type == meta.Project {
		return found, err
	}
	if has, err := g.tx.KnowsTarget(t); has || err != nil {
		return false, err
	}
	const most = 10
	targets, err := g.tx.KnownTargets(t.Type, t.Value, most+1)
	if err != nil || len(targets) == 0 {
		return false, err
	}
	if len(targets) > 1 {
		var names []string
		for _, m := range targets[:min(most, len(targets))] {
			names = append(names, "  "+ui.OneLine(m.String()))
		}
		if len(targets) > most {
			names = append(names, "  …")
		}
		return false, failf("type more of the name", "target %q: ambiguous, matches:\n%s", t.String(), strings.Join(names, "\n"))
	}
	found, err = g.showTarget(targets[0])
	if found {
		g.note("expanded to %s", ui.OneLine(targets[0].String()))
	}
	return found, err
}

func (g *getter) showTarget(t meta.Target) (found bool, err error) {
	q := store.Query{Target: &t, Subtree: t.Type == meta.Path, Namespace: g.o.key, Promised: !g.here}
	if g.o.json {
		return g.showJSON(q)
	}
	if g.o.hasKey {
		only, n, err := g.first(q)
		switch {
		case err != nil || n < 2 && len(g.promised) > 0 || n == 0:
			return false, err
		case n == 1:
			rec, err := g.tx.Get(only)
			if err != nil {
				return false, err
			}
			return true, g.showValue(rec)
		case g.o.raw:
			return false, failf("name one of them, as "+shellWord(t.String())+" lists them without --raw", "key %q: several keys match, --raw prints one", g.o.key)
		}
	}
	g.promised = nil
	if g.o.nul {
		return g.showNUL(q)
	}
	return g.showLines(q)
}

// skips notes a key that is not shown: it has no value here, or only an absence that
// nobody confirmed took it out of the published tree (design: unclear).
func (g *getter) skips(row store.Row) (bool, error) {
	if row.Promised {
		g.promised = append(g.promised, row.KeyRef)
		return true, nil
	}
	if g.o.all {
		return false, nil
	}
	w, ok, err := g.tx.Withheld(row.KeyRef)
	if err != nil || !ok || w.Why != store.Unclear {
		return false, err
	}
	g.unclear++
	return true, nil
}

// first returns the first key that q matches with a value, and 0, 1 or 2 for none, one
// or several.
func (g *getter) first(q store.Query) (k meta.KeyRef, n int, err error) {
	for row, err := range g.tx.Rows(q) {
		if err != nil {
			return k, n, err
		}
		if skip, err := g.skips(row); err != nil {
			return k, n, err
		} else if skip {
			continue
		}
		if n++; n == 2 {
			break
		}
		k = row.KeyRef
	}
	return k, n, nil
}

// showValue prints the value of the one key that was asked for.
func (g *getter) showValue(rec store.Record) error {
	if g.o.raw {
		if rec.Type != meta.String {
			return failf("git meta get "+shellWord(rec.Target.String())+" "+shellWord(rec.Key)+" prints one item per line, -z ends each with a NUL byte",
				"key %q: holds a %s, --raw prints one string", rec.Key, rec.Type)
		}
		_, _ = g.Out.WriteString(rec.Value.String)
		return nil
	}
	end := "\n"
	if g.o.nul {
		end = "\x00"
	}
	for _, item := range rec.Value.Items() {
		if g.OutTTY && !g.o.nul {
			item = ui.Printable(item)
		}
		_, _ = g.Out.WriteString(item)
		_, _ = g.Out.WriteString(end)
	}
	return nil
}

// label is how a key is named in a listing.
func label(k meta.KeyRef) string {
	if k.Target.Type == meta.Path {
		return k.Target.Value + ";" + k.Key
	}
	return k.Key
}

// listWidth is the most characters of a value in a listing.
const listWidth = 50

// showLines prints one line per key.
func (g *getter) showLines(q store.Query) (found bool, err error) {
	q.NoLarge = 4 * (listWidth + 1) // a character has at most four bytes
	var names, values []string
	width := 0
	for rec, err := range g.tx.Records(q) {
		if err != nil {
			return false, err
		}
		if skip, err := g.skips(rec.Row); err != nil {
			return false, err
		} else if skip {
			continue
		}
		text := rec.Value.String
		if rec.Cut {
			if text = strings.ToValidUTF8(text, ""); text == "" {
				text = "..." // too large for even its beginning to be read
			}
		}
		if rec.Type != meta.String {
			text = strings.Join(rec.Value.Items(), ", ")
		}
		name := ui.OneLine(label(rec.KeyRef))
		width = max(width, ui.DisplayWidth(name))
		names = append(names, name)
		values = append(values, ui.Cut(ui.OneLine(text), listWidth))
	}
	if len(g.promised) > 0 {
		return false, nil
	}
	for i, name := range names {
		_, _ = g.Out.WriteString(ui.Pad(name, width) + "  " + values[i] + "\n")
	}
	return len(names) > 0, nil
}

// showNUL prints key, newline, value, NUL for every item, like git config -z.
func (g *getter) showNUL(q store.Query) (found bool, err error) {
	if q.Promised { // values are printed as they come: look ahead
		for row, err := range g.tx.Rows(q) {
			if err != nil {
				return false, err
			}
			if _, err := g.skips(row); err != nil {
				return false, err
			}
		}
		if len(g.promised) > 0 {
			return false, nil
		}
	}
	for rec, err := range g.tx.Records(q) {
		if err != nil {
			return false, err
		}
		if skip, err := g.skips(rec.Row); err != nil {
			return false, err
		} else if skip {
			continue
		}
		found = true
		for _, item := range rec.Value.Items() {
			_, _ = g.Out.WriteString(label(rec.KeyRef) + "\n" + item + "\x00")
		}
		if g.Out.Err() != nil {
			break
		}
	}
	return found, nil
}

// ignoreNoStore turns "there is no store yet" into nil: nothing is stored.
func ignoreNoStore(err error) error {
	if errors.Is(err, meta.ErrNotFound) {
		return nil
	}
	return err
}
