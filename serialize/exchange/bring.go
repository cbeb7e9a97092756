package exchange

import (
	"context"
	"errors"
	"fmt"

	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Brought is what came of reading a tracking ref.
type Brought struct {
	Remote Remote
	Ref    string                 // the tracking ref
	Merge  *serialize.MergeResult // nil for a side remote
	Side   *SideImport            // nil for the primary remote
}

// UpToDate reports whether everything was known already.
func (b *Brought) UpToDate() bool {
	if b.Side != nil {
		return b.Side.UpToDate
	}
	return b.Merge.Strategy == serialize.UpToDate
}

// Materialize reads a tracking ref into the store: that of the primary remote is merged
// after local edits have been serialized, that of a side remote is imported. Values that
// are not here yet are fetched first. With dryRun nothing is written.
func (e *Env) Materialize(ctx context.Context, t Tracked, dryRun bool) (*Brought, error) {
	b := &Brought{Remote: t.Remote, Ref: t.Ref}
	tip, err := e.Repo.Ref(ctx, t.Ref)
	if err != nil {
		return nil, err
	}
	hydrate := func(ctx context.Context, local, tip gitdb.Hash) error {
		if t.Remote.Name == "" {
			return nil
		}
		known, err := e.contains(ctx, local, tip)
		if err != nil || known {
			return err
		}
		if err := e.hydrate(ctx, t.Remote, tip, local); err != nil {
			return err
		}
		return e.deepen(ctx, t.Remote, local, tip)
	}
	env, err := e.open(ctx, t.Remote.Namespace)
	if err != nil {
		return nil, err
	}
	if t.Remote.Side {
		if err := hydrate(ctx, gitdb.ZeroHash, tip); err != nil {
			return nil, err
		}
		b.Side, err = importSide(ctx, env, t.Ref, dryRun)
		return b, err
	}
	b.Merge, err = serialize.Materialize(ctx, env, t.Ref, serialize.MergeOptions{DryRun: dryRun, Pruner: e.Pruner, Hydrate: hydrate})
	return b, err
}

// Pulled is what [Env.Pull] brought.
type Pulled struct {
	Brought
	Old, New  string // ids of the tracking ref before and after the fetch; "" for none
	Rewritten bool   // the remote's history does not hold Old any more
}

// UpToDate reports whether the remote had nothing new and nothing was left to merge.
func (p *Pulled) UpToDate() bool { return p.Old == p.New && p.Brought.UpToDate() }

// Pull fetches a remote and reads what it holds. [ErrNoMetadata] if there is nothing.
func (e *Env) Pull(ctx context.Context, r Remote) (*Pulled, error) {
	f, err := e.fetch(ctx, r, 0)
	if err != nil {
		return nil, err
	}
	b, err := e.Materialize(ctx, Tracked{Ref: r.TrackingRef(), Remote: r}, false)
	if err != nil {
		return nil, err
	}
	return &Pulled{Brought: *b, Old: text(f.old), New: text(f.new), Rewritten: f.rewritten}, nil
}

// text is an id in hex, "" for none.
func text(id gitdb.Hash) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

// read takes over what a remote that is being added holds.
func (e *Env) read(ctx context.Context, add *Added, depth int, u *undo) error {
	r := add.Remote
	local, err := e.tip(ctx, r.LocalRef())
	if err != nil {
		return err
	}
	tracking, err := e.tip(ctx, r.TrackingRef())
	if err != nil {
		return err
	}
	u.add(func(ctx context.Context) error { return e.putBack(ctx, r.TrackingRef(), tracking) })
	e.say(Step, "Fetching metadata...")
	f, err := e.fetch(ctx, r, depth)
	if err != nil {
		return err
	}
	e.say(Detail, fmt.Sprintf("tracking ref: %s -> %.12s", r.TrackingRef(), f.new))
	if depth > 0 && e.isShallow() {
		e.say(Detail, fmt.Sprintf("only the last %s; git calls this repository shallow now, until: git meta deepen %s", commits(depth), shellWord(r.Name)))
	}
	if local.IsZero() && !r.Side {
		u.add(func(ctx context.Context) error {
			now, err := e.tip(ctx, r.LocalRef())
			if err != nil || now != f.new {
				return err // edits were published there: they stay
			}
			return e.putBack(ctx, r.LocalRef(), local)
		})
	}
	b, err := e.Materialize(ctx, Tracked{Ref: r.TrackingRef(), Remote: r}, false)
	if err != nil {
		return err
	}
	add.Brought = b
	return nil
}

// putBack makes a ref what it was.
func (e *Env) putBack(ctx context.Context, ref string, was gitdb.Hash) error {
	now, err := e.tip(ctx, ref)
	switch {
	case err != nil || now == was:
		return err
	case was.IsZero():
		err = e.Repo.DeleteRef(ctx, ref, now, "git-meta: remote add failed")
	default:
		err = e.Repo.UpdateRef(ctx, ref, was, now, "git-meta: remote add failed")
	}
	if errors.Is(err, gitdb.ErrRefNotFound) || errors.Is(err, gitdb.ErrRefMoved) {
		return nil
	}
	return err
}
