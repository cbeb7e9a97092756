package prune

import (
	"fmt"
	"strings"
	"testing"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
)

const pruned10 = "git-meta: auto-prune\n\npruned: true\nreason: exceeded configured maximum\n"

// High water and low water: nothing happens below the maximum; above it the tree goes
// back to the minimum, by the droppable keys, and rests until it has grown again.
func TestAutoPrune(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rules("max-keys", "10", "min-keys", "5")
	w.fill(0, 8, "v")
	if res := w.serialize(); res.AutoPrune != nil || w.commits() != "1" {
		t.Errorf("10 keys: %+v", res.AutoPrune)
	}
	w.fill(8, 9, "v")
	res := w.serialize()
	if p := res.AutoPrune; p == nil || p.KeysDropped != 4 || p.KeysRetained != 5 || p.Commit != w.git("rev-parse", w.ref) {
		t.Fatalf("11 keys: %+v", p)
	}
	same(t, "message", w.message(), pruned10+"min-keys: 5\nkeys-dropped: 4\nkeys-retained: 5")
	same(t, "kept", w.keys(), names(4, 9))
	same(t, "withheld", w.withheld(), strings.ReplaceAll(names(0, 4), " k", " k pruned"))
	same(t, "rows", w.rows(), names(0, 9))
	if !strings.Contains(w.paths(), "project/meta/prune/max-keys/__value") {
		t.Error("the policy is not kept")
	}
	same(t, "subject", w.git("log", "-1", "--format=%s|%ad|%cd", "--date=unix", w.ref), "git-meta: auto-prune|1700001000|1700001000")
	for range 5 {
		w.serialize()
	}
	same(t, "idle", w.commits(), "3")
	w.fill(20, 23, "v")
	if w.serialize(); w.commits() != "4" {
		t.Errorf("10 keys again: %s commits", w.commits())
	}
	w.fill(23, 24, "v")
	if w.serialize(); w.commits() != "6" {
		t.Errorf("11 keys again: %s commits", w.commits())
	}
	same(t, "kept", w.keys(), names(8, 9)+", "+names(20, 24))
	// --force-full publishes everything, and the rules apply as after any serialize
	if res := w.serialize(true); res.AutoPrune == nil || res.AutoPrune.KeysRetained != 5 {
		t.Errorf("force-full: %+v", res.AutoPrune)
	}
	same(t, "kept", w.keys(), names(8, 9)+", "+names(20, 24))
	// an edit brings a pruned key back
	w.set(5000, "path:p000 k", "again")
	w.serialize()
	same(t, "kept", w.keys(), names(0, 1)+", "+names(8, 9)+", "+names(20, 24))
	w.git("fsck", "--strict")
}

// The sizes: never above the maximum after a serialize, at most the minimum after a
// prune, and one value bigger than the minimum does not empty the tree.
func TestAutoPruneBySize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rules("max-size", "20k", "min-size", "10k")
	prunes := 0
	for i := range 12 {
		w.fill(i, i+1, strings.Repeat("x", 4000))
		if w.serialize().AutoPrune != nil {
			prunes++
			droppable := int64(0)
			for _, k := range w.inventory().keys {
				if k.Target.Type != meta.Project {
					droppable += k.bytes
				}
			}
			if droppable > 10<<10 {
				t.Errorf("after a prune %d bytes", droppable)
			}
			same(t, "message", strings.Join(strings.Split(w.message(), "\n")[4:], "|"), "min-size: 10240|keys-dropped: 4|keys-retained: 2")
		}
		if s := naiveMeasure(w, w.tree()); s.Bytes > 20<<10 {
			t.Errorf("after a serialize %d bytes", s.Bytes)
		}
	}
	if prunes != 2 {
		t.Errorf("%d prunes", prunes)
	}
	before := w.keys()
	w.set(9000, "path:big k", strings.Repeat("y", 30_000))
	res := w.serialize()
	if res.AutoPrune == nil {
		t.Fatal("not pruned")
	}
	if kept := w.keys(); kept == "" || strings.Contains(kept, "big") || !strings.HasSuffix(before, kept) {
		t.Errorf("kept %s of %s", kept, before)
	}
	if len(w.warnings) != 1 || !strings.Contains(w.warnings[0], "path:big k (29 KiB) is larger than meta:prune:min-size") {
		t.Errorf("warnings: %q", w.warnings)
	}
	if !strings.Contains(w.withheld(), "path:big k too-big") || !strings.Contains(w.rows(), "path:big k") {
		t.Errorf("withheld: %s", w.withheld())
	}
	w.serialize()
	if len(w.warnings) != 1 {
		t.Errorf("warned again: %q", w.warnings)
	}
}

// A list is kept or dropped whole, counts one key, and has the time of its last entry.
func TestKeysAreWhole(t *testing.T) {
	t.Parallel()
	for _, newest := range []bool{true, false} {
		w := newWorld(t)
		w.rules("max-keys", "5", "min-keys", "1")
		ms := int64(1)
		if newest {
			ms = 9000
		}
		w.update(func(tx *store.Tx) error {
			for i := range 50 {
				if err := tx.ListPush(keyRef("path:list k"), fmt.Sprint(i), edit(ms+int64(i))); err != nil {
					return err
				}
			}
			return nil
		})
		w.fill(0, 2, "v")
		res := w.serialize()
		if p := res.AutoPrune; p != nil {
			t.Errorf("5 keys: pruned")
		}
		w.fill(2, 3, "v")
		if p := w.serialize().AutoPrune; p == nil || p.KeysDropped != 3 || p.KeysRetained != 1 {
			t.Errorf("6 keys: %+v", p)
		}
		want := 0
		if newest {
			want = 50
		}
		if got := strings.Count(w.paths(), "path/list/__target__/k/__list/"); got != want {
			t.Errorf("newest %v: %d entries", newest, got)
		}
	}
}

// Tombstones stay if they are at least as recent as the oldest survivor, or the project's.
func TestTombstoneRetention(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill(0, 4, "v") // 1000…1003
	rm := func(ms int64, key string) {
		w.set(ms-1, key, "x")
		w.update(func(tx *store.Tx) error { return tx.Remove(keyRef(key), edit(ms)) })
	}
	w.update(func(tx *store.Tx) error { // of members and entries too
		k, l := keyRef("path:p003 set"), keyRef("path:p003 list")
		for _, err := range []error{
			tx.SetAdd(k, "old", edit(500)), tx.SetAdd(k, "m", edit(500)), tx.SetRemove(k, "old", edit(501)),
			tx.ListPush(l, "old", edit(502)), tx.ListPush(l, "e", edit(503)), tx.ListPop(l, "old", edit(504)),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	w.set(2000, "path:p003 new", "v")
	rm(999, "path:p000 old")
	rm(1003, "path:p000 same")
	rm(2500, "path:p000 young")
	rm(5, "project old")
	w.rules("max-keys", "9", "min-keys", "3")
	w.serialize()
	if w.commits() != "1" {
		t.Fatal("9 keys are not above 9")
	}
	w.fill(4, 5, "v")
	w.serialize()
	same(t, "kept", w.keys(), "path:p003 k, path:p003 new, path:p004 k")
	var tombs []string
	for _, tomb := range w.inventory().tombs {
		tombs = append(tombs, fmt.Sprintf("%s %d", tomb.KeyRef, tomb.Kind))
	}
	same(t, "tombstones", strings.Join(tombs, ", "), fmt.Sprintf("path:p000 same %[1]d, path:p000 young %[1]d, project old %[1]d", meta.PathTombstone))
	w.git("fsck", "--strict")
}

// With a remote, tombstones stay until its history has held them.
func TestTombstonesWaitForTheRemote(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.remote()
	w.set(1, "path:gone k", "v")
	w.update(func(tx *store.Tx) error { return tx.Remove(keyRef("path:gone k"), edit(2)) })
	w.rules("max-keys", "6", "min-keys", "2")
	w.fill(0, 5, "v")
	w.serialize()
	same(t, "kept", w.keys(), names(3, 5))
	if !strings.Contains(w.paths(), "path/gone/__target__/__tombstones/k/__deleted") {
		t.Error("a removal is forgotten before anybody heard of it")
	}
	w.git("update-ref", w.env.TrackingRef(), w.ref)
	w.fill(5, 8, "v")
	w.serialize()
	if strings.Contains(w.paths(), "__tombstones") {
		t.Error(w.paths())
	}
}

// Project keys that leave no room between floor and maximum would make every serialize
// prune: one warning, and the maximum is compared with the other keys alone.
func TestFixedPart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rules("max-keys", "20", "min-keys", "10")
	for i := range 28 {
		w.set(1, fmt.Sprintf("project k%02d", i), "v")
	}
	w.fill(0, 20, "v")
	if w.serialize().AutoPrune != nil {
		t.Error("20 droppable keys are not above 20")
	}
	if len(w.warnings) != 1 || !strings.Contains(w.warnings[0], "meta:prune:max-keys 20") || !strings.Contains(w.warnings[0], "30 project keys") {
		t.Errorf("warnings: %q", w.warnings)
	}
	w.fill(20, 21, "v")
	if p := w.serialize().AutoPrune; p == nil || p.KeysRetained != 10 {
		t.Errorf("21 droppable keys: %+v", p)
	}
	commits := w.commits()
	w.serialize()
	w.fill(21, 22, "v")
	if w.serialize().AutoPrune != nil || w.commits() == commits {
		t.Error("11 droppable keys")
	}
}

// A time in the future counts as the commit's date: it has no advantage over a key that
// is edited now, and one of its own ties by name.
func TestFutureTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rules("max-keys", "5", "min-keys", "2")
	w.set(1_000_999, "path:aaa k", "v") // the last millisecond of the committer date
	w.set(9e12, "path:bbb k", "v", "path:ccc k", "v")
	w.set(1_000, "path:ddd k", "v")
	w.serialize()
	same(t, "kept", w.keys(), "path:aaa k, path:bbb k")
}

// A key of the tree that has no row here is dated by the history that brought it.
func TestKeysWithoutRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fill(0, 6, "v")
	w.serialize()
	w.update(func(tx *store.Tx) error {
		at, err := tx.LogPosition()
		if err == nil {
			_, err = tx.LocalPrune([]meta.KeyRef{keyRef("path:p000 k"), keyRef("path:p005 k")}, store.LocalPruneOptions{UpTo: at.RowID})
		}
		return err
	})
	w.rules("max-keys", "6", "min-keys", "3")
	w.serialize()
	same(t, "kept", w.keys(), names(3, 6))
	same(t, "withheld", w.withheld(), "path:p001 k pruned, path:p002 k pruned, path:p005 k local")
}

// Bad rules that arrive from elsewhere publish, warn and prune nothing; excluded and
// local keys take no part.
func TestBadRulesAndFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rules("max-keys", "5", "min-keys", "7")
	w.fill(0, 9, "v")
	if w.serialize().AutoPrune != nil || len(w.warnings) == 0 || !strings.Contains(w.warnings[0], "meta:prune:min-keys (7) is not below") {
		t.Errorf("warnings: %q", w.warnings)
	}
	same(t, "published", w.keys(), names(0, 9))
	w = newWorld(t)
	w.rules("max-keys", "5", "min-keys", "2")
	w.update(func(tx *store.Tx) error {
		return tx.SetAdd(keyRef("project local:meta:filter"), "exclude draft:**", edit(1))
	})
	for i := range 5 {
		w.set(9000, fmt.Sprintf("path:pp%d local:x", i), "v", fmt.Sprintf("path:pp%d draft:x", i), "v")
	}
	w.fill(0, 3, "v")
	if w.serialize().AutoPrune != nil {
		t.Error("what is not published counts")
	}
	w.fill(3, 4, "v")
	w.serialize()
	same(t, "kept", w.keys(), names(2, 4))
}
