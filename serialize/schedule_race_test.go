package serialize_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// TestTwoMaterializeAtOnce: two processes bring one tip in while a third edits and
// serializes; all succeed, nothing is lost and the history is linear.
func TestTwoMaterializeAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 3 {
		c := newCase(t, 2, 0)
		c.run("A.set_x A.add_g_m A.sync B.sync A.set_x A.add_g_n A.set_y A.push B.set_q B.add_g_o B.rm_x")
		x := c.clone(1)
		if err := x.fetch(); err != nil {
			t.Fatal(err)
		}
		const workers, each = 3, 5
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() {
				err := other(x, func(e *serialize.Env) error {
					for n := range each {
						if i > 0 {
							if _, err := serialize.Materialize(context.Background(), e, trackedMain, serialize.MergeOptions{Pruner: prune.Auto{}}); err != nil {
								return fmt.Errorf("materialize: %w", err)
							}
							continue
						}
						err := e.DB.Update(context.Background(), func(tx *store.Tx) error {
							return tx.Set(keyOf(fmt.Sprint("n", n)), "v", store.Edit{})
						})
						if err == nil {
							_, err = serialize.Run(context.Background(), e, serialize.Options{Pruner: prune.Auto{}})
						}
						if err != nil {
							return fmt.Errorf("serialize: %w", err)
						}
					}
					return nil
				})
				if err != nil {
					t.Errorf("round %d, worker %d: %v", round, i, err)
				}
			})
		}
		wg.Wait()
		c.run("B.sync A.sync")
		want := "g=set[m n o] n0=v n1=v n2=v n3=v n4=v q=v0004 y=v0003"
		if c.w.events[len(c.w.events)-1].time < c.w.events[3].time {
			t.Fatal("the removal is not the latest")
		}
		c.rows(0, want)
		c.rows(1, want)
		c.agree()
		if out, err := c.git(x.dir, "rev-list", "--merges", localMain); out != "" || err != nil {
			t.Errorf("merges in the history: %s %v", out, err)
		}
	}
}

// other runs f with a repository and store of its own on x's files, as another process.
func other(x *realClone, f func(*serialize.Env) error) error {
	ctx := context.Background()
	repo, err := gitdb.Discover(ctx, x.dir)
	if err != nil {
		return err
	}
	defer repo.Close()
	db, err := store.Open(ctx, x.dir+"/.git/"+store.FileName, store.Options{Now: x.clock})
	if err != nil {
		return err
	}
	defer db.Close()
	return f(&serialize.Env{Repo: repo, DB: db, Namespace: "meta", Now: x.clock, Progress: meta.NoProgress{}})
}
