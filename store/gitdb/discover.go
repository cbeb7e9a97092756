package gitdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// errAskGit says that the layout is not one this package decides on itself.
var errAskGit = errors.New("ask git")

// Discover finds the repository that git would use in dir, by git's rules:
// GIT_DIR and its relatives, then .git directories and files upwards, bare
// repositories, linked worktrees, submodules, and the checks of
// safe.directory and safe.bareRepository. See setup_git_directory_gently in
// git's setup.c.
//
// In an ordinary layout it costs a few dozen system calls and no process;
// otherwise one git rev-parse. It returns [ErrNoRepository],
// [ErrUnsafeRepository] or [ErrUnsupported], wrapped in an [*Error].
func Discover(ctx context.Context, dir string) (*Repo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	real, err := realPath(dir)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err // the path is named already
		}
		return nil, &Error{Op: "open repository", Path: dir, Hint: "run it in a directory that exists, or name one: git meta -C DIR", Err: err}
	}
	r, err := discoverPlain(real)
	if errors.Is(err, errAskGit) {
		r, err = discoverGit(ctx, real)
	}
	if err != nil {
		var e *Error
		if errors.As(err, &e) || ctx.Err() != nil {
			return nil, err
		}
		return nil, &Error{Op: "open repository", Path: real, Err: err}
	}
	return r, nil
}

func realPath(p string) (string, error) {
	abs, err := filepath.Abs(p)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// askEnv lists the variables that change where git looks.
var askEnv = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
	"GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM",
	"GIT_IMPLICIT_WORK_TREE", "GIT_TEST_ASSUME_DIFFERENT_OWNER",
}

// discoverPlain walks up from dir, which is absolute and real.
func discoverPlain(dir string) (*Repo, error) {
	for _, k := range askEnv {
		if _, ok := os.LookupEnv(k); ok {
			return nil, errAskGit
		}
	}
	st, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return nil, errors.New("not a directory")
	}
	for d := dir; ; {
		dot := filepath.Join(d, ".git")
		fi, err := os.Stat(dot)
		switch {
		case err == nil && fi.IsDir():
			if !isGitDir(dot) {
				return nil, errAskGit
			}
			return plainWorktree(dir, d, dot, "")
		case err == nil:
			git, err := readGitFile(dot)
			if err != nil || !isGitDir(git) {
				return nil, errAskGit
			}
			return plainWorktree(dir, d, git, dot)
		case !errors.Is(err, os.ErrNotExist):
			return nil, errAskGit
		}
		if isGitDir(d) {
			return plainBare(dir, d)
		}
		up := filepath.Dir(d)
		if up == d {
			return nil, &Error{
				Op: "open repository", Path: dir, Err: ErrNoRepository,
				Hint: "run it inside a git repository, or make one: git init",
			}
		}
		if !sameDevice(st, up) { // git stops at mount points
			return nil, errAskGit
		}
		d = up
	}
}

// plainWorktree opens git, the git directory of the worktree top; gitfile is
// the .git file that led to it, or "".
func plainWorktree(dir, top, git, gitfile string) (*Repo, error) {
	if !ownedByUser(top) || !ownedByUser(git) || gitfile != "" && !ownedByUser(gitfile) {
		return nil, errAskGit
	}
	r, f, err := openGitDir(dir, git)
	if err != nil {
		return nil, err
	}
	if f.bare != nil && *f.bare {
		return nil, errAskGit
	}
	if f.worktree != "" {
		wt := f.worktree
		if !filepath.IsAbs(wt) {
			wt = filepath.Join(r.GitDir, wt)
		}
		if wt, err = filepath.EvalSymlinks(wt); err != nil || wt != top {
			return nil, errAskGit
		}
	}
	r.WorkTree = top
	return r, nil
}

// plainBare opens git, a git directory that was found as such.
func plainBare(dir, git string) (*Repo, error) {
	if !ownedByUser(git) {
		return nil, errAskGit
	}
	r, f, err := openGitDir(dir, git)
	if err != nil {
		return nil, err
	}
	if f.worktree != "" || r.CommonDir != r.GitDir {
		return nil, errAskGit
	}
	// safe.bareRepository counts from the files outside of the repository.
	es, err := readOuterConfig()
	if err != nil {
		return nil, errAskGit
	}
	for _, e := range es {
		if e.Key == "safe.barerepository" {
			return nil, errAskGit
		}
	}
	r.Bare = f.bare == nil || *f.bare
	return r, nil
}

// openGitDir makes the Repo for an accepted git directory, without its
// worktree, after checking the format.
func openGitDir(dir, git string) (*Repo, *format, error) {
	git, err := filepath.EvalSymlinks(git)
	if err != nil {
		return nil, nil, errAskGit
	}
	common, err := commonDir(git)
	if err != nil {
		return nil, nil, errAskGit
	}
	r := &Repo{GitDir: git, CommonDir: common, ObjectDir: filepath.Join(common, "objects"), dir: dir}
	f, err := r.readFormat()
	if err != nil {
		return nil, nil, err
	}
	if f.ask {
		return nil, nil, errAskGit
	}
	return r, f, nil
}

// commonDir follows the commondir file of a linked worktree.
func commonDir(git string) (string, error) {
	b, err := os.ReadFile(filepath.Join(git, "commondir"))
	if errors.Is(err, os.ErrNotExist) {
		return git, nil
	}
	if err != nil {
		return "", err
	}
	p := strings.TrimRight(string(b), "\r\n")
	if !filepath.IsAbs(p) {
		p = filepath.Join(git, p)
	}
	return filepath.EvalSymlinks(p)
}

// readGitFile returns the directory that a .git file names.
func readGitFile(p string) (string, error) {
	fi, err := os.Stat(p)
	if err != nil {
		return "", err
	}
	if !fi.Mode().IsRegular() || fi.Size() > 1<<16 {
		return "", errAskGit
	}
	b, err := os.ReadFile(p)
	if err != nil {
		return "", err
	}
	s, ok := strings.CutPrefix(string(b), "gitdir: ")
	s = strings.TrimRight(s, "\r\n")
	if !ok || s == "" {
		return "", errAskGit
	}
	if !filepath.IsAbs(s) {
		s = filepath.Join(filepath.Dir(p), s)
	}
	return s, nil
}

// isGitDir is is_git_directory of git's setup.c.
func isGitDir(p string) bool {
	if !validHead(filepath.Join(p, "HEAD")) {
		return false
	}
	common, err := commonDir(p)
	if err != nil {
		return false
	}
	for _, n := range []string{"objects", "refs"} {
		if fi, err := os.Stat(filepath.Join(common, n)); err != nil || !fi.IsDir() {
			return false
		}
	}
	return true
}

func validHead(p string) bool {
	fi, err := os.Lstat(p)
	if err != nil {
		return false
	}
	if fi.Mode()&os.ModeSymlink != 0 {
		to, err := os.Readlink(p)
		return err == nil && strings.HasPrefix(to, "refs/")
	}
	if !fi.Mode().IsRegular() {
		return false
	}
	b, err := os.ReadFile(p)
	if err != nil {
		return false
	}
	if s, ok := bytes.CutPrefix(b, []byte("ref:")); ok {
		return bytes.HasPrefix(bytes.TrimLeft(s, " \t\r\n"), []byte("refs/"))
	}
	_, ok := parseHex(b)
	return ok
}

// format is what the repository's own config says about how to read it.
type format struct {
	bare     *bool
	worktree string
	ask      bool // git has to say whether it accepts the repository
}

// readFormat reads CommonDir/config (without includes, as git does here) and,
// with extensions.worktreeConfig, GitDir/config.worktree. It sets refStorage
// and promisor and returns [ErrUnsupported] for SHA-256.
func (r *Repo) readFormat() (*format, error) {
	f := &format{}
	r.refStorage = "files"
	es, err := readConfigFile(filepath.Join(r.CommonDir, "config"))
	if err != nil {
		f.ask = true // also for a syntax error: git words it best
		return f, nil
	}
	r.local = es
	version, worktreeConfig, sha256, v1 := "0", false, false, false
	apply := func(e ConfigEntry) {
		switch e.Key {
		case "core.bare":
			b, ok := e.bool()
			if !ok {
				f.ask = true
			}
			f.bare = &b
		case "core.worktree":
			f.worktree = e.Value
		}
	}
	for _, e := range es {
		apply(e)
		if e.Key == "core.repositoryformatversion" {
			version = e.Value
		}
		name, ok := strings.CutPrefix(e.Key, "extensions.")
		if !ok {
			continue
		}
		switch name {
		case "noop", "preciousobjects":
		case "partialclone":
			r.promisor = true
		case "worktreeconfig":
			worktreeConfig, _ = e.bool()
		case "objectformat":
			sha256, v1 = e.Value == "sha256", true
			if e.Value != "sha1" && e.Value != "sha256" {
				f.ask = true
			}
		case "refstorage":
			r.refStorage, v1 = strings.ToLower(e.Value), true
			f.ask = true
		default:
			f.ask = true
		}
	}
	if version != "0" && version != "1" || v1 && version == "0" {
		f.ask = true
	}
	if version == "1" && sha256 {
		return nil, &Error{Op: "open repository", Path: r.GitDir, Err: fmt.Errorf("SHA-256 repositories are %w", ErrUnsupported)}
	}
	if worktreeConfig {
		es, err := readConfigFile(filepath.Join(r.GitDir, "config.worktree"))
		if err != nil {
			f.ask = true
		}
		for _, e := range es {
			apply(e)
		}
	} else if r.CommonDir != r.GitDir {
		// core.bare and core.worktree of the main worktree do not count here.
		f.bare, f.worktree = nil, ""
	}
	return f, nil
}
