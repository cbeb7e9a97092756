package serialize

import (
	"context"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// verdict says what to do about a tip that the store's cursor does not describe: the
// store was lost or replaced, the peer moved the ref, somebody fetched over it (design
// §4, "Comparison").
type verdict struct {
	at        store.Position       // the log position the store was read at
	publish   map[meta.KeyRef]bool // the store wins
	load      []loadKey            // the tip wins
	remove    []loadKey            // the tip says that it was removed
	prune     []meta.KeyRef        // the tip lost it to a prune: the row stays, withheld
	unclear   []meta.KeyRef        // the tip lost it to a tombstone that does not count: likewise
	retained  []meta.KeyRef        // another clone's retention dropped it: likewise
	back      []meta.KeyRef        // the tip holds again what was withheld
	overtaken bool                 // others have written to the store since
	lost      int                  // keys in publish that the tip lost for no reason
	odd       map[string]error     // paths of the tip that can't be read
}

// loadKey is a key to take over from a tree.
type loadKey struct {
	meta.KeyRef
	state   *keyState
	rowTime int64 // last_timestamp of the row when it was judged, -1: no row
	org     origin
}

type judge struct {
	ctx  context.Context
	env  *Env
	rd   *gitdb.Reader
	tx   *store.Tx
	tip  gitdb.Hash // commit
	tree gitdb.Hash
	fil  *meta.Filter
	v    *verdict
	read treeKeys // of the tip, where they are known
}

// reconcile compares the store with the tree of tip, which ref is at.
func reconcile(ctx context.Context, env *Env, rd *gitdb.Reader, tx *store.Tx, ref string, tip gitdb.Hash, fil *meta.Filter, filterSet string) (*verdict, error) {
	j := &judge{
		ctx: ctx, env: env, rd: rd, tx: tx, tip: tip, fil: fil,
		v: &verdict{publish: map[meta.KeyRef]bool{}, odd: map[string]error{}},
	}
	var err error
	if j.v.at, err = tx.LogPosition(); err != nil {
		return nil, err
	}
	if j.tree, err = treeOf(ctx, rd, tip); err != nil {
		return nil, err
	}
	cur, known, err := tx.LatestCursor(ref)
	if err != nil {
		return nil, err
	}
	from := plumbing.NewHash(cur.Commit)
	usable := known && from != zero && rd.Has(ctx, from)
	if usable {
		holds, err := tx.LogHolds(cur.Log)
		if err != nil {
			return nil, err
		}
		ancestor, err := isAncestor(ctx, rd, from, tip)
		if err != nil {
			return nil, err
		}
		switch usable = holds && cur.FilterSet == filterSet; {
		case usable && ancestor:
			return j.v, j.byDiff(from, cur.Log)
		case usable:
			return j.v, j.aside(from, cur.Log)
		}
	}
	return j.v, j.whole(known && from != zero)
}

// rowOf returns the publishable row of k, nil if there is none.
func (j *judge) rowOf(k meta.KeyRef) (*store.Record, error) {
	rec, err := j.tx.Get(k)
	if isNotFound(err) || err == nil && rec.SourceRef != "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &rec, nil
}

// byDiff judges what changed in the tree since from, and in the store since pos.
func (j *judge) byDiff(from gitdb.Hash, pos store.Position) error {
	before, err := treeOf(j.ctx, j.rd, from)
	if err != nil {
		return err
	}
	diff, err := changedKeys(j.ctx, j.rd, before, j.tree)
	if err != nil {
		return err
	}
	edits, err := j.tx.ChangesSince(pos)
	if err != nil {
		return err
	}
	edited := map[meta.KeyRef]bool{}
	for _, c := range edits {
		edited[c.KeyRef] = true
	}
	inDiff := map[meta.KeyRef]bool{}
	for _, k := range diff {
		inDiff[k.KeyRef] = true
	}
	for _, c := range edits {
		if !inDiff[c.KeyRef] {
			j.v.publish[c.KeyRef] = true
		}
	}
	past, err := j.past(inDiff, from)
	if err != nil {
		return err
	}
	look := lookup{ctx: j.ctx, rd: j.rd, root: j.tree}
	for _, k := range diff {
		s, err := readKey(&look, k.KeyRef)
		if err != nil {
			return err
		}
		rec, err := j.rowOf(k.KeyRef)
		if err != nil {
			return err
		}
		if err := j.one(k.KeyRef, rec, s, edited[k.KeyRef], past[k.KeyRef], true); err != nil {
			return err
		}
	}
	return j.explain()
}

// aside judges a tip that does not contain from, the commit that the store was at: a merge
// that was interrupted after it had moved the ref, or somebody who moved the ref aside.
// Both are decided as in any merge, but what comes of it goes to the store; what the tip
// has otherwise is published.
func (j *judge) aside(from gitdb.Hash, pos store.Position) error {
	base, err := mergeBase(j.ctx, j.env.Repo, from, j.tip)
	if err != nil {
		return err
	}
	edits, err := j.tx.ChangesSince(pos)
	if err != nil {
		return err
	}
	for _, c := range edits {
		j.v.publish[c.KeyRef] = true
	}
	m := &merger{ctx: j.ctx, env: j.env, rd: j.rd, tx: j.tx, base: base, local: from, remote: j.tip}
	if err := m.decide(); err != nil {
		return err
	}
	if err := m.resolveTimes(); err != nil {
		return err
	}
	for _, d := range m.keys {
		if !j.v.publish[d.KeyRef] {
			j.settle(d)
		}
	}
	return nil
}

// settle takes over what was decided of a key that the store has not edited since.
func (j *judge) settle(d *mergedKey) {
	v, k := d.out.Result, loadKey{d.KeyRef, d.r, -1, origin{}}
	if d.row != nil {
		k.rowTime = d.row.Time
	}
	_, inTip := d.r.kind()
	same := v != nil && inTip && contentOf(d.r).Same(v.Content)
	switch {
	case d.out.Unload:
		k.org = origin{d.in.Remote.RemovedAt, "unknown", true}
		j.v.remove = append(j.v.remove, k)
		return
	case v == nil:
		if inTip {
			j.v.publish[d.KeyRef] = true
		}
		return
	case !d.needsLoad() && !(same && d.in.Withheld && d.row != nil):
	default:
		if !same {
			k.state = d.state(d.left())
		}
		k.org = origin{v.Time, v.Email, true}
		j.v.load = append(j.v.load, k)
	}
	switch hasRow := d.row != nil || d.out.Load; {
	case same || !hasRow:
	case d.unclear:
		j.v.unclear = append(j.v.unclear, d.KeyRef)
	case !d.out.Shown && d.retained():
		j.v.retained = append(j.v.retained, d.KeyRef)
	case !d.out.Shown:
		j.v.prune = append(j.v.prune, d.KeyRef)
	default:
		if !inTip {
			j.v.lost++
		}
		j.v.publish[d.KeyRef] = true
	}
}

// whole judges every row and every key of the tip. cursor says whether the store has
// published before.
func (j *judge) whole(cursor bool) error {
	keys, plain, err := readTree(j.ctx, j.rd, j.tree, func(p string, why error) { j.v.odd[p] = why })
	if err != nil {
		return err
	}
	if plain {
		j.read = listKeys(j.ctx, j.rd, j.tip, keys)
	}
	type open struct {
		rec   store.Record
		state *keyState
	}
	var unclear []open
	held := map[meta.KeyRef]bool{}
	for w, err := range j.tx.AllWithheld() {
		if err != nil {
			return err
		}
		held[w.KeyRef] = true
	}
	cand := map[meta.KeyRef]bool{}
	seen := map[meta.KeyRef]bool{}
	for rec, err := range j.tx.Records(store.Query{Publishable: true}) {
		if err != nil {
			return err
		}
		s := keys[rec.KeyRef]
		if s != nil {
			seen[rec.KeyRef] = true
		}
		if !j.fil.Sends(rec.Key, meta.MainDestination) {
			if s != nil {
				j.v.publish[rec.KeyRef] = true // it leaves the tree
			}
			continue
		}
		if !sameRow(rec.Value, s) {
			unclear = append(unclear, open{rec, s})
			cand[rec.KeyRef] = true
		} else if _, in := s.kind(); in && held[rec.KeyRef] {
			j.v.back = append(j.v.back, rec.KeyRef)
		}
	}
	// in the order of the tables: rows are written far faster than in any other
	rest := make([]meta.KeyRef, 0, len(keys)-len(seen))
	for ref := range keys {
		if !seen[ref] {
			rest = append(rest, ref)
		}
	}
	slices.SortFunc(rest, meta.KeyRef.Compare)
	for _, ref := range rest {
		s := keys[ref]
		if !j.fil.Sends(ref.Key, meta.MainDestination) {
			j.v.publish[ref] = true
			continue
		}
		if err := j.one(ref, nil, s, false, nil, cursor); err != nil {
			return err
		}
	}
	past, err := j.past(cand, zero)
	if err != nil {
		return err
	}
	for _, o := range unclear {
		if err := j.one(o.rec.KeyRef, &o.rec, o.state, true, past[o.rec.KeyRef], cursor); err != nil {
			return err
		}
	}
	return j.explain()
}

// one judges one key: rec is its row, s what the tip holds, edited whether the store
// may have an edit that was not published, past what the history says of it.
func (j *judge) one(k meta.KeyRef, rec *store.Record, s *keyState, edited bool, past *pastOf, cursor bool) error {
	w, withheld, err := j.tx.Withheld(k)
	if err != nil {
		return err
	}
	withheld = withheld && w.Why != store.Gone
	_, inTip := s.kind()
	load := func() {
		t := int64(-1)
		if rec != nil {
			t = rec.Time
		}
		j.v.load = append(j.v.load, loadKey{k, s, t, origin{}})
	}
	switch {
	case rec != nil && sameRow(rec.Value, s):
		if withheld && inTip { // it is back: the entry ends
			j.v.back = append(j.v.back, k)
		}
		return nil
	case rec == nil && inTip:
		if withheld && (w.Why == store.LocalPruned || w.Why == store.Swept) && !past.changedSince() {
			return nil
		}
		gone, err := j.removedHere(k)
		if err != nil {
			return err
		}
		if gone && (edited || past == nil) {
			j.v.publish[k] = true
			return nil
		}
		load()
	case rec == nil: // nothing on either side but tombstones
		if s != nil && s.tomb != zero {
			j.v.remove = append(j.v.remove, loadKey{k, s, -1, origin{}})
		}
	case inTip: // both, different
		if edited && !past.holds(rec.Value) {
			j.v.publish[k] = true
			return nil
		}
		load()
	default: // the tip lacks it
		switch {
		case past != nil && past.removed && (!edited || past.holds(rec.Value)):
			j.v.remove = append(j.v.remove, loadKey{k, s, rec.Time, origin{}})
		case past != nil && past.retained && (!edited || past.holds(rec.Value)):
			j.v.retained = append(j.v.retained, k)
		case withheld:
		case past != nil && past.unclear && (!edited || past.holds(rec.Value)):
			j.v.unclear = append(j.v.unclear, k)
		case past != nil && past.pruned && (!edited || past.holds(rec.Value)):
			j.v.prune = append(j.v.prune, k)
		case !cursor && past.holds(rec.Value):
			j.v.prune = append(j.v.prune, k)
		default:
			if past != nil && !edited {
				j.v.lost++
			}
			j.v.publish[k] = true
		}
	}
	return nil
}

// removedHere reports whether the store holds a tombstone of the key.
func (j *judge) removedHere(k meta.KeyRef) (bool, error) {
	ts, err := j.tx.Tombstones(k)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(ts, func(t meta.Tombstone) bool { return t.Kind == meta.KeyTombstone }), nil
}

// explain finds out when and by whom the keys to load were written.
func (j *judge) explain() error {
	open := make(map[meta.KeyRef]*loadKey, len(j.v.load)+len(j.v.remove))
	for _, list := range [][]loadKey{j.v.load, j.v.remove} {
		for i := range list {
			open[list[i].KeyRef] = &list[i]
		}
	}
	return eachOrigin(j.ctx, j.rd, j.tip, len(open), j.read, func(k meta.KeyRef, o origin) bool {
		l := open[k]
		if l == nil {
			return false
		}
		l.org = o
		delete(open, k)
		return true
	})
}

// pastOf is what a range of history says of one key.
type pastOf struct {
	states   []*keyState // values it had, newest first
	removed  bool        // the last that happened to it is a removal that counts (design §8)
	unclear  bool        // the last that happened to it is a tombstone that does not count
	pruned   bool        // the last that happened to it is a prune
	retained bool        // the last that happened to it is a retention
}

func (p *pastOf) changedSince() bool { return p != nil && len(p.states) > 0 }

// holds reports whether one of the states is the value v.
func (p *pastOf) holds(v meta.Value) bool {
	if p == nil {
		return false
	}
	want := stateOf(v)
	return slices.ContainsFunc(p.states, func(s *keyState) bool { return sameValue(s, want) })
}

// past collects what the commits from the tip back to stop say of the keys in cand.
func (j *judge) past(cand map[meta.KeyRef]bool, stop gitdb.Hash) (map[meta.KeyRef]*pastOf, error) {
	out := map[meta.KeyRef]*pastOf{}
	if len(cand) == 0 {
		return out, nil
	}
	err := history(j.ctx, j.rd, j.tip, stop, func(s step) (bool, error) {
		keys, err := changedKeys(j.ctx, j.rd, s.before, s.commit.Tree)
		if err != nil {
			return false, err
		}
		retention := isRetentionCommit(s.commit.Message)
		pruned := !retention && isPruneCommit(s.commit.Message)
		look := lookup{ctx: j.ctx, rd: j.rd, root: s.commit.Tree}
		gone := map[meta.KeyRef]bool{}
		for _, k := range removals(s.commit.Message) {
			gone[k] = true
		}
		for _, k := range keys {
			if !cand[k.KeyRef] {
				continue
			}
			state, err := readKey(&look, k.KeyRef)
			if err != nil {
				return false, err
			}
			p := out[k.KeyRef]
			if p == nil {
				p = &pastOf{}
				out[k.KeyRef] = p
				if _, has := state.kind(); !has {
					p.pruned, p.retained = pruned, retention
					p.removed = gone[k.KeyRef]
					if !pruned && !retention && !p.removed && state != nil && state.tomb != zero {
						if p.removed, err = explicitTombstone(j.ctx, j.rd, state.tomb); err != nil {
							return false, err
						}
						p.unclear = !p.removed
					}
				}
			}
			if _, has := state.kind(); has {
				p.states = append(p.states, state)
			}
		}
		return true, nil
	})
	return out, err
}
