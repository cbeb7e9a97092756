package exchange

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// A push goes on for as long as the remote keeps moving, until both are over.
const (
	pushFor      = 30 * time.Second
	pushAttempts = 40
)

// Pushed is what became of a push.
type Pushed struct {
	Remote   Remote
	Local    string // the ref that was pushed
	Commit   string // what MainRef is on the remote now; "" if there is nothing to push
	UpToDate bool   // it was that before
	Attempts int    // how often the remote was asked to move

	Serialized []serialize.RefResult    // what was serialized for it
	Merges     []*serialize.MergeResult // what was merged on the way
	AutoPrunes []*serialize.Pruned
	Retentions []*serialize.Retained
}

// Nothing reports whether nothing has been published here that could be pushed.
func (p *Pushed) Nothing() bool { return p.Commit == "" }

// serialize publishes local edits on the local refs of a namespace.
func (e *Env) serialize(ctx context.Context, ns string, p *Pushed) error {
	env, err := e.open(ctx, ns)
	if err != nil {
		return err
	}
	run, err := serialize.Run(ctx, env, serialize.Options{Pruner: e.Pruner})
	if err != nil {
		return err
	}
	p.Serialized = append(p.Serialized, run.Refs...)
	if run.AutoPrune != nil {
		p.AutoPrunes = append(p.AutoPrunes, run.AutoPrune)
	}
	if run.Retention != nil {
		p.Retentions = append(p.Retentions, run.Retention)
	}
	return nil
}

// Push publishes the local ref of the primary remote there. Local edits are serialized
// first. What the remote has and the local ref has not is merged first, also where a
// plain git fetch has brought it; the remote's ref only ever moves forward from what was
// merged. When somebody else is faster, it fetches, merges and tries again.
//
// A side remote is not pushed to. A server that refuses is an error with its words; it
// is not asked twice.
func (e *Env) Push(ctx context.Context, r Remote) (*Pushed, error) {
	if r.Side {
		return nil, &meta.Error{
			Op: "remote " + shellWord(r.Name), Err: errors.New("is a side remote: it is read, and this repository's metadata is not pushed there"),
			Hint: "to push what filter rules send to a destination: git meta push " + shellWord(r.Name) + " --destination NAME",
		}
	}
	p := &Pushed{Remote: r, Local: r.LocalRef()}
	if nothing, err := e.nothingHere(ctx, p); nothing || err != nil {
		return p, err
	}
	return p, e.race(ctx, p, func(ctx context.Context) (source, error) { return e.forward(ctx, p) })
}

// nothingHere reports, before a store is made, that there is neither a store nor a ref.
func (e *Env) nothingHere(ctx context.Context, p *Pushed) (bool, error) {
	tip, err := e.tip(ctx, p.Local)
	if err != nil || !tip.IsZero() {
		return false, err
	}
	files, err := e.storeFiles()
	return len(files) == 0, err
}

// source is what to push, and what the remote must be at for that.
type source struct {
	commit gitdb.Hash // zero: nothing
	expect gitdb.Hash // zero: the ref does not exist there
}

// forward returns a local tip that contains the tracking ref.
func (e *Env) forward(ctx context.Context, p *Pushed) (source, error) {
	if err := e.serialize(ctx, p.Remote.Namespace, p); err != nil {
		return source{}, err
	}
	for {
		var s source
		var err error
		if s.commit, err = e.tip(ctx, p.Local); err != nil {
			return s, err
		}
		if s.expect, err = e.tip(ctx, p.Remote.TrackingRef()); err != nil || s.expect.IsZero() || s.commit.IsZero() {
			return s, err
		}
		known, err := e.contains(ctx, s.commit, s.expect)
		if err != nil || known {
			return s, err
		}
		b, err := e.Materialize(ctx, Tracked{Ref: p.Remote.TrackingRef(), Remote: p.Remote}, false)
		if err != nil {
			return s, err
		}
		p.Merges = append(p.Merges, b.Merge)
		if b.Merge.AutoPrune != nil {
			p.AutoPrunes = append(p.AutoPrunes, b.Merge.AutoPrune)
		}
		if b.Merge.Retention != nil {
			p.Retentions = append(p.Retentions, b.Merge.Retention)
		}
	}
}

// race pushes what next returns until the remote has it.
func (e *Env) race(ctx context.Context, p *Pushed, next func(context.Context) (source, error)) error {
	r := p.Remote
	start, idle := time.Now(), 0
	for n := 1; ; n++ {
		s, err := next(ctx)
		if err != nil || s.commit.IsZero() {
			return err
		}
		p.Attempts = n
		how, cause := e.push(ctx, r, s.commit, s.expect)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if how < created {
			won, err := e.judge(ctx, r, s, how, cause)
			if err != nil {
				return err
			}
			if won {
				how = moved
			}
		}
		if how >= created {
			p.Commit, p.UpToDate = s.commit.String(), how == upToDate
			return e.trackPush(ctx, r, s)
		}
		if time.Since(start) > pushFor && n >= pushAttempts {
			return &meta.Error{
				Op:   "push to " + r.Name,
				Err:  fmt.Errorf("%w: %s there kept moving (%d attempts in %s)", meta.ErrConflict, r.MainRef(), n, time.Since(start).Round(time.Second)),
				Hint: "nothing is lost; try again: git meta push " + shellWord(r.Name),
			}
		}
		// The wait comes first: what is fetched is to be new when it is pushed.
		if err := backoff(ctx, n); err != nil {
			return err
		}
		at, err := e.renew(ctx, r)
		if err != nil {
			return err
		}
		if at != s.expect {
			if idle = 0; n == 1 && !at.IsZero() {
				e.say(Detail, r.Name+" has new metadata; merging it")
			}
			continue
		}
		if idle++; idle == pushIdle {
			return e.refusedBy(ctx, r, cause)
		}
	}
}

// pushIdle is how often a push may fail on a remote that does not move: its ref may be
// locked by another push that fails as well.
const pushIdle = 6

// renew fetches, and returns what the remote has. A tracking ref of what is gone goes.
func (e *Env) renew(ctx context.Context, r Remote) (gitdb.Hash, error) {
	f, err := e.fetch(ctx, r, 0)
	if errors.Is(err, ErrNoMetadata) {
		e.say(Detail, fmt.Sprintf("there is no %s on %s any more; it is made again", r.MainRef(), r.Name))
		return gitdb.ZeroHash, e.untrack(ctx, r)
	}
	return f.new, err
}

// lookAgain is how often a remote that refused without having moved is looked at again:
// another push may hold its ref and not have moved it yet.
const lookAgain = 3

// judge finds out whether a push that did not move the remote is worth another try: by
// looking at the remote, not by git's words. It returns won if the remote has the commit
// after all, and an error if there is no use in trying again.
func (e *Env) judge(ctx context.Context, r Remote, s source, how pushed, cause error) (won bool, err error) {
	var no *refusal
	errors.As(cause, &no)
	if how == stale || no != nil && no.race() {
		return false, nil
	}
	for n := 1; ; n++ {
		refs, err := e.look(ctx, r)
		switch {
		case err != nil:
			return false, err
		case refs.main == s.commit:
			return true, nil
		case no != nil && no.hook():
			return false, e.refusedBy(ctx, r, cause)
		case refs.main != s.expect:
			return false, nil
		case how == failed || n == lookAgain:
			return false, e.refusedBy(ctx, r, cause)
		}
		if err := backoff(ctx, n); err != nil {
			return false, err
		}
	}
}

// refusedBy is the error of a push that the remote did not take.
func (e *Env) refusedBy(ctx context.Context, r Remote, cause error) error {
	var no *refusal
	if !errors.As(cause, &no) && e.pushesElsewhere(ctx, r) {
		return &meta.Error{
			Op: fmt.Sprintf("push %s to %s", r.MainRef(), r.Name), Err: &redactedError{cause, r.URL},
			Hint: "pushes go to another URL than fetches, where the ref is different: git remote get-url --push " + shellWord(r.Name),
		}
	}
	if no == nil {
		return e.trouble(ctx, r.URL, cause)
	}
	if e.Terminal != nil {
		no.said = nil // shown as it came
	}
	return &meta.Error{Op: fmt.Sprintf("push %s to %s", r.MainRef(), r.Name), Err: &redactedError{cause, r.URL}}
}

// pushesElsewhere reports whether the remote has a URL for pushes of its own.
func (e *Env) pushesElsewhere(ctx context.Context, r Remote) bool {
	cfg, err := e.Repo.Config(ctx)
	if err != nil {
		return false
	}
	url, ok := cfg.Get("remote." + r.Name + ".pushurl")
	return ok && url != r.URL
}

// trackPush makes the tracking ref what was pushed, where git has not; somebody may have
// fetched what came after.
func (e *Env) trackPush(ctx context.Context, r Remote, s source) error {
	at, err := e.tip(ctx, r.TrackingRef())
	if err != nil || at == s.commit || at != s.expect {
		return err
	}
	err = e.Repo.UpdateRef(ctx, r.TrackingRef(), s.commit, at, "git-meta: push")
	if errors.Is(err, gitdb.ErrRefMoved) {
		return nil
	}
	return err
}

// untrack removes the tracking ref of a remote that has no metadata any more.
func (e *Env) untrack(ctx context.Context, r Remote) error {
	return e.putBack(ctx, r.TrackingRef(), gitdb.ZeroHash)
}

// Synced is what [Env.Sync] did.
type Synced struct {
	Pulled []*Pulled // those that had something, in order
	Pushed *Pushed   // nil: there is no primary remote
}

// SyncReport is told what a sync does, as it happens; functions may be nil.
type SyncReport struct {
	Pulling func(Remote)
	Pulled  func(*Pulled)
	Pushing func(Remote)
	Pushed  func(*Pushed)
	Empty   func(Remote) // the remote has no metadata yet
}

// Sync pulls every remote, the primary one first, and pushes the primary one. A side
// remote that fails does not keep the others from being synchronized; its error is
// returned at the end. An empty primary remote is started with what is published here.
func (e *Env) Sync(ctx context.Context, remotes []Remote, report SyncReport) (*Synced, error) {
	res := &Synced{}
	var broken []error
	for _, r := range remotes {
		call(report.Pulling, r)
		p, err := e.Pull(ctx, r)
		switch {
		case err == nil:
			res.Pulled = append(res.Pulled, p)
			call(report.Pulled, p)
		case errors.Is(err, ErrNoMetadata):
			if err := e.untrack(ctx, r); err != nil {
				return res, err
			}
			call(report.Empty, r)
		case r.Side && ctx.Err() == nil:
			broken = append(broken, err)
		default:
			return res, err
		}
	}
	i := slices.IndexFunc(remotes, func(r Remote) bool { return !r.Side })
	if i >= 0 {
		r := remotes[i]
		call(report.Pushing, r)
		p, err := e.afterPull(ctx, r)
		if err != nil {
			return res, errors.Join(append([]error{err}, broken...)...)
		}
		res.Pushed = p
		call(report.Pushed, p)
	}
	return res, errors.Join(broken...)
}

func call[T any](f func(T), v T) {
	if f != nil {
		f(v)
	}
}

// afterPull pushes to a remote that has just been fetched from: where the local ref is
// what was fetched, the remote is not asked again.
func (e *Env) afterPull(ctx context.Context, r Remote) (*Pushed, error) {
	p := &Pushed{Remote: r, Local: r.LocalRef()}
	if nothing, err := e.nothingHere(ctx, p); nothing || err != nil {
		return p, err
	}
	first := true
	return p, e.race(ctx, p, func(ctx context.Context) (source, error) {
		s, err := e.forward(ctx, p)
		if err == nil && first && s.commit == s.expect && !s.commit.IsZero() {
			p.Commit, p.UpToDate = s.commit.String(), true
			return source{}, nil
		}
		first = false
		return s, err
	})
}
