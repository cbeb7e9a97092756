package serialize

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Options says how to serialize.
type Options struct {
	ForceFull bool   // write every publishable key, pruned ones too
	DryRun    bool   // say what would be written, write nothing
	Pruner    Pruner // nil: never prune

	first *firstLoad // what the tip holds, for a store that holds nothing
}

// Pruner cuts a tree back that has passed its maximum. It is handed in, so that this
// package does not know the rules.
type Pruner interface {
	// Check tells whether the tree of m passes a maximum. known is false where the tree
	// has to be walked to tell; stats are measurements worth keeping, by tree id.
	Check(ctx context.Context, env *Env, tx *store.Tx, m Measured) (exceeded, known bool, stats map[string]store.Stats, err error)
	// Prune measures c's tree, cuts it back if it passes a maximum, and marks the tip as
	// checked. It returns nil if nothing was cut.
	Prune(ctx context.Context, env *Env, c Committed) (*Pruned, error)
}

// Measured is a tree and how it differs from the one it was made from.
type Measured struct {
	Old, New gitdb.Hash
	Delta    Delta
}

// Committed is a tip that this program has published.
type Committed struct {
	Ref          string
	Commit, Tree gitdb.Hash
	Cursor       store.Cursor // of Commit
}

// Pruned is what an auto-prune did.
type Pruned struct {
	Ref, Commit               string
	KeysDropped, KeysRetained int64
}

// RefResult is one ref that was (or, in a dry run, would be) written.
type RefResult struct {
	Ref, Commit string
	Changes     int
	Lines       []string // change lines, at most 1000; filled in a dry run
}

// Result is what a run did.
type Result struct {
	Refs      []RefResult
	AutoPrune *Pruned
	Retention *Retained // nil: nothing was swept that a published tree holds
	Loaded    int       // keys loaded from a tip that this store had not seen
	// WouldPrune: in a dry run, the new tree passes a maximum and would be cut back. What
	// would go is known only once the tree is there.
	WouldPrune bool
}

// moveFor is how long a run tries again while other processes keep moving the ref.
const moveFor = 30 * time.Second

// Run publishes what has changed. Errors: [meta.ErrConflict] if the ref kept moving;
// gitdb's LockError and RefConflictError where a ref can't be written.
func Run(ctx context.Context, env *Env, o Options) (*Result, error) {
	if err := CheckNamespace(env.Namespace); err != nil {
		return nil, err
	}
	res := &Result{}
	err := again(ctx, env, func() error {
		r := &run{env: env, o: o, res: res}
		return r.once(ctx)
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// again calls once until it succeeds or fails for another reason than that somebody else
// was faster, for as long as [moveFor], waiting longer and longer with jitter.
func again(ctx context.Context, env *Env, once func() error) error {
	start := time.Now()
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		err := once()
		if err == nil || !errors.Is(err, gitdb.ErrRefMoved) && !errors.Is(err, errStoreMoved) {
			return err
		}
		if time.Since(start) > moveFor {
			return fmt.Errorf("%w: %s kept moving for %s", meta.ErrConflict, env.LocalRef(meta.MainDestination), moveFor)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait/2 + rand.N(wait)):
		}
	}
}

// run is one attempt.
type run struct {
	env *Env
	o   Options
	res *Result
	rd  *gitdb.Reader
	w   *gitdb.Writer
	fil *meta.Filter
	// noSet are the keys of filter rules that hold something else.
	noSet []error
	// short says whether 1- and 2-byte targets may be published; filterSet identifies
	// everything that decides where keys go.
	short     bool
	filterSet string

	outs []*output
	mark int64                 // ms; what the store got later is not in this run
	tips map[string]gitdb.Hash // ref → commit
}

// output is what becomes of one ref.
type output struct {
	dest, ref string
	tip       gitdb.Hash // commit, or zero
	tree      gitdb.Hash // its tree
	base      store.Cursor
	mode      mode
	publish   map[meta.KeyRef]bool // keys to write that the log does not name

	commit  gitdb.Hash // new commit, or zero
	newTree gitdb.Hash
	lines   []line
	delta   Delta
	pos     store.Position
	checked bool // tip or new commit is known to be under the maximum
	stats   map[string]store.Stats
	ended   []meta.KeyRef // withheld keys that are published now
}

// mode is how the changes of an output are found.
type mode int

const (
	fromCursor  mode = iota // what lies behind the cursor
	fromAll                 // every row; withheld keys stay withheld
	fromScratch             // every row, withheld or not
)

func (r *run) once(ctx context.Context) (err error) {
	if r.rd, err = r.env.Repo.Objects(ctx); err != nil {
		return err
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if r.w, err = r.env.Repo.NewWriter(ctx); err != nil {
		return err
	}
	defer r.w.Abort()
	if err := r.build(ctx); err != nil {
		return err
	}
	if r.o.DryRun {
		r.report()
		return r.previewRetention(ctx)
	}
	if err := r.publish(ctx); err != nil {
		return err
	}
	r.report()
	if err := r.retain(ctx); err != nil {
		return err
	}
	return r.prune(ctx)
}

// prepare finds the tips and, where the store's cursor does not describe one, brings
// store and tip together.
func (r *run) prepare(ctx context.Context) error {
	env := r.env
	r.tips = map[string]gitdb.Hash{}
	mainRef := env.LocalRef(meta.MainDestination)
	tip, err := env.tip(ctx, mainRef)
	if err != nil {
		return err
	}
	r.tips[mainRef] = tip
	var dests []string
	known, empty := tip == zero, false
	err = env.DB.View(ctx, func(tx *store.Tx) error {
		if dests, err = r.destinations(tx); err != nil || known {
			return err
		}
		cur, ok, err := tx.Cursor(mainRef, tip.String())
		if err == nil && ok {
			known, err = tx.LogHolds(cur.Log)
		}
		if err == nil && !known {
			empty, err = tx.Empty()
		}
		return err
	})
	if err != nil {
		return err
	}
	var publish map[meta.KeyRef]bool
	var base store.Cursor
	if !known {
		base = store.Cursor{Ref: mainRef, Commit: tip.String(), FilterSet: r.filterSet}
		if publish, base.Log, err = r.takeOver(ctx, mainRef, tip, empty); err != nil {
			return err
		}
		if !r.o.DryRun {
			// what was loaded may hold filter rules: they are in force at once
			err = env.DB.View(ctx, func(tx *store.Tx) error {
				dests, err = r.destinations(tx)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	for _, err := range r.noSet {
		env.Warnf("%v; to start again: %s", err, meta.HintOf(err))
	}
	for _, p := range r.fil.Problems {
		env.Warnf("%v; what its pattern covers is not published", p)
	}
	for _, d := range dests {
		out := &output{dest: d, ref: env.LocalRef(d)}
		if d != meta.MainDestination {
			if r.tips[out.ref], err = env.tip(ctx, out.ref); err != nil {
				return err
			}
		} else {
			out.publish, out.base = publish, base
		}
		out.tip = r.tips[out.ref]
		if out.tree, err = treeOf(ctx, r.rd, out.tip); err != nil {
			return fmt.Errorf("%s: %w", out.ref, err)
		}
		r.outs = append(r.outs, out)
	}
	return nil
}

// takeOver brings store and tip together, in a dry run only in thought. It returns the keys
// of which the store's state is to be published, and the position of the log that the tip
// stands for then.
func (r *run) takeOver(ctx context.Context, ref string, tip gitdb.Hash, empty bool) (map[meta.KeyRef]bool, store.Position, error) {
	env := r.env
	if empty && !r.o.DryRun {
		first := r.o.first
		if first == nil || first.tip != tip {
			// whatever is wrong the general way says, or it fetches what is missing
			first, _ = readFirst(ctx, env, r.rd, tip, r.fil)
			defer first.close()
		}
		if first != nil {
			at, err := first.carryOut(ctx, env)
			if err == nil {
				r.res.Loaded += first.fill.Keys()
			}
			if !errors.Is(err, errGeneralWay) {
				return first.publish, at, err
			}
		}
	}
	var v *verdict
	err := env.DB.View(ctx, func(tx *store.Tx) (err error) {
		v, err = reconcile(ctx, env, r.rd, tx, ref, tip, r.fil, r.filterSet)
		return err
	})
	if errors.Is(err, gitdb.ErrNotCommit) {
		err = &meta.Error{Op: fmt.Sprintf("ref %q", ref), Err: err, Hint: "remove it: git update-ref -d " + ref}
	}
	if err != nil {
		return nil, store.Position{}, err
	}
	if r.o.DryRun {
		return v.publish, v.at, nil
	}
	at, err := carryOut(ctx, env, r.rd, v)
	if err == nil {
		r.res.Loaded += len(v.load)
	}
	return v.publish, at, err
}

// destinations reads the filter and returns the destinations to look at, sorted: main,
// those that rules name, those published before.
func (r *run) destinations(tx *store.Tx) ([]string, error) {
	texts, err := tx.FilterTexts()
	if err != nil {
		return nil, err
	}
	if r.noSet, err = tx.FilterProblems(); err != nil {
		return nil, err
	}
	r.fil = meta.NewFilter(texts)
	if r.short, err = shortAllowed(tx); err != nil {
		return nil, err
	}
	r.filterSet = r.fil.ID()
	if r.short {
		r.filterSet += "+short"
	}
	dests := r.fil.Destinations()
	refs, err := tx.CursorRefs()
	if err != nil {
		return nil, err
	}
	prefix := r.env.LocalRef("")
	for _, ref := range refs {
		if len(ref) > len(prefix) && ref[:len(prefix)] == prefix {
			dests = append(dests, ref[len(prefix):])
		}
	}
	slices.Sort(dests)
	return slices.Compact(dests), nil
}

// build makes the new trees and commits, in one snapshot of the store.
func (r *run) build(ctx context.Context) error {
	r.mark = r.env.now().UnixMilli()
	return r.env.DB.View(ctx, func(tx *store.Tx) error {
		for _, out := range r.outs {
			s := &source{ctx: ctx, env: r.env, tx: tx, fil: r.fil, filterSet: r.filterSet, out: out, short: r.short}
			if err := r.one(ctx, tx, s); err != nil {
				return fmt.Errorf("serialize to %s: %w", out.ref, err)
			}
		}
		return nil
	})
}

func (r *run) one(ctx context.Context, tx *store.Tx, s *source) error {
	out := s.out
	if err := s.choose(r.o.ForceFull); err != nil {
		return err
	}
	b := newBuilder(ctx, r.rd, r.w, out.tree)
	s.look = &b.look
	if err := s.feed(b); err != nil {
		return err
	}
	root, err := b.finish()
	if err != nil {
		return err
	}
	out.newTree, out.delta, out.ended = root, b.ed.delta, s.ended
	changed := root != out.tree && (out.tip != zero || b.anything())
	if changed {
		var times []keyTime
		out.lines, times = b.changed(out.tip == zero)
		data, err := r.env.serializeCommit(ctx, root, out.tip, out.lines, times)
		if err != nil {
			return err
		}
		out.commit = gitdb.HashObject(commitObject, data)
		if err := r.w.Put(commitObject, out.commit, data); err != nil {
			return err
		}
		what := "changes"
		if len(out.lines) == 1 {
			what = "change"
		}
		r.env.logf("building %s (%d %s)", out.ref, len(out.lines), what)
	} else {
		out.newTree = out.tree
	}
	if out.dest != meta.MainDestination || r.o.Pruner == nil {
		out.checked = true
		return nil
	}
	if !changed {
		out.checked = out.tip == zero || out.base.PruneChecked && !s.rules
		return nil
	}
	exceeded, known, stats, err := r.o.Pruner.Check(ctx, r.env, tx, Measured{Old: out.tree, New: out.newTree, Delta: out.delta})
	if err != nil {
		return err
	}
	out.checked, out.stats = known && !exceeded, stats
	r.res.WouldPrune = r.o.DryRun && exceeded
	return nil
}

// anything reports whether any path came of the changes.
func (b *builder) anything() bool {
	for i := range b.ed.keys {
		if b.ed.keys[i].changed {
			return true
		}
	}
	return false
}

// publish makes the objects durable, writes the proposals and moves the refs.
func (r *run) publish(ctx context.Context) error {
	if err := r.w.Finish(ctx); err != nil {
		return err
	}
	err := r.env.DB.Update(ctx, func(tx *store.Tx) error {
		wrote := false
		for _, out := range r.outs {
			w, err := propose(tx, out)
			if err != nil {
				return err
			}
			wrote = wrote || w
		}
		if !wrote {
			return nil
		}
		return tx.SetLastMaterialized(r.mark) // where the peer goes on
	})
	if err != nil {
		return err
	}
	for _, out := range r.outs {
		if out.commit == zero {
			continue
		}
		reason := fmt.Sprintf("git-meta: serialize %d changes", len(out.lines))
		if err := r.env.Repo.UpdateRef(ctx, out.ref, out.commit, out.tip, reason); err != nil {
			return err
		}
		r.env.logf("wrote %s", out.ref)
	}
	return r.w.Release()
}

// propose writes the cursor of out's new commit, or moves that of its old one; it
// reports whether anything was written.
func propose(tx *store.Tx, out *output) (bool, error) {
	c := store.Cursor{Ref: out.ref, Commit: hexOf(out.tip), Log: out.pos, FilterSet: out.base.FilterSet, PruneChecked: out.checked}
	if out.commit != zero {
		c.Commit = out.commit.String()
	} else if c == out.base {
		return false, nil
	}
	if err := tx.TrimCursors(out.ref, hexOf(out.tip)); err != nil {
		return false, err
	}
	if err := tx.PutCursor(c); err != nil {
		return false, err
	}
	out.base = c
	for _, k := range out.ended {
		if err := endWithheld(tx, k); err != nil {
			return false, err
		}
	}
	if len(out.stats) > 0 {
		return true, tx.PutTreeStats(out.stats)
	}
	return true, nil
}

// hexOf returns the id in hex, "" for the zero id.
func hexOf(id gitdb.Hash) string {
	if id == zero {
		return ""
	}
	return id.String()
}

func (r *run) report() {
	r.res.Refs = r.res.Refs[:0]
	for _, out := range r.outs {
		if out.commit == zero {
			continue
		}
		rr := RefResult{Ref: out.ref, Commit: out.commit.String(), Changes: len(out.lines)}
		if r.o.DryRun {
			rr.Commit = ""
			for _, l := range out.lines[:min(len(out.lines), maxLines)] {
				rr.Lines = append(rr.Lines, fmt.Sprintf("%c\t%s\t%s", l.letter, field(l.Target.String()), field(l.Key)))
			}
		}
		r.res.Refs = append(r.res.Refs, rr)
	}
}

// prune cuts main back where its tip has not been found to be under the maximum.
func (r *run) prune(ctx context.Context) error {
	if r.o.Pruner == nil {
		return nil
	}
	for _, out := range r.outs {
		if out.dest != meta.MainDestination || out.checked {
			continue
		}
		c := Committed{Ref: out.ref, Commit: out.newTip(), Tree: out.newTree, Cursor: out.base}
		p, err := r.o.Pruner.Prune(ctx, r.env, c)
		if errors.Is(err, gitdb.ErrRefMoved) {
			return nil // whoever moved it checks what came of it
		}
		if err != nil {
			return fmt.Errorf("auto-prune %s: %w", out.ref, err)
		}
		r.res.AutoPrune = p
	}
	return nil
}

// NothingToDo tells, from a store opened for reading and in the time of a get, whether
// Run would do nothing: no record lies behind the cursors, nothing was swept, and the
// tips are checked.
func NothingToDo(ctx context.Context, repo *gitdb.Repo, db *store.DB, namespace string) (bool, error) {
	idle := false
	err := db.View(ctx, func(tx *store.Tx) error {
		refs, err := tx.CursorRefs()
		if err != nil || len(refs) == 0 {
			return err
		}
		main := LocalRef(namespace, meta.MainDestination)
		if !slices.Contains(refs, main) {
			return nil
		}
		if swept, err := tx.HasSwept(); err != nil || swept {
			return err
		}
		pos, err := tx.LogPosition()
		if err != nil {
			return err
		}
		prefix := LocalRef(namespace, "")
		for _, ref := range refs {
			if len(ref) < len(prefix) || ref[:len(prefix)] != prefix {
				continue
			}
			tip, err := tipOf(ctx, repo, ref)
			if err != nil {
				return err
			}
			c, ok, err := tx.Cursor(ref, hexOf(tip))
			if err != nil {
				return err
			}
			if !ok || c.Log != pos || !c.PruneChecked {
				return nil
			}
		}
		idle = true
		return nil
	})
	return idle, err
}
