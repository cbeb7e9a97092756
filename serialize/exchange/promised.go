package exchange

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// primary returns the remote whose history is indexed; where none is configured, one
// without a name: its tracking ref may be there all the same.
func (e *Env) primary(ctx context.Context) (Remote, error) {
	cfg, err := e.Repo.Config(ctx)
	if err != nil {
		return Remote{}, err
	}
	all := Remotes(cfg, e.Namespace)
	if i := slices.IndexFunc(all, func(r Remote) bool { return !r.Side }); i >= 0 {
		return all[i], nil
	}
	return Remote{Namespace: e.Namespace}, nil
}

// indexed returns the primary remote and the ref whose history is indexed, with its tip:
// the remote's tracking ref, or, where no remote is configured, whatever other ref with
// metadata was fetched by hand. The tip is zero where nothing was fetched.
func (e *Env) indexed(ctx context.Context) (r Remote, ref string, tip gitdb.Hash, err error) {
	if r, err = e.primary(ctx); err != nil {
		return r, "", tip, err
	}
	ref = r.TrackingRef()
	if tip, err = e.tip(ctx, ref); err != nil || !tip.IsZero() || r.Name != "" {
		return r, ref, tip, err
	}
	refs, err := e.Tracked(ctx, "")
	for _, t := range refs {
		if !t.Remote.Side {
			tip, err = e.tip(ctx, t.Ref)
			return r, t.Ref, tip, err
		}
	}
	return r, ref, tip, err
}

// Index notes which keys the history of the primary remote knows besides those of its
// tip, for get to fetch on demand; see [serialize.UpdateIndex]. Call it after a tip has
// been brought in: it reads what is new. The result is nil where nothing was fetched yet.
func (e *Env) Index(ctx context.Context, o serialize.UpdateIndexOptions) (*serialize.IndexReport, error) {
	r, ref, tip, err := e.indexed(ctx)
	if err != nil || tip.IsZero() {
		return nil, err
	}
	env, err := e.open(ctx, r.Namespace)
	if err != nil {
		return nil, err
	}
	return serialize.UpdateIndex(ctx, env, ref, tip, o)
}

// LoadPromised gives keys that are known from history only their last value, from the
// primary remote where it is not here.
func (e *Env) LoadPromised(ctx context.Context, keys []meta.KeyRef) (*serialize.Promised, error) {
	r, _, tip, err := e.indexed(ctx)
	if err != nil {
		return nil, err
	}
	env, err := e.open(ctx, r.Namespace)
	if err != nil {
		return nil, err
	}
	env.Fetch = func(ctx context.Context, blobs []gitdb.Hash) error { return e.fetchBlobs(ctx, r, blobs) }
	return serialize.LoadPromised(ctx, env, tip, keys)
}

// NotFetched is the error of values that the remote has and that could not be had.
type NotFetched struct {
	Blobs int
	Err   error
}

func (n *NotFetched) Error() string {
	if n.Blobs == 1 {
		return fmt.Sprintf("1 value was not fetched: %v", n.Err)
	}
	return fmt.Sprintf("%d values were not fetched: %v", n.Blobs, n.Err)
}

// Unwrap returns the reason.
func (n *NotFetched) Unwrap() error { return n.Err }

// fetchBlobs brings blobs of the history of r here, all of them or an error, a
// [*NotFetched].
func (e *Env) fetchBlobs(ctx context.Context, r Remote, blobs []gitdb.Hash) error {
	if r.Name == "" {
		return &NotFetched{len(blobs), &meta.Error{Err: errors.New("there is no metadata remote to fetch from"), Hint: "git meta remote add URL"}}
	}
	what := "1 blob"
	if len(blobs) != 1 {
		what = fmt.Sprintf("%d blobs", len(blobs))
	}
	e.say(Step, "Fetching "+what+" from remote...")
	args := append([]string{"-c", "fetch.negotiationAlgorithm=noop", "fetch", "--no-auto-maintenance", "--stdin"}, e.fetchOptions(ctx, r)...)
	for batch := range slices.Chunk(blobs, hydrateBatch) {
		var in strings.Builder
		for _, id := range batch {
			in.WriteString(id.String() + "\n")
		}
		err := e.network(ctx, append(args, "--", r.Name)...).StdinString(in.String()).Run()
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err = e.fetchAll(ctx, r, blobs, err); err != nil {
			return err
		}
		break
	}
	return nil
}

// fetchAll gets everything from a remote that answers but does not send single values.
func (e *Env) fetchAll(ctx context.Context, r Remote, blobs []gitdb.Hash, cause error) error {
	if _, err := e.look(ctx, r); err != nil {
		return &NotFetched{len(blobs), err}
	}
	args := []string{"fetch", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--quiet", "--no-prune", "--refetch", "--no-filter"}
	if e.Terminal != nil {
		args = append(args, "--progress")
	}
	err := e.network(ctx, append(args, "--", r.Name, r.MainRef())...).Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	rd, rerr := e.Repo.Objects(ctx)
	if rerr != nil {
		return rerr
	}
	missing := slices.ContainsFunc(blobs, func(id gitdb.Hash) bool { return !rd.Has(ctx, id) })
	switch {
	case err == nil && !missing:
		return nil
	case err == nil:
		err = cause
	}
	return &NotFetched{len(blobs), e.trouble(ctx, r.URL, err)}
}
