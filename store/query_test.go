package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/meta"
)

func putAll(t testing.TB, db *DB, refs ...string) {
	t.Helper()
	update(t, db, func(tx *Tx) error {
		for i, r := range refs {
			if err := tx.Put(ref(r), str(r), Edit{Time: t0 + int64(i)}, PutOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestQuery(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	putAll(t, db,
		"project a_b:k", "project aXb:k", "project A_B:k", "project 100%:k", "project 100x:k", "project ag", "project agent:m", "project AGENT:m", "project agent", "project agent:m:x", "project agent-x", "project agent;",
		"path:src a", "path:src/b agent", "path:src/b/c agent:m", "path:SRC/b a", "path:src-x a", "path:src! a", "path:srcx a", "path:s_c/b a", "path:src0 a",
		"branch:café k", "branch:cafe\u0301 k", "branch:Feature k", "branch:feature k", "commit:ffff agent:z")
	update(t, db, func(tx *Tx) error {
		return tx.Put(ref("project side:k"), str("v"), Edit{Time: 9}, PutOptions{SourceRef: "refs/x"})
	})
	project, src := meta.Target{Type: meta.Project}, meta.Target{Type: meta.Path, Value: "src"}
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{Target: &project, Namespace: "a_b"}, "project a_b:k"},
		{Query{Target: &project, Namespace: "100%"}, "project 100%:k"},
		{Query{Target: &project, Namespace: "ag"}, "project ag"},
		{Query{Target: &project, Namespace: "agent"}, "project agent, project agent:m, project agent:m:x"},
		{Query{Target: &project, Namespace: "agent:m"}, "project agent:m, project agent:m:x"},
		{Query{Target: &project, Namespace: "side"}, "project side:k"},
		{Query{Target: &project, Namespace: "side", Publishable: true}, ""},
		{Query{Namespace: "agent"}, "commit:ffff agent:z, path:src/b agent, path:src/b/c agent:m, project agent, project agent:m, project agent:m:x"},
		{Query{Type: meta.Path, Namespace: "agent"}, "path:src/b agent, path:src/b/c agent:m"},
		{Query{Target: &src}, "path:src a"},
		{Query{Target: &src, Subtree: true}, "path:src a, path:src/b agent, path:src/b/c agent:m"},
		{Query{Target: &src, Subtree: true, Namespace: "agent"}, "path:src/b agent, path:src/b/c agent:m"},
		{Query{Type: meta.Branch}, "branch:Feature k, branch:cafe\u0301 k, branch:café k, branch:feature k"},
	} {
		view(t, db, func(tx *Tx) error {
			if got := keysOf(t, tx, c.q); got != c.want {
				t.Errorf("%+v: got %s, want %s", c.q, got, c.want)
			}
			var fromRecords []string
			for rec, err := range tx.Records(c.q) {
				if err != nil {
					return err
				}
				fromRecords = append(fromRecords, rec.KeyRef.String())
			}
			if got := strings.Join(fromRecords, ", "); got != c.want {
				t.Errorf("records of %+v: got %s", c.q, got)
			}
			for row, err := range tx.Rows(Query{}) {
				if err != nil {
					return err
				}
				if c.q.matches(row.KeyRef) != slices.Contains(strings.Split(c.want, ", "), row.KeyRef.String()) && !c.q.Publishable {
					t.Errorf("%+v.matches(%s) is wrong", c.q, row.KeyRef)
				}
			}
			return nil
		})
	}
	view(t, db, func(tx *Tx) error {
		for prefix, want := range map[string]string{"src": "[path:src path:src! path:src-x path:src/b path:src/b/c path:src0 path:srcx]", "s_": "[path:s_c/b]", "SRC": "[path:SRC/b]", "%": "[]"} {
			got, err := tx.TargetsWithPrefix(meta.Path, prefix, 0)
			if fmt.Sprint(got) != want || err != nil {
				t.Errorf("prefix %q: got %v, %v", prefix, got, err)
			}
		}
		got, err := tx.TargetsWithPrefix(meta.Path, "", 2)
		if fmt.Sprint(got) != "[path:SRC/b path:s_c/b]" || err != nil {
			t.Errorf("got %v, %v", got, err)
		}
		a, err1 := tx.HasRows(meta.Target{Type: meta.Branch, Value: "feature"})
		b, err2 := tx.HasRows(meta.Target{Type: meta.Branch, Value: "FEATURE"})
		if !a || b {
			t.Errorf("HasRows %v %v", a, b)
		}
		return errors.Join(err1, err2)
	})
	update(t, db, func(tx *Tx) error {
		got, err := tx.Clear(Query{Namespace: "a_b"}, me)
		if fmt.Sprint(got) != "[project a_b:k]" {
			t.Errorf("cleared %v", got)
		}
		return err
	})
}

// Records agrees with Get on random stores, whatever is between lists and sets.
func TestRecordsRandom(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	texts := []string{"", "a", "b\n", "é", "\"q\"", "\\u0041", "a\x00b", strings.Repeat("long\t", 50)}
	pick := func() string { return texts[rng.IntN(len(texts))] }
	db := openNew(t)
	want := map[meta.KeyRef]meta.Value{}
	targets := []string{"project", "path:a", "path:a/b", "path:b", "branch:main", "commit:abcd"}
	for range 30 {
		update(t, db, func(tx *Tx) error {
			for range 20 {
				k := ref(fmt.Sprintf("%s k%d", targets[rng.IntN(len(targets))], rng.IntN(8)))
				if _, ok := want[k]; ok && rng.IntN(4) == 0 {
					delete(want, k)
					if err := tx.Remove(k, me); err != nil {
						return err
					}
					continue
				}
				v := meta.Value{Type: []meta.ValueType{meta.String, meta.List, meta.Set}[rng.IntN(3)]}
				switch v.Type {
				case meta.String:
					v.String = pick()
				case meta.List:
					for i := range rng.IntN(4) {
						v.Entries = append(v.Entries, meta.Entry{Time: int64(i/2 + 1), Value: pick()})
					}
				case meta.Set:
					for range rng.IntN(4) {
						v.Members = append(v.Members, pick())
					}
					slices.Sort(v.Members)
					v.Members = slices.Compact(v.Members)
				}
				want[k] = v
				if err := tx.Put(k, v, Edit{Time: t0 + rng.Int64N(5)}, PutOptions{}); err != nil {
					return err
				}
			}
			return nil
		})
		view(t, db, func(tx *Tx) error {
			var last meta.KeyRef
			n := 0
			for rec, err := range tx.Records(Query{}) {
				if err != nil {
					return err
				}
				if n++; n > 1 && last.Compare(rec.KeyRef) >= 0 {
					t.Errorf("%s after %s", rec.KeyRef, last)
				}
				last = rec.KeyRef
				got, err := tx.Get(rec.KeyRef)
				if !rec.Value.Equal(want[rec.KeyRef]) || !got.Value.Equal(want[rec.KeyRef]) || err != nil {
					t.Fatalf("%s: records %v, get %v, want %v, %v", rec.KeyRef, rec.Value, got.Value, want[rec.KeyRef], err)
				}
			}
			if n != len(want) {
				t.Errorf("%d records, want %d", n, len(want))
			}
			var times []int64
			for row, err := range tx.Recency() {
				if err != nil {
					return err
				}
				times = append(times, -row.Time)
			}
			if len(times) != len(want) || !slices.IsSorted(times) {
				t.Errorf("recency: %d rows", len(times))
			}
			return nil
		})
	}
	if got := dump(t, db, "SELECT count(*) FROM list_values WHERE metadata_id NOT IN (SELECT rowid FROM metadata)") + dump(t, db, "SELECT count(*) FROM set_values WHERE metadata_id NOT IN (SELECT rowid FROM metadata)"); got != "0\n0\n" {
		t.Errorf("orphans: %s", got)
	}
}

func TestNoLarge(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	long := strings.Repeat("é\n", 1000)
	update(t, db, func(tx *Tx) error {
		return errors.Join(tx.Set(ref("project a"), "short", me), tx.Set(ref("project b"), long, me), tx.Set(ref("project c"), "exactly10!", me),
			tx.Set(ref("project d"), "exactly10!x", me), tx.Set(ref("project e"), strings.Repeat("x", 2<<20), me), tx.ListPush(ref("project f"), "entry", me),
			tx.Set(ref("project g"), strings.Repeat("\x01", 11), me))
	})
	view(t, db, func(tx *Tx) error {
		var got []string
		for rec, err := range tx.Records(Query{NoLarge: 10}) {
			if err != nil {
				return err
			}
			got = append(got, fmt.Sprintf("%s=%q %v %d", rec.Key, rec.Value.Items(), rec.Cut, rec.Size))
		}
		want := `a=["short"] false 0
b=["é\né\né\n"] true 4002
c=["exactly10!"] false 0
d=["exactly10!"] true 13
e=[""] true 2097154
f=["entry"] false 0
g=["\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01"] true 68`
		if s := strings.Join(got, "\n"); s != want {
			t.Errorf("got\n%s\nwant\n%s", s, want)
		}
		return nil
	})
}

func TestDecodeString(t *testing.T) {
	t.Parallel()
	for _, s := range []string{`"a"`, `""`, `"`, ``, `raw`, `"a\nb\u0041\ud83d\ude00\/\"\\\b\f\r\t"`, `"\ud83d"`, `"\ud83dx"`, `"a"b"`, `"a\"`, `"\x"`, `"\u12"`, `"é\n"`, `"a\n"b\n"`} {
		if got, want := decodeString(s), meta.DecodeJSONString(s); got != want {
			t.Errorf("%s: got %q, want %q", s, got, want)
		}
	}
	for _, s := range []string{"", "plain", "a\nb", "\b\f\t\r\x01", "\x00\x1f\x7f\u2028\"\\/", "😀\n"} {
		if got := decodeString(meta.EncodeJSONString(s)); got != s {
			t.Errorf("got %q, want %q", got, s)
		}
		if got, want := encodeString(s), meta.EncodeJSONString(s); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestProject(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	update(t, db, func(tx *Tx) error {
		return errors.Join(tx.Set(ref("project meta:a"), "1", me), tx.SetAdd(ref("project meta:filter"), "exclude z", me), tx.SetAdd(ref("project meta:filter"), "exclude a", me),
			tx.Set(ref("project local:meta:filter"), "exclude x", me),
			tx.run("INSERT INTO metadata(target_type, target_value, key, value, value_type, is_promised) VALUES ('project', '', 'meta:p', '', 'string', 1)"))
	})
	view(t, db, func(tx *Tx) error {
		for key, want := range map[string]string{"meta:a": "1 true <nil>", "meta:p": " false <nil>", "meta:none": " false <nil>", "meta:filter": ` false key "meta:filter": not a string`} {
			v, ok, err := tx.ProjectString(key)
			if got := fmt.Sprint(v, " ", ok, " ", err); got != want {
				t.Errorf("%s: got %s", key, got)
			}
		}
		m, err1 := tx.ProjectStrings("meta")
		texts, err2 := tx.FilterTexts()
		problems, err3 := tx.FilterProblems()
		if fmt.Sprint(m, texts, len(problems)) != "map[meta:a:1] [exclude a exclude z] 1" {
			t.Errorf("got %v %v %v", m, texts, problems)
		}
		rows, tombs, err4 := tx.Counts()
		if rows != 3 || tombs != 0 {
			t.Errorf("counts %d %d", rows, tombs)
		}
		_, err := tx.Get(ref("project meta:p"))
		wantIs(t, err, meta.ErrNotFound)
		row, ok, err5 := tx.Row(ref("project meta:p"))
		if !ok || !row.Promised {
			t.Errorf("row %v %v", row, ok)
		}
		return errors.Join(err1, err2, err3, err4, err5)
	})
}

// Appending to a long list costs what appending to a short one does.
func TestPushIsConstant(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	long := meta.Value{Type: meta.List}
	for i := range 20_000 {
		long.Entries = append(long.Entries, meta.Entry{Time: t0 - 1_000_000 + int64(i), Value: fmt.Sprint("entry ", i)})
	}
	update(t, db, func(tx *Tx) error {
		return errors.Join(tx.Put(ref("project long"), long, Edit{Time: t0}, PutOptions{}), tx.ListPush(ref("project short"), "x", me))
	})
	measure := func(k meta.KeyRef) (best time.Duration) {
		best = time.Hour
		for range 7 {
			start := time.Now()
			update(t, db, func(tx *Tx) error {
				for range 20 {
					if err := tx.ListPush(k, "x", me); err != nil {
						return err
					}
				}
				return nil
			})
			best = min(best, time.Since(start))
		}
		return best
	}
	if s, l := measure(ref("project short")), measure(ref("project long")); l > 5*s+2*time.Millisecond {
		t.Errorf("20 pushes on 20,000 entries take %v, on a short list %v", l, s)
	}
}

// Every statement on a large table goes by an index, and only two sort.
func TestQueryPlans(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	texts := map[string]bool{}
	db.c.count = func(s string) { texts[s] = true }
	src := meta.Target{Type: meta.Path, Value: "src"}
	update(t, db, func(tx *Tx) error {
		var errs []error
		do := func(err error) { errs = append(errs, err) }
		k := ref("path:src k")
		do(tx.PutTombstone(meta.Tombstone{Kind: meta.MemberTombstone, KeyRef: ref("path:x y"), Name: "z"}))
		do(tx.PutWithheld(Withheld{KeyRef: ref("path:x z")}))
		do(tx.Set(k, "a", me))
		do(tx.ListPush(k, "b", me))
		do(tx.ListPop(k, "b", me))
		do(tx.ListRemove(k, 0, me))
		do(tx.Remove(k, me))
		do(tx.SetAdd(k, "b", me))
		do(tx.SetRemove(k, "b", me))
		do(tx.Put(k, str("x"), me, PutOptions{}))
		do(tx.Put(ref("path:src l"), meta.Value{Type: meta.List, Entries: []meta.Entry{{Value: "a"}}}, me, PutOptions{}))
		do(tx.Put(ref("path:src s"), meta.Value{Type: meta.Set, Members: []string{"a"}}, me, PutOptions{}))
		do(tx.WithholdPruned([]meta.KeyRef{k, ref("path:src l")}))
		do(tx.PutCursor(Cursor{Ref: "r", Commit: "c", Log: Position{RowID: 1}}))
		do(tx.TrimCursors("r", "c"))
		do(tx.PutTreeStats(map[string]Stats{"x": {}}))
		do(tx.trimTreeStats(0))
		for _, q := range []Query{{}, {Publishable: true}, {Target: &src}, {Target: &src, Subtree: true, Namespace: "k"}, {Type: meta.Path}, {Namespace: "k"}, {NoLarge: 5}} {
			for _, err := range tx.Records(q) {
				do(err)
			}
			for _, err := range tx.Rows(q) {
				do(err)
			}
		}
		for _, err := range tx.Recency() {
			do(err)
		}
		for _, err := range tx.KeyTimes() {
			do(err)
		}
		for _, err := range tx.AllTombstones() {
			do(err)
		}
		_, err := tx.Tombstones(k)
		do(err)
		_, err = tx.TargetsWithPrefix(meta.Path, "s", 1)
		do(err)
		_, err = tx.HasRows(src)
		do(err)
		_, err = tx.ChangesSince(Position{})
		do(err)
		p, err := tx.LogPosition()
		do(err)
		_, err = tx.LogHolds(p)
		do(err)
		_, _, err = tx.Author(k)
		do(err)
		_, _, err = tx.Counts()
		do(err)
		_, err = tx.LocalPrune([]meta.KeyRef{k}, LocalPruneOptions{UpTo: 1})
		do(err)
		return errors.Join(errs...)
	})
	db.c.count = nil
	whole := []string{ // statements that are meant to read a whole table
		"count(*)", "ORDER BY t.target_type", keyTimesSQL, "FROM sqlite_master", "PRAGMA", "FROM x_cursor", "INTO x_cursor", "NOT EXISTS (SELECT 1 FROM tombstones)",
	}
	for text := range texts {
		if strings.HasPrefix(text, "BEGIN") || slices.ContainsFunc(whole, func(s string) bool { return strings.Contains(text, s) }) {
			continue
		}
		for line := range strings.SplitSeq(dumpPlan(t, db, text), "\n") {
			sorted := strings.Contains(line, "TEMP B-TREE")
			scan := strings.HasPrefix(line, "SCAN") && !strings.Contains(line, "USING INDEX") && !strings.Contains(line, "USING COVERING INDEX") && !strings.Contains(line, "CONSTANT ROW")
			if scan && strings.Contains(text, "FROM metadata_log ORDER BY rowid DESC LIMIT 1") {
				scan = false
			}
			if sorted || scan {
				t.Errorf("%s\nplan: %s", text, line)
			}
		}
	}
	for text, want := range map[string]string{recencySQL: "SCAN m USING COVERING INDEX idx_metadata_recency", keyTimesSQL: "SCAN m USING COVERING INDEX idx_metadata_recency"} {
		if plan := dumpPlan(t, db, text); !strings.Contains(plan, want) || strings.Contains(plan, "ORDER BY") {
			t.Errorf("%s\nplan: %s", text, plan)
		}
	}
}

// dumpPlan returns the details of EXPLAIN QUERY PLAN, one a line.
func dumpPlan(t *testing.T, db *DB, text string) string {
	t.Helper()
	r, err := db.c.query(t.Context(), "EXPLAIN QUERY PLAN "+text, make([]any, strings.Count(text, "?"))...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer r.close()
	var out []string
	for {
		ok, err := r.next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return strings.Join(out, "\n")
		}
		out = append(out, r.str(3))
	}
}
