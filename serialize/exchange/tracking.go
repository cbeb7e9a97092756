package exchange

import (
	"context"
	"strings"

	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// TrackingRefs returns the refs that hold what was fetched: that of the named meta
// remote, or with "" every ref below refs/<ns>/ that is not a local one or a side
// remote's.
func TrackingRefs(ctx context.Context, repo *gitdb.Repo, ns, name string) ([]string, error) {
	cfg, err := repo.Config(ctx)
	if err != nil {
		return nil, err
	}
	if name != "" {
		r, err := Find(cfg, ns, name)
		if err != nil {
			return nil, err
		}
		return []string{r.TrackingRef()}, nil
	}
	side := map[string]bool{}
	for _, r := range Remotes(cfg, ns) {
		if r.Side {
			side[r.TrackingRef()] = true
		}
	}
	refs, err := repo.Refs(ctx, "refs/"+ns+"/")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range refs {
		if !strings.HasPrefix(r.Name, serialize.LocalRef(ns, "")) && !side[r.Name] {
			out = append(out, r.Name)
		}
	}
	return out, nil
}
