package gitdb

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinels; match them with errors.Is. Most arrive wrapped in an [*Error],
// an [*ObjectError], a [*LockError] or a [*RefConflictError].
var (
	// ErrNoRepository: no repository at or above the directory.
	ErrNoRepository = errors.New("not a git repository")
	// ErrUnsafeRepository: git refuses the repository (safe.directory or
	// safe.bareRepository). The Hint of the *Error is git's own.
	ErrUnsafeRepository = errors.New("git refuses this repository")
	// ErrUnsupported: the repository uses a format this package cannot handle.
	ErrUnsupported = errors.New("not supported yet")

	// ErrRefNotFound: the ref, or what a symbolic ref names, does not exist.
	ErrRefNotFound = errors.New("ref not found")
	// ErrBrokenRef: a ref file is empty or holds something else than an id.
	ErrBrokenRef = errors.New("broken ref")
	// ErrRefMoved: the ref no longer has the old value. Re-read and try again.
	ErrRefMoved = errors.New("ref was moved by someone else")
	// ErrRefName: the name is not a valid ref name.
	ErrRefName = errors.New("not a valid ref name")

	// ErrObjectMissing: no such object, here or in the alternates.
	ErrObjectMissing = errors.New("object is missing")
	// ErrCorrupt: a pack, index or object cannot be decoded.
	ErrCorrupt = errors.New("corrupt object data")
	// ErrTooLarge: an object above the 2 GiB that are read into memory.
	ErrTooLarge = errors.New("object is too large")

	// ErrNoCommits: HEAD names a branch without commits.
	ErrNoCommits = errors.New("no commits yet")
	// ErrUnknownRevision: the revision names nothing, or several things.
	ErrUnknownRevision = errors.New("unknown revision")
	// ErrNotCommit: the revision names a tree or a blob.
	ErrNotCommit = errors.New("not a commit")

	// ErrReadOnly: the object folder cannot be written.
	ErrReadOnly = errors.New("repository is read-only")
	// ErrNoGit: the git program was not found.
	ErrNoGit = errors.New("git program not found")
)

// Error says what was being done to which path. Hint, when not empty, is a
// command or an advice for the user; a command works when pasted.
type Error struct {
	Op   string // "open repository", "read ref", …
	Path string // file, directory, ref or revision
	Hint string
	Err  error
}

func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("%s %q: %v", e.Op, e.Path, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// ObjectError names the object, and the file when it is known, that could not
// be read.
type ObjectError struct {
	ID   Hash
	Path string
	Err  error
}

func (e *ObjectError) Error() string {
	if e.Path != "" {
		return fmt.Sprintf("object %s in %q: %v", e.ID, e.Path, e.Err)
	}
	return fmt.Sprintf("object %s: %v", e.ID, e.Err)
}

func (e *ObjectError) Unwrap() error { return e.Err }

// LockError: a lock file stayed for about a second. Another git process may
// be at work; if none is, the file is a leftover and can be removed.
type LockError struct {
	Ref  string
	Path string // the .lock file
}

func (e *LockError) Error() string {
	return fmt.Sprintf("ref %q is locked: lock file %q exists", e.Ref, e.Path)
}

// Hint returns advice for the user.
func (e *LockError) Hint() string {
	return "if no other git process is running, remove it: rm -f " + shellQuote(e.Path)
}

// RefConflictError: Existing is in the way of Ref, because one of the two
// would have to be a file and a directory at the same time.
type RefConflictError struct {
	Ref      string
	Existing string
}

func (e *RefConflictError) Error() string {
	return fmt.Sprintf("ref %q cannot be created: ref %q is in the way", e.Ref, e.Existing)
}

// Hint returns the command that removes what is in the way.
func (e *RefConflictError) Hint() string {
	return "remove or rename it: git update-ref -d " + shellQuote(e.Existing)
}

// RevisionError is an [ErrUnknownRevision] or [ErrNotCommit] with the
// candidates that git lists when an abbreviated id is ambiguous.
type RevisionError struct {
	Rev        string
	Reason     string   // "" or one line
	Candidates []string // "1234567 commit 2024-01-01 - subject"
	Err        error
}

func (e *RevisionError) Error() string {
	s := fmt.Sprintf("revision %q: ", e.Rev)
	if e.Reason != "" {
		s += e.Reason
	} else {
		s += e.Err.Error()
	}
	if len(e.Candidates) > 0 {
		s += "; candidates:\n  " + strings.Join(e.Candidates, "\n  ")
	}
	return s
}

func (e *RevisionError) Unwrap() error { return e.Err }

// GitError is a git process that ended with another code than 0.
type GitError struct {
	Args   []string
	Code   int
	Stderr string // the last 64 KiB
}

func (e *GitError) Error() string {
	cmd := strings.TrimSpace("git " + verb(e.Args))
	if m := e.Message(); m != "" {
		return cmd + ": " + m
	}
	return fmt.Sprintf("%s: exit status %d", cmd, e.Code)
}

// Message returns the line of Stderr that says why: the first that starts
// with fatal: or error:, without that word, else the last line.
func (e *GitError) Message() string {
	last, open := "", ""
	for line := range strings.Lines(e.Stderr) {
		line = strings.TrimSpace(line)
		if open != "" {
			return open + " " + line
		}
		for _, p := range []string{"fatal: ", "error: "} {
			if m, ok := strings.CutPrefix(line, p); ok {
				if !strings.HasSuffix(m, ":") {
					return m
				}
				open = m // goes on in the next line
			}
		}
		if line != "" {
			last = line
		}
	}
	return last
}

// Hint returns the advice that comes with an error of this package, or "".
func Hint(err error) string {
	var e *Error
	var l *LockError
	var c *RefConflictError
	switch {
	case errors.As(err, &l):
		return l.Hint()
	case errors.As(err, &c):
		return c.Hint()
	case errors.As(err, &e):
		return e.Hint
	}
	return ""
}

// shellQuote makes a word that can be pasted into a POSIX shell.
func shellQuote(s string) string {
	plain := s != ""
	for _, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("/._-+:@%,", c)) {
			plain = false
		}
	}
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
