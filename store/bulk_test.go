package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/git-meta/git-meta-go/meta"
)

// loadedValues are values of every type, more than one statement of an inserter takes.
func loadedValues(n int) []Loaded {
	out := make([]Loaded, n)
	for i := range out {
		v := str(fmt.Sprintf("value %d \"quoted\"\n", i))
		if i == 60 {
			v = str(strings.Repeat("long", 500)) // the log has its id only
		}
		switch i % 3 {
		case 1:
			v = meta.Value{Type: meta.List, Entries: []meta.Entry{{Value: "a", Time: t0}, {Value: "b", Time: t0 + int64(i)}}}
		case 2:
			v = meta.Value{Type: meta.Set, Members: []string{"x", fmt.Sprint(i)}}
		}
		email := "a@example.com"
		if i%31 == 0 {
			email = "b@example.com"
		}
		out[i] = Loaded{ref(fmt.Sprintf("branch:b%05d ci", i)), v, Edit{Email: email, Time: t0 + int64(i)}}
	}
	return out
}

func TestPutNewIsPut(t *testing.T) {
	values := loadedValues(120)
	values[119].Email = ""
	many, one := openNew(t), openNew(t)
	for _, db := range []*DB{many, one} {
		update(t, db, func(tx *Tx) error {
			for _, k := range []meta.KeyRef{values[3].KeyRef, values[4].KeyRef} {
				if err := tx.PutTombstone(meta.Tombstone{Kind: meta.KeyTombstone, KeyRef: k, Time: t0, Email: "x", Explicit: true}); err != nil {
					return err
				}
				if err := tx.PutWithheld(Withheld{KeyRef: k, EditTime: t0, Why: LocalPruned}); err != nil {
					return err
				}
			}
			return nil
		})
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
	if diff := cmp.Diff(contents(t, one), contents(t, many)); diff != "" {
		t.Errorf("PutNew against Put (-want +got):\n%s", diff)
	}
}

func TestPutNewOfAKeyWithARow(t *testing.T) {
	db := openNew(t)
	values := loadedValues(50)
	update(t, db, func(tx *Tx) error { return tx.Set(values[42].KeyRef, "mine", Edit{Email: "me", Time: t0}) })
	before := contents(t, db)
	wantIs(t, db.Update(t.Context(), func(tx *Tx) error { return tx.PutNew(values) }), ErrHasRow)
	if diff := cmp.Diff(before, contents(t, db)); diff != "" {
		t.Errorf("a failed PutNew changed the store (-want +got):\n%s", diff)
	}
}

const indexesThere = "SELECT name FROM sqlite_master WHERE type = 'index' ORDER BY name"

func TestLoadBuildsTheIndexes(t *testing.T) {
	broken := errors.New("broken")
	for _, fails := range []error{nil, broken} {
		path := newPath(t)
		db := open(t, path)
		want := dump(t, db, indexesThere)
		values := loadedValues(loadMany)
		err := db.Load(t.Context(), len(values), func() error {
			if dump(t, db, indexesThere) == want {
				t.Error("the indexes are kept up to date while much is loaded")
			}
			if err := db.Update(t.Context(), func(tx *Tx) error { return tx.PutNew(values) }); err != nil {
				return err
			}
			return fails
		})
		if !errors.Is(err, fails) {
			t.Fatalf("Load = %v, want %v", err, fails)
		}
		if diff := cmp.Diff(want, dump(t, db, indexesThere)); diff != "" {
			t.Errorf("indexes after a load (-want +got):\n%s", diff)
		}
		if got := dump(t, db, "PRAGMA integrity_check"); got != dump(t, db, "SELECT 'ok'") {
			t.Errorf("integrity_check: %s", got)
		}
	}
}

func TestOpenBuildsMissingIndexes(t *testing.T) {
	path := newPath(t)
	db := open(t, path)
	want := dump(t, db, indexesThere)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range loadIndexes { // as a load that was killed leaves them
		rawExec(t, path, "DROP INDEX "+name)
	}
	if diff := cmp.Diff(want, dump(t, open(t, path), indexesThere)); diff != "" {
		t.Errorf("indexes of a reopened store (-want +got):\n%s", diff)
	}
}
