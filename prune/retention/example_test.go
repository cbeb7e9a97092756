package retention_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune/retention"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// A program that embeds the package: it opens a repository and its store, tightens a
// collection, looks at what that would delete, and deletes it.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "retention-example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := exec.Command("git", "init", "-q", dir).Run(); err != nil {
		log.Fatal(err)
	}
	manifest := "collections:\n  ci:\n    retention: {maxRows: 500, maxAgeDays: 100000}\n"
	if err := os.WriteFile(filepath.Join(dir, ".git-meta"), []byte(manifest), 0o666); err != nil {
		log.Fatal(err)
	}

	repo, err := gitdb.Discover(ctx, dir)
	if err != nil {
		log.Fatal(err)
	}
	defer repo.Close()
	db, err := store.Open(ctx, filepath.Join(repo.CommonDir, store.FileName), store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	env := &serialize.Env{Repo: repo, DB: db, Namespace: "meta"}

	// Ten results of builds, one a millisecond.
	err = db.Update(ctx, func(tx *store.Tx) error {
		for i := range int64(10) {
			k := meta.KeyRef{Target: meta.Target{Type: meta.Branch, Value: "main"}, Key: fmt.Sprintf("ci:%d", i)}
			if err := tx.Set(k, "passed", store.Edit{Email: "ci@example.com", Time: 1_700_000_000_000 + i}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}

	// The owner's override on one axis; the author's default stays on the other.
	s, err := retention.SetCollectionRetention(ctx, env, "ci", retention.Patch{MaxRows: retention.Axis{Set: true, Value: 4}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("effective %+v, default %+v, override %+v\n", s.Effective, s.AuthorDefault, s.Override)
	fmt.Printf("%d live rows of %d bytes, %d would go\n", s.Rows, s.Bytes, s.WouldPrune)

	preview, err := retention.Sweep(ctx, env, retention.SweepOptions{DryRun: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("preview:", preview.Rows, "rows")
	swept, err := retention.Sweep(ctx, env, retention.SweepOptions{Collections: []string{"ci"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("swept:", swept.Rows, "rows, done:", swept.Done)

	s, err = retention.GetCollectionRetention(ctx, env, "ci")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("left:", s.Rows, "rows, confirmed:", s.Confirmed)

	// Output:
	// effective {MaxRows:4 MaxAgeDays:100000}, default {MaxRows:500 MaxAgeDays:100000}, override {MaxRows:4 MaxAgeDays:0}
	// 10 live rows of 80 bytes, 6 would go
	// preview: 6 rows
	// swept: 6 rows, done: true
	// left: 4 rows, confirmed: true
}
