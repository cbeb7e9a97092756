package store

import (
	"testing"

	"github.com/git-meta/git-meta-go/meta"
)

func TestPromised(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), t.TempDir()+"/"+FileName, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	key := func(name string) meta.KeyRef {
		return meta.KeyRef{Target: meta.Target{Type: meta.Branch, Value: "main"}, Key: name}
	}
	e := Edit{Email: "a@example.com", Time: 1000}
	update := func(f func(*Tx) error) {
		t.Helper()
		if err := db.Update(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	update(func(tx *Tx) error {
		if err := tx.Set(key("mine"), "v", e); err != nil {
			return err
		}
		if err := tx.Set(key("gone"), "v", e); err != nil {
			return err
		}
		if err := tx.Remove(key("gone"), e); err != nil {
			return err
		}
		return tx.PutWithheld(Withheld{key("swept"), 1, Swept})
	})
	update(func(tx *Tx) error {
		for name, want := range map[string]bool{"old": true, "list": true, "mine": false, "gone": false, "swept": false} {
			isNew, err := tx.PutPromised(key(name), "c1")
			if err != nil || isNew != want {
				t.Errorf("PutPromised(%s) = %v, %v; want %v", name, isNew, err, want)
			}
		}
		_, err := tx.PutPromised(key("old"), "c2")
		return err
	})
	var before Position
	update(func(tx *Tx) error {
		row, ok, err := tx.Row(key("old"))
		if err != nil || !ok || !row.Promised || row.PromisedCommit != "c2" || row.Time != 0 {
			t.Errorf("row %+v, %v, %v", row, ok, err)
		}
		if n, err := tx.CountPromised(); err != nil || n != 2 {
			t.Errorf("CountPromised = %d, %v; want 2", n, err)
		}
		if _, err := tx.Get(key("old")); err == nil {
			t.Error("a promised key has a value")
		}
		n := 0
		for range tx.Records(Query{}) {
			n++
		}
		if n != 1 {
			t.Errorf("%d records, want 1", n)
		}
		before, err = tx.LogPosition()
		return err
	})
	update(func(tx *Tx) error {
		v := meta.Value{Type: meta.List, Entries: []meta.Entry{{Time: 5, Value: "x"}}}
		for _, c := range []struct {
			name string
			want bool
		}{{"list", true}, {"list", false}, {"mine", false}, {"none", false}} {
			if put, err := tx.PutFromHistory(key(c.name), v, Edit{Email: "b@example.com", Time: 7}); err != nil || put != c.want {
				t.Errorf("PutFromHistory(%s) = %v, %v; want %v", c.name, put, err, c.want)
			}
		}
		return nil
	})
	update(func(tx *Tx) error {
		if pos, err := tx.LogPosition(); err != nil || pos != before {
			t.Errorf("the log moved from %v to %v, %v", before, pos, err)
		}
		if who, ms, err := tx.Author(key("list")); err != nil || who != "b@example.com" || ms != 7 {
			t.Errorf("Author = %s, %d, %v", who, ms, err)
		}
		rec, err := tx.Get(key("list"))
		if err != nil || len(rec.Value.Entries) != 1 || rec.Time != 7 {
			t.Errorf("Get = %+v, %v", rec, err)
		}
		for name, want := range map[string]bool{"old": true, "list": false, "mine": false, "none": false} {
			if ok, err := tx.DropPromised(key(name)); err != nil || ok != want {
				t.Errorf("DropPromised(%s) = %v, %v; want %v", name, ok, err, want)
			}
		}
		return nil
	})
}

// An empty log begins with what came from history; a cursor at its beginning goes along.
func TestPromisedEmptyLog(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), t.TempDir()+"/"+FileName, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(t.Context(), func(tx *Tx) error {
		if err := tx.PutCursor(Cursor{Ref: "r", Commit: "c"}); err != nil {
			return err
		}
		for _, name := range []string{"a", "b"} {
			k := meta.KeyRef{Target: meta.ProjectTarget, Key: name}
			if _, err := tx.PutPromised(k, "c"); err != nil {
				return err
			}
			if _, err := tx.PutFromHistory(k, meta.Value{Type: meta.String, String: "v"}, Edit{Time: 1}); err != nil {
				return err
			}
		}
		pos, err := tx.LogPosition()
		if err != nil {
			return err
		}
		c, _, err := tx.LatestCursor("r")
		if err != nil {
			return err
		}
		if c.Log != pos || pos.RowID != 1 {
			t.Errorf("cursor at %v, log at %v", c.Log, pos)
		}
		changes, err := tx.ChangesSince(c.Log)
		if len(changes) != 0 {
			t.Errorf("changes %v", changes)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
