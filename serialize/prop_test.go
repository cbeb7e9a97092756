package serialize

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
)

// storeKeys share folders, nest, are escaped, or stay here.
var storeKeys = []string{
	"project a", "project a:b", "project local:a", "project draft:x",
	"commit:98afc48127dd62ab6e54b17aa86aac61885501e6 a", "commit:98afc48127dd62ab6e54b17aa86aac61885501e6 a:b", "commit:98bbbb8127dd62ab6e54b17aa86aac61885501e6 ci:url",
	"branch:main a", "branch:feature/x a", "branch:feature/x/y a", "branch:topic review:status", "branch:topic a", "branch:topic/299 review:status", "branch:topic/299 a:b",
	"change-id:abcd1234 a", "change-id:topic/299 a", "change-id:local local:x",
	"path:src a", "path:src/main.go a", "path:src/main.go a:b", "path:src/__gen/~t a", "path:.gitmodules a", "path:src/__target__ a", "path:~1000000 draft:x",
}

var filterRules = []string{"exclude draft:**", "route ci:** builds", "route a builds,main", "exclude a:b", "route review:**:status builds"}

// drawMutation draws one change; it may be refused by what the store holds.
func drawMutation(t *rapid.T, ms int64) func(*store.Tx) error {
	k := keyRef(rapid.SampledFrom(storeKeys).Draw(t, "key"))
	text := rapid.SampledFrom([]string{"", "a", "b", "c\n", "\u00e9\"", strings.Repeat("long", 300)}).Draw(t, "text")
	e := store.Edit{Email: "a@example.com", Time: t0 + ms - rapid.SampledFrom([]int64{0, 0, 1, 5000}).Draw(t, "back")}
	switch rapid.SampledFrom([]string{"set", "set", "push", "push", "pop", "add", "add", "drop", "rm", "clear", "filter"}).Draw(t, "what") {
	case "set":
		return func(tx *store.Tx) error { return tx.Set(k, text, e) }
	case "push":
		return func(tx *store.Tx) error { return tx.ListPush(k, text, e) }
	case "pop":
		return func(tx *store.Tx) error { return tx.ListPop(k, text, e) }
	case "add":
		return func(tx *store.Tx) error { return tx.SetAdd(k, text, e) }
	case "drop":
		return func(tx *store.Tx) error { return tx.SetRemove(k, text, e) }
	case "rm":
		return func(tx *store.Tx) error { return tx.Remove(k, e) }
	case "clear":
		return func(tx *store.Tx) error { _, err := tx.Clear(store.Query{Target: &k.Target}, e); return err }
	}
	rule := rapid.SampledFrom(filterRules).Draw(t, "rule")
	at := keyRef(rapid.SampledFrom([]string{"project meta:filter", "project local:meta:filter"}).Draw(t, "where"))
	if rapid.Bool().Draw(t, "rule goes") {
		return func(tx *store.Tx) error { return tx.SetRemove(at, rule, e) }
	}
	return func(tx *store.Tx) error { return tx.SetAdd(at, rule, e) }
}

// do applies a mutation; what the store refuses is no change.
func (w *world) do(f func(*store.Tx) error) {
	w.t.Helper()
	err := w.db.Update(context.Background(), f)
	if err != nil && !errors.Is(err, meta.ErrInvalid) && !errors.Is(err, meta.ErrNotFound) && !errors.Is(err, store.ErrType) {
		w.t.Fatalf("%v", err)
	}
}

// However a store came to what it holds, and in however many serializes: the trees are
// those that a new store with the same history publishes at once.
func TestIncrementalIsFromScratch(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	rapid.Check(t, func(t *rapid.T) {
		w, all := g.world(t), g.world(t)
		ns := all.env.Namespace
		for step := range rapid.IntRange(1, 5).Draw(t, "serializes") {
			for i := range rapid.IntRange(0, 6).Draw(t, "mutations") {
				f := drawMutation(t, int64(step*1_000_000+i*1000))
				w.do(f)
				all.do(f)
			}
			force := rapid.SampledFrom([]bool{false, false, false, true}).Draw(t, "force")
			w.serialize(Options{ForceFull: force})
			all.env.Namespace = fmt.Sprintf("%sx%d", ns, step)
			all.serialize(Options{ForceFull: true})
			var fil *meta.Filter
			all.view(func(tx *store.Tx) error {
				texts, err := tx.FilterTexts()
				fil = meta.NewFilter(texts)
				return err
			})
			for _, d := range fil.Destinations() {
				if got, want := w.tree(d), all.tree(d); got != want {
					t.Fatalf("step %d, %s: got tree\n%s\nwant\n%s\nstore:\n%s", step, d,
						list(t, w.reader(), gitdbHash(got)), list(t, w.reader(), gitdbHash(want)), w.dump())
				}
			}
			before := w.tip()
			if w.serialize(Options{}); w.tip() != before {
				t.Fatalf("step %d: a second serialize writes a commit:\n%s", step, w.git("show", "--raw", w.ref))
			}
			if strings.Contains(list(t, w.reader(), gitdbHash(w.tree("main"))), "/local/") {
				t.Fatalf("a local key is published")
			}
		}
	})
	g.fsck()
}

// A store that is lost gets everything back from the tip: values, tombstones, times and
// authors; and publishes the same tree.
func TestLostStoreIsLoaded(t *testing.T) {
	t.Parallel()
	g := newRepo(t)
	rapid.Check(t, func(t *rapid.T) {
		w := g.world(t)
		for step := range rapid.IntRange(1, 4).Draw(t, "serializes") {
			for i := range rapid.IntRange(1, 6).Draw(t, "mutations") {
				f := drawMutation(t, int64(step*1_000_000+i*1000))
				w.do(func(tx *store.Tx) error {
					if err := f(tx); err != nil {
						return err
					}
					// what never leaves this store cannot come back
					for _, q := range []store.Query{{Namespace: "meta:filter"}, {Namespace: "local"}} {
						for row, err := range tx.Rows(q) {
							if err != nil || row.Key != "local" {
								return fmt.Errorf("%w: not in this test", meta.ErrInvalid)
							}
						}
					}
					return nil
				})
			}
			w.serialize(Options{})
		}
		tree, want := w.tree("main"), w.dump()
		again := w.lose()
		again.serialize(Options{})
		same(t, "tree", again.tree("main"), tree)
		same(t, "rows and tombstones", untimed(again.dump()), untimed(want))
		if again.serialize(Options{ForceFull: true}); again.tree("main") != tree {
			t.Fatalf("force-full of the new store: got\n%s\nwant\n%s", list(t, w.reader(), gitdbHash(again.tree("main"))), list(t, w.reader(), gitdbHash(tree)))
		}
	})
	g.fsck()
}

// untimed drops from a dump what a tree does not tell exactly: the time of a row that was
// written again with the value it had, of an empty collection, of a member's tombstone.
func untimed(dump string) string {
	return rowTimes.ReplaceAllString(memberTimes.ReplaceAllString(dump, "$1"), "")
}

var (
	rowTimes    = regexp.MustCompile(`(?m) -?\d+ \S+@\S+$`)
	memberTimes = regexp.MustCompile(`(?m)^(gone .* set_member .*) -?\d+ \S+ false$`)
)
