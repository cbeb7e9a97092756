package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/git-meta/git-meta-go/meta"
)

// The test binary doubles as a program that writes to a store.
func TestMain(m *testing.M) {
	if path := os.Getenv("STORE_TEST_WRITE"); path != "" {
		os.Exit(helper(path))
	}
	if path := os.Getenv("STORE_TEST_READ"); path != "" {
		os.Exit(helperRead(path))
	}
	os.Exit(m.Run())
}

func helper(path string) int {
	ctx := context.Background()
	db, err := Open(ctx, path, Options{})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for i := range 3 {
		err = db.Update(ctx, func(tx *Tx) error {
			if err := tx.ListPush(ref("project list"), "x", me); err != nil {
				return err
			}
			return tx.Set(ref(fmt.Sprintf("project p%d:k%d", os.Getpid(), i)), "v", me)
		})
		if err != nil {
			fmt.Println(err)
			return 1
		}
	}
	if err := db.Close(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func helperRead(path string) int {
	ctx := context.Background()
	db, err := OpenRead(ctx, path, Options{})
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	defer db.Close()
	err = db.View(ctx, func(tx *Tx) error {
		rec, err := tx.Get(ref("project a"))
		fmt.Print(rec.Value.String)
		return err
	})
	if err != nil {
		fmt.Println("view:", err)
		return 1
	}
	return 0
}

func schemaOf(t *testing.T, db *DB) string {
	return dump(t, db, "SELECT 'table', m.name, c.cid, c.name, c.type, c.\"notnull\", c.dflt_value, c.pk FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY m.name, c.cid") +
		dump(t, db, "SELECT 'index', m.tbl_name, m.name, x.seqno, x.name, x.desc, x.coll FROM sqlite_master m, pragma_index_xinfo(m.name) x WHERE m.type = 'index' AND x.key = 1 ORDER BY 2, 3, 4") +
		dump(t, db, "PRAGMA user_version") + dump(t, db, "SELECT count(*), min(id) FROM sync_state")
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	want := schemaOf(t, openNew(t))
	if n := strings.Count(want, "\n"); n < 60 {
		t.Fatalf("schema has only %d lines:\n%s", n, want)
	}
	for v := 1; v <= 5; v++ {
		t.Run(fmt.Sprint("v", v), func(t *testing.T) {
			path := fixture(t, v)
			check := func(db *DB) {
				view(t, db, func(tx *Tx) error {
					if got := keysOf(t, tx, Query{Publishable: true}); got != "branch:main s, commit:0123456789012345678901234567890123456789 l, project a" {
						t.Errorf("keys: %s", got)
					}
					rec, err := tx.Get(ref("project a"))
					if rec.Value.String != "old\nvalue" || err != nil {
						t.Errorf("got %q, %v", rec.Value.String, err)
					}
					rec, err = tx.Get(ref("commit:0123456789012345678901234567890123456789 l"))
					if len(rec.Value.Entries) != 1 || err != nil {
						t.Errorf("got %v, %v", rec.Value, err)
					}
					n := 0
					for _, err := range tx.Recency() {
						if err != nil {
							t.Error(err)
						}
						n++
					}
					tombs, err := tx.Tombstones(ref("project gone"))
					if n != 3 || len(tombs) != 1 || err != nil {
						t.Errorf("recency %d, tombstones %v, %v", n, tombs, err)
					}
					if _, ok, err := tx.Cursor("r", "c"); ok || err != nil {
						t.Errorf("cursor %v, %v", ok, err)
					}
					if _, ok, err := tx.TreeStats("x"); ok || err != nil {
						t.Errorf("tree stats %v, %v", ok, err)
					}
					_, ok, err := tx.Withheld(ref("project a"))
					if ok || err != nil {
						t.Errorf("withheld %v, %v", ok, err)
					}
					return nil
				})
			}
			before, _ := os.ReadFile(path)
			db, err := OpenRead(t.Context(), path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			check(db)
			wantIs(t, db.Update(t.Context(), func(*Tx) error { return nil }), ErrReadOnly)
			db.Close()
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("reading changed the file")
			}
			db = open(t, path)
			check(db)
			if got := schemaOf(t, db); got != want {
				t.Errorf("schema\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestRepairHalfMade(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	want := schemaOf(t, db)
	update(t, db, func(tx *Tx) error { return tx.Set(ref("project a"), "v", me) })
	db.Close()
	rawExec(t, db.Path(), "PRAGMA user_version = 1")
	db = open(t, db.Path())
	if got := schemaOf(t, db); got != want {
		t.Errorf("schema\n%s\nwant\n%s", got, want)
	}
	view(t, db, func(tx *Tx) error { _, err := tx.Get(ref("project a")); return err })
}

func TestNewerVersion(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	update(t, db, func(tx *Tx) error { return tx.Set(ref("project a"), "v", me) })
	db.Close()
	rawExec(t, db.Path(), "ALTER TABLE metadata ADD COLUMN more TEXT; PRAGMA user_version = 7")
	_, err := Open(t.Context(), db.Path(), Options{})
	wantIs(t, err, ErrSchemaTooNew)
	var fe *FileError
	if !errors.As(err, &fe) || fe.Path != db.Path() || meta.HintOf(err) == "" {
		t.Errorf("got %#v", err)
	}
	r, err := OpenRead(t.Context(), db.Path(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	view(t, r, func(tx *Tx) error { _, err := tx.Get(ref("project a")); return err })
	r.Close()
	rawExec(t, db.Path(), "ALTER TABLE list_values RENAME COLUMN is_git_ref TO other")
	_, err = OpenRead(t.Context(), db.Path(), Options{})
	wantIs(t, err, ErrSchemaTooNew)
}

func TestOpenWritesNothing(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	update(t, db, func(tx *Tx) error { return tx.Set(ref("project a"), "v", me) })
	db.Close()
	before, _ := os.ReadFile(db.Path())
	fi, _ := os.Stat(db.Path())
	for _, f := range []func(context.Context, string, Options) (*DB, error){Open, OpenRead} {
		again, err := f(t.Context(), db.Path(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		view(t, again, func(tx *Tx) error { _, err := tx.Get(ref("project a")); return err })
		if w, err := os.Stat(db.Path() + "-wal"); err == nil && w.Size() > 0 {
			t.Errorf("opening wrote %d bytes to the log", w.Size())
		}
		again.Close()
		after, _ := os.ReadFile(db.Path())
		fi2, _ := os.Stat(db.Path())
		if string(after) != string(before) || !fi2.ModTime().Equal(fi.ModTime()) {
			t.Error("opening changed the file")
		}
		if names, _ := filepath.Glob(filepath.Dir(db.Path()) + "/*"); len(names) != 1 {
			t.Errorf("left behind: %v", names)
		}
	}
}

func TestOpenReadNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	_, err := OpenRead(t.Context(), path, Options{})
	wantIs(t, err, meta.ErrNotFound)
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = OpenRead(t.Context(), path, Options{})
	wantIs(t, err, meta.ErrNotFound)
	if fi, _ := os.Stat(path); fi.Size() != 0 {
		t.Error("reading wrote to an empty file")
	}
	open(t, path) // an empty file is a new one
	rawExec(t, filepath.Join(dir, "other"), "PRAGMA journal_mode = WAL; PRAGMA user_version = 0")
	_, err = OpenRead(t.Context(), filepath.Join(dir, "other"), Options{})
	wantIs(t, err, meta.ErrNotFound)
}

func TestUnusableFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	garbage, folder, odd := filepath.Join(dir, "garbage"), filepath.Join(dir, "folder"), filepath.Join(dir, "odd ?#%41 é.sqlite")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("garbage\n", 1000)), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{garbage, folder} {
		for _, f := range []func(context.Context, string, Options) (*DB, error){Open, OpenRead} {
			_, err := f(t.Context(), path, Options{})
			var fe *FileError
			if !errors.As(err, &fe) || fe.Path != path || !strings.Contains(meta.HintOf(err), "git meta serialize") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: got %v, hint %q", path, err, meta.HintOf(err))
			}
		}
	}
	if b, _ := os.ReadFile(garbage); len(b) != 8000 {
		t.Error("garbage was overwritten")
	}
	open(t, odd).Close()
	if _, err := os.Stat(odd); err != nil {
		t.Error(err)
	}
	_, err := Open(t.Context(), filepath.Join(dir, "no", "such"), Options{})
	var fe *FileError
	if !errors.As(err, &fe) {
		t.Errorf("got %v", err)
	}
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	update(t, db, func(tx *Tx) error { return tx.Set(ref("project a"), "old", me) })
	if _, err := db.c.int64(t.Context(), "PRAGMA max_page_count = 60"); err != nil {
		t.Fatal(err)
	}
	err := db.Update(t.Context(), func(tx *Tx) error { return tx.Set(ref("project a"), strings.Repeat("x", 1<<20), me) })
	var fe *FileError
	if !errors.As(err, &fe) || fe.Path != db.Path() || fe.Err.Error() != "disk full" {
		t.Errorf("got %v", err)
	}
	view(t, db, func(tx *Tx) error {
		rec, err := tx.Get(ref("project a"))
		if rec.Value.String != "old" {
			t.Errorf("got %q", rec.Value.String)
		}
		return err
	})
}

func TestRaceInProcess(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			db, err := Open(context.Background(), path, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			err = db.Update(context.Background(), func(tx *Tx) error { return tx.Set(ref(fmt.Sprintf("project k%d", i)), "v", me) })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	view(t, open(t, path), func(tx *Tx) error {
		n, _, err := tx.Counts()
		if n != 40 {
			t.Errorf("%d keys, want 40", n)
		}
		return err
	})
}

func TestRaceProcesses(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "STORE_TEST_WRITE="+path, "GORACE=atexit_sleep_ms=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	db := open(t, path)
	view(t, db, func(tx *Tx) error {
		rec, err := tx.Get(ref("project list"))
		if err != nil {
			return err
		}
		n, _, err := tx.Counts()
		if len(rec.Value.Entries) != 120 || n != 121 {
			t.Errorf("%d entries, %d keys, want 120 and 121", len(rec.Value.Entries), n)
		}
		return err
	})
	if got := dump(t, db, "PRAGMA journal_mode"); got != "wal\n" {
		t.Errorf("journal mode %s", got)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	update(t, db, func(tx *Tx) error {
		for i := range 3000 {
			if err := tx.Put(ref(fmt.Sprintf("project k%d", i)), str("v"), Edit{Time: t0}, PutOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := db.View(ctx, func(tx *Tx) error {
		for _, err := range tx.Rows(Query{}) {
			if err != nil {
				return err
			}
			if n++; n == 10 {
				cancel()
			}
		}
		return nil
	})
	if wantIs(t, err, context.Canceled); n > 1100 {
		t.Errorf("read %d rows after the context was cancelled", n)
	}
	// A cancelled update leaves nothing behind, and the connection works on.
	ctx, cancel = context.WithCancel(t.Context())
	err = db.Update(ctx, func(tx *Tx) error {
		if err := tx.Set(ref("project new"), "v", me); err != nil {
			return err
		}
		cancel()
		return nil
	})
	wantIs(t, err, context.Canceled)
	update(t, db, func(tx *Tx) error {
		_, err := tx.Get(ref("project new"))
		wantIs(t, err, meta.ErrNotFound)
		return nil
	})
	// Waiting for another writer ends with the context.
	other := open(t, db.Path())
	update(t, db, func(*Tx) error {
		ctx, cancel := context.WithTimeout(t.Context(), 50e6)
		defer cancel()
		err := other.Update(ctx, func(*Tx) error { return nil })
		wantIs(t, err, context.DeadlineExceeded)
		return nil
	})
}
