package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The write-ahead log is left where nobody else has the store open, and only then.
func TestFillJournal(t *testing.T) {
	t.Parallel()
	values := loadedValues(100)
	mode := func(tx *Tx) (mode string) {
		if _, err := tx.c.one(bg, "PRAGMA main.journal_mode", nil, func(r *rows) { mode = r.str(0) }); err != nil {
			t.Error(err)
		}
		return mode
	}
	for _, c := range []struct {
		name, want string
		other      func(*DB) func() // uses the store meanwhile
	}{
		{name: "alone", want: "delete"},
		{name: "another", want: "wal", other: func(db *DB) func() {
			o := open(t, db.path)
			view(t, o, nothing)
			return func() { sound(t, o) }
		}},
		{name: "a reader", want: "wal", other: func(db *DB) func() {
			o, err := OpenRead(t.Context(), db.path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			view(t, o, nothing)
			return func() { o.Close() }
		}},
		{name: "a snapshot", want: "wal", other: func(db *DB) func() {
			o := open(t, db.path)
			count := func() string { return dump(t, o, "SELECT count(*) FROM metadata") }
			dump(t, o, "BEGIN")
			before := count()
			return func() {
				if got := count(); got != before {
					t.Errorf("a snapshot has changed from %s to %s", before, got)
				}
				dump(t, o, "COMMIT")
				if got := count(); got != "100\n" {
					t.Errorf("afterwards there are %s", got)
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := openNew(t)
			after := func() {}
			if c.other != nil {
				after = c.other(db)
			}
			err := db.PutFill(t.Context(), finished(t, db, values), func(tx *Tx) error {
				if got := mode(tx); got != c.want {
					t.Errorf("journal_mode is %s", got)
				}
				if n, err := tx.c.int64(bg, "PRAGMA synchronous"); n != 2 || err != nil {
					t.Errorf("synchronous is %d, %v", n, err)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			after()
			sound(t, db)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			again := open(t, db.path)
			sound(t, again)
			if got := dump(t, again, "SELECT count(*) FROM metadata"); got != "100\n" {
				t.Errorf("%s keys", got)
			}
		})
	}
}

// headerMode is the mode of a file as its header tells.
func headerMode(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return map[[2]byte]string{{1, 1}: "delete", {2, 2}: "wal"}[[2]byte(b[18:20])]
}

// A process that dies while it fills a store leaves it in the other mode: the next that
// opens it for writing puts it back.
func TestOpenPutsBackToLog(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	db := open(t, path)
	update(t, db, func(tx *Tx) error { return tx.Set(ref("project k"), "v", me) })
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	rawExec(t, path, "PRAGMA journal_mode = DELETE")
	reader, err := OpenRead(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	view(t, reader, func(tx *Tx) error {
		_, err := tx.Get(ref("project k"))
		return err
	})
	if got := headerMode(t, path); got != "delete" {
		t.Errorf("while it is read: %s", got)
	}
	// this one can't change the mode, as it is being read, and works all the same
	dump(t, reader, "BEGIN")
	dump(t, reader, "SELECT * FROM metadata")
	writer := open(t, path)
	view(t, writer, nothing)
	dump(t, reader, "COMMIT")
	if err := errors.Join(writer.Close(), reader.Close()); err != nil {
		t.Fatal(err)
	}
	if got := headerMode(t, path); got != "delete" {
		t.Errorf("after it was read: %s", got)
	}
	db = open(t, path)
	sound(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := headerMode(t, path); got != "wal" {
		t.Errorf("after it was opened for writing: %s", got)
	}
}

func TestFillDiskFull(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	empty := contents(t, db)
	f := finished(t, db, loadedValues(3000))
	if _, err := db.c.int64(t.Context(), "PRAGMA max_page_count = 60"); err != nil {
		t.Fatal(err)
	}
	wantIs(t, db.PutFill(t.Context(), f, nothing), ErrFull)
	if diff := cmp.Diff(empty, contents(t, db)); diff != "" {
		t.Errorf("the store has changed (-want +got):\n%s", diff)
	}
	sound(t, db)
}

func TestFillCancelled(t *testing.T) {
	t.Parallel()
	values := loadedValues(50)
	for name, early := range map[string]bool{"before": true, "at the end": false} {
		db := openNew(t)
		empty := contents(t, db)
		f := finished(t, db, values)
		ctx, cancel := context.WithCancel(t.Context())
		if early {
			cancel()
		}
		wantIs(t, db.PutFill(ctx, f, func(*Tx) error { cancel(); return nil }), context.Canceled)
		if diff := cmp.Diff(empty, contents(t, db)); diff != "" {
			t.Errorf("%s: the store has changed (-want +got):\n%s", name, diff)
		}
		sound(t, db)
		if err := db.PutFill(t.Context(), f, nothing); err != nil {
			t.Errorf("%s: again: %v", name, err)
		}
		sound(t, db)
	}
}

// Others who open, read and write a store while it is filled wait; they see all keys or
// none.
func TestFillAndOthers(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	db := open(t, path)
	values := loadedValues(3000)
	f := finished(t, db, values)
	done, end := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(end)
		for i := 0; ; i++ {
			o, err := OpenRead(context.Background(), path, Options{})
			if i%2 == 0 && err == nil {
				o.Close()
				o, err = Open(context.Background(), path, Options{})
			}
			if err != nil {
				t.Error(err)
				return
			}
			err = o.View(context.Background(), func(tx *Tx) error {
				n, err := tx.c.int64(bg, "SELECT count(*) FROM metadata")
				if n != 0 && n != int64(len(values)) {
					t.Errorf("%d keys", n)
				}
				return err
			})
			if err := errors.Join(err, o.Close()); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	}()
	for range 6 {
		if err := db.PutFill(t.Context(), f, nothing); err != nil {
			t.Error(err)
		}
		update(t, db, func(tx *Tx) error {
			for _, table := range fillTables {
				if err := tx.run("DELETE FROM " + table); err != nil {
					return err
				}
			}
			return nil
		})
	}
	close(done)
	<-end
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	sound(t, open(t, path))
}

// The files of a fill that was killed go when the next one starts, unless that may be in
// use still.
func TestFillFiles(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	dir := filepath.Dir(db.path)
	file := func(name string, age time.Duration) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		return path
	}
	old, young := file(FileName+"-load-old", 2*time.Hour), file(FileName+"-load-young", 50*time.Minute)
	file(FileName+"-other", 2*time.Hour)
	file("a-"+FileName+"-load-3", 2*time.Hour)
	if err := os.Mkdir(filepath.Join(dir, FileName+"-load-4"), 0o777); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{old, young}, FillFiles(dir)); diff != "" {
		t.Errorf("FillFiles (-want +got):\n%s", diff)
	}
	f := newFill(t, db, nil)
	if diff := cmp.Diff([]string{f.path, young}, FillFiles(dir)); diff != "" {
		t.Errorf("FillFiles with one in use (-want +got):\n%s", diff)
	}
	if err := f.Close(); err != nil { // before it is finished
		t.Error(err)
	}
	if diff := cmp.Diff([]string{young}, FillFiles(dir)); diff != "" {
		t.Errorf("FillFiles afterwards (-want +got):\n%s", diff)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) < 5 {
		t.Errorf("%v, %v", all, err)
	}
	if got := FillFiles(filepath.Join(dir, "none")); got != nil {
		t.Errorf("of no folder: %q", got)
	}
}

// killedFill is a store that is left as by a process that was killed just before its fill
// was complete; dir is an empty folder.
func killedFill(t *testing.T, dir string) (path string) {
	t.Helper()
	db := openNew(t)
	var values []Loaded
	for i := range 300 { // more than is held in memory
		values = append(values, Loaded{ref(fmt.Sprintf("project k%04d", i)), str(strings.Repeat("long ", 5000)), me})
	}
	path = filepath.Join(dir, FileName)
	err := db.PutFill(t.Context(), finished(t, db, values), func(*Tx) error {
		for _, end := range []string{"", "-journal"} {
			data, err := os.ReadFile(db.path + end)
			if err == nil {
				err = os.WriteFile(path+end, data, 0o666)
			}
			if err != nil {
				return err
			}
			if len(data) < 1000 {
				t.Errorf("%s has %d bytes", db.path+end, len(data))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Whoever comes first after a fill was killed finds the store as it was before.
func TestFillKilled(t *testing.T) {
	t.Parallel()
	for _, reads := range []bool{false, true} {
		path := killedFill(t, t.TempDir())
		if reads {
			r, err := OpenRead(t.Context(), path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := dump(t, r, everyRow) + dump(t, r, "SELECT * FROM metadata_log"); got != "" {
				t.Errorf("a reader sees %.200s", got)
			}
			r.Close()
			if fileHasBytes(path + "-journal") {
				t.Error("a reader leaves the journal")
			}
		}
		db := open(t, path)
		if diff := cmp.Diff(contents(t, openNew(t)), contents(t, db)); diff != "" {
			t.Errorf("after a kill (-want +got):\n%.2000s", diff)
		}
		sound(t, db)
		if fileHasBytes(path + "-journal") {
			t.Error("a journal is left")
		}
		if err := db.PutFill(t.Context(), finished(t, db, loadedValues(5)), nothing); err != nil {
			t.Error(err)
		}
		sound(t, db)
	}
}
