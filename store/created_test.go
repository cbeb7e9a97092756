package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/git-meta/git-meta-go/meta"
)

const countedSQL = "SELECT key, collection, created - 1700000000000, published - 1700000000000, bytes FROM x_created ORDER BY target_type, target_value, key"

// recountAll counts keys of the collection c.
func recountAll(t *testing.T, tx *Tx, age Age, keys ...string) {
	t.Helper()
	for _, s := range keys {
		k := ref(s)
		c := ""
		if meta.InNamespace(k.Key, "c") {
			c = "c"
		}
		if err := tx.Recount(Recount{k, c, age}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRecount(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	keys := []string{"path:src c:s", "path:src c:l", "path:src c:m", "path:src c:side", "path:src c:gone", "path:src c:other", "project c:p", "path:src d"}
	update(t, db, func(tx *Tx) error {
		for _, err := range []error{
			tx.Set(ref("path:src c:s"), "é\"", Edit{Time: t0 + 1}),
			tx.ListPush(ref("path:src c:l"), "one", Edit{Time: t0 + 2}),
			tx.ListPush(ref("path:src c:l"), "é", Edit{Time: t0 + 3}),
			tx.SetAdd(ref("path:src c:m"), "abcd", Edit{Time: t0 + 4}),
			tx.Put(ref("path:src c:side"), str("x"), Edit{Time: t0}, PutOptions{SourceRef: "refs/x", NoLog: true}),
			tx.Set(ref("path:src c:gone"), "x", me),
			tx.PutWithheld(Withheld{ref("path:src c:gone"), t0, Retained}),
			tx.Set(ref("path:src c:other"), "x", Edit{Time: t0 + 7}),
			tx.PutWithheld(Withheld{ref("path:src c:other"), t0, Pruned}),
			tx.Set(ref("project c:p"), "x", me),
			tx.Set(ref("path:src d"), "x", me),
		} {
			if err != nil {
				return err
			}
		}
		recountAll(t, tx, KeepAge, keys...)
		recountAll(t, tx, KeepAge, keys...)
		return nil
	})
	want := "c:l|c|2||5\nc:m|c|4||4\nc:other|c|7||3\nc:s|c|1||6\n"
	if got := dump(t, db, countedSQL); got != want {
		t.Errorf("x_created\n%swant\n%s", got, want)
	}
	if got := dump(t, db, "SELECT * FROM x_usage"); got != "c|4|18\n" {
		t.Errorf("x_usage %s", got)
	}
	update(t, db, func(tx *Tx) error {
		for _, err := range []error{
			tx.SetPublished(ref("path:src c:s"), t0+50),
			tx.SetPublished(ref("path:src c:s"), t0+60),
			tx.SetPublished(ref("path:src c:nothing"), t0),
			tx.Set(ref("path:src c:s"), "longer", Edit{Time: t0 + 90}),
			tx.Remove(ref("path:src c:l"), Edit{Time: t0 + 100}),
			tx.Remove(ref("path:src c:m"), Edit{Time: t0 + 100}),
			tx.Set(ref("path:src c:m"), "", Edit{Time: t0 + 110}),
		} {
			if err != nil {
				return err
			}
		}
		recountAll(t, tx, KeepAge, "path:src c:s", "path:src c:l")
		recountAll(t, tx, AnewAge, "path:src c:m")
		// A commit from before the removal is not that of the row that is here.
		if err := tx.SetPublished(ref("path:src c:m"), t0+100); err != nil {
			return err
		}
		return tx.Recount(Recount{ref("path:src c:other"), "c:other", FromLog})
	})
	want = "c:m|c|110||2\nc:other|c:other|7||3\nc:s|c|60|60|8\n"
	if got := dump(t, db, countedSQL); got != want {
		t.Errorf("x_created\n%swant\n%s", got, want)
	}
	if got := dump(t, db, "SELECT * FROM x_usage"); got != "c|2|10\nc:other|1|3\n" {
		t.Errorf("x_usage %s", got)
	}
	update(t, db, func(tx *Tx) error {
		if err := tx.SetPublished(ref("path:src c:m"), t0+101); err != nil {
			return err
		}
		recountAll(t, tx, AnewAge, "path:src c:s", "path:src c:m")
		return tx.Recount(Recount{KeyRef: ref("path:src c:other")})
	})
	if got, want := dump(t, db, countedSQL), "c:m|c|110||2\nc:s|c|1||8\n"; got != want {
		t.Errorf("x_created\n%swant\n%s", got, want)
	}
}

func TestNoteRecount(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	k, other, project := ref("path:src c:k"), ref("path:src other"), ref("project c")
	noted := func() string {
		t.Helper()
		got := dump(t, db, "SELECT target_type, key FROM x_recount ORDER BY 1, 2")
		update(t, db, func(tx *Tx) error {
			keys, err := tx.Recounts(10)
			if err != nil {
				return err
			}
			return tx.DropRecounts(keys)
		})
		return strings.ReplaceAll(got, "\n", ";")
	}
	steps := []struct {
		name, want string
		do         func(tx *Tx, k meta.KeyRef) error
	}{
		{"without a record", "path|c:k;", func(tx *Tx, k meta.KeyRef) error {
			return tx.Put(k, str("x"), Edit{Time: t0}, PutOptions{NoLog: true})
		}},
		{"with a record", "", func(tx *Tx, k meta.KeyRef) error { return tx.Set(k, "x", me) }},
		{"pruned", "", func(tx *Tx, k meta.KeyRef) error { return tx.PutWithheld(Withheld{k, t0, Pruned}) }},
		{"retained", "path|c:k;", func(tx *Tx, k meta.KeyRef) error { return tx.PutWithheld(Withheld{k, t0, Retained}) }},
		{"no longer", "path|c:k;", func(tx *Tx, k meta.KeyRef) error { return tx.DeleteWithheld(k) }},
		{"nothing to delete", "", func(tx *Tx, k meta.KeyRef) error { return tx.DeleteWithheld(k) }},
		{"retained again", "path|c:k;", func(tx *Tx, k meta.KeyRef) error {
			if k != ref("path:src c:k") {
				return nil // in bulk, all that are retained are noted
			}
			return tx.PutWithheld(Withheld{k, t0, Retained})
		}},
		{"pruned after all", "path|c:k;", func(tx *Tx, k meta.KeyRef) error { return tx.WithholdPruned([]meta.KeyRef{k}) }},
		{"dropped", "path|c:k;", func(tx *Tx, k meta.KeyRef) error { return tx.DeleteRow(k) }},
		{"here again", "", func(tx *Tx, k meta.KeyRef) error { return tx.Set(k, "x", me) }},
		{"local-pruned", "path|c:k;", func(tx *Tx, k meta.KeyRef) error {
			_, err := tx.LocalPrune([]meta.KeyRef{k}, LocalPruneOptions{UpTo: 100})
			return err
		}},
	}
	for _, collections := range [][]string{nil, {"c"}} {
		update(t, db, func(tx *Tx) error {
			if collections == nil {
				return nil
			}
			return tx.SetCollections(collections)
		})
		for _, s := range steps {
			update(t, db, func(tx *Tx) error {
				for _, k := range []meta.KeyRef{k, other, project} {
					if err := s.do(tx, k); err != nil {
						return err
					}
				}
				return nil
			})
			want := s.want
			if collections == nil {
				want = ""
			}
			if got := noted(); got != want {
				t.Errorf("%q, %s: noted %q, want %q", collections, s.name, got, want)
			}
		}
	}
}

func TestGuard(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	check := func(what string, want Guard) {
		t.Helper()
		view(t, db, func(tx *Tx) error {
			got, err := tx.Guard()
			if got != want {
				t.Errorf("%s: %d, want %d", what, got, want)
			}
			return err
		})
	}
	check("never set", NoGuard)
	update(t, db, func(tx *Tx) error { return tx.SetGuard() })
	check("an empty log", GuardHolds)
	update(t, db, func(tx *Tx) error {
		return tx.Put(ref("path:src c"), str("x"), Edit{Time: t0}, PutOptions{NoLog: true})
	})
	check("a row came without a record", GuardGone)
	update(t, db, func(tx *Tx) error { return tx.Set(ref("path:src k"), "x", me) })
	check("a record is there now", NoGuard)
	var before Position
	update(t, db, func(tx *Tx) error {
		if err := tx.SetGuard(); err != nil {
			return err
		}
		var err error
		before, err = tx.LogPosition()
		return err
	})
	check("set", GuardHolds)
	if before.RowID != 1 {
		t.Errorf("the guard is at the end of the log: %v", before)
	}
	if got, want := dump(t, db, "SELECT rowid, target_type, target_value, key, operation, timestamp FROM metadata_log"), "-1|path|.git-meta|x:retention|rm|0\n1|path|src|k|set|1700000000000\n"; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
	// The peer's local-prune.
	update(t, db, func(tx *Tx) error {
		return tx.run("DELETE FROM metadata_log WHERE target_type <> 'project' AND timestamp < 1000")
	})
	check("pruned", GuardGone)
	update(t, db, func(tx *Tx) error { return tx.SetGuard() })
	check("set again", GuardHolds)
	update(t, db, func(tx *Tx) error { return tx.DropGuard() })
	check("dropped", NoGuard)
}

// However much of the log is deleted, the next record is behind every cursor.
func TestLogNumbersGoUp(t *testing.T) {
	t.Parallel()
	for _, history := range []bool{false, true} {
		for _, guard := range []bool{false, true} {
			db := openNew(t)
			k, old := ref("path:src k"), ref("path:src old")
			update(t, db, func(tx *Tx) error {
				for i, commit := range []string{"a", "b"} {
					p, err := tx.LogPosition()
					if err == nil {
						err = tx.PutCursor(Cursor{Ref: "r" + commit, Commit: commit, Log: p})
					}
					if err == nil && i == 0 {
						err = tx.Set(k, "x", me)
					}
					if err != nil {
						return err
					}
				}
				if history {
					if _, err := tx.PutPromised(old, "c"); err != nil {
						return err
					}
					if _, err := tx.PutFromHistory(old, str("x"), Edit{Time: t0 - 5}); err != nil {
						return err
					}
				}
				if guard {
					return tx.SetGuard()
				}
				return nil
			})
			update(t, db, func(tx *Tx) error {
				_, err := tx.DeleteLog([]meta.KeyRef{k}, 100)
				return err
			})
			update(t, db, func(tx *Tx) error { return tx.Set(ref("path:src new"), "x", me) })
			for _, r := range []string{"ra", "rb"} {
				view(t, db, func(tx *Tx) error {
					c, _, err := tx.LatestCursor(r)
					if err != nil {
						return err
					}
					holds, err := tx.LogHolds(c.Log)
					if err != nil || !holds {
						t.Errorf("history %v, guard %v: %s does not hold: %v", history, guard, r, c)
					}
					changes, err := tx.ChangesSince(c.Log)
					if len(changes) != 1 || changes[0].Key != "new" || changes[0].RowID < 1 {
						t.Errorf("history %v, guard %v, %s: %v", history, guard, r, changes)
					}
					return err
				})
			}
		}
	}
}

func TestRetentionPlans(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	for text, want := range map[string]string{
		liveRowSQL:                           "SEARCH m USING INDEX sqlite_autoindex_metadata_1 (target_type=? AND target_value=? AND key=?)",
		createdSQL:                           "SEARCH x_created USING PRIMARY KEY (target_type=? AND target_value=? AND key=?)",
		madeSQL:                              "SEARCH metadata_log USING INDEX idx_metadata_log_lookup (target_type=? AND target_value=? AND key=? AND rowid>?)",
		removedSQL:                           "SEARCH metadata_log USING INDEX idx_metadata_log_lookup (target_type=? AND target_value=? AND key=?)",
		silentSQL:                            "SEARCH m USING INDEX idx_metadata_recency (last_timestamp=?)",
		oldestSQL:                            "SEARCH x USING INDEX x_created_order (collection=? AND created<?)",
		futureSQL:                            "SEARCH x USING INDEX x_created_order (collection=? AND created>?)",
		retainedRowsSQL:                      "SEARCH w USING INDEX x_withheld_swept (why=? AND (target_type,target_value,key)>(?,?,?))",
		noteRetained:                         "SEARCH w USING COVERING INDEX x_withheld_swept (why=?)",
		hasGuardSQL:                          "SEARCH metadata_log USING COVERING INDEX idx_metadata_log_timestamp (timestamp=? AND target_type=? AND target_value=? AND key=?)",
		logPartSQL:                           "SEARCH metadata_log USING INTEGER PRIMARY KEY (rowid>?)",
		oldestTimeSQL:                        "SEARCH x_created USING COVERING INDEX x_created_order (collection=?)",
		newestTimeSQL:                        "SEARCH x_created USING COVERING INDEX x_created_order (collection=?)",
		countBeforeSQL:                       "SEARCH x_created USING COVERING INDEX x_created_order (collection=? AND created<?)",
		countFromSQL:                         "SEARCH x_created USING COVERING INDEX x_created_order (collection=? AND created>?)",
		uncountedSQL + keyOrder + " LIMIT ?": "SEARCH m USING INDEX idx_metadata_target ((target_type,target_value,key)>(?,?,?))",
		createdAfterSQL:                      "SEARCH x_created USING PRIMARY KEY ((target_type,target_value,key)>(?,?,?))",
	} {
		plan := dumpPlan(t, db, text)
		if first, _, _ := strings.Cut(plan, "\n"); first != want {
			t.Errorf("%s\nplan: %s\nwant: %s", text, plan, want)
		}
		if strings.Contains(plan, "SCAN") || strings.Contains(plan, "TEMP B-TREE") && text != futureSQL {
			t.Errorf("%s\nplan: %s", text, plan)
		}
	}
	for _, text := range append(append([]string{}, sweepSQL...), sweepTombstonesSQL...) {
		for line := range strings.SplitSeq(dumpPlan(t, db, text), "\n") {
			if strings.HasPrefix(line, "SCAN") && !strings.Contains(line, "VIRTUAL TABLE") {
				t.Errorf("%s\nplan: %s", text, line)
			}
		}
	}
}

// The number of statements of a sweep does not depend on the number of rows.
func TestSweepRowsStatements(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	update(t, db, func(tx *Tx) error {
		for i := range 50 {
			k := ref(fmt.Sprintf("path:src/%d c", i))
			if err := tx.Set(k, "x", Edit{Time: t0 + int64(i)}); err != nil {
				return err
			}
			if err := tx.Recount(Recount{k, "c", KeepAge}); err != nil {
				return err
			}
		}
		return nil
	})
	count := func(n int) (statements int) {
		t.Helper()
		update(t, db, func(tx *Tx) error {
			return tx.MoveCursors(func() error {
				rows, err := tx.Oldest("c", t0+1000, n)
				if err != nil || len(rows) != n {
					t.Fatal(rows, err)
				}
				db.c.count = func(string) { statements++ }
				defer func() { db.c.count = nil }()
				return tx.SweepRows(rows)
			})
		})
		return statements
	}
	if a, b := count(2), count(40); a != b || a > 12 {
		t.Errorf("%d statements for 2 rows, %d for 40", a, b)
	}
	if got := dump(t, db, "SELECT (SELECT count(*) FROM metadata), (SELECT count(*) FROM metadata_log WHERE rowid > 0), (SELECT count(*) FROM x_withheld WHERE why = 'swept'), rows, bytes FROM x_usage"); got != "8|8|42|8|24\n" {
		t.Errorf("left %s", got)
	}
}
