package gitdb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// discoverGit lets git rev-parse find and judge the repository.
func discoverGit(ctx context.Context, dir string) (*Repo, error) {
	// --show-toplevel comes last: it fails without a worktree, after the
	// other answers are out.
	questions := []string{"--absolute-git-dir", "--git-common-dir", "--is-bare-repository", "--show-toplevel"}
	out, err := newCommand(ctx, dir, append([]string{"rev-parse"}, questions...)).Output()
	if out == nil && err != nil {
		return nil, judge(dir, err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	var ge *GitError
	switch {
	case err != nil && !errors.As(err, &ge):
		return nil, err
	case err != nil && len(lines) < 3:
		return nil, judge(dir, err)
	case err == nil && len(lines) != 4 || len(lines) > 4:
		// A line feed in a path: ask one by one.
		lines = lines[:0]
		for _, q := range questions {
			out, err := newCommand(ctx, dir, []string{"rev-parse", q}).Output()
			if err != nil && q != "--show-toplevel" {
				return nil, judge(dir, err)
			}
			lines = append(lines, strings.TrimSuffix(string(out), "\n"))
		}
	}
	r := &Repo{GitDir: lines[0], CommonDir: absFrom(dir, lines[1]), Bare: lines[2] == "true", dir: dir}
	if len(lines) > 3 && lines[3] != "" {
		r.WorkTree = filepath.FromSlash(lines[3])
	}
	for _, p := range []*string{&r.GitDir, &r.CommonDir} {
		if *p, err = filepath.EvalSymlinks(*p); err != nil {
			return nil, err
		}
	}
	r.ObjectDir = filepath.Join(r.CommonDir, "objects")
	if o := os.Getenv("GIT_OBJECT_DIRECTORY"); o != "" {
		base := dir // git changes to the top of the worktree first
		if r.WorkTree != "" && within(r.WorkTree, dir) {
			base = r.WorkTree
		}
		r.ObjectDir = absFrom(base, o)
	}
	if _, err := r.readFormat(); err != nil {
		return nil, err
	}
	return r, nil
}

func absFrom(base, p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(base, p)
}

// within says whether p is dir or below it.
func within(dir, p string) bool {
	rel, err := filepath.Rel(dir, p)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// judge turns git's refusal into our sentinels. The text is stable because
// git runs with LC_ALL=C.
func judge(dir string, err error) error {
	var ge *GitError
	if !errors.As(err, &ge) {
		return err
	}
	e := &Error{Op: "open repository", Path: dir, Err: ge}
	for line := range strings.Lines(ge.Stderr) {
		if l := strings.TrimSpace(line); strings.HasPrefix(l, "git config ") {
			e.Hint = l
		}
	}
	has := func(s string) bool { return strings.Contains(ge.Stderr, s) }
	switch {
	case has("dubious ownership"), has("unsafe repository"), has("safe.directory"):
		e.Err = wrapped{ErrUnsafeRepository, ge}
	case has("safe.bareRepository"):
		e.Err = wrapped{ErrUnsafeRepository, ge}
		e.Hint = "name the repository explicitly: git --git-dir=. …, or allow it: git config --global safe.bareRepository all"
	case has("not a git repository"), has("Not a git repository"):
		e.Err = wrapped{ErrNoRepository, ge}
	case has("unknown repository extension"), has("Expected git repo version"), has("unknown ref storage"), has("invalid value for 'extensions."):
		e.Err = wrapped{ErrUnsupported, ge}
	}
	return e
}

// wrapped matches kind and shows the text of cause.
type wrapped struct{ kind, cause error }

func (w wrapped) Error() string {
	if ge, ok := w.cause.(*GitError); ok {
		return ge.Message()
	}
	return w.cause.Error()
}
func (w wrapped) Unwrap() []error { return []error{w.kind, w.cause} }
