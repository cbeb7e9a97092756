package exchange

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Removed is what [Env.Remove] took away.
type Removed struct {
	Remote
	Ref  string // the tracking ref, "" if there was none or another remote uses it
	Kept bool   // the git remote stays, because it fetches more than metadata
}

// Remove makes a remote no meta remote any more: its tracking ref goes, then its section
// of the configuration. Refs of other remotes and the local refs stay, so that nothing
// is lost that was published here. A remote that also fetches other refs keeps its
// section without what git-meta wrote there. The error is [meta.ErrNotFound] if there
// is no such meta remote.
func (e *Env) Remove(ctx context.Context, name string) (*Removed, error) {
	cfg, err := e.Repo.Config(ctx)
	if err != nil {
		return nil, err
	}
	r, err := Find(cfg, e.Namespace, name)
	if err != nil {
		return nil, err
	}
	local, err := e.localSettings(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	p := "remote." + r.Name + "."
	if !slices.ContainsFunc(local, func(s [2]string) bool { return s[0] == p+"meta" }) {
		return nil, &meta.Error{
			Op: fmt.Sprintf("remote %q", r.Name), Err: errors.New("it is not this repository's configuration that makes it a metadata remote"),
			Hint: "see where: git config --show-origin --get " + shellWord(p+"meta"),
		}
	}
	res := &Removed{Remote: r}
	if !e.trackedByOthers(cfg, r) {
		err := e.Repo.DeleteRef(ctx, r.TrackingRef(), gitdb.ZeroHash, "git-meta: remote remove")
		switch {
		case err == nil:
			res.Ref = r.TrackingRef()
		case !errors.Is(err, gitdb.ErrRefNotFound):
			return nil, err
		}
	}
	defer e.Repo.ReloadConfig()
	for _, s := range local {
		if s[0] == p+"fetch" && !isMetaRefspec(s[1]) {
			res.Kept = true
		}
	}
	if !res.Kept {
		return res, e.gitConfig(ctx, "--remove-section", "remote."+r.Name)
	}
	// promisor and partialclonefilter may be the user's: they stay.
	for _, s := range local {
		switch {
		case s[0] == p+"fetch" && isMetaRefspec(s[1]):
			err = e.gitConfig(ctx, "--unset-all", s[0], "^"+escapeRegexp(s[1])+"$")
		case s[0] == p+"meta", s[0] == p+"metaside", s[0] == p+"metanamespace":
			err = e.gitConfig(ctx, "--unset-all", s[0])
		}
		if err != nil {
			return nil, err
		}
	}
	return res, nil
}

func (e *Env) trackedByOthers(cfg *gitdb.Config, r Remote) bool {
	return slices.ContainsFunc(Remotes(cfg, e.Namespace), func(o Remote) bool {
		return o.Name != r.Name && o.TrackingRef() == r.TrackingRef()
	})
}

// isMetaRefspec reports whether a fetch refspec is one that git-meta writes.
func isMetaRefspec(spec string) bool {
	src, dst, ok := strings.Cut(strings.TrimPrefix(spec, "+"), ":")
	if !ok {
		return false
	}
	ns, ok := mainNamespace(src)
	return ok && strings.HasPrefix(dst, "refs/"+ns+"/remotes/")
}

// escapeRegexp quotes s for git config's extended regular expressions.
func escapeRegexp(s string) string {
	var b strings.Builder
	for _, c := range s {
		if strings.ContainsRune(`\.+*?()[]{}^$|`, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}
