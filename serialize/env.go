package serialize

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Env is what a run works on. Repo, DB and Namespace must be set.
type Env struct {
	Repo      *gitdb.Repo
	DB        *store.DB // opened for writing, or for reading where only that is needed
	Namespace string    // meta.namespace, "meta" by default

	Now      func() time.Time // nil: time.Now
	Progress meta.Progress    // nil: none
	Warn     func(string)     // receives one-line warnings; nil: dropped
	Logf     func(format string, a ...any)

	// Fetch brings blobs here that a partial clone has left on its remote. Nil: git
	// fetches each when it is read.
	Fetch func(ctx context.Context, blobs []gitdb.Hash) error
}

func (e *Env) now() time.Time {
	if e.Now != nil {
		return e.Now()
	}
	return time.Now()
}

func (e *Env) progress() meta.Progress {
	if e.Progress != nil {
		return e.Progress
	}
	return meta.NoProgress{}
}

// Warnf passes a one-line warning on.
func (e *Env) Warnf(format string, a ...any) {
	if e.Warn != nil {
		e.Warn(meta.OneLine(fmt.Sprintf(format, a...)))
	}
}

func (e *Env) logf(format string, a ...any) {
	if e.Logf != nil {
		e.Logf(format, a...)
	}
}

// LocalRef returns the ref that dest is published to here.
func (e *Env) LocalRef(dest string) string { return LocalRef(e.Namespace, dest) }

// LocalRef returns refs/<ns>/local/<dest>.
func LocalRef(namespace, dest string) string {
	return "refs/" + namespace + "/local/" + dest
}

// TrackingRef returns the tracking ref of the primary meta remote.
func (e *Env) TrackingRef() string { return "refs/" + e.Namespace + "/remotes/main" }

// protectedNamespaces are folders below refs/ that belong to git.
var protectedNamespaces = []string{"heads", "tags", "remotes", "notes", "stash", "replace", "bisect", "worktree", "rewritten"}

// CheckNamespace returns nil if ns can be the folder below refs/ that metadata lives in.
func CheckNamespace(ns string) error {
	op := fmt.Sprintf("meta.namespace %q", ns)
	if slices.Contains(protectedNamespaces, ns) {
		return meta.Invalid(op, "git keeps its own refs there", "git config meta.namespace meta")
	}
	if r, err := meta.ParseRule("route x " + ns); err != nil || len(r.Dests) != 1 || r.Dests[0] != ns {
		return meta.Invalid(op, "not one component of a ref name", "git config meta.namespace meta")
	}
	return nil
}

// tip returns the commit of ref, or the zero id if there is no such ref.
func (e *Env) tip(ctx context.Context, ref string) (gitdb.Hash, error) {
	return tipOf(ctx, e.Repo, ref)
}
