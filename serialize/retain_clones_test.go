package serialize_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
)

// quickCase is newCase without processes: all clones share one folder of objects.
func quickCase(t *testing.T, clones int, skew ...int64) *caseWorld {
	t.Helper()
	s := schedOf(clones, "")
	copy(s.skew, skew)
	c := &caseWorld{newRealWorld(t, t.TempDir(), s, false), t}
	c.w.after = c.troubles
	t.Cleanup(func() {
		if bad := c.fsck(); bad != nil {
			t.Error(bad)
		}
		c.close()
	})
	return c
}

// why returns the reason of a key's withheld entry in clone i, "" without one.
func (c *caseWorld) why(i int, key string) (why store.Why) {
	c.Helper()
	c.must(c.clone(i).db.View(c.Context(), func(tx *store.Tx) error {
		w, _, err := tx.Withheld(keyOf(key))
		why = w.Why
		return err
	}))
	return why
}

// subjects returns the subjects of the remote's commits, newest first, without numbers.
func (c *caseWorld) subjects() []string {
	c.Helper()
	out, err := c.git(c.clone(0).dir, "log", "--format=%s", c.bareTip().String())
	c.must(err)
	list := strings.Split(out, "\n")
	for i, s := range list {
		list[i], _, _ = strings.Cut(s, " (")
	}
	return list
}

func (c *caseWorld) retentions() (n int) {
	c.Helper()
	for _, s := range c.subjects() {
		if s == "git-meta: retention" {
			n++
		}
	}
	return n
}

// Case 81: A applies retention and pushes, B has no policy; five rounds of sync on both
// settle at once, and nothing comes back or is written again.
func TestRetentionSettles(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"A.sync B.sync", "B.sync A.sync"} {
		c := quickCase(t, 2)
		c.run("A.set_x A.set_y B.set_q A.sync B.sync A.sync A.sweep_x")
		c.run(order + " " + order)
		c.rows(0, "q=v0003 y=v0002")
		c.rows(1, "q=v0003 x=v0001 y=v0002")
		c.published("q=v0003 y=v0002")
		if c.why(1, "x") != store.Retained || c.why(0, "x") != "" {
			t.Errorf("%s: withheld as %q and %q", order, c.why(0, "x"), c.why(1, "x"))
		}
		tip, _, _ := c.realWorld.tip()
		for range 5 {
			c.run(order + " A.serialize B.serialize B.full B.sync")
		}
		if now, _, _ := c.realWorld.tip(); now != tip {
			t.Errorf("%s: R still moves: %q", order, c.subjects())
		}
		c.run("B.set_y A.sync B.sync A.sync B.sync") // other edits leave it alone
		c.rows(0, "q=v0003 y=v0004")
		c.rows(1, "q=v0003 x=v0001 y=v0004")
		if c.why(1, "x") != store.Retained || c.retentions() != 1 {
			t.Errorf("%s: %q, %q", order, c.why(1, "x"), c.subjects())
		}
		c.agree()
	}
}

// Both clones sweep at once, the same key or different ones.
func TestRetentionOnBothSides(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"A.sync B.sync", "B.sync A.sync"} {
		c := quickCase(t, 2)
		c.run("A.set_x A.set_y A.set_z A.set_q A.sync B.sync A.sweep_x B.sweep_x B.sweep_y A.sweep_z")
		c.run(order + " " + order)
		c.published("q=v0004")
		c.rows(0, "q=v0004 y=v0002")
		c.rows(1, "q=v0004 z=v0003")
		if c.why(0, "y") != store.Retained || c.why(1, "z") != store.Retained {
			t.Errorf("withheld as %q and %q", c.why(0, "y"), c.why(1, "z"))
		}
		c.agree()
		// their own sweeps take what is left; no tree holds it, so that nothing is written
		tip, _, _ := c.realWorld.tip()
		c.run("A.sweep_y B.sweep_z " + order + " " + order)
		c.rows(0, "q=v0004")
		c.rows(1, "q=v0004")
		if now, _, _ := c.realWorld.tip(); now != tip || c.why(0, "y")+c.why(1, "z") != "" {
			t.Errorf("R moved: %q", c.subjects())
		}
	}
}

// An edit made elsewhere wins over the sweep: the key comes back once, as any other; also
// where the edit is a removal, or B sweeps the key later.
func TestRetentionAndEdit(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"A.sync B.sync", "B.sync A.sync"} {
		c := quickCase(t, 2)
		c.run("A.set_x A.add_g_m A.set_y A.sync B.sync A.sweep_x A.sweep_g A.sweep_y B.set_x B.add_g_n B.rm_y")
		c.run(order + " " + order)
		c.rows(0, "g=set[m n] x=v0003")
		c.rows(1, "g=set[m n] x=v0003")
		c.published("g=set[m n] x=v0003")
		if c.why(0, "x")+c.why(1, "x")+c.why(0, "g")+c.why(1, "g") != "" {
			t.Error("withheld")
		}
		c.agree()

		// after the sweep has arrived: a new value for everybody
		c.run("A.sweep_x A.sync B.sync B.set_x B.sync A.sync")
		c.rows(0, "g=set[m n] x=v0004")
		c.rows(1, "g=set[m n] x=v0004")
		c.run("B.add_h_m B.sync A.sync A.sweep_h A.sync B.sync B.add_h_n B.sync A.sync")
		c.rows(0, "g=set[m n] h=set[m n] x=v0004") // B's row had the first member still
		c.rows(1, "g=set[m n] h=set[m n] x=v0004")
		c.run("A.sweep_x A.sync B.sync A.set_x A.sync B.sync") // by the clone that swept it
		c.rows(0, "g=set[m n] h=set[m n] x=v0005")
		c.rows(1, "g=set[m n] h=set[m n] x=v0005")
		c.run("A.sweep_x A.sync B.sync B.rm_x B.sync A.sync") // a row that is not live is removed
		c.rows(0, "g=set[m n] h=set[m n]")
		c.rows(1, "g=set[m n] h=set[m n]")
		c.agree()
	}
}

// What a sweep takes stays away also from clones whose clock is ahead: a row that is not
// live does not stand against a newer value.
func TestRetentionClockSkew(t *testing.T) {
	t.Parallel()
	c := quickCase(t, 2, 1_000_500)
	c.run("A.set_x A.sync B.sync B.sweep_x B.sync A.sync B.set_x B.sync A.sync")
	c.rows(0, "x=v0002")
	c.rows(1, "x=v0002")
	c.published("x=v0002")
	c.agree()
}

// Local commits become one serialize, one prune and one retention commit on the remote
// tip; the last has its own form.
func TestRetentionIsMerged(t *testing.T) {
	t.Parallel()
	c := newCase(t, 2, 0)
	c.run("A.set_x A.set_y A.set_z A.set_q A.sync B.sync B.set_o B.sync")
	c.run("A.set_q A.prune A.sweep_z A.serialize A.sweep_y A.serialize A.set_p A.sync")
	if got := c.subjects()[:3]; got[0] != "git-meta: retention" || !strings.HasPrefix(got[1], "git-meta: prune --since") || got[2] != "git-meta: serialize" {
		t.Errorf("R has %q", c.subjects())
	}
	out, err := c.git(c.clone(0).dir, "log", "-1", "--format=%B", localMain)
	c.must(err)
	if want := "git-meta: retention\n\npruned: true\nreason: a collection's retention\nkeys-dropped: 2\nkeys-retained: 3"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	c.run("B.sync")
	c.rows(1, "o=v0005 p=v0007 q=v0006 x=v0001 y=v0002 z=v0003")
	for key, want := range map[string]store.Why{"x": store.Pruned, "y": store.Retained, "z": store.Retained, "q": ""} {
		if got := c.why(1, key); got != want {
			t.Errorf("B withholds %s as %q, want %q", key, got, want)
		}
	}
	c.agree()
}

// A clone made after the retention commit knows nothing of the key: it is no promised key,
// neither at once nor when its history is indexed.
func TestRetentionFreshClone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"A.set_x A.set_y A.sync A.sweep_x A.sync",
		"A.set_x A.set_y A.sync B.sync B.set_y B.sync A.sweep_x A.sync", // through a merge
	} {
		c := newCase(t, 3, 0)
		c.run(text + " C.sync")
		x := c.clone(2)
		for key := range c.rowsOf(2) {
			if key == "x" {
				t.Error("C has x")
			}
		}
		ix, err := serialize.IndexHistory(t.Context(), x.e, c.refOf(x.repo, trackedMain), serialize.IndexOptions{})
		c.must(err)
		if ix.Keys != 0 || ix.Removed != 1 {
			t.Errorf("indexed %+v", ix)
		}
		// a key that was noted as promised before the retention commit came
		c.must(x.db.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.PutPromised(keyOf("x"), c.refOf(x.repo, trackedMain).String())
			return err
		}))
		p, err := serialize.LoadPromised(t.Context(), x.e, c.refOf(x.repo, trackedMain), []meta.KeyRef{keyOf("x")})
		c.must(err)
		if len(p.Loaded) != 0 || len(p.Removed) != 1 {
			t.Errorf("loaded %+v", p)
		}
	}
}

func (c *caseWorld) rowsOf(i int) views { return c.clone(i).rows() }

// A key that was pruned from this store only and is swept elsewhere is gone: an edit
// starts from nothing.
func TestRetentionOfLocalPruned(t *testing.T) {
	t.Parallel()
	c := quickCase(t, 2)
	c.run("A.add_g_m A.set_y A.sync B.sync B.local-prune_g A.sweep_g A.sync B.sync")
	if c.why(1, "g") != "" {
		t.Errorf("withheld as %q", c.why(1, "g"))
	}
	c.run("B.add_g_n B.sync A.sync")
	c.rows(0, "g=set[n] y=v0001")
	c.agree()
}

// Swept between the reading and the writing of a merge or a serialize: the entry stays,
// and the next run drops the key.
func TestSweepDuringMerge(t *testing.T) {
	t.Parallel()
	c := newCase(t, 2, 0)
	c.run("A.set_x A.set_y A.sync B.sync A.set_y A.add_g_m A.sync B.set_x")
	x := c.clone(1)
	if err := x.fetch(); err != nil {
		t.Fatal(err)
	}
	swept := false
	hook := hookPruner{check: func() {
		if swept {
			return
		}
		swept, c.w.loss[1]["x"] = true, true
		err := other(x, func(e *serialize.Env) error {
			y := *x
			y.db = e.DB
			if !y.sweep(keyOf("x")) {
				return errors.New("x was not swept")
			}
			return y.err
		})
		if err != nil {
			t.Error(err)
		}
	}}
	if _, err := serialize.Run(t.Context(), x.e, serialize.Options{Pruner: hook}); err != nil {
		t.Fatal(err)
	}
	if _, ok := x.rows()["x"]; ok || !swept {
		t.Errorf("B has %s", x.rows())
	}
	c.run("B.sync A.sync")
	c.published("g=set[m] y=v0003")
	c.rows(1, "g=set[m] y=v0003")
	if c.why(1, "x") != "" {
		t.Errorf("withheld as %q", c.why(1, "x"))
	}
	// and while a merge is written
	c.run("A.set_x A.sync B.sync A.set_y A.sync")
	if err := x.fetch(); err != nil {
		t.Fatal(err)
	}
	swept = false
	if _, err := serialize.Materialize(t.Context(), x.e, trackedMain, serialize.MergeOptions{Pruner: hook}); err != nil {
		t.Fatal(err)
	}
	c.run("B.sync A.sync")
	c.published("g=set[m] y=v0006")
	if _, ok := x.rows()["x"]; ok || c.why(1, "x") != "" {
		t.Errorf("B has %s, withheld as %q", x.rows(), c.why(1, "x"))
	}
	c.agree()
}

// hookPruner calls check while a run has read the store and not written to it yet.
type hookPruner struct{ check func() }

func (p hookPruner) Check(context.Context, *serialize.Env, *store.Tx, serialize.Measured) (exceeded, known bool, stats map[string]store.Stats, err error) {
	p.check()
	return false, true, nil, nil
}

func (p hookPruner) Prune(context.Context, *serialize.Env, serialize.Committed) (*serialize.Pruned, error) {
	return nil, nil
}

// A tree over a maximum that is about to lose what was swept is not cut back for it.
func TestRetentionBeforePrune(t *testing.T) {
	t.Parallel()
	c := newCase(t, 1, 4)
	c.run("A.set_a A.set_b A.set_c A.set_d A.serialize A.sweep_a A.sweep_b A.set_e")
	x := c.clone(0)
	res, err := serialize.Run(t.Context(), x.e, serialize.Options{Pruner: prune.Auto{}})
	c.must(err)
	if res.AutoPrune != nil || res.Retention == nil || res.Retention.KeysDropped != 2 || res.Retention.KeysRetained != 5 { // the two rules too
		t.Errorf("got %+v %+v", res.AutoPrune, res.Retention)
	}
	if _, tree, _ := x.tip(); tree.String() != "c=v0003 d=v0004 e=v0005" {
		t.Errorf("tree %s", tree)
	}
	// still over it: both, the prune on top, and the tree is measured from what was known
	c.run("A.set_f A.serialize A.sweep_c A.set_g A.set_h")
	if res, err = serialize.Run(t.Context(), x.e, serialize.Options{Pruner: prune.Auto{}}); err != nil || res.AutoPrune == nil || res.Retention == nil {
		t.Fatalf("got %+v, %v", res, err)
	}
	out, err := c.git(x.dir, "log", "--format=%s", "-3", localMain)
	c.must(err)
	if want := "git-meta: auto-prune\ngit-meta: retention\ngit-meta: serialize (2 changes)"; out != want {
		t.Errorf("got %q", out)
	}
	if idle, err := serialize.NothingToDo(t.Context(), x.repo, x.db, "meta"); !idle || err != nil {
		t.Errorf("idle %v, %v", idle, err)
	}
}

// Births across a merge: what the local commits brought is told anew, with the time that
// the merged history has.
func TestBirthsAcrossMerge(t *testing.T) {
	t.Parallel()
	c := newCase(t, 2, 0)
	c.run("A.set_x A.set_z A.sync B.sync")
	x := c.clone(1)
	rd, err := x.repo.Objects(t.Context())
	c.must(err)
	from := c.refOf(x.repo, localMain)
	known := map[string]int64{}
	read := func() {
		t.Helper()
		tip := c.refOf(x.repo, localMain)
		c.must(serialize.Births(t.Context(), rd, from, tip, func(b serialize.Birth) error {
			if b.Has {
				known[letterOf(b.KeyRef)] = b.Time - realStart
			} else if b.Lost == serialize.LostRemoval || b.Lost == serialize.LostFork || b.Lost == serialize.LostRetention {
				delete(known, letterOf(b.KeyRef))
			}
			return nil
		}))
		from = tip
	}
	c.run("B.set_p B.serialize")
	read()
	c.run("B.set_p B.set_q B.rm_z B.serialize A.set_o A.sweep_x A.sync")
	read()
	c.run("B.sync")
	read()
	got := []string{}
	for k, ms := range known {
		got = append(got, fmt.Sprintf("%s %d", k, ms/tickMS))
	}
	slices.Sort(got)
	// p was made in step 5 and edited in step 7; the merge publishes the edit alone
	if want := []string{"o 11", "p 7", "q 8"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	base, err := serialize.Forked(t.Context(), rd, c.refOf(x.repo, trackedMain), from)
	if err != nil || base != c.refOf(x.repo, trackedMain) {
		t.Errorf("forked at %s, %v", base, err)
	}
}
