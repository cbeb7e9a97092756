package serialize

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// promisedKeys lists the promised rows as "target key commit's subject".
func (w *world) promisedKeys() string {
	w.t.Helper()
	var out []string
	w.view(func(tx *store.Tx) error {
		for row, err := range tx.Promised() {
			if err != nil {
				return err
			}
			subject := ""
			if row.PromisedCommit != "" {
				subject = w.git("log", "-1", "--format=%s", row.PromisedCommit)
			}
			out = append(out, row.KeyRef.String()+" "+subject)
		}
		return nil
	})
	slices.Sort(out)
	return lines(out...)
}

func (w *world) index(tip gitdb.Hash, o IndexOptions) *Index {
	w.t.Helper()
	x, err := IndexHistory(context.Background(), w.env, tip, o)
	if err != nil {
		w.t.Fatalf("index: %v", err)
	}
	return x
}

// indexedHistory makes the world's main a line of commits in which keys come and go, and
// returns the tip.
func indexedHistory(w *world) gitdb.Hash {
	path := func(key string) string { return "path/a/__target__/" + key + "/__value" }
	list := func(ms int64, value string) string {
		return "path/a/__target__/list/__list/" + meta.Entry{Time: ms, Value: value}.Name()
	}
	w.commitTree("git-meta: serialize (1 changes)\n\nA\tpath:a\tkept", w.blob(path("kept"), "1")+w.blob(path("pruned"), "1")+w.blob(path("lost"), "1")+
		w.blob(path("removed"), "1")+w.blob(path("dline"), "1")+w.blob(path("swept"), "1")+w.blob(path("back"), "1")+
		w.blob(list(t0, "x"), "x")+w.blob(list(t0+1, "y"), "y")+
		w.blob("project/meta/prune/max-keys/__value", "9")+w.blob("project/note/__value", "n"))
	w.commitTree("two", w.blob(path("pruned"), "2")+without(list(t0, "x")))
	w.commitTree("git-meta: auto-prune\n\npruned: true", without(path("pruned"))+without(path("back"))+without(list(t0+1, "y"))+without("project/meta/prune/max-keys/__value")+without("project/note/__value"))
	w.commitTree("materialize", without(path("lost"))+without(path("removed"))+w.blob("path/a/__target__/__tombstones/removed/__deleted", `{"timestamp":1,"email":"a"}`))
	w.commitTree("git-meta: serialize (1 changes)\n\nD\tpath:a\tdline", without(path("dline")))
	w.commitTree("git-meta: retention\n\npruned: true", without(path("swept")))
	w.commitTree("git-meta: serialize (1 changes)\n\nA\tpath:a\tback", w.blob(path("back"), "2"))
	return w.tip()
}

func TestIndexHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tip := indexedHistory(w)
	x := w.index(tip, IndexOptions{})
	want := lines("path:a list two", "path:a lost git-meta: auto-prune", "path:a pruned two", "project note two")
	same(t, "promised", w.promisedKeys(), want)
	if x.Keys != 4 || x.Commits != 7 || x.Cut != zero {
		t.Errorf("index %+v", x)
	}
	if x := w.index(tip, IndexOptions{}); x.Keys != 0 || x.Known != 4 {
		t.Errorf("again: %+v", x)
	}
	same(t, "again", w.promisedKeys(), want)
	// nothing of it is a value, or a change
	same(t, "rows", w.dump(), "\n")
}

// What an index in parts finds is what a whole one finds.
func TestIndexInParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tip := indexedHistory(w)
	w.index(tip, IndexOptions{})
	want := w.promisedKeys()
	ids := strings.Fields(w.git("rev-list", w.ref))
	for i, id := range ids {
		at := gitdbHash(id)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			// first up to a commit, then what is new since
			part := w.g.world(t)
			part.index(at, IndexOptions{})
			part.index(tip, IndexOptions{Stop: at})
			same(t, "in two ranges", part.promisedKeys(), want)
			// the newer commits first, as before a deepening or an interruption
			part = w.g.world(t)
			stop := zero
			if i+1 < len(ids) {
				stop = gitdbHash(ids[i+1])
			}
			part.index(tip, IndexOptions{Stop: stop})
			part.index(tip, IndexOptions{From: at})
			same(t, "resumed", part.promisedKeys(), want)
		})
	}
}

func TestLoadPromised(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tip := indexedHistory(w)
	other := w.g.world(t)
	other.index(tip, IndexOptions{})
	// as the other program leaves them
	stale := []meta.KeyRef{keyRef("path:a removed"), keyRef("path:a dline"), keyRef("path:a swept"), keyRef("path:a kept"), keyRef("path:a never")}
	other.update(func(tx *store.Tx) error {
		for _, k := range stale {
			if _, err := tx.PutPromised(k, ""); err != nil {
				return err
			}
		}
		return nil
	})
	keys := append(stale, keyRef("path:a pruned"), keyRef("path:a list"), keyRef("path:a lost"), keyRef("path:a absent"))
	p, err := LoadPromised(t.Context(), other.env, tip, keys)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "loaded", fmt.Sprint(p.Loaded), "[path:a kept path:a list path:a lost path:a pruned]")
	same(t, "removed", fmt.Sprint(p.Removed), "[path:a dline path:a removed path:a swept]")
	same(t, "unknown", fmt.Sprint(p.Unknown), "[path:a never]")
	same(t, "rows", other.dump(), lines(
		`path:a kept string "1"[] 500000 peer@example.com`,
		`path:a list list ""["1:y"] 500000 peer@example.com`,
		`path:a lost string "1"[] 500000 peer@example.com`,
		`path:a pruned string "2"[] 500000 peer@example.com`,
		"withheld path:a kept pruned", "withheld path:a list pruned", "withheld path:a lost pruned", "withheld path:a pruned pruned"))
	same(t, "left", other.promisedKeys(), lines("path:a never ", "project note two"))
}

func TestUpdateIndex(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	w := g.world(t)
	w.env.Namespace = "meta"
	w.ref = LocalRef("meta", "main")
	tip := indexedHistory(w)
	run := func(tip gitdb.Hash) *IndexReport {
		t.Helper()
		rep, err := UpdateIndex(t.Context(), w.env, "refs/meta/remotes/main", tip, UpdateIndexOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return rep
	}
	if rep := run(tip); rep.Index == nil || rep.Keys != 4 || rep.Total != 4 {
		t.Errorf("first: %+v", rep)
	}
	if rep := run(tip); rep.Index != nil || rep.Total != 4 {
		t.Errorf("again: %+v", rep)
	}
	s := readIndexState(g.repo)
	if s == nil || !s.Complete || s.Tip != tip.String() || s.KeysIndexed != 4 || s.CommitsIndexed != 7 || s.ResumeFrom != nil {
		t.Errorf("state %+v", s)
	}
	w.commitTree("three", without("path/a/__target__/kept/__value"))
	if rep := run(w.tip()); rep.Index == nil || rep.Keys != 1 || rep.Commits != 1 {
		t.Errorf("one commit more: %+v", rep)
	}
	s = readIndexState(g.repo)
	s.Complete, s.PID, s.HeartbeatMS = false, 999999, w.now.UnixMilli()
	if err := s.write(g.repo); err != nil {
		t.Fatal(err)
	}
	if rep := run(w.tip()); rep.Busy == nil || rep.Busy.PID != 999999 {
		t.Errorf("busy: %+v", rep)
	}
}
