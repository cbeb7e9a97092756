package exchange

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Env is what an exchange works with. Repo, Namespace and Open must be set.
type Env struct {
	Repo      *gitdb.Repo
	Namespace string // meta.namespace, "meta" by default

	// Open returns the environment of serialize with the store open for writing; the
	// store is created if there is none. It is called as late as possible: what fails
	// before leaves no store behind.
	Open func(context.Context) (*serialize.Env, error)

	// Pruner cuts the tree back after a commit, as for [serialize.Run]. Nil: never.
	Pruner serialize.Pruner

	// Say receives what is being done, one line each; nil: nobody listens.
	Say func(Kind, string)
	// Terminal shows the progress of the git program as it comes. Nil: there is no
	// terminal, and git is asked for none.
	Terminal io.Writer
	// NoPrompt keeps git from asking for a user name or password: standard input is
	// not a terminal.
	NoPrompt bool
	// Confirm asks a question; nil: nobody can be asked.
	Confirm func(ctx context.Context, question string, def bool) (bool, error)
}

// Kind is what a line given to [Env.Say] tells.
type Kind int

// The kinds of lines.
const (
	Step   Kind = iota // something starts that may take a while
	Done               // something has been made
	Detail             // worth knowing
)

func (e *Env) say(k Kind, text string) {
	if e.Say != nil {
		e.Say(k, text)
	}
}

// open returns the environment of serialize for a namespace, with the store open.
func (e *Env) open(ctx context.Context, ns string) (*serialize.Env, error) {
	env, err := e.Open(ctx)
	if err != nil {
		return nil, err
	}
	c := *env
	c.Namespace = ns
	return &c, nil
}

// backoff waits before attempt n+1, a random time that grows to some seconds: of many
// that try at the same time only one can win, and the others' work is for nothing.
func backoff(ctx context.Context, n int) error {
	wait := min(50*time.Millisecond<<min(n, 10), 3*time.Second)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait/4 + rand.N(wait)):
		return nil
	}
}

// undo holds what puts things back as they were, newest last.
type undo []func(context.Context) error

// undoTime is how long putting back may take once the user has interrupted.
const undoTime = 10 * time.Second

// add registers f.
func (u *undo) add(f func(context.Context) error) { *u = append(*u, f) }

// run puts everything back, also after an interrupt, and returns what went wrong.
func (u *undo) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	var errs []error
	for i := len(*u) - 1; i >= 0; i-- {
		errs = append(errs, (*u)[i](ctx))
	}
	*u = nil
	return errors.Join(errs...)
}

// tip returns the commit of ref, or the zero id if there is no such ref.
func (e *Env) tip(ctx context.Context, ref string) (gitdb.Hash, error) {
	id, err := e.Repo.Ref(ctx, ref)
	if errors.Is(err, gitdb.ErrRefNotFound) {
		return gitdb.ZeroHash, nil
	}
	return id, err
}

// nearby is how many commits are looked at before git is asked.
const nearby = 20

// contains reports whether commit is tip or one of its ancestors. A commit that is not
// in this repository is not. Nothing is fetched.
func (e *Env) contains(ctx context.Context, tip, commit gitdb.Hash) (bool, error) {
	if tip.IsZero() || commit.IsZero() {
		return false, nil
	}
	if tip == commit {
		return true, nil
	}
	rd, err := e.Repo.Objects(ctx)
	if err != nil || !rd.Has(ctx, commit) {
		return false, err
	}
	// Mostly it is near.
	at := tip
	for range nearby {
		c, err := gitdb.ReadCommit(ctx, rd.Local(), at)
		if err != nil || len(c.Parents) != 1 {
			break
		}
		if at = c.Parents[0]; at == commit {
			return true, nil
		}
	}
	err = e.Repo.Git(ctx, "merge-base", "--is-ancestor", commit.String(), tip.String()).Run()
	if ge := (*gitdb.GitError)(nil); errors.As(err, &ge) && ge.Code == 1 {
		return false, nil
	}
	return err == nil, err
}
