package exchange

import (
	"context"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Tracked is a ref that holds what was fetched.
type Tracked struct {
	Ref    string
	Remote Remote // without a name where no remote is configured for the ref
}

// Tracked returns the refs that hold what was fetched: that of the named meta remote, or
// with "" those of all, the primary one first, then the others below refs/<ns>/ that are
// not local and hold metadata, as somebody may have fetched them by hand. A name that is no
// remote's can also be that of such a ref. Refs that do not exist are left out.
func (e *Env) Tracked(ctx context.Context, name string) ([]Tracked, error) {
	cfg, err := e.Repo.Config(ctx)
	if err != nil {
		return nil, err
	}
	var remotes []Remote
	if name != "" {
		r, err := Find(cfg, e.Namespace, name)
		if err != nil {
			ref := "refs/" + e.Namespace + "/" + name
			if ok, rerr := e.holdsMetadata(ctx, ref); rerr != nil || !ok {
				return nil, err
			}
			return []Tracked{{ref, Remote{Namespace: e.Namespace}}}, nil
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
	refs, err := e.Repo.Refs(ctx, "refs/"+e.Namespace+"/")
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		if seen[ref.Name] {
			continue
		}
		ok, err := e.holdsMetadata(ctx, ref.Name)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, Tracked{ref.Name, unlisted(cfg, e.Namespace, ref.Name)})
		}
	}
	return out, nil
}

// holdsMetadata reports whether ref is none of the local ones and its tree has a folder
// of a target type: others keep refs of their own below refs/<ns>/.
func (e *Env) holdsMetadata(ctx context.Context, ref string) (bool, error) {
	if strings.HasPrefix(ref, serialize.LocalRef(e.Namespace, "")) {
		return false, nil
	}
	id, err := e.tip(ctx, ref)
	if err != nil || id.IsZero() {
		return false, err
	}
	rd, err := e.Repo.Objects(ctx)
	if err != nil {
		return false, err
	}
	c, err := rd.Commit(ctx, id)
	if err != nil {
		return false, nil // a tag, a tree, or not here
	}
	entries, err := rd.Tree(ctx, c.Tree)
	for _, t := range entries {
		if t.IsTree() && meta.TargetType(t.Name).Known() {
			return true, err
		}
	}
	return false, err
}

// unlisted returns the remote of a ref that no remote with a URL has: one may still be
// marked as a side remote.
func unlisted(cfg *gitdb.Config, ns, ref string) Remote {
	r := Remote{Namespace: ns}
	if name, ok := strings.CutPrefix(ref, "refs/"+ns+"/remotes/"); ok {
		if name, ok = strings.CutSuffix(name, "/main"); ok && cfg.Bool("remote."+name+".metaside", false) {
			r.Name, r.Side = name, true
		}
	}
	return r
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
