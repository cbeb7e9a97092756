package retention

import (
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
)

// A day is 86,400 s in every zone, across a change of the clocks too; what is strictly
// older goes; a clock that is behind deletes no more than one that is right.
func TestAgeBoundary(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	g.declare("ci 0 30")
	now := time.UnixMilli(t0)
	const day = int64(86_400_000)
	env := g.env("m")
	for key, at := range map[string]int64{
		"ci:older":  t0 - 30*day - 1,
		"ci:exact":  t0 - 30*day,
		"ci:newer":  t0 - 30*day + 1,
		"ci:future": t0 + day,
	} {
		err := env.DB.Update(t.Context(), func(tx *store.Tx) error {
			return tx.Set(meta.KeyRef{Target: meta.Target{Type: meta.Path, Value: "src"}, Key: key}, "v", store.Edit{Time: at})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	wouldPrune := func(now time.Time) int64 {
		t.Helper()
		e := &serialize.Env{Repo: env.Repo, DB: env.DB, Namespace: env.Namespace, Now: func() time.Time { return now }}
		s, err := GetCollectionRetention(t.Context(), e, "ci")
		if err != nil {
			t.Fatal(err)
		}
		res, err := Sweep(t.Context(), e, SweepOptions{DryRun: true})
		if err != nil || res.Rows != s.WouldPrune {
			t.Errorf("a dry run finds %d rows, wouldPrune is %d, %v", res.Rows, s.WouldPrune, err)
		}
		return s.WouldPrune
	}
	zones := []*time.Location{time.UTC, time.FixedZone("east", 14*3600)}
	if ny, err := time.LoadLocation("America/New_York"); err == nil { // it changed its clocks in these 30 days
		zones = append(zones, ny)
	}
	for _, z := range zones {
		for _, test := range []struct {
			at   time.Time
			want int64
		}{
			{now, 1},
			{now.Add(time.Millisecond), 2},
			{now.Add(2 * time.Millisecond), 3},
			{now.Add(-time.Millisecond), 0},
			{now.Add(-24 * time.Hour), 0},
			{now.Add(31 * 24 * time.Hour), 3}, // the future one is exactly 30 days old
			{now.Add(31*24*time.Hour + time.Millisecond), 4},
		} {
			if got := wouldPrune(test.at.In(z)); got != test.want {
				t.Errorf("at %s: %d, want %d", test.at.In(z), got, test.want)
			}
		}
	}

	// Sweeping with the clock a day behind deletes nothing more than with the right one.
	g.now = now.Add(-24 * time.Hour)
	if res, err := Sweep(t.Context(), env, SweepOptions{}); err != nil || res.Rows != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	g.now = now
	if res, err := Sweep(t.Context(), env, SweepOptions{}); err != nil || res.Rows != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	g.declare("ci 2 0")
	g.now = now.Add(-24 * time.Hour)
	if _, err := Sweep(t.Context(), env, SweepOptions{}); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"ci:older": false, "ci:exact": false, "ci:newer": true, "ci:future": true} {
		err := env.DB.View(t.Context(), func(tx *store.Tx) error {
			_, ok, err := tx.Row(meta.KeyRef{Target: meta.Target{Type: meta.Path, Value: "src"}, Key: key})
			if ok != want {
				t.Errorf("%s is there: %v", key, ok)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
