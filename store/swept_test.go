package store

import (
	"strings"
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/meta"
)

// Whether anything was swept is one look-up, however many keys are withheld.
func TestSweptPlan(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	for _, text := range []string{anySwept, allSwept} {
		plan := dumpPlan(t, db, text)
		if !strings.Contains(plan, "INDEX x_withheld_swept (why=?)") || strings.Contains(plan, "SCAN w") || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s\n%s", text, plan)
		}
	}
}

func TestSweptKeys(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	has := func() (got bool) {
		view(t, db, func(tx *Tx) (err error) {
			got, err = tx.HasSwept()
			return err
		})
		return got
	}
	keys := []meta.KeyRef{ref("path:src a"), ref("path:src b"), ref("path:src c"), ref("path:zzz a")}
	update(t, db, func(tx *Tx) error {
		for _, k := range keys[:2] {
			if err := tx.Set(k, "x", me); err != nil {
				return err
			}
		}
		for i, why := range []Why{Retained, Pruned} {
			if err := tx.PutWithheld(Withheld{keys[i], 1, why}); err != nil {
				return err
			}
		}
		return nil
	})
	if has() {
		t.Error("nothing was swept")
	}
	update(t, db, func(tx *Tx) error {
		for i, k := range keys[1:] {
			if err := tx.PutWithheld(Withheld{k, int64(i), Swept}); err != nil {
				return err
			}
		}
		return nil
	})
	var got []SweptKey
	view(t, db, func(tx *Tx) (err error) {
		got, err = tx.SweptKeys()
		return err
	})
	if !has() || len(got) != 3 || got[0].KeyRef != keys[1] || !got[0].Again || got[1].Again || got[2].KeyRef != keys[3] {
		t.Fatalf("got %v", got)
	}
	update(t, db, func(tx *Tx) error { // another entry by now, and one edited
		if err := tx.Set(keys[1], "y", me); err != nil {
			return err
		}
		return tx.PutWithheld(Withheld{keys[2], 99, Swept})
	})
	update(t, db, func(tx *Tx) error {
		n, err := tx.EndSwept(got, time.Minute)
		if n != 3 {
			t.Errorf("dealt with %d", n)
		}
		return err
	})
	view(t, db, func(tx *Tx) (err error) {
		got, err = tx.SweptKeys()
		return err
	})
	if len(got) != 1 || got[0].KeyRef != keys[2] || got[0].EditTime != 99 {
		t.Errorf("left: %v", got)
	}
	many := make([]SweptKey, 1000)
	update(t, db, func(tx *Tx) error {
		n, err := tx.EndSwept(many, 0)
		if n == 0 || n == len(many) {
			t.Errorf("without time: %d", n)
		}
		return err
	})
}
