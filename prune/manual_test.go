package prune

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
)

const day = 24 * 3600 * 1000

// aged is a world at day 100 with keys that are 90, 50 and 10 days old.
func aged(t *testing.T) *world {
	w := newWorld(t)
	w.now = time.UnixMilli(t0 + 100*day)
	w.set(10*day, "path:old k", "12345", "branch:old k", "v", "project old", "v")
	w.set(50*day, "path:middle k", "v")
	w.set(90*day, "path:new k", "v")
	w.set(5*day, "path:gone k", "v")
	w.update(func(tx *store.Tx) error { return tx.Remove(keyRef("path:gone k"), edit(6*day)) })
	w.serialize()
	return w
}

func (w *world) prune(o ManualOptions) (*ManualResult, error) {
	w.t.Helper()
	return Manual(w.g.t.Context(), w.env, o)
}

func TestManual(t *testing.T) {
	t.Parallel()
	w := aged(t)
	tree := w.tree()
	plan, err := w.prune(ManualOptions{Since: "60d", DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if w.tree() != tree || plan.Commit != "" {
		t.Error("a dry run writes")
	}
	want := &ManualResult{
		Ref: w.ref, Since: "60d", SinceFrom: "--since", Cutoff: time.UnixMilli(t0 + 40*day).UTC(), Dropped: 2, Retained: 2, Tombstones: 1, Bytes: plan.Bytes,
		Keys:   []DroppedKey{{keyRef("branch:old k"), 1, t0 + 10*day}, {keyRef("path:old k"), 5, t0 + 10*day}},
		ByType: map[meta.TargetType]int64{meta.Branch: 1, meta.Path: 1},
	}
	if diff := cmp.Diff(plan, want); diff != "" || plan.Bytes <= 6 {
		t.Errorf("plan: got -, want +\n%s", diff)
	}
	done, err := w.prune(ManualOptions{Since: "60d"})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "commit", done.Commit, w.git("rev-parse", w.ref))
	done.Commit = ""
	if diff := cmp.Diff(done, plan); diff != "" {
		t.Errorf("the run is not the dry run: got -, want +\n%s", diff)
	}
	same(t, "message", w.message(), "git-meta: prune --since=60d\n\npruned: true\nsince: 60d\nkeys-dropped: 2\nkeys-retained: 2")
	same(t, "kept", w.keys(), "path:middle k, path:new k")
	if strings.Contains(w.paths(), "__tombstones") || !strings.Contains(w.paths(), "project/old/__value") {
		t.Error(w.paths())
	}
	again, err := w.prune(ManualOptions{Since: "60d"})
	if err != nil || !again.NothingToPrune || again.Commit != "" {
		t.Errorf("again: %+v, %v", again, err)
	}
	// neither an idle serialize nor an edit nearby undoes it
	w.serialize()
	w.set(99*day, "path:new k", "2")
	w.serialize()
	same(t, "kept", w.keys(), "path:middle k, path:new k")
	w.git("fsck", "--strict")
}

func TestManualWindows(t *testing.T) {
	t.Parallel()
	w := aged(t)
	refusal := func(o ManualOptions, want, hint string) {
		t.Helper()
		tree := w.tree()
		_, err := w.prune(o)
		if err == nil || err.Error() != want || meta.HintOf(err) != hint || w.tree() != tree {
			t.Errorf("%+v: got %v, hint %q", o, err, meta.HintOf(err))
		}
	}
	if _, err := w.prune(ManualOptions{}); !errors.Is(err, ErrNoWindow) {
		t.Errorf("no window: %v", err)
	}
	refusal(ManualOptions{Since: "1w"}, `window "1w": not a window`, meta.WindowHint)
	refusal(ManualOptions{Since: "0d"}, `window "0d": the cutoff 2024-02-22 22:13:20 UTC is not in the past: everything would go`, "add --force if that is what you want")
	refusal(ManualOptions{Since: "-3d"}, `window "-3d": the cutoff 2024-02-25 22:13:20 UTC is not in the past: everything would go`, "add --force if that is what you want")
	refusal(ManualOptions{Since: "2999-01-01"}, `window "2999-01-01": the cutoff 2999-01-01 00:00:00 UTC is not in the past: everything would go`, "add --force if that is what you want")
	refusal(ManualOptions{Since: "1d"}, `window "1d": all 4 keys that can be pruned would go`, "look first with --dry-run --force, then add --force if that is what you want")
	w.rules("since", "60d")
	res, err := w.prune(ManualOptions{DryRun: true})
	if err != nil || res.Since != "60d" || res.SinceFrom != KeySince || res.Dropped != 2 {
		t.Errorf("the project's window: %+v, %v", res, err)
	}
	if res, err = w.prune(ManualOptions{DryRun: true, Since: "2023-12-25"}); err != nil || res.Dropped != 2 || res.SinceFrom != "--since" {
		t.Errorf("a date: %+v, %v", res, err)
	}
	if res, err = w.prune(ManualOptions{Since: "0d", Force: true}); err != nil || res.Dropped != 4 || res.Retained != 0 {
		t.Errorf("forced: %+v, %v", res, err)
	}
	same(t, "kept", w.keys(), "")
	if w = newWorld(t); true {
		if res, err := w.prune(ManualOptions{Since: "1d"}); err != nil || !res.NoTree {
			t.Errorf("nothing serialized: %+v, %v", res, err)
		}
	}
}

// A key with an edit that is not published yet stays; a tip the store has not seen is not
// pruned.
func TestManualPending(t *testing.T) {
	t.Parallel()
	w := aged(t)
	w.set(10*day+1, "path:old k", "edited, with an old date")
	if res, err := w.prune(ManualOptions{Since: "60d"}); err != nil || res.Dropped != 1 || res.Keys[0].KeyRef != keyRef("branch:old k") {
		t.Errorf("%+v, %v", res, err)
	}
	w.serialize()
	same(t, "kept", w.keys(), "path:middle k, path:new k, path:old k")
	w.commitTree("somebody", w.blob("README.md", "x"))
	if _, err := w.prune(ManualOptions{Since: "60d"}); err == nil || meta.HintOf(err) != "git meta serialize" {
		t.Errorf("an unseen tip: %v", err)
	}
}

func (w *world) local(o LocalOptions) (*LocalResult, error) {
	w.t.Helper()
	return Local(w.g.t.Context(), w.env, o)
}

// Only what is published goes from the store; the tree and its later serializes keep it.
func TestLocal(t *testing.T) {
	t.Parallel()
	w := aged(t)
	w.set(9*day, "path:only k", "never published", "path:old local:k", "stays here")
	w.set(11*day, "branch:old k", "edited since")
	tree, paths := w.tree(), w.paths()
	dry, err := w.local(LocalOptions{Since: "60d", DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if dry.Keys != 1 || dry.Remaining != 5 || dry.Cutoff.UnixMilli() != t0+40*day {
		t.Errorf("%+v", dry)
	}
	same(t, "unpublished", fmt.Sprint(dry.Unpublished), "[branch:old k path:old local:k path:only k]")
	rows := w.rows()
	res, err := w.local(LocalOptions{Since: "60d"})
	if diff := cmp.Diff(res, dry); err != nil || diff != "" {
		t.Errorf("the run is not the dry run: %v\n%s", err, diff)
	}
	same(t, "rows", w.rows(), strings.Replace(rows, "path:old k, ", "", 1))
	same(t, "withheld", w.withheld(), "path:old k local")
	if w.tree() != tree {
		t.Error("a ref was touched")
	}
	if again, err := w.local(LocalOptions{Since: "60d"}); err != nil || again.Keys != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
	w.serialize(true)
	for p := range strings.Lines(paths) {
		if !strings.Contains(w.paths(), strings.TrimSpace(p)) {
			t.Errorf("%s left the tree", p)
		}
	}
	// an edit brings the row back
	w.set(99*day, "path:old k", "again")
	w.serialize()
	same(t, "withheld", w.withheld(), "")
	w.git("fsck", "--strict")
}

func TestLocalForce(t *testing.T) {
	t.Parallel()
	w := aged(t)
	w.set(9*day, "path:only k", "never published")
	res, err := w.local(LocalOptions{Since: "60d", Force: true})
	if err != nil || res.Keys != 3 || !slices.Equal(res.Unpublished, []meta.KeyRef{keyRef("path:only k")}) {
		t.Errorf("%+v, %v", res, err)
	}
	same(t, "rows", w.rows(), "path:middle k, path:new k")
	same(t, "withheld", w.withheld(), "branch:old k local, path:old k local")
	if _, err := w.local(LocalOptions{SkipDate: true}); err == nil || meta.HintOf(err) != "add --force if that is what you want" {
		t.Errorf("--skip-date alone: %v", err)
	}
	if res, err = w.local(LocalOptions{SkipDate: true, Force: true}); err != nil || res.Keys != 2 || !res.Cutoff.IsZero() {
		t.Errorf("--skip-date: %+v, %v", res, err)
	}
	if w.rows() != "" || !strings.Contains(w.withheld(), "path:new k local") {
		t.Errorf("rows %s, withheld %s", w.rows(), w.withheld())
	}
	tree := w.tree()
	w.serialize()
	if w.tree() != tree {
		t.Error("a serialize takes what was local-pruned out of the tree")
	}
}

// With a remote, published means: its tracking ref's history has it.
func TestLocalWithRemote(t *testing.T) {
	t.Parallel()
	w := aged(t)
	w.remote()
	if res, err := w.local(LocalOptions{Since: "60d"}); err != nil || res.Keys != 0 || len(res.Unpublished) != 2 {
		t.Errorf("before a push: %+v, %v", res, err)
	}
	w.git("update-ref", w.env.TrackingRef(), w.ref)
	if _, err := w.prune(ManualOptions{Since: "60d"}); err != nil { // gone from the tip, there in the history
		t.Fatal(err)
	}
	w.git("update-ref", w.env.TrackingRef(), w.ref)
	if res, err := w.local(LocalOptions{Since: "60d"}); err != nil || res.Keys != 2 {
		t.Errorf("after: %+v, %v", res, err)
	}
	same(t, "withheld", w.withheld(), "") // in no tree, and no row: nothing differs
	w.serialize(true)
	same(t, "kept", w.keys(), "path:middle k, path:new k")
}
