package exchange

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// starter returns the commit that a new remote begins with: the tip of the local ref,
// which is made if it does not exist; for a side remote, which our metadata does not go
// to, a commit that no local ref holds. own says that it was made here. The new commit has
// no parents and one file, README.md, that serialize keeps like every path it does not
// know.
func (e *Env) starter(ctx context.Context, r Remote, origin string, u *undo) (tip gitdb.Hash, own bool, err error) {
	ref := r.LocalRef()
	if r.Side {
		tip, err = e.writeStarter(ctx, r, origin, "")
		return tip, true, err
	}
	for {
		if tip, err = e.tip(ctx, ref); err != nil {
			return tip, false, err
		}
		if !tip.IsZero() {
			e.say(Done, fmt.Sprintf("Reusing existing %s (tip %.12s)", ref, tip))
			return tip, false, nil
		}
		tip, err = e.writeStarter(ctx, r, origin, ref)
		if errors.Is(err, gitdb.ErrRefMoved) {
			continue // somebody published in between
		}
		if err != nil {
			return tip, false, err
		}
		u.add(func(ctx context.Context) error {
			err := e.Repo.DeleteRef(ctx, ref, tip, "git-meta: initialize failed")
			if errors.Is(err, gitdb.ErrRefNotFound) || errors.Is(err, gitdb.ErrRefMoved) {
				return nil
			}
			return err
		})
		e.say(Done, fmt.Sprintf("Created %s with initial README commit (%.12s)", ref, tip))
		return tip, true, nil
	}
}

// writeStarter writes the commit and, unless it is "", the ref, which must not exist.
func (e *Env) writeStarter(ctx context.Context, r Remote, origin, ref string) (gitdb.Hash, error) {
	return e.readmeCommit(ctx, readmeText(r, origin), ref, "git-meta: initialize "+r.Namespace+" metadata\n\n"+
		"First commit on "+r.LocalRef()+", created by `git meta remote add --init`.\n"+
		"Stores a README that documents the metadata layout for new contributors.")
}

// readmeCommit writes a commit without parents that holds README.md alone and, unless it
// is "", makes ref, which must not exist, point to it.
func (e *Env) readmeCommit(ctx context.Context, text, ref, message string) (gitdb.Hash, error) {
	author, err := e.Repo.AuthorIdent(ctx)
	if err != nil {
		return gitdb.ZeroHash, err
	}
	c := gitdb.Commit{Author: author, Message: message}
	if c.Committer, err = e.Repo.CommitterIdent(ctx); err != nil {
		return gitdb.ZeroHash, err
	}
	c.Author.When = c.Committer.When

	w, err := e.Repo.NewWriter(ctx)
	if err != nil {
		return gitdb.ZeroHash, err
	}
	defer w.Abort()
	put := func(t gitdb.ObjectType, data []byte) gitdb.Hash {
		id := gitdb.HashObject(t, data)
		if err == nil {
			err = w.Put(t, id, data)
		}
		return id
	}
	readme := put(gitdb.BlobObject, []byte(text))
	c.Tree = put(gitdb.TreeObject, gitdb.AppendTreeEntry(nil, 0o100644, "README.md", readme))
	id := put(gitdb.CommitObject, c.Encode())
	if err == nil {
		err = w.Finish(ctx)
	}
	if err == nil && ref != "" {
		err = e.Repo.UpdateRef(ctx, ref, id, gitdb.ZeroHash, "git-meta: initialize")
	}
	if err != nil {
		return gitdb.ZeroHash, err
	}
	return id, w.Release()
}

// readmeText returns the README of the starter commit. It goes to everybody: paths of
// this machine and credentials are not in it.
func readmeText(r Remote, origin string) string {
	project := "a project"
	if origin != "" && !IsLocal(origin) {
		project = "<" + StripUser(origin) + ">"
	}
	where := "<URL of this repository>"
	if !IsLocal(r.URL) {
		where = StripUser(r.URL)
	}
	add := "git meta remote add " + where
	if r.OwnNamespace {
		add += " --namespace=" + r.Namespace
	}
	return strings.NewReplacer("{project}", project, "{add}", add, "{url}", where, "{ref}", r.MainRef()).Replace(starterReadme)
}

const starterReadme = `# Metadata

These files are metadata about the commits, branches and paths of
{project}, written by git-meta. They are not source code:
they live under ` + "`{ref}`" + `, which clones and pull requests leave alone.

## Reading and writing it

In a clone of the project:

    {add}
    git meta get project
    git meta set commit:HEAD review:state approved
    git meta serialize

A project that is to set this up by itself has a file ` + "`.git-meta`" + ` at its top:

    url: {url}

and then ` + "`git meta setup`" + ` is all that is needed.

## What the files are

Each value has a path: the target, then the key, then the kind of value.

    project/<key>/__value                          a string
    commit/<xx>/<commit id>/<key>/__value
    branch/<xx>/<name>/<key>/__list/<time>-<id>    an entry of a list
    path/<path>/__target__/<key>/__set/<id>        a member of a set
    .../__tombstones/...                           what was removed

Please change it with git meta rather than by hand.
`

// The auto-prune rules of a metadata store that has none.
var defaultRules = []struct{ key, value string }{
	{"meta:prune:max-keys", "10000"},
	{"meta:prune:min-keys", "5000"},
}

// policyKeys are the rules that make a policy: one of them is enough.
var policyKeys = []string{"meta:prune:max-keys", "meta:prune:min-keys", "meta:prune:max-size", "meta:prune:min-size"}

// IsDefaultRule reports whether key and value are one of the rules that setup writes.
func IsDefaultRule(k meta.KeyRef, v meta.Value) bool {
	for _, r := range defaultRules {
		if k == projectKey(r.key) && v.Type == meta.String && v.String == r.value {
			return true
		}
	}
	return false
}

func projectKey(key string) meta.KeyRef { return meta.KeyRef{Target: meta.ProjectTarget, Key: key} }

// writeRules stores the default auto-prune rules unless the store or the published tree
// has a policy. They are not published here: the next serialize does that.
func (e *Env) writeRules(ctx context.Context, tip gitdb.Hash) (bool, error) {
	published, err := e.publishedPolicy(ctx, tip)
	if err != nil || published {
		return false, err
	}
	env, err := e.Open(ctx)
	if err != nil {
		return false, err
	}
	edit := store.Edit{Email: e.Repo.AuthorEmail(ctx)}
	wrote := false
	err = env.DB.Update(ctx, func(tx *store.Tx) error {
		for _, key := range policyKeys {
			row, ok, err := tx.Row(projectKey(key))
			if err != nil || ok && !row.Promised {
				return err
			}
		}
		for _, r := range defaultRules {
			if err := tx.Set(projectKey(r.key), r.value, edit); err != nil {
				return err
			}
		}
		wrote = true
		return nil
	})
	if err == nil && wrote {
		e.say(Done, fmt.Sprintf("Configured auto-prune (keep the published tree under %s keys, pruning back to %s)",
			defaultRules[0].value, defaultRules[1].value))
	}
	return wrote && err == nil, err
}

// publishedPolicy reports whether the tree of tip holds a rule: the store may be new.
func (e *Env) publishedPolicy(ctx context.Context, tip gitdb.Hash) (bool, error) {
	args := []string{"--literal-pathspecs", "ls-tree", "-r", "--name-only", "--full-tree", tip.String(), "--"}
	for _, key := range policyKeys {
		k := meta.KeyPath(meta.ProjectTarget.BasePath(), key)
		args = append(args, meta.ValuePath(k))
	}
	out, err := e.Repo.Git(ctx, args...).Output()
	return len(out) > 0, err
}
