package retention

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
)

func set(n int64) Axis { return Axis{Set: true, Value: n} }

var clearAxis = Axis{Clear: true}

// A patch changes what it names and nothing else, or with an error nothing at all.
func TestSetCollectionRetention(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	g.declare("ci 100 30", "x 0 0")
	env := g.env("m")
	setProject(t, env, "meta:prune:max-keys", "1000", "meta:retention:gone:max-rows", "5", "meta:retention:gone:max-age-days", "6")
	var last store.Record
	for i, test := range []struct {
		name  string
		patch Patch
		want  string // effective, override
		err   error
		text  string
	}{
		{name: "ci", want: "100/30 0/0"},
		{name: "ci", patch: Patch{MaxRows: set(5)}, want: "5/30 5/0"},
		{name: "ci", patch: Patch{MaxAgeDays: set(7)}, want: "5/7 5/7"},
		{name: "ci", patch: Patch{MaxRows: clearAxis, MaxAgeDays: set(8)}, want: "100/8 0/8"},
		{name: "ci", patch: Patch{MaxRows: clearAxis, MaxAgeDays: clearAxis}, want: "100/30 0/0"},
		{name: "ci", patch: Patch{MaxRows: clearAxis}, want: "100/30 0/0"},
		{name: "ci", patch: Patch{MaxRows: set(1000), MaxAgeDays: set(1)}, want: "1000/1 1000/1"},
		{name: "ci", patch: Patch{MaxAgeDays: set(2), MaxRows: set(1001)}, want: "1000/1 1000/1", err: meta.ErrInvalid, text: "meta:prune:max-keys is 1000"},
		{name: "ci", patch: Patch{MaxRows: set(0)}, want: "1000/1 1000/1", err: meta.ErrInvalid, text: `"0": must be greater than zero`},
		{name: "ci", patch: Patch{MaxRows: set(3), MaxAgeDays: set(-1)}, want: "1000/1 1000/1", err: meta.ErrInvalid, text: `"-1": not a whole number`},
		{name: "ci", patch: Patch{MaxRows: clearAxis, MaxAgeDays: set(LimitAgeDays + 1)}, want: "1000/1 1000/1", err: meta.ErrInvalid, text: "too large"},
		{name: "ci", patch: Patch{MaxRows: Axis{Set: true, Clear: true, Value: 3}}, want: "1000/1 1000/1", err: meta.ErrInvalid, text: "both set and cleared"},
		{name: "x", patch: Patch{MaxRows: set(3)}, want: "3/0 3/0"},
		{name: "nope", patch: Patch{MaxRows: set(3)}, err: meta.ErrNotFound, text: `collection "nope": not declared in .git-meta`},
		{name: "nope", patch: Patch{MaxRows: clearAxis}, err: meta.ErrNotFound, text: "not declared"},
		{name: "gone", patch: Patch{MaxRows: set(3)}, want: "0/0 5/6", err: meta.ErrInvalid, text: "detached"},
		{name: "gone", patch: Patch{MaxRows: clearAxis, MaxAgeDays: set(3)}, want: "0/0 5/6", err: meta.ErrInvalid, text: "detached"},
		{name: "gone", patch: Patch{MaxRows: clearAxis}, want: "0/0 0/6"},
		{name: "gone", patch: Patch{MaxAgeDays: clearAxis}, want: "0/0 0/0"},
	} {
		s, err := SetCollectionRetention(t.Context(), env, test.name, test.patch)
		if !errors.Is(err, test.err) || err != nil && !strings.Contains(err.Error(), test.text) {
			t.Errorf("%d: error %v, want %s", i, err, test.text)
		}
		if err != nil {
			if s != nil {
				t.Errorf("%d: a state and an error", i)
			}
			s, err = GetCollectionRetention(t.Context(), env, test.name)
		}
		if test.want == "" {
			if !errors.Is(err, meta.ErrNotFound) {
				t.Errorf("%d: %v", i, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%d/%d %d/%d", s.Effective.MaxRows, s.Effective.MaxAgeDays, s.Override.MaxRows, s.Override.MaxAgeDays)
		if got != test.want || s.Collection != test.name || s.Detached != (test.name == "gone") {
			t.Errorf("%d: %s, want %s: %+v", i, got, test.want, s)
		}
	}
	// what is said already is not said again: nothing to publish
	_ = env.DB.View(t.Context(), func(tx *store.Tx) (err error) {
		last, err = tx.Get(meta.KeyRef{Target: meta.ProjectTarget, Key: "meta:retention:ci:max-rows"})
		return err
	})
	g.now = g.now.Add(1000)
	if _, err := SetCollectionRetention(t.Context(), env, "ci", Patch{MaxRows: set(1000)}); err != nil {
		t.Fatal(err)
	}
	_ = env.DB.View(t.Context(), func(tx *store.Tx) error {
		if again, err := tx.Get(last.KeyRef); err != nil || again.Time != last.Time {
			t.Errorf("written again: %+v, %v", again, err)
		}
		return nil
	})
}

// Two patches at once leave both axes as each wrote them: each is one transaction.
func TestPatchesAtOnce(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	g.declare("ci 100 30")
	first := g.env("m")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			db, err := store.Open(context.Background(), filepath.Join(g.dir, ".git", "m.sqlite"), store.Options{Bulk: true})
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			env := &serialize.Env{Repo: g.repo, DB: db, Namespace: "m"}
			for j := range 10 {
				n := int64(1 + i*10 + j)
				s, err := SetCollectionRetention(t.Context(), env, "ci", Patch{MaxRows: set(n), MaxAgeDays: set(n)})
				if err != nil || s.Effective != (Bounds{n, n}) {
					t.Errorf("%d: %+v, %v", n, s, err)
				}
			}
		})
	}
	wg.Wait()
	s, err := GetCollectionRetention(t.Context(), first, "ci")
	if err != nil || s.Override.MaxRows != s.Override.MaxAgeDays || s.Override.MaxRows == 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// Everything that reads works without a store.
func TestWithoutStore(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	g.declare("b 5 0", "a 0 7", "a::b 1 0")
	env := &serialize.Env{Repo: g.repo, Namespace: "meta"}
	states, err := List(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range states {
		text, err := s.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
	}
	none := `"override":{"maxRows":null,"maxAgeDays":null},"wouldPrune":0,"rows":0,"bytes":0,"confirmed":false,"detached":false,"problem":`
	want := []string{
		`{"collection":"a","effective":{"maxRows":null,"maxAgeDays":7},"authorDefault":{"maxRows":null,"maxAgeDays":7},` + none + `null}`,
		`{"collection":"a::b","effective":{"maxRows":null,"maxAgeDays":null},"authorDefault":{"maxRows":null,"maxAgeDays":null},` + none + `".git-meta:8: key \"a::b\": empty segment"}`,
		`{"collection":"b","effective":{"maxRows":5,"maxAgeDays":null},"authorDefault":{"maxRows":5,"maxAgeDays":null},` + none + `null}`,
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
	if states[0].AgeFrom != ".git-meta:7" || states[2].RowsFrom != ".git-meta:4" || states[2].AgeFrom != "" {
		t.Errorf("decided by %+v", states)
	}
	if _, err := GetCollectionRetention(t.Context(), env, "c"); !errors.Is(err, meta.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if _, err := GetCollectionRetention(t.Context(), env, "a::b"); err != nil {
		t.Errorf("one with a problem: %v", err)
	}
	if _, err := SetCollectionRetention(t.Context(), env, "b", Patch{MaxRows: set(1)}); err == nil {
		t.Error("written without a store")
	}
	if err := Accept(t.Context(), env); err == nil {
		t.Error("accepted without a store")
	}
}

// What decides each axis can be told.
func TestWhatDecides(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	g.declare("a 5 6", "b 0 0")
	env := g.env("m")
	setProject(t, env, "meta:prune:max-keys", "50", "meta:retention:a:max-rows", "60", "meta:retention:b:max-age-days", "3")
	states, err := List(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range states {
		got = append(got, s.Collection, s.RowsFrom, s.AgeFrom)
	}
	want := []string{"a", "meta:retention:a:max-rows", ".git-meta:5", "b", "", "meta:retention:b:max-age-days"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
}
