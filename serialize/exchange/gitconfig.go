package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// lockWait is how long another writer of the configuration is waited for.
const lockWait = time.Second

// gitConfig runs git config --local, which writes the file that all worktrees share. A
// lock file that stays is named in the error.
func (e *Env) gitConfig(ctx context.Context, args ...string) error {
	lock := filepath.Join(e.Repo.CommonDir, "config.lock")
	deadline := time.Now().Add(lockWait)
	for {
		// GIT_CONFIG names another file, for git config alone.
		err := e.Repo.Git(ctx, append([]string{"config", "--local"}, args...)...).Unset("GIT_CONFIG").Run()
		var ge *gitdb.GitError
		if !errors.As(err, &ge) {
			return err
		}
		if _, serr := os.Lstat(lock); serr != nil {
			// git's word for a lock that is gone by now
			if !strings.Contains(ge.Stderr, ".lock") && !strings.Contains(ge.Stderr, "could not lock") || time.Now().After(deadline) {
				return &meta.Error{Op: "git configuration", Err: ge}
			}
		} else if time.Now().After(deadline) {
			return &meta.Error{
				Op: "git configuration", Err: fmt.Errorf("locked: lock file %q exists", lock),
				Hint: "if no other git process is running, remove it: rm -f '" + strings.ReplaceAll(lock, "'", `'\''`) + "'",
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// localSettings returns what the repository's own configuration says about a remote, in
// order: full keys and values.
func (e *Env) localSettings(ctx context.Context, name string) ([][2]string, error) {
	out, err := e.Repo.Git(ctx, "config", "--local", "--list", "-z").Unset("GIT_CONFIG").Output()
	if err != nil {
		return nil, err
	}
	var s [][2]string
	for entry := range bytes.SplitSeq(out, []byte{0}) {
		key, value, _ := strings.Cut(string(entry), "\n")
		if rest, ok := strings.CutPrefix(key, "remote."+name+"."); ok && !strings.Contains(rest, ".") {
			s = append(s, [2]string{key, value})
		}
	}
	return s, nil
}

// configure writes r's settings, key by key; those that are right already stay. Undoing
// brings back what the section held.
func (e *Env) configure(ctx context.Context, r Remote, u *undo) error {
	before, err := e.localSettings(ctx, r.Name)
	if err != nil {
		return err
	}
	have := map[string][]string{}
	for _, s := range before {
		have[s[0]] = append(have[s[0]], s[1])
	}
	want := r.settings()
	started := false
	for _, s := range want {
		v := have[s[0]]
		if len(v) == 1 && v[0] == s[1] || strings.HasSuffix(s[0], ".fetch") && slices.Contains(v, s[1]) {
			continue
		}
		if !started {
			started = true
			u.add(func(ctx context.Context) error { return e.restore(ctx, r.Name, before) })
		}
		if err := e.gitConfig(ctx, "--replace-all", s[0], s[1]); err != nil {
			return err
		}
	}
	e.Repo.ReloadConfig()
	return nil
}

// restore makes the section of a remote what it was.
func (e *Env) restore(ctx context.Context, name string, before [][2]string) error {
	defer e.Repo.ReloadConfig()
	now, err := e.localSettings(ctx, name)
	if err != nil {
		return err
	}
	if len(now) > 0 {
		if err := e.gitConfig(ctx, "--remove-section", "remote."+name); err != nil {
			return err
		}
	}
	for _, s := range before {
		if err := e.gitConfig(ctx, "--add", s[0], s[1]); err != nil {
			return err
		}
	}
	return nil
}
