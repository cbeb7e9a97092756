package gitdb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// lockWait is how long a lock file is waited for, on top of git's own
// core.filesRefLockTimeout.
const lockWait = time.Second

// maxUnlocked is how often a change is tried again that git refused because
// of a lock that was gone when we looked.
const maxUnlocked = 8

// UpdateRef moves a ref from old to new, by compare-and-swap: git update-ref
// --stdin with reason in the reflog. A zero old means that the ref must not
// exist yet. It returns
//   - [ErrRefMoved] if the ref no longer is at old: re-read and try again,
//   - a [*LockError] if a lock file stays for about a second,
//   - a [*RefConflictError] if another ref is in the way,
//   - an [*Error] with [ErrBrokenRef] if the ref's file makes no sense,
//   - otherwise a [*GitError].
//
// Which of them is decided by looking at the refs, not at git's words.
func (r *Repo) UpdateRef(ctx context.Context, name string, new, old Hash, reason string) error {
	if new.IsZero() {
		return &Error{Op: "update ref", Path: name, Err: errors.New("no new value")}
	}
	line := fmt.Sprintf("update %s %s %s\n", name, new, old)
	return r.changeRef(ctx, name, line, new, old, reason)
}

// DeleteRef removes a ref that is at old; with a zero old, whatever it is at.
// [ErrRefNotFound] if there is none; other errors as [Repo.UpdateRef].
func (r *Repo) DeleteRef(ctx context.Context, name string, old Hash, reason string) error {
	if _, err := r.Ref(ctx, name); errors.Is(err, ErrRefNotFound) {
		return err
	}
	line := "delete " + name
	if !old.IsZero() {
		line += " " + old.String()
	}
	return r.changeRef(ctx, name, line+"\n", ZeroHash, old, reason)
}

// changeRef runs one line of update-ref; a zero new stands for deletion.
func (r *Repo) changeRef(ctx context.Context, name, line string, new, old Hash, reason string) error {
	if !ValidRefName(name) {
		return &Error{Op: "update ref", Path: name, Err: ErrRefName}
	}
	if real, _, err := r.resolveRef(ctx, name); real != "" && real != name && !errors.Is(err, ErrBrokenRef) {
		// git would move the ref it points to, which is not ours
		return &Error{
			Op: "update ref", Path: name, Err: fmt.Errorf("it is a symbolic ref to %s", real),
			Hint: "git symbolic-ref --delete " + shellQuote(name),
		}
	}
	args := []string{"update-ref"}
	if m := strings.Join(strings.Fields(reason), " "); m != "" {
		args = append(args, "-m", m)
	}
	args = append(args, "--stdin")
	deadline, unlocked := time.Now().Add(lockWait), 0
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := r.Git(ctx, args...).StdinString(line).Run()
		var ge *GitError
		if err != nil && !errors.As(err, &ge) {
			return err // cancelled, or no git
		}
		real, cur, rerr := r.resolveRef(ctx, name)
		if err == nil {
			if errors.Is(rerr, ErrBrokenRef) {
				return rerr // git passes over some broken files
			}
			return nil
		}
		switch {
		case errors.Is(rerr, ErrRefNotFound):
			cur = ZeroHash
		case rerr != nil:
			return rerr
		}
		if cur == new {
			return nil
		}
		if cur != old && !(new.IsZero() && old.IsZero()) {
			return &Error{Op: "update ref", Path: name, Err: ErrRefMoved}
		}
		// Moved away and back again since git looked.
		if !old.IsZero() && strings.Contains(ge.Message(), "expected "+old.String()) {
			return &Error{Op: "update ref", Path: name, Err: ErrRefMoved}
		}
		if cur.IsZero() {
			if other := r.inTheWay(ctx, real); other != "" {
				return &RefConflictError{Ref: name, Existing: other}
			}
		}
		lock := r.lockFile(ctx, real, new.IsZero())
		if lock == "" {
			// The C locale's words for EROFS and EACCES.
			if strings.Contains(ge.Stderr, "Read-only file system") || strings.Contains(ge.Stderr, "Permission denied") {
				return &Error{Op: "update ref", Path: name, Err: wrapped{ErrReadOnly, err}}
			}
			if unlocked++; unlocked > maxUnlocked || !strings.Contains(ge.Stderr, ".lock") {
				return &Error{Op: "update ref", Path: name, Err: err}
			}
		} else if time.Now().After(deadline) {
			return &LockError{Ref: name, Path: lock}
		}
		// The lock was there, or is: another process is at work.
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait/2 + rand.N(wait)):
		}
	}
}

// inTheWay returns a ref that keeps name from being created: one that name
// would be below, or one below name.
func (r *Repo) inTheWay(ctx context.Context, name string) string {
	for i, c := range name {
		if c != '/' || i <= len("refs") {
			continue
		}
		if _, err := r.Ref(ctx, name[:i]); err == nil || errors.Is(err, ErrBrokenRef) {
			return name[:i]
		}
	}
	refs, err := r.Refs(ctx, name+"/")
	if err == nil && len(refs) > 0 {
		return refs[0].Name
	}
	return ""
}

// lockFile returns an existing lock file that stops a change of the ref. Git
// also locks packed-refs to delete a ref, and HEAD if it names the ref.
func (r *Repo) lockFile(ctx context.Context, name string, deletes bool) string {
	paths := []string{r.refPath(name) + ".lock"}
	if deletes {
		paths = append(paths, filepath.Join(r.CommonDir, "packed-refs.lock"))
	}
	if head, _, err := r.Head(ctx); err == nil && head == name {
		paths = append(paths, filepath.Join(r.GitDir, "HEAD.lock"))
	}
	for _, p := range paths {
		if _, err := os.Lstat(p); err == nil {
			return p
		}
	}
	return ""
}
