package gitdb

import (
	"context"
	"errors"
	"strings"
)

// ResolveCommit returns the commit that a revision names, annotated tags
// peeled. HEAD, @ and full ids take no process.
//
// 40 hexadecimal digits, in any case, are an id and nothing else; if there is
// no such object here, exists is false and err nil. It never fetches.
//
// Errors: a [*RevisionError] with [ErrUnknownRevision] or [ErrNotCommit], or
// [ErrNoCommits].
func (r *Repo) ResolveCommit(ctx context.Context, rev string) (id Hash, exists bool, err error) {
	if h, ok := ParseHash(rev); ok {
		return r.peel(ctx, rev, h)
	}
	if rev == "HEAD" || rev == "@" {
		branch, h, err := r.Head(ctx)
		if err != nil {
			return ZeroHash, false, err
		}
		if h.IsZero() {
			return ZeroHash, false, &RevisionError{
				Rev: rev, Err: ErrNoCommits,
				Reason: "no commits yet on " + strings.TrimPrefix(branch, "refs/heads/"),
			}
		}
		return r.mustPeel(ctx, rev, h)
	}
	// Words that rev-parse would take for options, ranges or several ids.
	if rev == "" || rev[0] == '-' || rev[0] == '^' || strings.ContainsAny(rev, "\x00\n") {
		return ZeroHash, false, &RevisionError{Rev: rev, Err: ErrUnknownRevision}
	}
	out, err := r.Git(ctx, "-c", "core.disambiguate=committish", "rev-parse", "--verify", rev).Text()
	var ge *GitError
	if errors.As(err, &ge) {
		e := &RevisionError{Rev: rev, Err: ErrUnknownRevision}
		for line := range strings.Lines(ge.Stderr) {
			line = strings.TrimSpace(line)
			if c, ok := strings.CutPrefix(line, "hint: "); ok && !strings.HasSuffix(c, ":") {
				e.Candidates = append(e.Candidates, strings.TrimSpace(c))
			}
		}
		if len(e.Candidates) > 0 {
			e.Reason = "ambiguous"
		} else if _, h, herr := r.Head(ctx); herr == nil && h.IsZero() && strings.HasPrefix(rev, "HEAD") {
			e.Err = ErrNoCommits
		}
		return ZeroHash, false, e
	}
	if err != nil {
		return ZeroHash, false, err
	}
	h, ok := ParseHash(out)
	if !ok {
		return ZeroHash, false, &RevisionError{Rev: rev, Err: ErrUnknownRevision}
	}
	return r.mustPeel(ctx, rev, h)
}

// mustPeel is peel for revisions that come from the repository itself.
func (r *Repo) mustPeel(ctx context.Context, rev string, id Hash) (Hash, bool, error) {
	id, exists, err := r.peel(ctx, rev, id)
	if err == nil && !exists {
		return ZeroHash, false, &RevisionError{Rev: rev, Err: &ObjectError{ID: id, Err: ErrObjectMissing}}
	}
	return id, exists, err
}

// peel follows annotated tags to a commit.
func (r *Repo) peel(ctx context.Context, rev string, id Hash) (Hash, bool, error) {
	rd, err := r.Objects(ctx)
	if err != nil {
		return ZeroHash, false, err
	}
	local := rd.Local()
	for first := id; ; {
		t, _, err := local.Header(ctx, id)
		if errors.Is(err, ErrObjectMissing) {
			if id != first {
				return ZeroHash, false, &RevisionError{Rev: rev, Err: err}
			}
			return id, false, nil
		}
		if err != nil {
			return ZeroHash, false, err
		}
		switch t {
		case CommitObject:
			return id, true, nil
		case TagObject:
			_, data, err := local.Read(ctx, id)
			if err != nil {
				return ZeroHash, false, err
			}
			line, _, _ := strings.Cut(string(data), "\n")
			h, ok := ParseHash(strings.TrimPrefix(line, "object "))
			if !ok {
				return ZeroHash, false, &ObjectError{ID: id, Err: ErrCorrupt}
			}
			id = h // ids are hashes: no loops
		default:
			return ZeroHash, false, &RevisionError{Rev: rev, Err: ErrNotCommit, Reason: "is a " + t.String() + ", not a commit"}
		}
	}
}
