// Package feed reads the feed of a store (store.Feed) for the command line and for HTTP,
// and says what its records look like there.
package feed

import (
	"context"
	"errors"
	"time"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
)

// Interval is how often somebody who waits for changes looks at the store's files.
const Interval = 200 * time.Millisecond

// Batch is how many records are read in one transaction.
const Batch = 500

// Source is a store whose feed is read. The file is open only while it is read: nothing
// keeps other programs from writing, checkpointing, removing or replacing it.
type Source struct {
	Path    string
	Options store.Options
	// Follow is for readers that stay: while a sweep is going on, pass after pass, each of
	// which makes every cursor stale, they are told once, when it has paused.
	Follow bool
}

// How long a reader that stays is not told to read everything again: until no pass has
// come for quiet, but not longer than most.
const (
	quiet = 500 * time.Millisecond
	most  = 5 * time.Second
)

// Read hands f what stands behind from, in batches of at most limit records, until all has
// been read or f returns more = false. It returns the cursor to read on from, also beside
// an error. Without a store f gets [store.NoFeed].
func (s *Source) Read(ctx context.Context, from store.FeedCursor, limit int, f func(store.Feed) (more bool, err error)) (store.FeedCursor, error) {
	db, err := store.OpenRead(ctx, s.Path, s.Options)
	if errors.Is(err, meta.ErrNotFound) {
		none := store.NoFeed(from)
		_, err := f(none)
		return none.Cursor, err
	}
	if err != nil {
		return from, err
	}
	defer db.Close()
	for {
		got, err := next(ctx, db, from, limit)
		if err != nil {
			return from, err
		}
		if got.Resync && s.Follow {
			if err := db.Close(); err != nil {
				return from, err
			}
			return s.settled(ctx, from, got, limit, f)
		}
		// Printing may take long: no transaction is open meanwhile.
		more, err := f(got)
		if err != nil {
			return from, err
		}
		from = got.Cursor
		if !more || !got.More {
			return from, nil
		}
	}
}

// settled waits until the passes of a sweep are over and hands f the order to read
// everything again as it is then.
func (s *Source) settled(ctx context.Context, from store.FeedCursor, got store.Feed, limit int, f func(store.Feed) (bool, error)) (store.FeedCursor, error) {
	once := Source{Path: s.Path, Options: s.Options}
	for begin := time.Now(); time.Since(begin) < most; {
		select {
		case <-ctx.Done():
			return from, ctx.Err()
		case <-time.After(quiet):
		}
		again, err := once.Next(ctx, from, limit)
		if err != nil {
			return from, err
		}
		same := again.Cursor.Watermark() == got.Cursor.Watermark()
		if got = again; same || !got.Resync {
			break
		}
	}
	more, err := f(got)
	if err != nil {
		return from, err
	}
	if more && got.More {
		return s.Read(ctx, got.Cursor, limit, f)
	}
	return got.Cursor, nil
}

// Next returns what stands behind from, at most limit records.
func (s *Source) Next(ctx context.Context, from store.FeedCursor, limit int) (got store.Feed, err error) {
	_, err = s.Read(ctx, from, limit, func(f store.Feed) (bool, error) {
		got = f
		return false, nil
	})
	return got, err
}

func next(ctx context.Context, db *store.DB, from store.FeedCursor, limit int) (got store.Feed, err error) {
	err = db.View(ctx, func(tx *store.Tx) error {
		got, err = tx.Feed(from, limit)
		return err
	})
	return got, err
}

// End returns the cursor behind all that is there now.
func (s *Source) End(ctx context.Context) (end store.FeedCursor, err error) {
	db, err := store.OpenRead(ctx, s.Path, s.Options)
	if errors.Is(err, meta.ErrNotFound) {
		return store.NoFeed(store.FeedCursor{}).Cursor, nil
	}
	if err != nil {
		return end, err
	}
	defer db.Close()
	err = db.View(ctx, func(tx *store.Tx) error {
		end, err = tx.FeedEnd()
		return err
	})
	return end, err
}

// timeFormat is RFC 3339 in UTC, to the millisecond.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// JSON returns a record as one line of JSON.
func JSON(r store.FeedRecord) string {
	var typ any // rm has none
	if r.Type != "" {
		typ = string(r.Type)
	}
	return ui.JSON((&ui.Object{}).
		Add("target", r.Target.String()).Add("key", r.Key).
		Add("operation", r.Op).Add("type", typ).Add("author", r.Author).
		Add("time", time.UnixMilli(r.Time).UTC().Format(timeFormat)).
		Add("cursor", r.Cursor.String()))
}

// ResyncJSON returns the line that says: read everything again, and go on from c.
func ResyncJSON(c store.FeedCursor) string {
	return ui.JSON((&ui.Object{}).Add("resync", true).Add("cursor", c.String()))
}

// CursorJSON returns a line with nothing but a cursor.
func CursorJSON(c store.FeedCursor) string {
	return ui.JSON((&ui.Object{}).Add("cursor", c.String()))
}
