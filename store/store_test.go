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

	"github.com/git-meta/git-meta-go/meta"
)

const t0 = int64(1_700_000_000_000)

// fixed is a clock that stands still.
func fixed() time.Time { return time.UnixMilli(t0) }

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), FileName) }

func open(t testing.TB, path string) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, Options{Now: fixed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func openNew(t testing.TB) *DB {
	t.Helper()
	return open(t, newPath(t))
}

func update(t testing.TB, db *DB, f func(tx *Tx) error) {
	t.Helper()
	if err := db.Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

func view(t testing.TB, db *DB, f func(tx *Tx) error) {
	t.Helper()
	if err := db.View(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// ref reads "project key" or "type:value key".
func ref(s string) meta.KeyRef {
	target, key, _ := strings.Cut(s, " ")
	typ, value, _ := strings.Cut(target, ":")
	return meta.KeyRef{Target: meta.Target{Type: meta.TargetType(typ), Value: value}, Key: key}
}

func str(s string) meta.Value { return meta.Value{Type: meta.String, String: s} }

var me = Edit{Email: "a@b"}

// dump returns every row of a table in rowid order, one line each, columns joined by '|'.
func dump(t testing.TB, db *DB, query string) string {
	t.Helper()
	var b strings.Builder
	db.mu.Lock()
	defer db.mu.Unlock()
	r, err := db.c.query(context.Background(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	for {
		ok, err := r.next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return b.String()
		}
		for i, v := range r.vals {
			if i > 0 {
				b.WriteByte('|')
			}
			switch v := v.(type) {
			case nil:
			case string, int64:
				fmt.Fprint(&b, v)
			default:
				t.Errorf("%s: a %T in the store", query, v)
			}
		}
		b.WriteByte('\n')
	}
}

func keysOf(t testing.TB, tx *Tx, q Query) string {
	t.Helper()
	var out []string
	for row, err := range tx.Rows(q) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, row.KeyRef.String())
	}
	return strings.Join(out, ", ")
}

// rawExec runs a script on a file without opening it as a store.
func rawExec(t testing.TB, path string, scripts ...string) {
	t.Helper()
	name, err := dsn(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := dial(name)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, s := range scripts {
		if err := c.script(s); err != nil {
			t.Fatal(err)
		}
	}
}

func fixture(t testing.TB, version int) string {
	t.Helper()
	path := newPath(t)
	for v := 1; v <= version; v++ {
		b, err := os.ReadFile(fmt.Sprintf("testdata/v%d.sql", v))
		if err != nil {
			t.Fatal(err)
		}
		rawExec(t, path, string(b))
	}
	return path
}

func wantIs(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("got error %v, want %v", err, target)
	}
}
