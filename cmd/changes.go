package cmd

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/git-meta/git-meta-go/cmd/internal/feed"
	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/spf13/cobra"
)

type changesOptions struct {
	since  string
	follow bool
	limit  int
	json   bool
}

// sinceNow is the value of --since and ?since= that starts at the end of the feed.
const sinceNow = "now"

func newChangesCmd(a *app) *cobra.Command {
	var o changesOptions
	c := &cobra.Command{
		Use: "changes [options]",
		Long: `Show the changes of the store, in the order in which they were made here: time,
operation, target, key, type and author of each; git meta get has the values.
With --json a line is an object with the fields target, key, operation, type,
author, time and cursor; type is null for rm. A cursor is the place behind its
change: --since CURSOR goes on there. Without --since the first line is the
oldest change that the log still has. --since now starts at the end, and prints
the cursor of that place: with --json as {"cursor": ...}, else bare, and only
without --follow.

Retention deletes without a record in this feed. Where a cursor is older than
the last deletion, is of another store, or stands on a record that is gone, one
line {"resync": true, "cursor": ...} says so: read all values again, and go on
from that cursor. A reader that begins takes a cursor with --since now, reads
the values, and then what has changed since that cursor.

Nothing is written, locked or fetched. --follow sees what other programs write
within a second; it ends when it is interrupted or nobody reads its output.

` + exitStatus,
		Example: `  git meta changes
  git meta changes --follow --json
  git meta changes --since now --json`,
		Args: takes(0),
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("limit") && o.limit < 1 {
				return usageOf(c, "--limit %d: not a positive number", o.limit)
			}
			return runChanges(c.Context(), a, o)
		},
	}
	f := c.Flags()
	f.Var((*givenText)(&o.since), "since", "start behind `CURSOR`, or at the end: now")
	f.BoolVarP(&o.follow, "follow", "f", false, "wait for more")
	f.IntVar(&o.limit, "limit", 0, "end after `N` changes")
	f.BoolVar(&o.json, "json", false, "print one JSON object a line")
	return c
}

// feedSource returns the feed of the repository's store, which need not exist.
func (a *app) feedSource(ctx context.Context) (*feed.Source, error) {
	r, err := a.repo(ctx)
	if err != nil {
		return nil, err
	}
	if _, ok := ownStore(r); ok { // of a linked worktree: its values go to the shared one first
		if _, err := a.readStore(ctx); err != nil && !errors.Is(err, meta.ErrNotFound) {
			return nil, err
		}
		if a.db != nil {
			if err := a.db.Close(); err != nil {
				return nil, err
			}
			a.db = nil
		}
	}
	return &feed.Source{Path: storePath(r), Options: store.Options{Now: a.now}}, nil
}

// patience is how long a follower goes on trying to read a store that it could read before.
const patience = 5 * time.Second

func runChanges(ctx context.Context, a *app, o changesOptions) error {
	var from store.FeedCursor
	if o.since != "" && o.since != sinceNow {
		var err error
		if from, err = store.ParseFeedCursor(o.since); err != nil {
			return err
		}
	}
	src, err := a.feedSource(ctx)
	if err != nil {
		return err
	}
	src.Follow = o.follow
	watch := store.NewWatch(src.Path)
	watch.Changed()
	if o.since == sinceNow {
		if from, err = src.End(ctx); err != nil {
			return err
		}
		switch {
		case o.json:
			a.Out.Println(feed.CursorJSON(from))
		case !o.follow:
			a.Out.Println(from.String())
		}
		if err := a.Out.Flush(); err != nil {
			return err
		}
	}
	p := changePrinter{app: a, o: o, left: o.limit}
	from, err = src.Read(ctx, from, p.batch(), p.print)
	switch {
	case err != nil && o.follow && ctx.Err() != nil:
		return errStopped
	case err != nil || !o.follow:
		return err
	}
	return p.follow(ctx, src, watch, from)
}

// follow prints what is stored from now on, until it is interrupted, nobody reads any more
// or enough has been printed.
func (p *changePrinter) follow(ctx context.Context, src *feed.Source, watch *store.Watch, from store.FeedCursor) error {
	tick := time.NewTicker(feed.Interval)
	defer tick.Stop()
	var failing time.Time // since when reading fails
	for !p.done() {
		select {
		case <-ctx.Done():
			return errStopped
		case <-tick.C:
		}
		if p.OutGone() {
			return nil
		}
		if !watch.Changed() && failing.IsZero() {
			continue
		}
		var err error
		from, err = src.Read(ctx, from, p.batch(), p.print)
		switch {
		case err == nil:
			failing = time.Time{}
		case ctx.Err() != nil:
			return errStopped
		case p.Out.Err() != nil:
			return err
		case failing.IsZero():
			failing = time.Now()
		case time.Since(failing) > patience:
			return err
		}
	}
	return nil
}

// changePrinter prints the feed.
type changePrinter struct {
	*app
	o    changesOptions
	left int // changes to print, with --limit
}

func (p *changePrinter) done() bool { return p.o.limit > 0 && p.left == 0 }

func (p *changePrinter) batch() int {
	if p.o.limit > 0 {
		return min(p.left, feed.Batch)
	}
	return feed.Batch
}

func (p *changePrinter) print(f store.Feed) (more bool, err error) {
	if f.Resync {
		if p.o.json {
			p.Out.Println(feed.ResyncJSON(f.Cursor))
		} else {
			p.Out.Println("resync: there were changes that the log cannot tell any more; read the values again")
		}
	}
	for _, r := range f.Records {
		if p.done() {
			break
		}
		p.left--
		if p.o.json {
			p.Out.Println(feed.JSON(r))
		} else {
			p.Out.Println(p.line(r))
		}
	}
	return !p.done(), p.Out.Flush()
}

// line shows a record to people: columns in a terminal, else fields between tabs.
func (p *changePrinter) line(r store.FeedRecord) string {
	at, target, typ := time.UnixMilli(r.Time).UTC(), r.Target.String(), string(r.Type)
	if typ == "" {
		typ = "-"
	}
	if !p.OutTTY {
		return strings.Join([]string{at.Format(time.RFC3339), r.Op, ui.OneLine(target), ui.OneLine(r.Key), ui.OneLine(typ), ui.OneLine(r.Author)}, "\t")
	}
	if r.Target.Type == meta.Commit && meta.IsCommitID(r.Target.Value) {
		target = string(meta.Commit) + ":" + r.Target.Value[:10]
	}
	painter := p.OutPainter()
	return painter.Paint(ui.Dim, at.Format(time.DateTime)) + "  " + ui.Pad(ui.OneLine(r.Op), 7) + "  " +
		painter.Paint(ui.Name, ui.OneLine(target)) + "  " + ui.OneLine(r.Key) + "  " + ui.OneLine(typ) + "  " + ui.OneLine(r.Author)
}
