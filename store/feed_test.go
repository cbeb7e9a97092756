package store

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"pgregory.net/rapid"
)

// feedOf reads to the end and returns keys, "RESYNC" for the order to read anew, and the
// cursor.
func feedOf(t testing.TB, db *DB, from FeedCursor, limit int) (string, FeedCursor) {
	t.Helper()
	var out []string
	for {
		var f Feed
		view(t, db, func(tx *Tx) (err error) {
			f, err = tx.Feed(from, limit)
			return err
		})
		if f.Resync {
			out = append(out, "RESYNC")
			if len(f.Records) > 0 || f.More {
				t.Errorf("a resync with %d records, more %v", len(f.Records), f.More)
			}
		}
		for _, r := range f.Records {
			out = append(out, r.Key)
		}
		from = f.Cursor
		if !f.More {
			return strings.Join(out, " "), from
		}
	}
}

// reread checks that nothing more comes, and that the cursor's text is as good as itself.
func reread(t testing.TB, db *DB, c FeedCursor) {
	t.Helper()
	back, err := ParseFeedCursor(c.String())
	if err != nil || back != c {
		t.Errorf("cursor %v came back from %q as %v, %v", c, c.String(), back, err)
	}
	if got, again := feedOf(t, db, back, 10); got != "" || again != c {
		t.Errorf("read again from %v: %q, %v", c, got, again)
	}
}

func set(k string) func(*Tx) error {
	return func(tx *Tx) error { return tx.Set(ref(k), "v", me) }
}

func TestFeed(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	got, empty := feedOf(t, db, FeedCursor{}, 10)
	if got != "" {
		t.Errorf("empty store: %q", got)
	}
	reread(t, db, empty)
	k, l := ref("path:src k"), ref("branch:main l")
	update(t, db, func(tx *Tx) error {
		at := func(n int64) Edit { return Edit{Email: fmt.Sprint("w", n), Time: t0 + n} }
		return errors.Join(tx.Set(k, "v", at(1)), tx.ListPush(l, "e", at(2)), tx.ListPop(l, "e", at(3)), tx.SetAdd(ref("project s"), "m", at(4)), tx.SetRemove(ref("project s"), "m", at(5)), tx.Remove(k, at(6)))
	})
	view(t, db, func(tx *Tx) error {
		f, err := tx.Feed(empty, 100)
		var lines []string
		for _, r := range f.Records {
			lines = append(lines, fmt.Sprintf("%s %s %q %s %d", r.KeyRef, r.Op, r.Type, r.Author, r.Time-t0))
		}
		want := `path:src k set "string" w1 1, branch:main l push "list" w2 2, branch:main l pop "list" w3 3, project s set_add "set" w4 4, project s set_rm "set" w5 5, path:src k rm "" w6 6`
		if got := strings.Join(lines, ", "); got != want || f.Resync || f.More || f.Cursor != f.Records[5].Cursor {
			t.Errorf("got %s, %v %v %v, want %s", got, f.Resync, f.More, f.Cursor, want)
		}
		end, err2 := tx.FeedEnd()
		if end != f.Cursor {
			t.Errorf("end %v, want %v", end, f.Cursor)
		}
		// every record's cursor goes on behind it
		for i, r := range f.Records {
			rest, err := tx.Feed(r.Cursor, 100)
			if err != nil || rest.Resync || !slices.Equal(rest.Records, f.Records[i+1:]) {
				t.Errorf("behind record %d: %v, %v", i, rest, err)
			}
		}
		return errors.Join(err, err2)
	})
	for _, from := range []FeedCursor{{}, empty} {
		for limit := 1; limit < 8; limit++ {
			got, end := feedOf(t, db, from, limit)
			if got != "k l l s s k" {
				t.Errorf("limit %d: %q", limit, got)
			}
			reread(t, db, end)
		}
	}
}

// Values from history have records below 1: they are not in the feed.
func TestFeedSkipsHistory(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	k := ref("path:x old")
	update(t, db, set("project a"))
	_, c := feedOf(t, db, FeedCursor{}, 10)
	update(t, db, func(tx *Tx) error {
		_, err1 := tx.PutPromised(k, strings.Repeat("a", 40))
		_, err2 := tx.PutFromHistory(k, str("v"), Edit{Email: "w", Time: 5})
		return errors.Join(err1, err2)
	})
	reread(t, db, c)
	if got, _ := feedOf(t, db, FeedCursor{}, 10); got != "a" {
		t.Errorf("from the beginning: %q", got)
	}
	update(t, db, func(tx *Tx) error {
		_, err := tx.DeleteLog([]meta.KeyRef{ref("project a")}, math.MaxInt64) // the newest left is below 1
		return err
	})
	if got, _ := feedOf(t, db, c, 10); got != "RESYNC" {
		t.Errorf("only history is left: %q", got)
	}
	got, end := feedOf(t, db, FeedCursor{}, 10)
	if got != "old" { // numbered anew, so that the next record is above 0
		t.Errorf("only history is left, from the beginning: %q, %v", got, end)
	}
	reread(t, db, end)
}

// sweepKeys deletes rows and records as a retention pass does.
func sweepKeys(tx *Tx, keys ...meta.KeyRef) error {
	for _, k := range keys {
		if err := tx.DeleteRow(k); err != nil {
			return err
		}
	}
	if _, err := tx.DeleteLog(keys, math.MaxInt64); err != nil {
		return err
	}
	text, _, err := tx.Fact(FactWatermark)
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(text)
	return tx.PutFact(FactWatermark, strconv.Itoa(n+1))
}

func TestFeedResync(t *testing.T) {
	t.Parallel()
	del := func(keys ...string) func(*Tx) error {
		return func(tx *Tx) error {
			var refs []meta.KeyRef
			for _, k := range keys {
				refs = append(refs, ref(k))
			}
			_, err := tx.DeleteLog(refs, math.MaxInt64)
			return err
		}
	}
	raw := func(text string) func(*Tx) error { return func(tx *Tx) error { return tx.run(text) } }
	all := func(fs ...func(*Tx) error) func(*Tx) error {
		return func(tx *Tx) error {
			for _, f := range fs {
				if err := f(tx); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for _, tc := range []struct {
		name string
		then func(*Tx) error // after a reader has seen a, b and c
		want string
	}{
		{"nothing", func(*Tx) error { return nil }, ""},
		{"more", set("project d"), "d"},
		{"records before it go", all(del("project a", "project b"), set("project d")), "d"},
		{"records behind it go", all(set("project d"), set("project e"), del("project e")), "d"},
		{"records behind it go, rowid used again", all(set("project d"), del("project d"), set("project e")), "e"},
		{"its record goes", del("project c"), "RESYNC"},
		{"its record goes, others follow", all(set("project d"), del("project c")), "RESYNC"},
		{"its rowid used again", all(del("project c"), set("project d")), "RESYNC"},
		{"its rowid used again by the same change, a different one before", all(del("project b", "project c"), set("project d"), set("project c")), "RESYNC"},
		{"all go", del("project a", "project b", "project c"), "RESYNC"},
		{"a pass", func(tx *Tx) error { return sweepKeys(tx, ref("project a")) }, "RESYNC"},
		{"several passes, then more", all(func(tx *Tx) error { return sweepKeys(tx, ref("project a")) }, func(tx *Tx) error { return sweepKeys(tx, ref("project c")) }, set("project d")), "RESYNC"},
		{"another store", func(tx *Tx) error { return tx.PutFact(FactStoreID, "0123456789abcdef") }, "RESYNC"},
		{"the store as it was before a pass", func(tx *Tx) error { return tx.DeleteFact(FactWatermark) }, ""},
		{"the peer deletes the end", raw("DELETE FROM metadata_log WHERE rowid > 1"), "RESYNC"},
		{"the peer deletes the end and goes on", all(raw("DELETE FROM metadata_log WHERE rowid > 1"), set("project x"), set("project y"), set("project z")), "RESYNC"},
		{"the peer deletes its record", all(set("project d"), raw("DELETE FROM metadata_log WHERE rowid = 3")), "RESYNC"},
		{"the peer deletes what is before", raw("DELETE FROM metadata_log WHERE rowid < 3"), ""},
		{"changed record", raw("UPDATE metadata_log SET email = 'x' WHERE rowid = 3"), "RESYNC"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			db := openNew(t)
			update(t, db, all(set("project a"), set("project b"), set("project c")))
			_, c := feedOf(t, db, FeedCursor{}, 10)
			update(t, db, tc.then)
			got, end := feedOf(t, db, c, 10)
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			reread(t, db, end)
			// On from there, with nothing more than what happens then.
			update(t, db, set("project next"))
			if got, _ := feedOf(t, db, end, 10); got != "next" {
				t.Errorf("afterwards: %q", got)
			}
			if got, _ := feedOf(t, db, FeedCursor{}, 2); strings.Contains(got, "RESYNC") {
				t.Errorf("from the beginning: %q", got)
			}
		})
	}
}

func TestFeedOfOtherStores(t *testing.T) {
	t.Parallel()
	none := NoFeed(FeedCursor{})
	if none.Resync || none.Cursor.String() != "c1.0.0.0.0" {
		t.Errorf("no store: %v", none)
	}
	if again := NoFeed(none.Cursor); again.Resync || again.Cursor != none.Cursor {
		t.Errorf("still no store: %v", again)
	}
	// Who has waited for a store gets all of it, whoever makes it.
	db := openNew(t)
	update(t, db, set("project a"))
	got, mine := feedOf(t, db, none.Cursor, 10)
	if got != "a" {
		t.Errorf("the new store: %q", got)
	}
	// The store goes: once a resync, then what the next one holds.
	gone := NoFeed(mine)
	if !gone.Resync || NoFeed(gone.Cursor).Resync {
		t.Errorf("the store is gone: %v", gone)
	}
	other := openNew(t)
	update(t, other, set("project b"))
	if got, _ := feedOf(t, other, gone.Cursor, 10); got != "b" {
		t.Errorf("the next store: %q", got)
	}
	if got, end := feedOf(t, other, mine, 10); got != "RESYNC" {
		t.Errorf("a cursor of another store: %q", got)
	} else {
		reread(t, other, end)
	}
	// A store that only the peer has written to has no id.
	for v := 1; v <= 5; v++ {
		path := fixture(t, v)
		peer, err := OpenRead(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, c := feedOf(t, peer, FeedCursor{}, 2)
		if got == "" || c.store != unknownStore {
			t.Errorf("version %d: %q, %v", v, got, c)
		}
		reread(t, peer, c)
		peer.Close()
		db := open(t, path) // now it gets one
		reread2, c2 := feedOf(t, db, c, 10)
		if reread2 != "" || c2.store == unknownStore {
			t.Errorf("version %d, after a write: %q, %v", v, reread2, c2)
		}
		reread(t, db, c2)
	}
}

func TestParseFeedCursor(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "x", "c1", "c1.", "c1.a.0.0", "c1.a.0.0.0.", "c1.a.0.0.0.0123456789", "c1.a.0.0.1", "c1.a.0.0.1.", "c1.a.0.0.1.012345678",
		"c1.a.0.0.1.012345678g", "c1.a.0.0.1.0123456789.x", "c1.a.-1.0.0", "c1.a.0.0.-1.0123456789", "c1.a.00.0.0", "c1.a.+1.0.0", "c1.a b.0.0.0",
		"c1..0.0.0", "c1.a.99999999999999999999.0.0", " c1.a.0.0.0", "c1.a.0.0.0 ", "c1.a.0.0.0\n", "C1.a.0.0.0", "c2.a.0.0.0", "now", "c1.\xff.0.0.0",
	} {
		_, err := ParseFeedCursor(s)
		wantIs(t, err, meta.ErrInvalid)
		if err == nil || !strings.Contains(err.Error(), strconv.Quote(s)) {
			t.Errorf("%q: the error does not name it: %v", s, err)
		}
		if other := strings.HasPrefix(s, "c2."); err != nil && other != strings.Contains(err.Error(), "another version") {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, s := range []string{"c1.0.0.0.0", "c1.0123456789abcdef.12.3.9223372036854775807.0123456789"} {
		if c, err := ParseFeedCursor(s); err != nil || c.String() != s {
			t.Errorf("%q: %v, %v", s, c, err)
		}
	}
}

func FuzzFeedCursor(f *testing.F) {
	f.Add("c1.0123456789abcdef.12.3.4.0123456789")
	f.Add("c1.0.0.0.0")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseFeedCursor(s)
		if err != nil {
			return
		}
		if c.String() != s || strings.ContainsAny(s, " \t\n'\"$&|;<>()*?[]{}~`\\!#%") {
			t.Errorf("%q is read as %v", s, c)
		}
	})
}

// TestFeedProperty: whatever happens to store and log, a reader that goes on from its
// cursor gets each change since that is still in the log, once and in order, or exactly
// one resync where there is a reason for one. Changes may look exactly like ones before.
func TestFeedProperty(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		db, err := Open(t.Context(), fmt.Sprintf("%s/%d.sqlite", dir, runs), Options{Now: fixed, Bulk: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		m := feedModel{db: db, rows: map[int64]int{}}
		keys := []meta.KeyRef{ref("project a"), ref("path:x b"), ref("path:y b"), ref("branch:c c")}
		some := func() []meta.KeyRef {
			var out []meta.KeyRef
			for _, k := range keys {
				if rapid.Bool().Draw(rt, "chosen") {
					out = append(out, k)
				}
			}
			return out
		}
		readers := make([]feedReader, 3)
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"set", "set", "set", "rm", "read", "read", "local-prune", "sweep", "one", "foreign"}).Draw(rt, "step") {
			case "set":
				k, e := rapid.SampledFrom(keys).Draw(rt, "key"), Edit{Email: "w", Time: t0 + rapid.Int64Range(0, 1).Draw(rt, "time")}
				m.do(rt, func(tx *Tx) error { return tx.Set(k, rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "value"), e) })
			case "rm":
				k := rapid.SampledFrom(keys).Draw(rt, "key")
				m.do(rt, func(tx *Tx) error {
					if err := tx.Remove(k, Edit{Email: "w", Time: t0}); !errors.Is(err, meta.ErrNotFound) {
						return err
					}
					return nil
				})
			case "local-prune":
				chosen := some()
				m.do(rt, func(tx *Tx) error {
					_, err := tx.LocalPrune(chosen, LocalPruneOptions{UpTo: rapid.Int64Range(0, int64(m.seq)).Draw(rt, "upto")})
					return err
				})
			case "sweep":
				chosen := some()
				m.sweeps++
				m.do(rt, func(tx *Tx) error { return sweepKeys(tx, chosen...) })
			case "one": // anything but the newest
				m.do(rt, func(tx *Tx) error {
					newest, err := tx.newestRowID()
					if err != nil || newest < 2 {
						return err
					}
					return tx.run("DELETE FROM metadata_log WHERE rowid = ?", rapid.Int64Range(1, newest-1).Draw(rt, "row"))
				})
			case "foreign": // somebody has a look from the beginning
				if _, err := m.read(&feedReader{}, 3); err != nil {
					rt.Fatal(err)
				}
			case "read":
				r := &readers[rapid.IntRange(0, len(readers)-1).Draw(rt, "reader")]
				if _, err := m.read(r, rapid.IntRange(1, 4).Draw(rt, "limit")); err != nil {
					rt.Fatal(err)
				}
			}
		}
		for i := range readers {
			for more, n := true, 0; more; n++ {
				if more, err = m.read(&readers[i], 2); err != nil || n > 100 {
					rt.Fatal(n, err)
				}
			}
			for range 2 {
				before := readers[i]
				if more, err := m.read(&readers[i], 2); err != nil || more || readers[i].cursor != before.cursor || readers[i].resyncs != before.resyncs {
					rt.Fatal("a reader at the end gets more", err)
				}
			}
		}
	})
}

type feedModel struct {
	db     *DB
	seq    int           // changes so far
	rows   map[int64]int // which change a record of the log is
	sweeps int
	cuts   int
}

type feedReader struct {
	cursor  FeedCursor
	known   int // changes it has been told of, or has read the values after
	at      int // the change at its cursor
	sweeps  int // of the model when it got its cursor
	cuts    int
	resyncs int
}

// do makes a change and finds out what it did to the log.
func (m *feedModel) do(rt *rapid.T, f func(*Tx) error) {
	before, err := m.logRows()
	if err != nil {
		rt.Fatal(err)
	}
	if err := m.db.Update(rt.Context(), f); err != nil {
		rt.Fatal(err)
	}
	after, err := m.logRows()
	if err != nil {
		rt.Fatal(err)
	}
	newest := func(rows []int64) int64 { return slices.Max(append(rows, 0)) }
	if newest(after) < newest(before) {
		m.cuts++
	}
	for _, id := range after {
		if !slices.Contains(before, id) {
			m.seq++
			m.rows[id] = m.seq
		}
	}
	maps.DeleteFunc(m.rows, func(id int64, _ int) bool { return !slices.Contains(after, id) })
}

func (m *feedModel) logRows() (ids []int64, err error) {
	err = m.db.View(bg, func(tx *Tx) error {
		ids, err = collect(tx, "SELECT rowid FROM metadata_log", nil, func(r *rows) int64 { return r.num(0) })
		return err
	})
	return ids, err
}

// read lets r read once and compares with what it should get.
func (m *feedModel) read(r *feedReader, limit int) (more bool, err error) {
	c := r.cursor
	if c != (FeedCursor{}) {
		if c, err = ParseFeedCursor(c.String()); err != nil {
			return false, err
		}
	}
	var f Feed
	if err := m.db.View(bg, func(tx *Tx) error {
		f, err = tx.Feed(c, limit)
		return err
	}); err != nil {
		return false, err
	}
	var want []int
	for _, id := range slices.Sorted(maps.Keys(m.rows)) {
		if m.rows[id] > r.known {
			want = append(want, m.rows[id])
		}
	}
	gone := r.at > 0 && !slices.Contains(slices.Collect(maps.Values(m.rows)), r.at)
	if f.Resync {
		if c == (FeedCursor{}) || !gone && r.sweeps == m.sweeps && m.cuts-r.cuts < 2 {
			return false, fmt.Errorf("a resync without a reason: %+v, %+v", r, m)
		}
		r.resyncs++
		want = nil
	} else if r.sweeps < m.sweeps && c != (FeedCursor{}) {
		return false, fmt.Errorf("no resync after a sweep: %+v, %+v", r, m)
	}
	var got []int
	for _, rec := range f.Records {
		got = append(got, m.rows[rec.Cursor.rowid])
	}
	if f.More {
		want = want[:min(limit, len(want))]
	}
	if !slices.Equal(got, want) {
		return false, fmt.Errorf("a reader at %+v got the changes %v, want %v (%+v)", r, got, want, m)
	}
	switch {
	case f.More:
		r.known = got[len(got)-1]
	default:
		r.known = m.seq
	}
	r.cursor, r.sweeps, r.cuts = f.Cursor, m.sweeps, m.cuts
	r.at = m.rows[f.Cursor.rowid]
	return f.More, nil
}

func TestWatch(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	w := NewWatch(path)
	now := time.Now()
	w.now = func() time.Time { return now }
	// calm waits until nothing is reported any more: a change is reported once more.
	calm := func() {
		t.Helper()
		for i := 0; w.Changed(); i++ {
			if i > 3 {
				t.Fatal("never calm")
			}
			now = now.Add(settle)
		}
		now = now.Add(settle)
		_ = w.Changed()
		if w.Changed() {
			t.Fatal("not calm")
		}
	}
	expect := func(what string) {
		t.Helper()
		if !w.Changed() {
			t.Errorf("%s: not noticed", what)
		}
		if w.Changed() {
			t.Errorf("%s: noticed twice at once", what)
		}
		now = now.Add(settle)
		if !w.Changed() {
			t.Errorf("%s: not looked at again", what)
		}
		calm()
	}
	expect("the first look")
	db := open(t, path)
	expect("a new store")
	update(t, db, set("project a"))
	expect("a change")
	update(t, db, set("project a"))
	expect("another one")
	reader, err := OpenRead(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	if w.Changed() {
		t.Error("a reader is taken for a change")
	}
	db.Close()
	expect("the log goes into the file")
	reader, err = OpenRead(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	view(t, reader, func(tx *Tx) error { return nil })
	if w.Changed() {
		t.Error("the only reader is taken for a change")
	}
	reader.Close()
	if w.Changed() {
		t.Error("the end of the only reader is taken for a change")
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	expect("the store goes")
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	expect("the store comes back")
}
