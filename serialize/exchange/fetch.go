package exchange

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// ErrNoMetadata: the remote answers, but has no metadata in the namespace.
var ErrNoMetadata = errors.New("there is no metadata yet")

// fetchAttempts is how often a fetch is tried on a remote that answers: another process
// may hold the tracking ref, or the remote may have moved while it was asked.
const fetchAttempts = 4

// fetched is what a fetch has brought: the tracking ref before and after.
type fetched struct {
	old, new  gitdb.Hash
	rewritten bool // new does not descend from old
}

// fetch moves the tracking ref to what the remote has: git fetch, of the last depth
// commits if that is not 0. From a remote that can leave values out of a fetch only
// commits and trees come; [Env.hydrate] brings the values that are needed. Nothing else
// of the repository changes: no tags, no FETCH_HEAD, no submodules.
func (e *Env) fetch(ctx context.Context, r Remote, depth int) (f fetched, err error) {
	if f.old, err = e.tip(ctx, r.TrackingRef()); err != nil {
		return f, err
	}
	args := append([]string{"fetch", "--no-prune"}, e.fetchOptions(ctx, r)...)
	if depth > 0 {
		args = append(args, "--depth="+strconv.Itoa(depth))
	}
	for n := 1; ; n++ {
		err = e.network(ctx, append(args, "--", r.Name, r.refspec())...).Run()
		if err == nil || ctx.Err() != nil {
			break
		}
		refs, lerr := e.look(ctx, r)
		if lerr != nil {
			return f, lerr
		}
		if refs.main.IsZero() {
			return f, e.noMetadata(r)
		}
		if n == fetchAttempts {
			return f, e.trouble(ctx, r.URL, err)
		}
		if err := backoff(ctx, n); err != nil {
			return f, err
		}
	}
	if err != nil {
		return f, err
	}
	if f.new, err = e.tip(ctx, r.TrackingRef()); err != nil {
		return f, err
	}
	if !f.old.IsZero() && f.old != f.new {
		known, err := e.contains(ctx, f.new, f.old)
		if err != nil {
			return f, err
		}
		if f.rewritten = !known; f.rewritten {
			e.say(Detail, fmt.Sprintf("the history on %s was rewritten (%.12s is not in it any more); it is merged like anybody's changes", r.Name, f.old))
		}
	}
	return f, nil
}

// noMetadata is the error of a remote without metadata.
func (e *Env) noMetadata(r Remote) error {
	hint := "to publish yours there: git meta push " + shellWord(r.Name)
	if r.Side {
		hint = ""
	}
	return &meta.Error{Op: "remote " + shellWord(r.Name), Err: fmt.Errorf("%w: no %s on %s", ErrNoMetadata, r.MainRef(), Redact(r.URL)), Hint: hint}
}

// fetchOptions are what every fetch is given.
func (e *Env) fetchOptions(ctx context.Context, r Remote) []string {
	args := []string{"--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--quiet"}
	if e.isPromisor(ctx, r) {
		args = append(args, "--filter=blob:none")
	}
	if e.Terminal != nil {
		args = append(args, "--progress")
	}
	return args
}

// isPromisor reports whether git may leave out what the remote can send later. Where the
// setting has been removed a filter would make git change the repository's format.
func (e *Env) isPromisor(ctx context.Context, r Remote) bool {
	cfg, err := e.Repo.Config(ctx)
	return err == nil && cfg.Bool("remote."+r.Name+".promisor", false)
}

// hydrateBatch is how many values are asked for at a time.
const hydrateBatch = 20000

// hydrate fetches the values that are needed to bring tip in and are not here: those of
// its tree that base does not have, and the tombstones of the commits in between. base
// is a commit whose values are here, zero for none. It is cheap where nothing is missing,
// and costs by what changed since base.
func (e *Env) hydrate(ctx context.Context, r Remote, tip, base gitdb.Hash) error {
	if !e.isPromisor(ctx, r) || tip.IsZero() || tip == base {
		return nil
	}
	want, err := e.absent(ctx, tip, base)
	if err != nil || len(want) == 0 {
		return err
	}
	e.say(Step, fmt.Sprintf("Fetching %d values...", len(want)))
	args := append([]string{"-c", "fetch.negotiationAlgorithm=noop", "fetch", "--no-auto-maintenance", "--stdin"}, e.fetchOptions(ctx, r)...)
	for batch := range slices.Chunk(want, hydrateBatch) {
		var in strings.Builder
		for _, id := range batch {
			in.WriteString(id.String() + "\n")
		}
		err := e.network(ctx, append(args, "--", r.Name)...).StdinString(in.String()).Run()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return e.refetch(ctx, r, tip, base, err)
		}
	}
	return nil
}

// refetch gets everything from a remote that does not send single values, which servers
// may refuse.
func (e *Env) refetch(ctx context.Context, r Remote, tip, base gitdb.Hash, cause error) error {
	args := []string{"fetch", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--quiet", "--no-prune", "--refetch", "--no-filter"}
	if e.Terminal != nil {
		args = append(args, "--progress")
	}
	err := e.network(ctx, append(args, "--", r.Name, r.MainRef())...).Run()
	if err == nil {
		var still []gitdb.Hash
		if still, err = e.absent(ctx, tip, base); err == nil && len(still) == 0 {
			return nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return e.trouble(ctx, r.URL, fmt.Errorf("fetch the values of %.12s: %w", tip, cause))
}

// absent returns the values to fetch for [Env.hydrate], in the order they were found.
func (e *Env) absent(ctx context.Context, tip, base gitdb.Hash) ([]gitdb.Hash, error) {
	var want []gitdb.Hash
	if base.IsZero() {
		// git looks without fetching; blobs are not read.
		out, err := e.Repo.Git(ctx, "rev-list", "--objects", "--missing=print", "--quiet", tip.String()+"^{tree}").Output()
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(out)) {
			if id, ok := gitdb.ParseHash(strings.TrimSpace(strings.TrimPrefix(line, "?"))); ok && line[0] == '?' {
				want = append(want, id)
			}
		}
		return want, nil
	}
	rd, err := e.Repo.Objects(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[gitdb.Hash]bool{}
	collect := func(out []byte, all bool) {
		meta := ""
		for field := range strings.SplitSeq(string(out), "\x00") {
			if strings.HasPrefix(field, ":") {
				meta = field
				continue
			}
			f := strings.Fields(meta)
			meta = ""
			if len(f) < 5 || !strings.HasPrefix(f[1], "10") && f[1] != "120000" || !all && !strings.Contains(field, "__tombstones") && !strings.Contains(field, "__deleted") {
				continue
			}
			if id, ok := gitdb.ParseHash(f[3]); ok && !seen[id] {
				seen[id] = true
				if !rd.Has(ctx, id) {
					want = append(want, id)
				}
			}
		}
	}
	diff := []string{"diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff"}
	out, err := e.Repo.Git(ctx, append(diff, base.String(), tip.String())...).Output()
	if err != nil {
		return nil, err
	}
	collect(out, true)
	commits, err := e.Repo.Git(ctx, "rev-list", tip.String(), "^"+base.String()).Output()
	if err != nil || strings.Count(string(commits), "\n") < 2 {
		return want, err
	}
	out, err = e.Repo.Git(ctx, append(diff, "--stdin", "--no-commit-id", "-m", "--root")...).StdinString(string(commits)).Output()
	if err != nil {
		return nil, err
	}
	collect(out, false)
	return want, nil
}

// isShallow reports whether some history of the repository is cut off.
func (e *Env) isShallow() bool {
	info, err := os.Lstat(filepath.Join(e.Repo.CommonDir, "shallow"))
	return !errors.Is(err, fs.ErrNotExist) && (err != nil || info.Size() > 0)
}

// deepen fetches the whole history of a remote where the cut of a shallow one may hide
// the common ancestor of local and remote.
func (e *Env) deepen(ctx context.Context, r Remote, local, remote gitdb.Hash) error {
	if local.IsZero() || !e.isShallow() {
		return nil
	}
	err := e.Repo.Git(ctx, "merge-base", local.String(), remote.String()).Run()
	if ge := (*gitdb.GitError)(nil); !errors.As(err, &ge) || ge.Code != 1 {
		return err
	}
	e.say(Step, "Fetching the history before the cut...")
	_, err = e.fetch(ctx, r, math.MaxInt32)
	return err
}
