package serialize

import (
	"strings"
	"testing"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
)

// pruneKey takes a key out of the tree as a prune does: a commit, a cursor, an entry.
func (w *world) pruneKey(key string) {
	w.t.Helper()
	k := keyRef(key)
	base := k.Target.BasePath()
	w.commitTree("git-meta: auto-prune\n\npruned: true", without(meta.ValuePath(meta.KeyPath(base, k.Key))))
	w.serialize(Options{})
	if !strings.Contains(w.dump(), "withheld "+key+" pruned") {
		w.t.Fatalf("%s is not withheld:\n%s", key, w.dump())
	}
}

// localPrune drops a key's row.
func (w *world) localPrune(key string) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		at, err := tx.LogPosition()
		if err == nil {
			_, err = tx.LocalPrune([]meta.KeyRef{keyRef(key)}, store.LocalPruneOptions{UpTo: at.RowID})
		}
		return err
	})
}

// The column P of the table in design §4: a row that is not in the tree.
func TestPrunedKeys(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) *world {
		w := newWorld(t)
		w.set(1, "branch:main a", "1", "branch:main b", "1")
		w.serialize(Options{})
		w.pruneKey("branch:main a")
		return w
	}
	without := lines("branch/b2/main/b/__value=1")
	t.Run("serialize", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.set(5, "branch:main b", "2", "project x", "1")
		w.serialize(Options{})
		same(t, "tree", w.paths(), lines("branch/b2/main/b/__value=2", "project/x/__value=1"))
		if !strings.Contains(w.dump(), "withheld branch:main a") {
			t.Error(w.dump())
		}
	})
	t.Run("new rules", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.update(func(tx *store.Tx) error {
			return tx.SetAdd(keyRef("project local:meta:filter"), "exclude zzz", edit(5))
		})
		w.serialize(Options{})
		same(t, "tree", w.paths(), without)
	})
	t.Run("set", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.set(5, "branch:main a", "2")
		w.serialize(Options{})
		same(t, "lines", w.changes(), lines("A branch:main a"))
		if strings.Contains(w.dump(), "withheld") {
			t.Error(w.dump())
		}
	})
	t.Run("rm", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.rm(5, "branch:main a")
		w.serialize(Options{})
		same(t, "lines", w.changes(), lines("D branch:main a"))
		same(t, "tree", w.paths(), lines(`branch/b2/main/__tombstones/a/__deleted={"timestamp":1700000000005,"email":"a@example.com","explicit":true}`, "branch/b2/main/b/__value=1"))
		if strings.Contains(w.dump(), "withheld") {
			t.Error(w.dump())
		}
	})
	t.Run("force-full", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.serialize(Options{ForceFull: true})
		same(t, "lines", w.changes(), lines("A branch:main a"))
		if strings.Contains(w.dump(), "withheld") {
			t.Error(w.dump())
		}
	})
	t.Run("unclear stays away", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.update(func(tx *store.Tx) error {
			return tx.PutWithheld(store.Withheld{KeyRef: keyRef("branch:main a"), EditTime: t0 + 1, Why: store.Unclear})
		})
		w.serialize(Options{ForceFull: true})
		same(t, "tree", w.paths(), without)
	})
	t.Run("local-prune", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.localPrune("branch:main a")
		w.serialize(Options{ForceFull: true})
		same(t, "tree", w.paths(), without)
		if strings.Contains(w.dump(), "branch:main a") {
			t.Error(w.dump())
		}
	})
	t.Run("the tip holds it again", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.commitTree("other", w.blob("branch/b2/main/a/__value", "1"))
		w.serialize(Options{})
		w.set(6, "branch:main b", "3")
		w.serialize(Options{ForceFull: true})
		same(t, "tree", w.paths(), lines("branch/b2/main/a/__value=1", "branch/b2/main/b/__value=3"))
	})
}

// The column L: no row, in the tree.
func TestLocalPrunedKeys(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) *world {
		w := newWorld(t)
		w.set(1, "branch:main a", "1", "branch:main b", "1")
		w.update(func(tx *store.Tx) error { return tx.ListPush(keyRef("branch:main list"), "one", edit(2)) })
		w.serialize(Options{})
		w.localPrune("branch:main a")
		w.localPrune("branch:main list")
		return w
	}
	list := "branch/b2/main/list/__list/" + meta.Entry{Time: t0 + 2, Value: "one"}.Name() + "=one"
	kept := lines("branch/b2/main/a/__value=1", "branch/b2/main/b/__value=1", list)
	t.Run("serialize", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		for _, force := range []bool{false, true} {
			w.serialize(Options{ForceFull: force})
			same(t, "tree", w.paths(), kept)
		}
		w.set(5, "branch:main b", "2")
		w.serialize(Options{ForceFull: true})
		same(t, "lines", w.changes(), lines("M branch:main b"))
		if strings.Count(w.dump(), " local\n") != 2 {
			t.Error(w.dump())
		}
	})
	t.Run("set", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.set(5, "branch:main a", "2")
		w.serialize(Options{})
		same(t, "lines", w.changes(), lines("M branch:main a"))
		if strings.Contains(w.dump(), "withheld branch:main a") {
			t.Error(w.dump())
		}
	})
	t.Run("list edit", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		k := keyRef("branch:main list")
		if err := LoadForEdit(t.Context(), w.env, k); err != nil {
			t.Fatal(err)
		}
		w.update(func(tx *store.Tx) error { return tx.ListPush(k, "two", edit(5)) })
		w.serialize(Options{})
		same(t, "lines", w.changes(), lines("M branch:main list"))
		if !strings.Contains(w.dump(), `branch:main list list ""["2:one" "5:two"] 5`) {
			t.Error(w.dump())
		}
	})
	t.Run("rm", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.rm(5, "branch:main a")
		w.serialize(Options{})
		same(t, "lines", w.changes(), lines("D branch:main a"))
		if strings.Contains(w.dump(), "withheld branch:main a") || strings.Contains(w.paths(), "main/a/") {
			t.Error(w.dump(), w.paths())
		}
		if err := LoadForEdit(t.Context(), w.env, keyRef("branch:main a")); err != nil {
			t.Error(err)
		}
	})
	t.Run("routed away", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.update(func(tx *store.Tx) error { return tx.SetAdd(keyRef("project local:meta:filter"), "exclude a", edit(5)) })
		w.serialize(Options{})
		if strings.Contains(w.paths(), "main/a/") || !strings.Contains(w.paths(), list) {
			t.Error(w.paths())
		}
	})
	t.Run("the tip has another value", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.commitTree("other", w.blob("branch/b2/main/a/__value", "theirs"))
		w.serialize(Options{})
		if d := w.dump(); !strings.Contains(d, `branch:main a string "theirs"`) || strings.Contains(d, "withheld branch:main a") || !strings.Contains(d, "withheld branch:main list local") {
			t.Error(d)
		}
	})
}

// A key that rules send elsewhere leaves main without a tombstone, and comes back.
func TestRouting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rule := func(ms int64, add bool, text string) {
		w.update(func(tx *store.Tx) error {
			if add {
				return tx.SetAdd(keyRef("project local:meta:filter"), text, edit(ms))
			}
			return tx.SetRemove(keyRef("project local:meta:filter"), text, edit(ms))
		})
		w.serialize(Options{})
	}
	w.set(1, "project ci:url", "u", "project b", "1")
	w.serialize(Options{})
	rule(2, true, "route ci:** builds")
	same(t, "main", w.paths(), lines("project/b/__value=1"))
	same(t, "builds", w.tree("builds"), model{"project/ci/url/__value": {modeBlob, "u"}}.write(t, w.reader()).String())
	rule(3, true, "exclude nonsense:x y")
	w.rm(4, "project ci:url")
	w.serialize(Options{})
	if strings.Contains(w.paths(), "ci") || !strings.Contains(list2(w, "builds"), "project/__tombstones/ci/url/__deleted") {
		t.Error(w.paths(), list2(w, "builds"))
	}
	w.set(5, "project ci:url", "v")
	rule(6, false, "route ci:** builds")
	same(t, "main again", w.paths(), lines("project/b/__value=1", "project/ci/url/__value=v"))
	same(t, "builds", w.tree("builds"), emptyTree)
	// a rule that makes no sense excludes what it covers, with a warning
	rule(7, true, "rout b builds")
	same(t, "main", w.paths(), lines("project/ci/url/__value=v"))
	if len(w.warnings) != 1 || !strings.Contains(w.warnings[0], `unknown action "rout"`) {
		t.Errorf("warnings: %q", w.warnings)
	}
	w.g.fsck()
}

func list2(w *world, dest string) string { return list(w.t, w.reader(), gitdbHash(w.tree(dest))) }

// Rows that no tree can hold are skipped with a warning that names the way out; short
// targets wait for the project's leave.
func TestUnpublishableRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1, "branch:ab a", "1", "project ok", "1")
	for _, k := range []string{"'path', '.git/config', 'a'", "'project', '', 'a:.git'"} { // the peer takes them
		runSQL(t, w, "INSERT INTO metadata(target_type, target_value, key, value, value_type, last_timestamp) VALUES ("+k+`, '"1"', 'string', 1)`)
		runSQL(t, w, "INSERT INTO metadata_log(target_type, target_value, key, value, value_type, operation, email, timestamp) VALUES ("+k+`, '"1"', 'string', 'set', 'p@e', 1)`)
	}
	w.serialize(Options{})
	same(t, "tree", w.paths(), lines("project/ok/__value=1"))
	all := strings.Join(w.warnings, "\n")
	for _, hint := range []string{"git meta rm 'path:.git/config' 'a'", "git meta rm 'project' 'a:.git'"} {
		if !strings.Contains(all, hint) {
			t.Errorf("no %q in\n%s", hint, all)
		}
	}
	if len(w.warnings) != 2 {
		t.Errorf("warnings: %q", w.warnings)
	}
	w.set(2, "project "+KeyShortTargets, "true")
	w.serialize(Options{})
	if !strings.Contains(w.paths(), "/ab/a/__value=1") {
		t.Error(w.paths())
	}
	w.g.fsck()
}
