package exchange

import (
	"context"
	"strings"
)

// Tracked is a ref that holds what was fetched.
type Tracked struct {
	Ref    string
	Remote Remote // without a name where no remote is configured for the ref
}

// Tracked returns the refs that hold what was fetched: that of the named meta remote, or
// with "" those of all, the primary one first, then what else there is below
// refs/<ns>/remotes/. Other refs below refs/<ns>/ are not ours. Refs that do not exist
// are left out.
func (e *Env) Tracked(ctx context.Context, name string) ([]Tracked, error) {
	cfg, err := e.Repo.Config(ctx)
	if err != nil {
		return nil, err
	}
	var remotes []Remote
	if name != "" {
		r, err := Find(cfg, e.Namespace, name)
		if err != nil {
			return nil, err
		}
		remotes = []Remote{r}
	} else {
		remotes = primaryFirst(Remotes(cfg, e.Namespace))
	}
	var out []Tracked
	seen := map[string]bool{}
	for _, r := range remotes {
		ref := r.TrackingRef()
		if seen[ref] {
			continue
		}
		seen[ref] = true
		id, err := e.tip(ctx, ref)
		if err != nil {
			return nil, err
		}
		if !id.IsZero() {
			out = append(out, Tracked{ref, r})
		}
	}
	if name != "" {
		return out, nil
	}
	refs, err := e.Repo.Refs(ctx, "refs/"+e.Namespace+"/remotes/")
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		if !seen[ref.Name] && strings.HasSuffix(ref.Name, "/main") {
			out = append(out, Tracked{ref.Name, Remote{Namespace: e.Namespace}})
		}
	}
	return out, nil
}

// primaryFirst orders remotes: those that are pushed, then side remotes, each by name.
func primaryFirst(all []Remote) []Remote {
	var primary, side []Remote
	for _, r := range all {
		if r.Side {
			side = append(side, r)
		} else {
			primary = append(primary, r)
		}
	}
	return append(primary, side...)
}

// All returns the meta remotes, the primary one first, or the named one.
func (e *Env) All(ctx context.Context, name string) ([]Remote, error) {
	cfg, err := e.Repo.Config(ctx)
	if err != nil {
		return nil, err
	}
	r, err := Find(cfg, e.Namespace, name) // also the error where there is none
	if err != nil || name != "" {
		return []Remote{r}, err
	}
	return primaryFirst(Remotes(cfg, e.Namespace)), nil
}

// Find returns the meta remote with a name, or with "" the default one.
func (e *Env) Find(ctx context.Context, name string) (Remote, error) {
	cfg, err := e.Repo.Config(ctx)
	if err != nil {
		return Remote{}, err
	}
	return Find(cfg, e.Namespace, name)
}
