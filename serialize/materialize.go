package serialize

import (
	"context"
	"errors"
	"fmt"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Strategy says how a remote tip was brought in.
type Strategy string

// The strategies.
const (
	UpToDate    Strategy = "up-to-date" // the local tip contains the remote one
	FastForward Strategy = "fast-forward"
	ThreeWay    Strategy = "three-way"
	TwoWay      Strategy = "two-way-no-common-ancestor"
)

// Conflict is a key that both sides changed.
type Conflict struct {
	meta.KeyRef
	Reason     meta.MergeReason
	Resolution string // local, remote or union
	Loser      string // text of a string that lost, cut to 200 bytes; it stays in history
}

// RowChange is what a merge does to a row.
type RowChange struct {
	meta.KeyRef
	Remove bool
	Value  meta.Value
}

// MergeOptions says how to materialize.
type MergeOptions struct {
	DryRun bool // decide, write nothing
	Pruner Pruner
	// Hydrate brings here what a partial clone has left on its remote and the merge of the
	// commits local and remote needs. Nil: everything is here.
	Hydrate func(ctx context.Context, local, remote gitdb.Hash) error
}

// MergeResult is what a materialize did, or in a dry run would do.
type MergeResult struct {
	Ref       string
	Strategy  Strategy
	Commit    string // the new local tip
	Conflicts []Conflict
	Changes   []RowChange // filled in a dry run
	Loaded    int         // rows written
	Removed   int         // rows removed
	Unclear   []meta.KeyRef
	AutoPrune *Pruned
	Retention *Retained // of the serialize before the merge
}

// Materialize brings the commit that ref is at into the local ref and the store: local
// edits are serialized first, then both lines of history are merged key by key (design
// §8). Errors: [meta.ErrConflict] if other processes kept the local ref moving.
func Materialize(ctx context.Context, env *Env, ref string, o MergeOptions) (res *MergeResult, err error) {
	err = again(ctx, env, func() error {
		before := res
		res, err = materializeOnce(ctx, env, ref, o)
		if before != nil && res != nil && res.Retention == nil {
			res.Retention = before.Retention
		}
		return err
	})
	return res, err
}

// errStoreMoved: somebody edited the store since it was serialized.
var errStoreMoved = errors.New("the store was edited meanwhile")

func materializeOnce(ctx context.Context, env *Env, ref string, o MergeOptions) (*MergeResult, error) {
	res := &MergeResult{Ref: ref}
	remote, err := env.Repo.Ref(ctx, ref)
	if err != nil {
		return nil, err
	}
	if !o.DryRun {
		r, err := Run(ctx, env, Options{Pruner: o.Pruner})
		if err != nil {
			return nil, err
		}
		res.AutoPrune, res.Retention = r.AutoPrune, r.Retention
	}
	localRef := env.LocalRef(meta.MainDestination)
	local, err := env.tip(ctx, localRef)
	if err != nil {
		return nil, err
	}
	rd, err := env.Repo.Objects(ctx)
	if err != nil {
		return nil, err
	}
	m := &merger{ctx: ctx, env: env, rd: rd, local: local, remote: remote}
	if local == zero && !o.DryRun {
		return res, m.adopt(localRef, res, o)
	}
	if err := o.hydrate(ctx, local, remote); err != nil {
		return nil, err
	}
	if m.base, err = mergeBase(ctx, env.Repo, local, remote); err != nil {
		return nil, err
	}
	switch {
	case m.base == remote:
		res.Strategy, res.Commit = UpToDate, local.String()
		return res, nil
	case m.base == local && local != zero || local == zero:
		res.Strategy = FastForward
	case m.base == zero:
		res.Strategy = TwoWay
	default:
		res.Strategy = ThreeWay
	}
	return res, m.run(localRef, res, o)
}

// adopt makes the remote tip the local one where there is none: the store is filled as
// from any tip that it has not seen.
func (m *merger) adopt(localRef string, res *MergeResult, o MergeOptions) error {
	first, err := m.readFirst(o)
	if err != nil {
		return err
	}
	defer first.close()
	if err := m.env.Repo.UpdateRef(m.ctx, localRef, m.remote, zero, "git-meta: materialize "+res.Ref); err != nil {
		return err
	}
	r, err := Run(m.ctx, m.env, Options{Pruner: o.Pruner, first: first})
	if err != nil {
		return err
	}
	res.Strategy, res.Commit, res.Loaded = FastForward, m.remote.String(), r.Loaded
	res.AutoPrune, res.Retention = r.AutoPrune, r.Retention
	return nil
}

// readFirst reads the remote tip where the store holds nothing, before anything changes. nil:
// that is for [reconcile] to do; everything it needs is here.
func (m *merger) readFirst(o MergeOptions) (first *firstLoad, err error) {
	fil := meta.NewFilter(nil) // a store that holds nothing has no rules
	empty := false
	err = m.env.DB.View(m.ctx, func(tx *store.Tx) (err error) {
		empty, err = tx.Empty()
		return err
	})
	if err != nil {
		return nil, err
	}
	if empty {
		first, err = readFirst(m.ctx, m.env, m.rd, m.remote, fil)
		if first != nil || m.ctx.Err() != nil {
			return first, m.ctx.Err()
		}
	}
	missing := errors.Is(err, gitdb.ErrObjectMissing)
	if err := o.hydrate(m.ctx, zero, m.remote); err != nil || !missing {
		return nil, err
	}
	first, _ = readFirst(m.ctx, m.env, m.rd, m.remote, fil)
	return first, m.ctx.Err()
}

func (o *MergeOptions) hydrate(ctx context.Context, local, remote gitdb.Hash) error {
	if o.Hydrate == nil {
		return nil
	}
	return o.Hydrate(ctx, local, remote)
}

// mergeBase returns the best common ancestor, zero if there is none.
func mergeBase(ctx context.Context, repo *gitdb.Repo, a, b gitdb.Hash) (gitdb.Hash, error) {
	if a == zero || b == zero {
		return zero, nil
	}
	out, err := repo.Git(ctx, "merge-base", a.String(), b.String()).Text()
	var failed *gitdb.GitError
	if errors.As(err, &failed) && failed.Code == 1 {
		return zero, nil
	}
	if err != nil {
		return zero, err
	}
	id, ok := gitdb.ParseHash(out)
	if !ok {
		return zero, fmt.Errorf("git merge-base says %q", out)
	}
	return id, nil
}

// run decides, writes and applies one merge.
func (m *merger) run(localRef string, res *MergeResult, o MergeOptions) error {
	w, err := m.env.Repo.NewWriter(m.ctx)
	if err != nil {
		return err
	}
	defer w.Abort()
	defer func() {
		if m.early != nil {
			m.early.Abort()
		}
	}()
	var out *merged
	var at store.Position
	var cur store.Cursor
	var stats map[string]store.Stats
	checked := false
	err = m.env.DB.View(m.ctx, func(tx *store.Tx) error {
		m.tx = tx
		if at, err = tx.LogPosition(); err != nil {
			return err
		}
		ok := false
		if cur, ok, err = tx.Cursor(localRef, hexOf(m.local)); err != nil {
			return err
		}
		if !o.DryRun && (!ok || cur.Log != at) {
			return errStoreMoved
		}
		if err := m.decide(); err != nil {
			return err
		}
		if err := m.resolveTimes(); err != nil {
			return err
		}
		m.report(res)
		if o.DryRun {
			return nil
		}
		if err := m.settle(); err != nil {
			return err
		}
		if err := m.keepLosers(); err != nil {
			return err
		}
		if out, err = m.write(w); err != nil {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	if o.DryRun {
		return m.preview(res)
	}
	if err := w.Finish(m.ctx); err != nil {
		return err
	}
	loads, err := m.readLoads()
	if err != nil {
		return err
	}
	if o.Pruner != nil {
		if stats, checked, err = m.check(out, o.Pruner); err != nil {
			return err
		}
	}
	now := m.env.now().UnixMilli()
	err = m.env.DB.Update(m.ctx, func(tx *store.Tx) error {
		m.tx = tx
		pos, err := tx.LogPosition()
		if err != nil {
			return err
		}
		if pos != at {
			return errStoreMoved
		}
		if err := m.apply(tx, loads, res); err != nil {
			return err
		}
		if pos, err = tx.LogPosition(); err != nil {
			return err
		}
		if err := tx.TrimCursors(localRef, hexOf(m.local)); err != nil {
			return err
		}
		cur = store.Cursor{Ref: localRef, Commit: out.tip.String(), Log: pos, FilterSet: cur.FilterSet, PruneChecked: checked}
		if err := tx.PutCursor(cur); err != nil {
			return err
		}
		if err := tx.PutTreeStats(stats); err != nil {
			return err
		}
		if err := tx.SetLastMaterialized(now); err != nil {
			return err
		}
		// in the transaction: if the ref has moved, nothing of this was done
		return m.env.Repo.UpdateRef(m.ctx, localRef, out.tip, m.local, fmt.Sprintf("git-meta: materialize %s: %s", res.Ref, res.Strategy))
	})
	if err != nil {
		return err
	}
	res.Commit = out.tip.String()
	if odd, err := oddSince(m.ctx, m.rd, m.baseTree, m.remoteTree); err == nil {
		m.env.WarnOdd(odd, "left as it is")
	}
	if m.early != nil {
		if err := m.early.Release(); err != nil {
			return err
		}
	}
	if err := w.Release(); err != nil || o.Pruner == nil || checked {
		return err
	}
	p, err := o.Pruner.Prune(m.ctx, m.env, Committed{Ref: localRef, Commit: out.tip, Tree: out.tree, Cursor: cur})
	if err != nil && !errors.Is(err, gitdb.ErrRefMoved) {
		return fmt.Errorf("auto-prune %s: %w", localRef, err)
	}
	if p != nil {
		res.AutoPrune, res.Commit = p, p.Commit
	}
	return nil
}

// check measures the new tree by what differs from the old one.
func (m *merger) check(out *merged, p Pruner) (stats map[string]store.Stats, checked bool, err error) {
	d, err := treeDelta(m.ctx, m.rd, m.localTree, out.tree)
	if err != nil {
		return nil, false, err
	}
	err = m.env.DB.View(m.ctx, func(tx *store.Tx) error {
		exceeded, known, s, err := p.Check(m.ctx, m.env, tx, Measured{Old: m.localTree, New: out.tree, Delta: d})
		stats, checked = s, known && !exceeded
		return err
	})
	return stats, checked, err
}

// treeDelta returns how b differs in size from a; equal subtrees are not read.
func treeDelta(ctx context.Context, rd *gitdb.Reader, a, b gitdb.Hash) (d Delta, err error) {
	if a == b {
		return d, nil
	}
	read := func(id gitdb.Hash) ([]gitdb.TreeEntry, error) {
		if id == zero {
			return nil, nil
		}
		return rd.Tree(ctx, id)
	}
	ea, err := read(a)
	if err != nil {
		return d, err
	}
	eb, err := read(b)
	if err != nil {
		return d, err
	}
	d.Keys = keyEntries(eb) - keyEntries(ea)
	err = pairEntries(ea, eb, func(x, y gitdb.TreeEntry) error {
		switch {
		case x.Mode == modeTree || y.Mode == modeTree:
			sub, err := treeDelta(ctx, rd, x.Hash, y.Hash)
			d.Keys += sub.Keys
			d.AddedBlobs = append(d.AddedBlobs, sub.AddedBlobs...)
			d.Removed = append(d.Removed, sub.Removed...)
			return err
		case x.Hash == y.Hash:
			return nil
		}
		if x.Hash != zero {
			d.Removed = append(d.Removed, x.Hash)
		}
		if y.Hash != zero {
			d.AddedBlobs = append(d.AddedBlobs, y.Hash)
		}
		return nil
	})
	return d, err
}
