package store

import (
	"fmt"
	"strconv"

	"github.com/git-meta/git-meta-go/meta"
)

// The feed is the log as others read it: its records in rowid order. Records at rowids
// below 1 are not in it: they are values loaded from history, long after they were
// published. What is deleted without a record (a retention pass) or from the end of the
// log, where rowids are used again, makes cursors stale: their readers are told once to
// read everything again.

// FeedRecord is one change in the feed.
type FeedRecord struct {
	meta.KeyRef
	Op     string         // set, rm, push, pop, list_rm, set_add or set_rm
	Type   meta.ValueType // of the value after the change; "" for rm
	Author string         // address, or "unknown"
	Time   int64          // ms; of the edit, which may be long before its place in the feed
	Cursor FeedCursor     // behind this record
}

// Feed is what a reader gets in one go. It is of one state of the store.
type Feed struct {
	// Resync: there are changes behind the reader's cursor that the feed cannot tell.
	// Read the values again; Cursor is from now on, and there are no Records.
	Resync  bool
	Records []FeedRecord
	Cursor  FeedCursor // read on from here
	More    bool       // there are more records already
}

// factLogCut holds how often the newest record of the log has been deleted by this
// program, a blank, and the rowid of the newest one left the last time.
const factLogCut = "log-cut"

// feedState is what decides which cursors are good.
type feedState struct {
	store          string
	watermark      int64
	cut, lastAfter int64 // factLogCut
}

func (tx *Tx) feedState() (s feedState, err error) {
	s.store = unknownStore
	if id, ok, err := tx.Fact(FactStoreID); err != nil {
		return s, err
	} else if ok && isWord(id) {
		s.store = id
	}
	if text, ok, err := tx.Fact(FactWatermark); err != nil {
		return s, err
	} else if ok {
		if s.watermark, err = strconv.ParseInt(text, 10, 64); err != nil || s.watermark < 0 {
			return s, fmt.Errorf("the store's watermark is %q, not a number", text)
		}
	}
	s.cut, s.lastAfter, err = tx.logCut()
	return s, err
}

// at returns the cursor behind the record at p.
func (s feedState) at(p Position) FeedCursor {
	c := FeedCursor{store: s.store, watermark: s.watermark, cut: s.cut}
	if p.RowID > 0 {
		c.rowid, c.fingerprint = p.RowID, p.Fingerprint[:feedPrint]
	}
	return c
}

// knows reports whether all changes behind c can be told, provided that the record at c
// is still the same.
func (s feedState) knows(c FeedCursor) bool {
	switch {
	case c.store != s.store && c.store != unknownStore, c.watermark != s.watermark:
		return false
	case c.cut == s.cut:
		return true
	}
	return c.cut == s.cut-1 && c.rowid <= s.lastAfter
}

const feedSQL = "SELECT " + logColumns + " FROM metadata_log WHERE rowid > ? ORDER BY rowid LIMIT ?"

// Feed returns at most limit records behind from, or the order to read everything again
// where from is stale: it is of another store, a retention pass has deleted rows since,
// or the record at from is not there any more. Records before from may have been deleted.
// The zero from is never stale. The cost is that of the records, whatever the log holds.
func (tx *Tx) Feed(from FeedCursor, limit int) (Feed, error) {
	s, err := tx.feedState()
	if err != nil {
		return Feed{}, err
	}
	if from != (FeedCursor{}) {
		ok := s.knows(from)
		if ok && from.rowid > 0 {
			var have Position
			if ok, err = tx.c.one(bg, logAt, []any{from.rowid}, func(r *rows) { have = r.position() }); err != nil {
				return Feed{}, err
			}
			ok = ok && have.Fingerprint[:feedPrint] == from.fingerprint
		}
		if !ok {
			end, err := tx.FeedEnd()
			return Feed{Resync: true, Cursor: end}, err
		}
	}
	records, err := collect(tx, feedSQL, []any{from.rowid, limit + 1}, func(r *rows) FeedRecord {
		rec := FeedRecord{
			KeyRef: r.key(1), Type: valueType(r.str(5)), Op: r.str(6), Author: r.str(7), Time: r.num(8),
			Cursor: s.at(r.position()),
		}
		if rec.Op == opRemove {
			rec.Type = "" // the peer may name one
		}
		return rec
	})
	if err != nil {
		return Feed{}, err
	}
	f := Feed{Records: records, More: len(records) > limit}
	if f.More {
		f.Records = records[:limit]
	}
	if n := len(f.Records); n > 0 {
		f.Cursor = f.Records[n-1].Cursor
	} else {
		f.Cursor = s.at(Position{})
		f.Cursor.rowid, f.Cursor.fingerprint = from.rowid, from.fingerprint
	}
	return f, nil
}

// FeedEnd returns the cursor behind the newest record.
func (tx *Tx) FeedEnd() (FeedCursor, error) {
	s, err := tx.feedState()
	if err != nil {
		return FeedCursor{}, err
	}
	p, err := tx.LogPosition()
	return s.at(p), err
}

// NoFeed is what [Tx.Feed] returns where there is no store yet. Its cursor is good for
// the store that will be there.
func NoFeed(from FeedCursor) Feed {
	none := FeedCursor{store: unknownStore}
	return Feed{Resync: from != (FeedCursor{}) && from != none, Cursor: none}
}

func (tx *Tx) logCut() (n, after int64, err error) {
	text, ok, err := tx.Fact(factLogCut)
	if err != nil || !ok {
		return 0, 0, err
	}
	if _, err := fmt.Sscanf(text, "%d %d", &n, &after); err != nil || n < 0 {
		return 0, 0, fmt.Errorf("the store's mark of log cuts is %q", text)
	}
	return n, after, nil
}

func (tx *Tx) newestRowID() (int64, error) {
	return tx.c.int64(bg, "SELECT coalesce(max(rowid), 0) FROM metadata_log")
}

// noteCut runs del, which may delete records of the log, and notes if the newest one went:
// its rowid will be used again, perhaps for a record that looks the same.
func (tx *Tx) noteCut(del func() error) error {
	before, err := tx.newestRowID()
	if err != nil {
		return err
	}
	if err := del(); err != nil {
		return err
	}
	after, err := tx.newestRowID()
	if err != nil || after >= before || before <= 0 {
		return err
	}
	n, _, err := tx.logCut()
	if err != nil {
		return err
	}
	return tx.PutFact(factLogCut, fmt.Sprintf("%d %d", n+1, max(after, 0)))
}
