package exchange

import (
	"fmt"
	"slices"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// DefaultName is the name of the remote that setup makes.
const DefaultName = "meta"

// Remote is a meta remote: remote.NAME.meta is true and there is a URL.
type Remote struct {
	Name string
	URL  string // raw: show it with [Redact]
	// Side: another remote is the primary one. What a side remote brings is read and
	// never pushed.
	Side bool
	// Namespace is the folder below refs/ on the remote, and here for this remote:
	// remote.NAME.metanamespace, else the repository's.
	Namespace string
	// OwnNamespace: it was chosen for this remote and is recorded as metanamespace.
	OwnNamespace bool
	// Destination is remote.NAME.metadestination: what filter rules send there goes to
	// this remote, and git meta push without --destination pushes it.
	Destination string
}

// MainRef returns the ref on the remote.
func (r Remote) MainRef() string { return "refs/" + r.Namespace + "/main" }

// LocalRef returns the ref here that is pushed to MainRef.
func (r Remote) LocalRef() string { return serialize.LocalRef(r.Namespace, meta.MainDestination) }

// TrackingRef returns the ref here that follows MainRef.
func (r Remote) TrackingRef() string {
	if r.Side {
		return "refs/" + r.Namespace + "/remotes/" + r.Name + "/main"
	}
	return "refs/" + r.Namespace + "/remotes/main"
}

// refspec is what git fetch and git push of this remote keep the tracking ref by.
func (r Remote) refspec() string { return "+" + r.MainRef() + ":" + r.TrackingRef() }

// settings returns the configuration of r, in the order in which it is written.
func (r Remote) settings() [][2]string {
	p := "remote." + r.Name + "."
	s := [][2]string{{p + "url", r.URL}, {p + "fetch", r.refspec()}, {p + "meta", "true"}}
	if r.Side {
		s = append(s, [2]string{p + "metaside", "true"})
	}
	s = append(s, [2]string{p + "promisor", "true"}, [2]string{p + "partialclonefilter", "blob:none"})
	if r.OwnNamespace {
		s = append(s, [2]string{p + "metanamespace", r.Namespace})
	}
	return s
}

// Remotes returns the meta remotes, by name. ns is the repository's namespace.
func Remotes(cfg *gitdb.Config, ns string) []Remote {
	var out []Remote
	for _, name := range cfg.Subsections("remote") {
		if cfg.Bool("remote."+name+".meta", false) {
			if r, ok := remoteOf(cfg, name, ns); ok {
				out = append(out, r)
			}
		}
	}
	slices.SortFunc(out, func(a, b Remote) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// remoteOf reads a remote that has a URL, whether it is a meta remote or not.
func remoteOf(cfg *gitdb.Config, name, ns string) (Remote, bool) {
	p := "remote." + name + "."
	r := Remote{Name: name, Namespace: ns, Side: cfg.Bool(p+"metaside", false)}
	urls := cfg.GetAll(p + "url")
	if len(urls) == 0 {
		return r, false
	}
	r.URL = urls[0]
	if own, ok := cfg.Get(p + "metanamespace"); ok && serialize.CheckNamespace(own) == nil {
		r.Namespace, r.OwnNamespace = own, true
	}
	r.Destination, _ = cfg.Get(p + "metadestination")
	return r, true
}

// Find returns the meta remote with a name, or with "" the default one: the first that
// is not a side remote, else the first.
func Find(cfg *gitdb.Config, ns, name string) (Remote, error) {
	all := Remotes(cfg, ns)
	if name == "" {
		if len(all) == 0 {
			return Remote{}, meta.NotFound("remote", "no metadata remotes configured", "git meta setup, or git meta remote add URL --init")
		}
		if i := slices.IndexFunc(all, func(r Remote) bool { return !r.Side }); i >= 0 {
			return all[i], nil
		}
		return all[0], nil
	}
	for _, r := range all {
		if r.Name == name {
			return r, nil
		}
	}
	return Remote{}, meta.NotFound(fmt.Sprintf("remote %q", name), "not a metadata remote", "git meta remote list")
}

// CheckName returns nil if a meta remote can have this name: one component of a ref, as
// git remote add checks it, and not "main", which is the primary remote's tracking ref.
func CheckName(name string) error {
	op := fmt.Sprintf("remote name %q", name)
	switch {
	case name == "":
		return meta.Invalid(op, "empty", "")
	case strings.EqualFold(name, meta.MainDestination):
		return meta.Invalid(op, "the tracking ref of the primary remote has this name", "")
	case strings.HasPrefix(name, "-") || strings.Contains(name, "/") ||
		strings.ContainsFunc(name, meta.IsControl) || !gitdb.ValidRefName("refs/remotes/"+name+"/main"):
		return meta.Invalid(op, "not one component of a ref name", "")
	}
	return nil
}
