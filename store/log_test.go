package store

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/git-meta/git-meta-go/meta"
)

func TestLog(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	var p Position
	update(t, db, func(tx *Tx) error {
		p, err := tx.LogPosition()
		if p != (Position{}) || err != nil {
			t.Errorf("empty log: %v %v", p, err)
		}
		if ok, err := tx.LogHolds(p); !ok || err != nil {
			t.Errorf("%v %v", ok, err)
		}
		return errors.Join(tx.Set(ref("project b"), "1", me), tx.Set(ref("branch:x a"), "1", me))
	})
	update(t, db, func(tx *Tx) error {
		var err error
		p, err = tx.LogPosition()
		if p.RowID != 2 || len(p.Fingerprint) != 40 {
			t.Errorf("%v", p)
		}
		return errors.Join(err, tx.Set(ref("project b"), "2", me), tx.Set(ref("project a"), "2", Edit{Time: 5}), tx.Remove(ref("project b"), me))
	})
	update(t, db, func(tx *Tx) error {
		changes, err := tx.ChangesSince(p)
		var got []string
		for _, c := range changes {
			got = append(got, fmt.Sprint(c.KeyRef, " ", c.Op, " ", c.RowID))
		}
		if s := strings.Join(got, ", "); s != "project a set 4, project b rm 5" || err != nil {
			t.Errorf("got %s, %v", s, err)
		}
		ok, err := tx.LogHolds(p)
		if !ok || err != nil {
			t.Errorf("holds: %v %v", ok, err)
		}
		if err := tx.run("UPDATE metadata_log SET email = 'other' WHERE rowid = 2"); err != nil {
			return err
		}
		ok, err = tx.LogHolds(p)
		if ok || err != nil {
			t.Errorf("changed record holds: %v %v", ok, err)
		}
		ok, err = tx.LogHolds(Position{99, p.Fingerprint})
		if ok || err != nil {
			t.Errorf("missing record holds: %v %v", ok, err)
		}
		return nil
	})
}

func TestCursors(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	var ps []Position
	for i := range 4 {
		update(t, db, func(tx *Tx) error {
			if err := tx.Set(ref(fmt.Sprintf("project k%d", i)), "v", me); err != nil {
				return err
			}
			p, err := tx.LogPosition()
			ps = append(ps, p)
			return err
		})
	}
	c1 := Cursor{Ref: "main", Commit: "c1", Log: ps[0], FilterSet: "f"}
	c2 := Cursor{Ref: "main", Commit: "c2", Log: ps[2], PruneChecked: true}
	c3 := Cursor{Ref: "side", Commit: "c1", Log: Position{2, "stale"}}
	update(t, db, func(tx *Tx) error { return errors.Join(tx.PutCursor(c1), tx.PutCursor(c2), tx.PutCursor(c3)) })
	want := func(f func(tx *Tx) (Cursor, bool, error), want Cursor, wantOK bool) {
		t.Helper()
		view(t, db, func(tx *Tx) error {
			c, ok, err := f(tx)
			if c != want || ok != wantOK {
				t.Errorf("got %v %v, want %v %v", c, ok, want, wantOK)
			}
			return err
		})
	}
	at := func(ref, commit string) func(tx *Tx) (Cursor, bool, error) {
		return func(tx *Tx) (Cursor, bool, error) { return tx.Cursor(ref, commit) }
	}
	latest := func(ref string) func(tx *Tx) (Cursor, bool, error) {
		return func(tx *Tx) (Cursor, bool, error) { return tx.LatestCursor(ref) }
	}
	want(at("main", "c1"), c1, true)
	want(at("main", "c9"), Cursor{}, false)
	want(latest("main"), c2, true)
	want(latest("none"), Cursor{}, false)
	c1.PruneChecked = true
	update(t, db, func(tx *Tx) error { return tx.PutCursor(c1) })
	want(latest("main"), c1, true)
	view(t, db, func(tx *Tx) error {
		refs, err := tx.CursorRefs()
		if fmt.Sprint(refs) != "[main side]" {
			t.Errorf("refs %v", refs)
		}
		return err
	})
	// Deleting records moves the cursors that stood on them; a stale one stays stale.
	update(t, db, func(tx *Tx) error {
		n, err := tx.DeleteLog([]meta.KeyRef{ref("project k2"), ref("project k1"), ref("project k3")}, ps[2].RowID)
		if n != 2 {
			t.Errorf("deleted %d", n)
		}
		return err
	})
	c2.Log = ps[0]
	want(at("main", "c2"), c2, true)
	want(at("main", "c1"), c1, true)
	want(at("side", "c1"), c3, true)
	update(t, db, func(tx *Tx) error {
		_, err := tx.DeleteLog([]meta.KeyRef{ref("project k0")}, math.MaxInt64)
		return err
	})
	c1.Log, c2.Log = Position{}, Position{}
	want(at("main", "c1"), c1, true)
	update(t, db, func(tx *Tx) error { return tx.TrimCursors("main", "c1") }) // c1 is the later one
	want(at("main", "c2"), Cursor{}, false)
	want(at("main", "c1"), c1, true)
	want(at("side", "c1"), c3, true)
	update(t, db, func(tx *Tx) error { return tx.TrimCursors("main", "unknown") })
	want(at("main", "c1"), c1, true)
}

func TestWithheld(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	a, b, c, d := ref("project a"), ref("path:x b"), ref("path:x c"), ref("branch:d d")
	putAll(t, db, "project a", "path:x b", "path:x c")
	list := func(tx *Tx, why ...Why) string {
		var out []string
		for w, err := range tx.AllWithheld(why...) {
			if err != nil {
				t.Error(err)
			}
			out = append(out, fmt.Sprint(w.KeyRef, " ", w.Why, " ", w.EditTime-t0))
		}
		n, err := tx.CountWithheld(why...)
		if int(n) != len(out) || err != nil {
			t.Errorf("count %d, %v", n, err)
		}
		return strings.Join(out, ", ")
	}
	update(t, db, func(tx *Tx) error {
		if s := list(tx); s != "" {
			t.Errorf("got %s", s)
		}
		return errors.Join(tx.WithholdPruned([]meta.KeyRef{a, d, c, b}), tx.PutWithheld(Withheld{d, t0, LocalPruned}))
	})
	update(t, db, func(tx *Tx) error {
		if s := list(tx); s != "branch:d d local 0, path:x b pruned 1, path:x c pruned 2, project a pruned 0" {
			t.Errorf("got %s", s)
		}
		if s := list(tx, LocalPruned, Swept); s != "branch:d d local 0" {
			t.Errorf("got %s", s)
		}
		w, ok, err := tx.Withheld(b)
		if !ok || w != (Withheld{b, t0 + 1, Pruned}) || err != nil {
			t.Errorf("got %v %v %v", w, ok, err)
		}
		for _, k := range []meta.KeyRef{a, d, ref("project none")} {
			w, load, err := tx.EditStarts(k)
			if load != (k == d) || err != nil {
				t.Errorf("%s: %v %v %v", k, w, load, err)
			}
		}
		return tx.DeleteWithheld(d)
	})
	view(t, db, func(tx *Tx) error {
		if s := list(tx, LocalPruned, Swept); s != "" {
			t.Errorf("got %s", s)
		}
		return nil
	})
}

func TestLocalPrune(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	a, b, c, d := ref("path:x a"), ref("path:x b"), ref("path:x c"), ref("path:x d")
	putAll(t, db, "path:x a", "path:x b", "path:x c", "path:x d")
	var p Position
	update(t, db, func(tx *Tx) (err error) {
		p, err = tx.LogPosition()
		return errors.Join(err, tx.PutCursor(Cursor{Ref: "main", Commit: "c", Log: p}), tx.WithholdPruned([]meta.KeyRef{b}), tx.ListPush(a, "x", Edit{Time: t0}))
	})
	update(t, db, func(tx *Tx) error {
		n, err := tx.LocalPrune([]meta.KeyRef{a, b, d, ref("path:x none")}, LocalPruneOptions{UpTo: p.RowID})
		m, err2 := tx.LocalPrune([]meta.KeyRef{c}, LocalPruneOptions{Unpublished: true})
		if n != 3 || m != 1 {
			t.Errorf("dropped %d, %d", n, m)
		}
		return errors.Join(err, err2)
	})
	if got, want := contents(t, db), "withheld|a|local\nwithheld|d|local\nlog|a|push|[]|list|unknown|0\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	view(t, db, func(tx *Tx) error {
		c, ok, err := tx.Cursor("main", "c")
		if c.Log != (Position{}) || !ok {
			t.Errorf("cursor %v", c)
		}
		return err
	})
}

func TestTombstones(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	k := ref("project k")
	all := []meta.Tombstone{
		{Kind: meta.EntryTombstone, KeyRef: k, Name: "5-abcde", Time: 5, Email: "a"},
		{Kind: meta.KeyTombstone, KeyRef: k, Time: 6, Email: "b", Explicit: true},
		{Kind: meta.MemberTombstone, KeyRef: k, Name: meta.MemberID("m"), Member: "m", Time: 7, Email: "c"},
	}
	first := meta.Tombstone{Kind: meta.KeyTombstone, KeyRef: ref("branch:b z"), Time: 1, Email: "d"}
	update(t, db, func(tx *Tx) error {
		return errors.Join(tx.PutTombstone(all[0]), tx.PutTombstone(all[1]), tx.PutTombstone(all[2]), tx.PutTombstone(first))
	})
	check := func(want ...meta.Tombstone) {
		t.Helper()
		view(t, db, func(tx *Tx) error {
			got, err := tx.Tombstones(k)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got %v, want %v", got, want)
			}
			return err
		})
	}
	check(all...)
	view(t, db, func(tx *Tx) error {
		var got []meta.Tombstone
		for tomb, err := range tx.AllTombstones() {
			if err != nil {
				return err
			}
			got = append(got, tomb)
		}
		if fmt.Sprint(got) != fmt.Sprint(append([]meta.Tombstone{first}, all...)) {
			t.Errorf("got %v", got)
		}
		return nil
	})
	// The peer writes a tombstone of its own: no longer explicit.
	update(t, db, func(tx *Tx) error {
		return tx.run("UPDATE tombstones SET timestamp = 9 WHERE tombstone_type = 'metadata' AND key = 'k'")
	})
	all[1].Time, all[1].Explicit = 9, false
	check(all...)
	update(t, db, func(tx *Tx) error { return errors.Join(tx.DeleteTombstone(all[2]), tx.DeleteTombstone(all[1])) })
	check(all[0])
}

func TestTreeStats(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	update(t, db, func(tx *Tx) error {
		return errors.Join(tx.PutTreeStats(map[string]Stats{"a": {Keys: 3, HasKeys: true}}), tx.PutTreeStats(map[string]Stats{"a": {Bytes: 0, HasBytes: true}, "b": {}}), tx.PutTreeStats(nil))
	})
	view(t, db, func(tx *Tx) error {
		s, ok, err := tx.TreeStats("a")
		if s != (Stats{3, 0, true, true}) || !ok {
			t.Errorf("got %v %v", s, ok)
		}
		_, ok, err2 := tx.TreeStats("c")
		if ok {
			t.Error("c is known")
		}
		return errors.Join(err, err2)
	})
	update(t, db, func(tx *Tx) error {
		tx.now = t0 + 5
		return errors.Join(tx.PutTreeStats(map[string]Stats{"c": {}}), tx.trimTreeStats(1))
	})
	if got := dump(t, db, "SELECT tree_oid, last_used FROM tree_stats"); got != fmt.Sprintf("c|%d\n", t0+5) {
		t.Errorf("got %s", got)
	}
}

func TestMergeFile(t *testing.T) {
	t.Parallel()
	main, other := openNew(t), openNew(t)
	at := func(ms int64) Edit { return Edit{Email: "w@t", Time: ms} }
	update(t, main, func(tx *Tx) error {
		return errors.Join(tx.Set(ref("project newer:here"), "main", at(20)), tx.Set(ref("project newer:there"), "main", at(10)), tx.Set(ref("project removed:there"), "main", at(10)),
			tx.Set(ref("project kept"), "main", at(30)), tx.Set(ref("project gone:here"), "x", at(1)), tx.Remove(ref("project gone:here"), at(40)))
	})
	update(t, other, func(tx *Tx) error {
		return errors.Join(tx.Set(ref("project newer:here"), "other", at(10)), tx.Set(ref("project newer:there"), "other", at(20)), tx.Set(ref("project removed:there"), "other", at(10)),
			tx.Remove(ref("project removed:there"), at(20)), tx.Set(ref("project kept"), "other", at(5)), tx.Remove(ref("project kept"), at(6)), tx.Set(ref("project gone:here"), "other", at(39)),
			tx.ListPush(ref("path:x list"), "a", at(7)), tx.ListPush(ref("path:x list"), "b", at(8)), tx.ListPop(ref("path:x list"), "a", at(9)), tx.SetAdd(ref("project local:s"), "m", at(7)))
	})
	other.Close()
	n, err := MergeFile(t.Context(), main, other.Path())
	if n != 4 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	view(t, main, func(tx *Tx) error {
		for k, want := range map[string]string{"project newer:here": "main", "project newer:there": "other", "project removed:there": "", "project kept": "main", "project gone:here": "", "path:x list": "b", "project local:s": "m"} {
			rec, err := tx.Get(ref(k))
			if got := strings.Join(rec.Value.Items(), ","); got != want || (err != nil) != (want == "") {
				t.Errorf("%s: got %q, %v, want %q", k, got, err, want)
			}
		}
		tombs, err1 := tx.Tombstones(ref("project removed:there"))
		if len(tombs) != 1 || !tombs[0].Explicit || tombs[0].Time != 20 {
			t.Errorf("tombstones %v", tombs)
		}
		tombs, err2 := tx.Tombstones(ref("path:x list"))
		if len(tombs) != 1 || tombs[0].Kind != meta.EntryTombstone {
			t.Errorf("tombstones %v", tombs)
		}
		email, ms, err3 := tx.Author(ref("project newer:there"))
		if email != "w@t" || ms != 20 {
			t.Errorf("author %s %d", email, ms)
		}
		return errors.Join(err1, err2, err3)
	})
	if n, err := MergeFile(t.Context(), main, other.Path()); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
	_, err = MergeFile(t.Context(), main, main.Path())
	if err == nil {
		t.Error("merged with itself")
	}
	_, err = MergeFile(t.Context(), main, filepath.Join(t.TempDir(), "none"))
	wantIs(t, err, meta.ErrNotFound)
	for v := 1; v <= 5; v++ { // old schemas merge as they are
		if n, err := MergeFile(t.Context(), openNew(t), fixture(t, v)); n != 4 || err != nil {
			t.Errorf("version %d: %d, %v", v, n, err)
		}
	}
}

func TestValuesAsGiven(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	for i, s := range []string{"", "a\nb\n", "a\r\nb\r\n", "-x", "\x00", "\"json\"", "é\u0301", strings.Repeat("line\n", 100_000)} {
		k := ref(fmt.Sprintf("project v%d", i))
		update(t, db, func(tx *Tx) error { return tx.Set(k, s, me) })
		view(t, db, func(tx *Tx) error {
			rec, err := tx.Get(k)
			if rec.Value.String != s {
				t.Errorf("%d: got %.40q", i, rec.Value.String)
			}
			return err
		})
	}
}

func BenchmarkPut(b *testing.B) {
	db, err := Open(b.Context(), newPath(b), Options{Bulk: true})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	b.ReportAllocs()
	err = db.Update(b.Context(), func(tx *Tx) error {
		for i := range b.N {
			k := meta.KeyRef{Target: meta.Target{Type: meta.Commit, Value: fmt.Sprintf("%040x", i/5)}, Key: fmt.Sprint("k", i%5)}
			if err := tx.Put(k, str("a value of some length"), Edit{Time: t0 + int64(i)}, PutOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

func BenchmarkOpenGet(b *testing.B) {
	path := newPath(b)
	db := open(b, path)
	putAll(b, db, "project a")
	db.Close()
	b.ReportAllocs()
	for b.Loop() {
		db, err := OpenRead(b.Context(), path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		view(b, db, func(tx *Tx) error { _, err := tx.Get(ref("project a")); return err })
		db.Close()
	}
}
