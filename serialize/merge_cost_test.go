package serialize

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// costWorld is a store of n keys on as many commits and a second one beside it that has
// materialized all of them; both lie in one repository, so that nothing is fetched.
func costWorld(t testing.TB, n int) (a, b *Env) {
	t.Helper()
	g := newRepo(t)
	x := g.world(t)
	keys := 0
	x.update(func(tx *store.Tx) error {
		for ; keys < n; keys++ {
			v := meta.Value{Type: meta.String, String: fmt.Sprint("v", keys)}
			if err := tx.Put(costKey(keys), v, edit(1), store.PutOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	x.serialize(Options{})
	y := g.world(t)
	if err := x.env.Repo.UpdateRef(context.Background(), y.ref, x.tip(), zero, ""); err != nil {
		t.Fatal(err)
	}
	y.serialize(Options{})
	return x.env, y.env
}

func costKey(i int) meta.KeyRef {
	id := gitdb.HashObject(blobObject, []byte(fmt.Sprint(i)))
	return meta.KeyRef{Target: meta.Target{Type: meta.Commit, Value: id.String()}, Key: "k"}
}

func costEdit(t testing.TB, e *Env, from, to int, value string) {
	t.Helper()
	err := e.DB.Update(context.Background(), func(tx *store.Tx) error {
		for i := from; i < to; i++ {
			if err := tx.Set(costKey(i), value, store.Edit{}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), e, Options{}); err != nil {
		t.Fatal(err)
	}
}

func materializeFrom(t testing.TB, e *Env, ref string) (*MergeResult, time.Duration) {
	t.Helper()
	start := time.Now()
	res, err := Materialize(context.Background(), e, ref, MergeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return res, time.Since(start)
}

// hide deletes from the repository all trees and blobs of tip but those on the paths of the
// first keys: whoever reads another fails.
func hide(t testing.TB, g *gitRepo, tip string, keys int) (hidden int) {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(g.dir, ".git/objects/pack/*.pack"))
	if err != nil || len(packs) == 0 {
		t.Fatalf("no packs: %v", err)
	}
	for _, p := range packs {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range []string{".pack", ".idx"} {
			if err := os.Remove(strings.TrimSuffix(p, ".pack") + end); err != nil {
				t.Fatal(err)
			}
		}
		gitIn(t, g.dir, string(data), "unpack-objects", "-q")
	}
	keep := map[string]bool{}
	for i := range keys {
		path := meta.KeyPath(costKey(i).Target.BasePath(), costKey(i).Key) + "/__value"
		for ; path != "."; path = filepath.Dir(path) {
			keep[path] = true
		}
	}
	gone := map[string]bool{}
	for line := range strings.SplitSeq(g.git("ls-tree", "-r", "-t", tip), "\n") {
		info, path, _ := strings.Cut(line, "\t")
		if id := strings.Fields(info)[2]; !keep[path] {
			gone[id] = true
		} else {
			delete(gone, id)
		}
	}
	for line := range strings.SplitSeq(g.git("ls-tree", "-r", "-t", tip), "\n") {
		info, path, _ := strings.Cut(line, "\t")
		if keep[path] {
			delete(gone, strings.Fields(info)[2])
		}
	}
	for id := range gone {
		if err := os.Remove(filepath.Join(g.dir, ".git/objects", id[:2], id[2:])); err != nil {
			t.Fatal(err)
		}
	}
	return len(gone)
}

// TestMergeReadsWhatChanged: neither a fast-forward nor a merge reads what did not change.
func TestMergeReadsWhatChanged(t *testing.T) {
	t.Parallel()
	a, b := costWorld(t, 500)
	ref := LocalRef(a.Namespace, meta.MainDestination)
	tip, err := a.Repo.Ref(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	n := hide(t, &gitRepo{t: t, dir: a.Repo.Dir()}, tip.String(), 20)
	if n < 500 {
		t.Fatalf("only %d objects hidden", n)
	}
	fresh := func(e *Env) *Env { // without what the reader has in its cache
		repo, err := gitdb.Discover(t.Context(), e.Repo.Dir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { repo.Close() })
		out := *e
		out.Repo = repo
		return &out
	}
	a, b = fresh(a), fresh(b)
	costEdit(t, a, 0, 10, "a")
	res, _ := materializeFrom(t, fresh(b), ref)
	if res.Strategy != FastForward || res.Loaded != 10 {
		t.Errorf("%s, %d rows, want a fast-forward of 10", res.Strategy, res.Loaded)
	}
	costEdit(t, a, 0, 15, "b")
	costEdit(t, b, 10, 20, "c")
	res, _ = materializeFrom(t, fresh(b), ref)
	if res.Strategy != ThreeWay || res.Loaded != 10 || len(res.Conflicts) != 5 {
		t.Errorf("%s, %d rows, %d conflicts; want a merge of 10 with 5", res.Strategy, res.Loaded, len(res.Conflicts))
	}
}

// BenchmarkMaterialize measures 10 changes on each side.
func BenchmarkMaterialize(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			x, y := costWorld(b, n)
			ref := LocalRef(x.Namespace, meta.MainDestination)
			var forward, merge time.Duration
			b.ResetTimer()
			for i := range b.N {
				b.StopTimer()
				costEdit(b, x, 0, 10, fmt.Sprint("a", i))
				b.StartTimer()
				_, took := materializeFrom(b, y, ref)
				forward += took
				b.StopTimer()
				costEdit(b, x, 0, 10, fmt.Sprint("b", i))
				costEdit(b, y, 10, 20, fmt.Sprint("c", i))
				b.StartTimer()
				res, took := materializeFrom(b, y, ref)
				merge += took
				if res.Strategy != ThreeWay {
					b.Fatalf("%s", res.Strategy)
				}
				b.StopTimer()
				// back to one line
				if _, took := materializeFrom(b, x, LocalRef(y.Namespace, meta.MainDestination)); took > time.Minute {
					b.Fatal(took)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(forward.Microseconds())/1000/float64(b.N), "ms/forward")
			b.ReportMetric(float64(merge.Microseconds())/1000/float64(b.N), "ms/merge")
		})
	}
}
