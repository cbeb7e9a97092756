package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/git-meta/git-meta-go/meta"
)

// fillValues are values of all types and sizes, in ascending order.
func fillValues() []Loaded {
	out := loadedValues(300)
	add := func(key string, v meta.Value, e Edit) { out = append(out, Loaded{ref(key), v, e}) }
	for i, text := range []string{"", "\"quoted\"\n\t\\", "nul\x00byte", "\u00e9\u20ac\U0001f600", strings.Repeat("x", 4090), strings.Repeat("\n", 8192), strings.Repeat("long", 5000), strings.Repeat("longer", 50_000)} {
		add(fmt.Sprintf("project text:%d", i), str(text), Edit{Email: "a@b", Time: []int64{0, 1, -1, 127, 128, 1 << 31, t0, 1 << 62}[i]})
		add(fmt.Sprintf("project list:%d", i), meta.Value{Type: meta.List, Entries: []meta.Entry{{Value: text, Time: t0}, {Value: "b", Time: t0}, {Value: text, Time: t0}, {Value: "a", Time: t0 + int64(i)}}}, Edit{Time: t0})
		add(fmt.Sprintf("project set:%d", i), meta.Value{Type: meta.Set, Members: slices.Compact([]string{"", text, "z", "zz"})}, Edit{Email: "m@b", Time: t0})
	}
	for i, key := range []string{"a", "a:b", "a:X", "a-b", "a b", "A", "_x", "\u00e9", strings.Repeat("k", 5000), strings.Repeat("k", 20_000)} {
		add("commit:98afc48127dd62ab6e54b17aa86aac61885501e6 "+key, str("v"), Edit{Email: "a@b", Time: t0 - int64(i%3)})
		add("path:src/"+key+" k", meta.Value{Type: meta.List}, Edit{Email: strings.Repeat("e", i*100), Time: t0})
		add("change-id:"+key+" k", meta.Value{Type: meta.Set}, Edit{Email: "a@b", Time: t0})
	}
	slices.SortFunc(out, func(a, b Loaded) int { return a.Compare(b.KeyRef) })
	return out
}

func newFill(t testing.TB, db *DB, values []Loaded) *Fill {
	t.Helper()
	f, err := db.NewFill(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	for _, l := range values {
		if err := f.Add(l); err != nil {
			t.Fatal(err)
		}
	}
	if f.Keys() != len(values) || f.Full() {
		t.Errorf("%d keys, full: %v", f.Keys(), f.Full())
	}
	return f
}

// finished is a Fill that can be put.
func finished(t testing.TB, db *DB, values []Loaded) *Fill {
	t.Helper()
	f := newFill(t, db, values)
	if err := f.Finish(); err != nil {
		t.Fatal(err)
	}
	return f
}

func nothing(*Tx) error { return nil }

// sound checks the file, and that it is in WAL mode.
func sound(t testing.TB, db *DB) {
	t.Helper()
	if got := dump(t, db, "PRAGMA integrity_check"); got != "ok\n" {
		t.Errorf("integrity_check: %s", got)
	}
	if got := dump(t, db, "PRAGMA journal_mode"); got != "wal\n" {
		t.Errorf("journal_mode: %s", got)
	}
	if got := dump(t, db, "SELECT name FROM pragma_database_list WHERE name NOT IN ('main', 'temp')"); got != "" {
		t.Errorf("attached: %s", got)
	}
}

const everyRow = "SELECT rowid, * FROM metadata ORDER BY rowid"

func TestFillIsPut(t *testing.T) {
	t.Parallel()
	values := fillValues()
	shuffled := slices.Clone(values)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for name, values := range map[string][]Loaded{"sorted": values, "shuffled": shuffled, "one": values[:1], "none": nil, "strings": slices.DeleteFunc(slices.Clone(values), func(l Loaded) bool { return l.Value.Type != meta.String })} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			filled, many, one := openNew(t), openNew(t), openNew(t)
			var at Position
			err := filled.PutFill(t.Context(), finished(t, filled, values), func(tx *Tx) (err error) {
				at, err = tx.LogPosition()
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			update(t, many, func(tx *Tx) error { return tx.PutNew(values) })
			update(t, one, func(tx *Tx) error {
				for _, l := range values {
					if err := tx.Put(l.KeyRef, l.Value, l.Edit, PutOptions{}); err != nil {
						return err
					}
				}
				return nil
			})
			got := contents(t, filled) + dump(t, filled, everyRow)
			for what, db := range map[string]*DB{"PutNew": many, "Put": one} {
				if want := contents(t, db) + dump(t, db, everyRow); got != want {
					t.Errorf("Fill against %s (-want +got):\n%s", what, cmp.Diff(want, got))
				}
			}
			view(t, filled, func(tx *Tx) error {
				now, err := tx.LogPosition()
				if now != at || at.RowID != int64(len(values)) {
					t.Errorf("the log was at %v, is at %v", at, now)
				}
				return err
			})
			sound(t, filled)
			// it can be edited as any other
			update(t, filled, func(tx *Tx) error { return tx.Set(ref("project later"), "x", me) })
			for i := range min(len(values), 40) {
				update(t, filled, func(tx *Tx) error { return tx.Remove(values[i*len(values)/40].KeyRef, me) })
			}
			sound(t, filled)
		})
	}
}

// A member that is there twice is taken once, entries are in the order of their times.
func TestFillOfLooseValues(t *testing.T) {
	t.Parallel()
	set := meta.Value{Type: meta.Set, Members: []string{"b", "a", "b", "a"}}
	values := []Loaded{
		{ref("project set"), set, me},
		{ref("project list"), meta.Value{Type: meta.List, Entries: []meta.Entry{{Value: "3", Time: 3}, {Value: "1", Time: 1}, {Value: "2", Time: 3}, {Value: "0", Time: 1}}}, me},
	}
	filled, one := openNew(t), openNew(t)
	if err := filled.PutFill(t.Context(), finished(t, filled, values), nothing); err != nil {
		t.Fatal(err)
	}
	update(t, one, func(tx *Tx) error {
		for _, l := range values {
			if err := tx.Put(l.KeyRef, l.Value, l.Edit, PutOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	if diff := cmp.Diff(contents(t, one), contents(t, filled)); diff != "" {
		t.Errorf("Fill against Put (-want +got):\n%s", diff)
	}
	if got := dump(t, filled, "SELECT value FROM list_values ORDER BY rowid"); got != "1\n0\n3\n2\n" {
		t.Errorf("entries: %q", got)
	}
	sound(t, filled)

	f := newFill(t, filled, nil)
	wantIs(t, f.Add(Loaded{ref("project k"), str("caf\xe9"), me}), meta.ErrInvalid)
	wantIs(t, f.Add(Loaded{ref("project k"), meta.Value{}, me}), meta.ErrInvalid)
	f.bytes = fillMaxBytes
	if f.Full() {
		t.Error("full already")
	}
	if err := f.Add(values[0]); err != nil || !f.Full() {
		t.Errorf("not full, %v", err)
	}
}

// Trees of several levels, in a folder whose name is odd in an address.
func TestFillManyKeys(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "it's 100% #1?&mode=memory")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	db, err := Open(t.Context(), filepath.Join(dir, FileName), Options{Bulk: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	values := loadedValues(12_000)
	if err := db.PutFill(t.Context(), finished(t, db, values), nothing); err != nil {
		t.Fatal(err)
	}
	sound(t, db)
	if got := dump(t, db, "SELECT count(*), (SELECT count(*) FROM metadata_log), (SELECT count(*) FROM list_values), (SELECT count(*) FROM set_values) FROM metadata"); got != "12000|12000|8000|8000\n" {
		t.Errorf("rows: %s", got)
	}
	if got := dump(t, db, "PRAGMA synchronous"); got != "1\n" {
		t.Errorf("synchronous of a bulk load: %s", got)
	}
}

// Every table and every index of a fill is copied entry by entry. SQLite does that only
// if tables and indexes of both files are alike, and does not say if not: then there is no
// instruction that takes a whole row or entry.
func TestFillIsTransferred(t *testing.T) {
	t.Parallel()
	stores := map[string]*DB{"new": openNew(t)}
	for v := 1; v < schemaVersion; v++ { // tables that other versions made
		stores[fmt.Sprint("version ", v)] = open(t, fixture(t, v))
	}
	for name, db := range stores {
		f := finished(t, db, loadedValues(3))
		address, err := dsn(f.path, "mode=ro", "immutable=1")
		if err != nil {
			t.Fatal(err)
		}
		if err := db.script(t.Context(), "ATTACH '"+address+"' AS load"); err != nil {
			t.Fatal(err)
		}
		for _, table := range fillTables {
			want := dump(t, db, "SELECT 1 + count(*) FROM main.sqlite_master WHERE type = 'index' AND tbl_name = '"+table+"'")
			n := 0
			for l := range strings.Lines(dump(t, db, "EXPLAIN INSERT INTO main."+table+" SELECT * FROM load."+table)) {
				if strings.Contains(l, "|RowData|") || strings.Contains(l, "|RowCell|") {
					n++
				}
			}
			if got := fmt.Sprintln(n); got != want || n < 2 {
				t.Errorf("%s, %s: %d trees are copied, want %s", name, table, n, want)
			}
		}
	}
}

func TestFillTwice(t *testing.T) {
	t.Parallel()
	values := loadedValues(20)
	for name, more := range map[string]Loaded{"in a row": values[19], "apart": values[7]} {
		db := openNew(t)
		f := newFill(t, db, append(slices.Clone(values), more))
		if err := f.Finish(); !errors.Is(err, ErrTwice) || !strings.Contains(err.Error(), more.Key) {
			t.Errorf("%s: %v", name, err)
		}
		if err := f.Close(); err != nil || len(FillFiles(filepath.Dir(db.path))) != 0 {
			t.Errorf("%s: a file is left, %v", name, err)
		}
	}
}

// A fill of a store that is not empty, or not as expected, or that fails at the end,
// changes nothing.
func TestFillRefused(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	other := ref("project other")
	for name, c := range map[string]struct {
		before func(*Tx) error
		then   func(*Tx) error
		err    error
	}{
		"row":        {before: func(tx *Tx) error { return tx.Put(other, str("x"), me, PutOptions{NoLog: true}) }, err: ErrNotEmpty},
		"side row":   {before: func(tx *Tx) error { return tx.Put(other, str("x"), me, PutOptions{NoLog: true, SourceRef: "refs/x"}) }, err: ErrNotEmpty},
		"log record": {before: func(tx *Tx) error { return tx.log(other, opSet, "x", meta.String, "a@b", t0) }, err: ErrNotEmpty},
		"tombstone": {before: func(tx *Tx) error {
			return tx.PutTombstone(meta.Tombstone{Kind: meta.KeyTombstone, KeyRef: other, Time: t0, Email: "x", Explicit: true})
		}, err: ErrNotEmpty},
		"withheld": {before: func(tx *Tx) error { return tx.PutWithheld(Withheld{KeyRef: other, EditTime: t0, Why: LocalPruned}) }, err: ErrNotEmpty},
		"entry":    {before: func(tx *Tx) error { return tx.addEntry(7, meta.Entry{Value: "x", Time: t0}) }, err: ErrNotEmpty},
		"member":   {before: func(tx *Tx) error { return tx.addMember(7, meta.MemberID("x"), "x", t0) }, err: ErrNotEmpty},
		"column":   {before: func(tx *Tx) error { return tx.run("ALTER TABLE set_values ADD COLUMN more TEXT") }, err: ErrOtherTables},
		"then": {then: func(tx *Tx) error {
			return errors.Join(tx.PutTombstone(meta.Tombstone{Kind: meta.KeyTombstone, KeyRef: other, Time: t0}), broken)
		}, err: broken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openNew(t)
			if c.before != nil {
				update(t, db, c.before)
			}
			if c.then == nil {
				c.then = func(*Tx) error { t.Error("it goes on"); return nil }
			}
			values := loadedValues(20)
			f := finished(t, db, values)
			for range 2 {
				before := contents(t, db)
				wantIs(t, db.PutFill(t.Context(), f, c.then), c.err)
				if diff := cmp.Diff(before, contents(t, db)); diff != "" {
					t.Errorf("the store has changed (-want +got):\n%s", diff)
				}
				sound(t, db)
			}
			if c.err == ErrOtherTables {
				return
			}
			for _, table := range []string{"metadata", "metadata_log", "list_values", "set_values", "tombstones", "x_withheld"} {
				update(t, db, func(tx *Tx) error { return tx.run("DELETE FROM " + table) })
			}
			if err := db.PutFill(t.Context(), f, nothing); err != nil {
				t.Errorf("emptied: %v", err)
			}
			if got := dump(t, db, "SELECT count(*) FROM metadata"); got != "20\n" {
				t.Errorf("emptied and filled: %s", got)
			}
			sound(t, db)
		})
	}
}
