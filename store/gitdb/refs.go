package gitdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Ref is a ref with the id it has, symbolic refs followed.
type Ref struct {
	Name string
	Hash Hash
}

// maxSymref is how many symbolic refs git follows.
const maxSymref = 5

// ValidRefName applies the rules of git check-ref-format to a full name, with
// a slash or in capitals like HEAD.
func ValidRefName(name string) bool {
	if name == "" || name == "@" || strings.HasSuffix(name, ".") || strings.Contains(name, "..") ||
		strings.Contains(name, "@{") || strings.HasPrefix(name, "-") {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c == 0x7f || strings.IndexByte("~^:?*[\\", c) >= 0 {
			return false
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	if strings.Contains(name, "/") {
		return strings.HasPrefix(name, "refs/")
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return !(r >= 'A' && r <= 'Z' || r == '_' || r == '-') })
}

// refDir returns the folder that a ref's file is in: some belong to one
// worktree. See "refs" in gitrepository-layout(5).
func (r *Repo) refDir(name string) string {
	if !strings.HasPrefix(name, "refs/") || perWorktree(name) {
		return r.GitDir
	}
	return r.CommonDir
}

func perWorktree(name string) bool {
	for _, p := range []string{"refs/bisect/", "refs/worktree/", "refs/rewritten/"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

func (r *Repo) refPath(name string) string {
	return filepath.Join(r.refDir(name), filepath.FromSlash(name))
}

// Ref returns the id of a ref by its full name, symbolic refs followed; tags
// are not peeled. [ErrRefNotFound] if it, or what it refers to, does not
// exist; [ErrBrokenRef], naming the file, if the file makes no sense. No
// process, except with reftable.
func (r *Repo) Ref(ctx context.Context, name string) (Hash, error) {
	_, id, err := r.resolveRef(ctx, name)
	return id, err
}

// resolveRef also returns the name of the last ref of the chain, which may
// not exist.
func (r *Repo) resolveRef(ctx context.Context, name string) (string, Hash, error) {
	if err := ctx.Err(); err != nil {
		return name, ZeroHash, err
	}
	if !ValidRefName(name) {
		return name, ZeroHash, &Error{Op: "read ref", Path: name, Err: ErrRefName}
	}
	if r.refStorage != "files" {
		return r.resolveRefGit(ctx, name)
	}
	for range maxSymref + 1 {
		id, target, err := r.readLooseRef(name)
		switch {
		case errors.Is(err, ErrRefNotFound):
			id, err = r.readPackedRef(name)
			return name, id, err
		case err != nil:
			return name, ZeroHash, err
		case target == "":
			return name, id, nil
		}
		name = target
	}
	return name, ZeroHash, &Error{Op: "read ref", Path: name, Err: fmt.Errorf("%w: too many symbolic refs", ErrBrokenRef)}
}

// readLooseRef reads one ref file: an id, or the name of another ref.
func (r *Repo) readLooseRef(name string) (id Hash, target string, err error) {
	p := r.refPath(name)
	if fi, err := os.Lstat(p); err == nil && fi.Mode()&os.ModeSymlink != 0 {
		if to, err := os.Readlink(p); err == nil && strings.HasPrefix(to, "refs/") && ValidRefName(to) {
			return ZeroHash, to, nil
		}
	}
	b, err := os.ReadFile(p)
	if err != nil {
		if notFound(err) || isDirErr(err) {
			return ZeroHash, "", &Error{Op: "read ref", Path: name, Err: ErrRefNotFound}
		}
		if fi, serr := os.Stat(p); serr == nil && fi.IsDir() {
			return ZeroHash, "", &Error{Op: "read ref", Path: name, Err: ErrRefNotFound}
		}
		return ZeroHash, "", &Error{Op: "read ref", Path: name, Err: err}
	}
	if s, ok := bytes.CutPrefix(b, []byte("ref:")); ok {
		t := strings.TrimSpace(string(s))
		if ValidRefName(t) {
			return ZeroHash, t, nil
		}
	} else if id, ok := parseHex(b); ok && !id.IsZero() {
		return id, "", nil
	}
	what := "not an object id"
	if len(b) == 0 {
		what = "empty file"
	}
	return ZeroHash, "", &Error{
		Op: "read ref", Path: name, Err: fmt.Errorf("%w: %s %q", ErrBrokenRef, what, p),
		Hint: "move the file away: mv " + shellQuote(p) + " " + shellQuote(filepath.Join(r.CommonDir, "broken-ref")),
	}
}

func (r *Repo) readPackedRef(name string) (Hash, error) {
	missing := &Error{Op: "read ref", Path: name, Err: ErrRefNotFound}
	if !strings.HasPrefix(name, "refs/") || perWorktree(name) {
		return ZeroHash, missing
	}
	b, err := os.ReadFile(filepath.Join(r.CommonDir, "packed-refs"))
	if err != nil {
		if notFound(err) {
			return ZeroHash, missing
		}
		return ZeroHash, &Error{Op: "read ref", Path: name, Err: err}
	}
	for find := []byte(" " + name); ; {
		i := bytes.Index(b, find)
		if i < 0 {
			return ZeroHash, missing
		}
		end := i + len(find)
		if i >= 40 && (i == 40 || b[i-41] == '\n') && (end == len(b) || b[end] == '\n' || b[end] == '\r') {
			if id, ok := ParseHash(string(b[i-40 : i])); ok {
				return id, nil
			}
		}
		b = b[end:]
	}
}

// Refs returns the refs whose full names start with prefix ("refs/meta/"),
// sorted by name, symbolic refs followed and dangling ones left out, as git
// for-each-ref does. A broken ref file is an error.
func (r *Repo) Refs(ctx context.Context, prefix string) ([]Ref, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.refStorage != "files" {
		return r.refsGit(ctx, prefix)
	}
	all := map[string]Hash{}
	// Loose refs first: what pack-refs removes in between is packed by then.
	loose := map[string]Hash{}
	roots := []string{r.CommonDir}
	if r.GitDir != r.CommonDir {
		roots = append(roots, r.GitDir)
	}
	for _, root := range roots {
		if err := r.walkRefs(ctx, root, prefix, loose); err != nil {
			return nil, err
		}
	}
	b, err := os.ReadFile(filepath.Join(r.CommonDir, "packed-refs"))
	if err != nil && !notFound(err) {
		return nil, &Error{Op: "read refs", Path: prefix, Err: err}
	}
	for line := range bytes.Lines(b) {
		if len(line) < 42 || line[40] != ' ' {
			continue // comment or peeled id
		}
		name := strings.TrimRight(string(line[41:]), "\r\n")
		if id, ok := parseHex(line); ok && strings.HasPrefix(name, prefix) && !perWorktree(name) {
			all[name] = id
		}
	}
	for n, id := range loose {
		if id.IsZero() {
			delete(all, n) // a dangling symbolic ref
			continue
		}
		all[n] = id
	}
	out := make([]Ref, 0, len(all))
	for n, id := range all {
		out = append(out, Ref{n, id})
	}
	slices.SortFunc(out, func(a, b Ref) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (r *Repo) walkRefs(ctx context.Context, root, prefix string, loose map[string]Hash) error {
	dir := "refs"
	if strings.HasPrefix(prefix, "refs/") {
		dir = strings.TrimSuffix(prefix[:strings.LastIndexByte(prefix, '/')+1], "/")
	}
	if strings.Contains(dir, "..") {
		return &Error{Op: "read refs", Path: prefix, Err: ErrRefName}
	}
	return filepath.WalkDir(filepath.Join(root, filepath.FromSlash(dir)), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			if notFound(err) {
				return nil
			}
			return &Error{Op: "read refs", Path: p, Err: err}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if d.IsDir() {
			if n := name + "/"; !strings.HasPrefix(n, prefix) && !strings.HasPrefix(prefix, n) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasPrefix(name, prefix) || !ValidRefName(name) || r.refDir(name) != root {
			return nil
		}
		id, err := r.Ref(ctx, name)
		if errors.Is(err, ErrRefNotFound) {
			if _, target, err := r.readLooseRef(name); err == nil && target != "" {
				loose[name] = ZeroHash
			}
			return nil
		}
		loose[name] = id
		return err
	})
}

// resolveRefGit is resolveRef for ref backends other than files.
func (r *Repo) resolveRefGit(ctx context.Context, name string) (string, Hash, error) {
	last := name
	if t, err := r.Git(ctx, "symbolic-ref", "--quiet", name).Text(); err == nil && t != "" {
		last = t
	}
	out, err := r.Git(ctx, "show-ref", "--verify", "--hash", "--", name).Text()
	var ge *GitError
	if errors.As(err, &ge) {
		return last, ZeroHash, &Error{Op: "read ref", Path: name, Err: ErrRefNotFound}
	}
	if err != nil {
		return last, ZeroHash, err
	}
	id, ok := ParseHash(out)
	if !ok {
		return last, ZeroHash, &Error{Op: "read ref", Path: name, Err: ErrBrokenRef}
	}
	return last, id, nil
}

func (r *Repo) refsGit(ctx context.Context, prefix string) ([]Ref, error) {
	// A pattern matches whole components only: filter here.
	dir := prefix[:strings.LastIndexByte(prefix, '/')+1]
	args := []string{"for-each-ref", "--format=%(objectname) %(refname)"}
	if dir != "" {
		args = append(args, "--", dir)
	}
	out, err := r.Git(ctx, args...).Output()
	if err != nil {
		return nil, err
	}
	var refs []Ref
	for line := range strings.Lines(string(out)) {
		h, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if id, ok := ParseHash(h); ok && strings.HasPrefix(name, prefix) {
			refs = append(refs, Ref{name, id})
		}
	}
	slices.SortFunc(refs, func(a, b Ref) int { return strings.Compare(a.Name, b.Name) })
	return refs, nil
}

// Head returns the branch HEAD names ("refs/heads/main"), "" when detached,
// and its commit, zero on a branch without commits.
func (r *Repo) Head(ctx context.Context) (branch string, id Hash, err error) {
	branch, id, err = r.resolveRef(ctx, "HEAD")
	if branch == "HEAD" {
		branch = ""
	}
	if errors.Is(err, ErrRefNotFound) && branch != "" {
		err = nil
	}
	return branch, id, err
}
