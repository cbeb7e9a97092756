package exchange

import (
	"context"
	"errors"
	"fmt"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// readmeRef is where [Env.PushReadme] puts its commit.
const readmeRef = "refs/heads/main"

// PushReadme makes the branch main of a remote that has none: one commit, with a README
// that says what is below refs/<ns>/. Metadata is not pushed.
func (e *Env) PushReadme(ctx context.Context, r Remote) error {
	out, err := e.network(ctx, "ls-remote", "--quiet", "--refs", "--", r.Name, readmeRef).Output()
	if err != nil {
		return e.trouble(ctx, r.URL, err)
	}
	if len(out) > 0 {
		return readmeExists(r)
	}
	commit, err := e.readmeCommit(ctx, readmeText(r, e.origin(ctx)), "",
		"Initial metadata repository setup\n\nCreated by git meta to provide documentation for contributors.")
	if err != nil {
		return err
	}
	how, err := e.pushRef(ctx, r, readmeRef, commit, gitdb.ZeroHash)
	switch {
	case how >= created || err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case how == stale:
		return readmeExists(r)
	}
	return e.refusedBy(ctx, r, err)
}

func readmeExists(r Remote) error {
	return &meta.Error{
		Op:  fmt.Sprintf("%s already exists on %s", readmeRef, r.Name),
		Err: errors.New("the README can only be pushed to a new repository"),
	}
}
