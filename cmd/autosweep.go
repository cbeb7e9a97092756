package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune/retention"
)

// autoSweep is what happens to the store after it has been serialized: if a sweep is due,
// one pass over the collections whose bounds are confirmed here. What it did, and that
// others wait for a confirmation, is said on the error stream, as warnings where those are
// collected. Nothing that was asked for depends on it: a failure is a warning. It returns
// nil if nothing was swept.
func (a *app) autoSweep(ctx context.Context, warnings *[]string) *retention.SweepResult {
	warn := a.warn
	if a.json {
		warn = func(text string) { *warnings = append(*warnings, text) }
	}
	res, err := a.sweepIfDue(ctx)
	if err != nil && ctx.Err() == nil {
		text := "automatic sweep: " + err.Error()
		if h := meta.HintOf(err); h != "" {
			text += "; " + h
		}
		warn(text)
	}
	if res == nil {
		return nil
	}
	if s := res.Swept; s != nil && !a.json {
		for _, c := range s.Collections {
			a.note("swept %s of collection %s; the next git meta serialize takes them out of the published tree", rowsText(c.Rows+c.Leftover), ui.OneLine(c.Collection))
		}
	}
	if len(res.Unconfirmed) > 0 {
		var parts []string
		for _, u := range res.Unconfirmed {
			parts = append(parts, fmt.Sprintf("%s (%s)", ui.OneLine(u.Collection), rowsText(u.WouldPrune)))
		}
		warn("retention: over bounds that nobody has confirmed in this repository: " + strings.Join(parts, ", ") + "; git meta retention sweep, or git meta retention --accept")
	}
	if n := len(res.Uncounted); n > 0 {
		warn(fmt.Sprintf("retention: nobody has confirmed the bounds of %s in this repository; git meta retention counts what they would delete", ui.Plural(n, "collection", "collections")))
	}
	return res.Swept
}

// sweepIfDue looks with a store that is open for reading first: mostly there is nothing to
// do.
func (a *app) sweepIfDue(ctx context.Context) (*retention.AutoResult, error) {
	db, err := a.readStore(ctx)
	if err != nil {
		return nil, ignoreNoStore(err)
	}
	env, err := a.envOf(ctx, db)
	if err != nil {
		return nil, err
	}
	due, _, err := retention.Due(ctx, env)
	if err == nil && !due {
		return nil, nil
	}
	env, werr := a.env(ctx)
	if werr != nil { // read-only: nothing can be swept, and there is nothing to note it in
		return nil, nil
	}
	if errors.Is(err, context.Canceled) {
		return nil, err
	}
	return retention.AutoSweep(ctx, env)
}

// autoSweptJSON is null where nothing was swept.
func autoSweptJSON(s *retention.SweepResult) any {
	if s == nil {
		return nil
	}
	return (&ui.Object{}).Add("rows", s.Rows).Add("bytes", s.Bytes).Add("leftover", s.Leftover).Add("done", s.Done)
}
