package exchange

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Deepened is what [Env.Deepen] did.
type Deepened struct {
	Complete bool // the history is whole now
	Was      int  // commits before
	Commits  int  // commits now
	Index    *serialize.IndexReport
}

// Deepen fetches n more commits of the history of a remote whose history is cut off, all
// of it if n is 0, and indexes them. What the remote has got since stays unfetched for a
// pull: the tracking ref does not move. A history that is whole is left alone.
func (e *Env) Deepen(ctx context.Context, r Remote, n int) (*Deepened, error) {
	tip, err := e.tip(ctx, r.TrackingRef())
	if err != nil {
		return nil, err
	}
	if tip.IsZero() {
		return nil, &meta.Error{Op: "remote " + shellWord(r.Name), Err: errors.New("no metadata was fetched yet"), Hint: "git meta pull " + shellWord(r.Name)}
	}
	d := &Deepened{}
	cut, err := e.cutOf(ctx, tip, &d.Was)
	if err != nil {
		return nil, err
	}
	if d.Complete = cut.IsZero(); d.Complete {
		d.Commits = d.Was
		return d, nil
	}
	args := append([]string{"fetch", "--no-prune", "--refmap="}, e.fetchOptions(ctx, r)...)
	if n > 0 {
		args = append(args, "--deepen="+strconv.Itoa(n))
		e.say(Step, "Deepening by "+commits(n)+"...")
	} else {
		args = append(args, "--depth="+strconv.Itoa(math.MaxInt32)) // --unshallow, and no error where there is nothing to do
		e.say(Step, "Deepening to the full history...")
	}
	if err := e.network(ctx, append(args, "--", r.Name, r.MainRef())...).Run(); err != nil {
		return nil, e.trouble(ctx, r.URL, err)
	}
	if cut, err = e.cutOf(ctx, tip, &d.Commits); err != nil {
		return nil, err
	}
	d.Complete = cut.IsZero()
	if !r.Side {
		d.Index, err = e.Index(ctx, serialize.UpdateIndexOptions{})
	}
	return d, err
}

func commits(n int) string {
	if n == 1 {
		return "1 commit"
	}
	return strconv.Itoa(n) + " commits"
}

// cutOf returns the commit at which the history of tip is cut off, zero if it is whole,
// and counts its commits. What else of the repository is shallow does not matter.
func (e *Env) cutOf(ctx context.Context, tip gitdb.Hash, count *int) (gitdb.Hash, error) {
	rd, err := e.Repo.Objects(ctx)
	if err != nil {
		return gitdb.ZeroHash, err
	}
	shallow, err := e.shallow()
	if err != nil {
		return gitdb.ZeroHash, err
	}
	*count = 0
	for id := tip; ; {
		if err := ctx.Err(); err != nil {
			return id, err
		}
		*count++
		c, err := rd.Commit(ctx, id)
		if err != nil {
			return id, err
		}
		switch {
		case len(c.Parents) == 0:
			return gitdb.ZeroHash, nil
		case shallow[id] || !rd.Has(ctx, c.Parents[0]):
			return id, nil
		}
		id = c.Parents[0]
	}
}

// shallow returns the commits at which git cuts histories off.
func (e *Env) shallow() (map[gitdb.Hash]bool, error) {
	data, err := os.ReadFile(filepath.Join(e.Repo.CommonDir, "shallow"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	out := map[gitdb.Hash]bool{}
	for line := range strings.Lines(string(data)) {
		if id, ok := gitdb.ParseHash(strings.TrimSpace(line)); ok {
			out[id] = true
		}
	}
	return out, err
}
