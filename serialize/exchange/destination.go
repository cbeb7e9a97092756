package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// PushDestination publishes what filter rules send to a destination, the ref
// refs/<ns>/local/<dest>, as MainRef of a remote that is not the primary one. Whoever
// adds that remote reads it as a side remote. What others have pushed there stays: their
// tree and ours are united path by path, ours wins where both changed.
func (e *Env) PushDestination(ctx context.Context, r Remote, dest string) (*Pushed, error) {
	op := fmt.Sprintf("destination %q", dest)
	switch rule, err := meta.ParseRule("route x " + dest); {
	case err != nil || len(rule.Dests) != 1 || rule.Dests[0] != dest:
		return nil, meta.Invalid(op, "not the name of a destination", "")
	case dest == meta.MainDestination:
		return nil, meta.Invalid(op, "is what the primary remote has", "git meta push")
	case !r.Side:
		return nil, meta.Invalid(op, fmt.Sprintf("cannot go to %s, the primary remote: everybody would read it", r.Name), "git meta remote add URL --name NAME --init")
	}
	p := &Pushed{Remote: r, Local: serialize.LocalRef(e.Namespace, dest)}
	if nothing, err := e.nothingHere(ctx, p); nothing || err != nil {
		return p, err
	}
	return p, e.race(ctx, p, func(ctx context.Context) (source, error) {
		var s source
		err := e.serialize(ctx, e.Namespace, p)
		if err != nil {
			return s, err
		}
		if s.commit, err = e.tip(ctx, p.Local); err != nil {
			return s, err
		}
		if s.expect, err = e.tip(ctx, r.TrackingRef()); err != nil || s.expect.IsZero() || s.commit.IsZero() {
			return s, err
		}
		if ours, err := e.contains(ctx, s.expect, s.commit); err != nil || ours {
			s.commit = s.expect // all of it is there
			return s, err
		}
		if known, err := e.contains(ctx, s.commit, s.expect); err != nil || known {
			return s, err
		}
		s.commit, err = e.unite(ctx, r, s.commit, s.expect)
		return s, err
	})
}

// unite returns a commit with the parents theirs and ours whose tree is theirs with what
// ours has changed since their last common commit.
func (e *Env) unite(ctx context.Context, r Remote, ours, theirs gitdb.Hash) (gitdb.Hash, error) {
	if err := e.deepen(ctx, r, ours, theirs); err != nil {
		return gitdb.ZeroHash, err
	}
	dir, err := os.MkdirTemp("", "git-meta-")
	if err != nil {
		return gitdb.ZeroHash, err
	}
	defer os.RemoveAll(dir)
	index := "GIT_INDEX_FILE=" + filepath.Join(dir, "index")

	base, err := e.Repo.Git(ctx, "merge-base", ours.String(), theirs.String()).Text()
	if ge := (*gitdb.GitError)(nil); errors.As(err, &ge) && ge.Code == 1 {
		// no common commit: everything of ours counts as changed
		base, err = e.Repo.Git(ctx, "hash-object", "-t", "tree", "-w", "--stdin").StdinString("").Text()
	}
	if err != nil {
		return gitdb.ZeroHash, err
	}
	diff, err := e.Repo.Git(ctx, "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", base, ours.String()).Output()
	if err != nil {
		return gitdb.ZeroHash, err
	}
	var changes bytes.Buffer
	fields := strings.Split(string(diff), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		f := strings.Fields(fields[i])
		if len(f) < 5 {
			return gitdb.ZeroHash, fmt.Errorf("git diff-tree says %q", fields[i])
		}
		fmt.Fprintf(&changes, "%s %s\t%s\x00", f[1], f[3], fields[i+1])
	}
	err = e.Repo.Git(ctx, "read-tree", theirs.String()).Env(index).Run()
	if err == nil {
		err = e.Repo.Git(ctx, "update-index", "-z", "--index-info").Env(index).Stdin(&changes).Run()
	}
	if err != nil {
		return gitdb.ZeroHash, err
	}
	tree, err := e.Repo.Git(ctx, "write-tree", "--missing-ok").Env(index).Text()
	if err != nil {
		return gitdb.ZeroHash, err
	}
	rd, err := e.Repo.Objects(ctx)
	if err != nil {
		return gitdb.ZeroHash, err
	}
	mine, err := rd.Commit(ctx, ours)
	if err != nil {
		return gitdb.ZeroHash, err
	}
	c := gitdb.Commit{Author: mine.Author, Message: mine.Message, Parents: []gitdb.Hash{theirs, ours}}
	var ok bool
	if c.Tree, ok = gitdb.ParseHash(tree); !ok {
		return gitdb.ZeroHash, fmt.Errorf("git write-tree says %q", tree)
	}
	if c.Committer, err = e.Repo.CommitterIdent(ctx); err != nil {
		return gitdb.ZeroHash, err
	}
	w, err := e.Repo.NewWriter(ctx)
	if err != nil {
		return gitdb.ZeroHash, err
	}
	defer w.Abort()
	data := c.Encode()
	id := gitdb.HashObject(gitdb.CommitObject, data)
	if err := w.Put(gitdb.CommitObject, id, data); err != nil {
		return gitdb.ZeroHash, err
	}
	if err := w.Finish(ctx); err != nil {
		return gitdb.ZeroHash, err
	}
	return id, w.Release()
}
