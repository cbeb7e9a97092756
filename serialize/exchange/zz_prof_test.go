package exchange

import (
	"os"
	"testing"
	"path/filepath"
	"context"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

func TestZZ(t *testing.T) {
	dir := os.Getenv("ZZ")
	if dir == "" { t.Skip() }
	r, err := gitdb.Discover(t.Context(), dir)
	if err != nil { t.Fatal(err) }
	e := &Env{Repo: r, Namespace: "meta"}
	e.Open = func(ctx context.Context) (*serialize.Env, error) {
		db, err := store.Open(ctx, filepath.Join(r.CommonDir, store.FileName), store.Options{})
		return &serialize.Env{Repo: r, DB: db, Namespace: "meta"}, err
	}
	rem, err := e.Find(t.Context(), "")
	if err != nil { t.Fatal(err) }
	b, err := e.Materialize(t.Context(), Tracked{rem.TrackingRef(), rem}, false)
	t.Log(b.Merge.Loaded, err)
}
