package serialize

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// historian writes commits from paths, as no program of ours need have written them.
type historian struct {
	*world
	paths map[string]string // path → content of the tree being made
	clock int64             // s; author date of the next commit
}

func (w *world) historian() *historian {
	return &historian{world: w, paths: map[string]string{}, clock: t0 / 1000}
}

// commit writes the paths on top of parent, a second later than the commit before.
func (h *historian) commit(parent gitdb.Hash, msg string) gitdb.Hash {
	h.t.Helper()
	w, err := h.g.repo.NewWriter(context.Background())
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	var ops []op
	for p, text := range h.paths {
		data := []byte(text)
		ops = append(ops, op{path: p, kind: opPut, mode: modeBlob, key: -1, id: gitdb.HashObject(blobObject, data), data: data})
	}
	sortOps(ops)
	ed := editor{ctx: context.Background(), rd: h.reader(), put: w.Put}
	tree, err := ed.apply(zero, ops, 0)
	if err == nil && tree == zero {
		tree = gitdb.HashObject(treeObject, nil)
		err = w.Put(treeObject, tree, nil)
	}
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	h.clock++
	who := gitdb.Ident{Name: "A", Email: "a@example.com", When: time.Unix(h.clock, 0).UTC()}
	c := gitdb.Commit{Tree: tree, Author: who, Committer: who, Message: msg}
	if parent != zero {
		c.Parents = []gitdb.Hash{parent}
	}
	data := c.Encode()
	id := gitdb.HashObject(commitObject, data)
	if err := w.Put(commitObject, id, data); err != nil {
		h.t.Fatalf("%v", err)
	}
	if err := w.Finish(context.Background()); err != nil {
		h.t.Fatalf("%v", err)
	}
	if err := w.Release(); err != nil {
		h.t.Fatalf("%v", err)
	}
	return id
}

// known is what a reader of [Births] keeps: since when each key is published.
type known map[meta.KeyRef]int64

func (k known) take(b Birth) error {
	switch {
	case b.Has:
		k[b.KeyRef] = b.Time
	case b.Lost == LostRemoval || b.Lost == LostRetention || b.Lost == LostFork:
		delete(k, b.KeyRef)
	}
	return nil
}

func (k known) String() string {
	var out []string
	for ref, ms := range k {
		out = append(out, fmt.Sprintf("%s %d", ref.Key, ms-t0))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func (w *world) births(from, tip gitdb.Hash) []string {
	w.t.Helper()
	var out []string
	err := Births(context.Background(), w.reader(), from, tip, func(b Birth) error {
		if b.Has {
			out = append(out, fmt.Sprintf("%s %d", b.KeyRef, b.Time-t0))
		} else {
			out = append(out, fmt.Sprintf("%s lost %d", b.KeyRef, b.Lost))
		}
		return nil
	})
	if err != nil {
		w.t.Fatalf("births: %v", err)
	}
	return out
}

func TestBirths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set(1001, "branch:main a", "1", "branch:main b", "1")
	w.serialize(Options{})
	first := w.tip()
	w.set(2002, "branch:main a", "2", "project c", "1")
	w.serialize(Options{})
	second := w.tip()
	same(t, "first", lines(w.births(zero, first)...), lines("branch:main a 1001", "branch:main b 1001"))
	same(t, "edits are no births", lines(w.births(first, second)...), lines("project c 2002"))
	same(t, "nothing", lines(w.births(second, second)...), lines())
	w.pruneKey("branch:main a")
	pruned := w.tip()
	same(t, "prune", lines(w.births(second, pruned)...), lines("branch:main a lost 3"))
	w.set(3003, "branch:main a", "3")
	w.rm(3004, "branch:main b")
	w.serialize(Options{})
	same(t, "again and removed", lines(w.births(pruned, w.tip())...), lines("branch:main a 3003", "branch:main b lost 1"))
	w.commitTree("git-meta: retention\n\npruned: true\nreason: collection retention", without("project/c/__value"))
	w.serialize(Options{})
	same(t, "retention", lines(w.births(pruned, w.tip())...), lines("branch:main a 3003", "branch:main b lost 1", "project c lost 4"))

	got, err := BirthsOf(context.Background(), w.reader(), pruned, map[meta.KeyRef]bool{keyRef("branch:main a"): true, keyRef("branch:main b"): true, keyRef("project zzz"): true})
	if err != nil {
		t.Fatal(err)
	}
	want := map[meta.KeyRef]Born{keyRef("branch:main a"): {t0 + 1001, true}, keyRef("branch:main b"): {t0 + 1001, false}}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := Births(context.Background(), w.reader(), gitdbHash(strings.Repeat("1", 40)), pruned, nil); !errors.Is(err, gitdb.ErrObjectMissing) {
		t.Errorf("a commit that is not here: %v", err)
	}
}

// A random history: keeping up commit by commit, keeping up across a fork and starting
// anew must know the same as somebody who saw every tree.
func TestBirthsRandom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 1))
		h := w.historian()
		m := &birthModel{known: known{}, item: map[string]bool{}, hist: h, r: r}
		type point struct {
			id gitdb.Hash
			birthModel
			paths map[string]string
		}
		var points []point
		tip := zero
		for i := range 24 {
			if i == 14 { // a fork: go on from an older commit
				p := points[r.IntN(10)]
				tip, m.known, m.item, h.paths = p.id, maps.Clone(p.known), maps.Clone(p.item), maps.Clone(p.paths)
			}
			tip = h.commit(tip, m.op())
			points = append(points, point{tip, birthModel{known: maps.Clone(m.known), item: maps.Clone(m.item)}, maps.Clone(h.paths)})
		}
		whole := known{}
		if err := Births(t.Context(), w.reader(), zero, tip, whole.take); err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("seed %d: whole", seed), whole.String(), m.known.String())
		for _, p := range points {
			k := maps.Clone(p.known)
			if err := Births(t.Context(), w.reader(), p.id, tip, k.take); err != nil {
				t.Fatal(err)
			}
			// what only a prune hides may keep a time of the other line, or lose it
			same(t, fmt.Sprintf("seed %d: from %s", seed, p.id), m.shown(k).String(), m.shown(m.known).String())
		}
		want := map[meta.KeyRef]bool{}
		for _, k := range birthKeys {
			want[keyRef("branch:main "+k)] = true
		}
		born, err := BirthsOf(t.Context(), w.reader(), tip, want)
		if err != nil {
			t.Fatal(err)
		}
		anew := known{}
		for k, b := range born {
			anew[k] = b.Time
			if b.Pruned == m.item[k.Key] {
				t.Errorf("seed %d: %s: pruned %v", seed, k, b.Pruned)
			}
		}
		same(t, fmt.Sprintf("seed %d: anew", seed), anew.String(), m.known.String())
	}
}

var birthKeys = []string{"a", "b", "s", "t"} // the last two are sets

// birthModel is what the history says, kept by the rules of design §10.
type birthModel struct {
	known known
	item  map[string]bool // key → the tree shows a value
	hist  *historian
	r     *rand.Rand
}

func (m *birthModel) shown(k known) known {
	out := known{}
	for ref, ms := range k {
		if m.item[ref.Key] {
			out[ref] = ms
		}
	}
	return out
}

// op changes the paths and returns the message of the commit that does it.
func (m *birthModel) op() string {
	k := birthKeys[m.r.IntN(len(birthKeys))]
	ref := keyRef("branch:main " + k)
	base := "branch/b2/main/"
	value, tomb := base+k+"/__value", base+"__tombstones/"+k+"/__deleted"
	isSet := k >= "s"
	member := func(n int) string {
		text := fmt.Sprint("m", n)
		return base + k + "/__set/" + gitdb.HashObject(blobObject, []byte(text)).String()
	}
	drop := func(prefix string) {
		maps.DeleteFunc(m.hist.paths, func(p, _ string) bool { return strings.HasPrefix(p, prefix) })
	}
	ms := (m.hist.clock + 1) * 1000
	bring := func() string {
		if !m.item[k] {
			m.known[ref] = ms
		}
		m.item[k] = true
		delete(m.hist.paths, tomb)
		return "git-meta: serialize (1 changes)\n\nA\tbranch:main\t" + k
	}
	switch n := m.r.IntN(10); {
	case n < 3 && !isSet:
		m.hist.paths[value] = fmt.Sprint(m.r.IntN(1000))
		return bring()
	case n < 3:
		i := m.r.IntN(3)
		drop(base + k + "/__tombstones/" + member(i)[len(base+k+"/__set/"):])
		m.hist.paths[member(i)] = fmt.Sprint("m", i)
		return bring()
	case n < 5 && isSet && m.item[k]: // a member goes, the set stays
		for i := range 3 {
			if text, ok := m.hist.paths[member(i)]; ok {
				delete(m.hist.paths, member(i))
				m.hist.paths[base+k+"/__tombstones/"+member(i)[len(base+k+"/__set/"):]] = text
				return bring()
			}
		}
		return "git-meta: serialize (0 changes)\n"
	case n < 6:
		had := m.item[k]
		drop(base + k + "/")
		delete(m.known, ref)
		m.item[k] = false
		m.hist.paths[tomb] = fmt.Sprintf(`{"timestamp":%d,"email":"a@example.com","explicit":true}`, ms)
		if !had {
			return "git-meta: serialize (0 changes)\n"
		}
		return "git-meta: serialize (1 changes)\n\nD\tbranch:main\t" + k
	case n < 8:
		n := len(m.hist.paths)
		drop(value)
		drop(base + k + "/__set/") // the tombstones stay: of an empty set nothing goes
		m.item[k] = m.item[k] && len(m.hist.paths) == n
		return "git-meta: auto-prune\n\npruned: true"
	case n < 9:
		n := len(m.hist.paths)
		drop(base + k + "/")
		if len(m.hist.paths) < n {
			delete(m.known, ref)
		}
		m.item[k] = false
		return "git-meta: retention\n\npruned: true"
	}
	drop(base + k + "/")
	m.item[k] = false
	return "somebody dropped it"
}

// At a shallow cut nothing is known of what came before: the author date of the oldest
// commit that is here is an upper bound.
func TestBirthsShallow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, key := range []string{"a", "b", "c"} {
		w.set(int64(1001*(i+1)), "branch:main "+key, "1")
		w.serialize(Options{})
	}
	dir := t.TempDir()
	gitIn(t, dir, "", "init", "-q")
	gitIn(t, dir, "", "fetch", "-q", "--depth=2", "file://"+w.g.dir, w.ref+":refs/x")
	repo, err := gitdb.Discover(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { repo.Close() })
	rd, err := repo.Objects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := known{}
	if err := Births(t.Context(), rd, zero, w.tip(), got.take); err != nil {
		t.Fatal(err)
	}
	want := lines("a 2000", "b 2000", "c 3003")
	same(t, "births", got.String()+"\n", want)
	born, err := BirthsOf(t.Context(), rd, w.tip(), map[meta.KeyRef]bool{keyRef("branch:main a"): true, keyRef("branch:main c"): true})
	if err != nil || len(born) != 2 || born[keyRef("branch:main a")].Time != t0+2000 || born[keyRef("branch:main c")].Time != t0+3003 {
		t.Errorf("got %v, %v", born, err)
	}
	// a fork of which the common commit lies behind the cut
	if base, err := Forked(t.Context(), rd, gitdbHash(w.git("rev-parse", w.ref+"~1")), w.tip()); err != nil || base.String() != w.git("rev-parse", w.ref+"~1") {
		t.Errorf("forked at %s, %v", base, err)
	}
	if _, err := Forked(t.Context(), rd, gitdbHash(w.git("rev-parse", w.ref+"~2")), w.tip()); !errors.Is(err, gitdb.ErrObjectMissing) {
		t.Errorf("behind the cut: %v", err)
	}
}
