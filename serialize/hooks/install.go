package hooks

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

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// The hooks that git-meta can stand in.
const (
	PrePush     = "pre-push"
	PostMerge   = "post-merge"
	PostRewrite = "post-rewrite"
)

// Names lists the hooks; [PostRewrite] is installed only where it is asked for.
var Names = []string{PrePush, PostMerge, PostRewrite}

const (
	beginMark = "# >>> git-meta >>> written by git meta hooks install"
	endMark   = "# <<< git-meta <<<"
	asideName = ".before-git-meta" // appended to a hook that was moved aside
)

// Options says how to install.
type Options struct {
	Rewrite bool // also post-rewrite
	Block   bool // a failing push of metadata stops the push of code
}

// State is what a hook is at present.
type State struct {
	Name      string
	Path      string
	Installed bool   // holds git-meta's block
	Others    bool   // there is more in it than that
	Aside     string // a hook of the user's that this one calls
	Disabled  bool   // not executable: git ignores it
}

// Dir returns the folder that git takes hooks from, core.hooksPath included.
func Dir(ctx context.Context, repo *gitdb.Repo) (string, error) {
	dir, err := repo.Git(ctx, "rev-parse", "--git-path", "hooks").Text()
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(repo.Dir(), dir)
	}
	return dir, nil
}

// block returns the lines that go into a hook.
func block(name string, o Options) string {
	guard := " || :"
	if o.Block && name == PrePush {
		guard = " || exit 1"
	}
	call := "git-meta hooks run " + name + ` "$@" </dev/null` + guard
	if name == PostRewrite {
		// the list of commits is on standard input, and the rest of the hook wants it too
		call = `git_meta_list=$(cat)
	printf '%s\n' "$git_meta_list" | git-meta hooks run ` + name + ` "$@" || :
	exec <<git_meta_end
$git_meta_list
git_meta_end`
	}
	return beginMark + "\nif command -v git-meta >/dev/null 2>&1; then\n\t" + call + "\nfi\n" + endMark + "\n"
}

// Install writes the hooks and returns their state. It can be repeated.
func Install(ctx context.Context, repo *gitdb.Repo, o Options) ([]State, error) {
	dir, err := Dir(ctx, repo)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("create hooks folder: %w", err)
	}
	for _, name := range Names {
		if name == PostRewrite && !o.Rewrite {
			continue
		}
		if err := install(filepath.Join(dir, name), block(name, o)); err != nil {
			return nil, fmt.Errorf("hook %s: %w", name, err)
		}
	}
	return Status(ctx, repo)
}

func install(path, block string) error {
	old, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return write(path, []byte("#!/bin/sh\n"+block), 0o755)
	case err != nil:
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	rest, _, err := without(old)
	if err != nil {
		return err
	}
	first, after, _ := bytes.Cut(rest, []byte("\n"))
	if isShell(first) {
		return write(path, slices.Concat(first, []byte("\n"+block), after), info.Mode().Perm()|0o111)
	}
	aside := path + asideName
	if _, err := os.Lstat(aside); err == nil {
		return &meta.Error{Op: aside, Err: errors.New("is in the way"), Hint: "look at it and move it away"}
	}
	if err := os.Rename(path, aside); err != nil {
		return err
	}
	return write(path, []byte("#!/bin/sh\n"+block+`exec "$0`+asideName+`" "$@"`+"\n"), 0o755)
}

// isShell reports whether the first line of a hook calls a POSIX shell.
func isShell(line []byte) bool {
	f := strings.Fields(strings.TrimPrefix(string(line), "#!"))
	if len(f) == 0 || !bytes.HasPrefix(line, []byte("#!")) {
		return false
	}
	if filepath.Base(f[0]) == "env" && len(f) > 1 {
		f = f[1:]
	}
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "ksh", "zsh"}, filepath.Base(f[0]))
}

// write replaces the file at path.
func write(path string, data []byte, mode fs.FileMode) error {
	tmp := path + ".git-meta.tmp"
	if err := os.WriteFile(tmp, data, mode); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(tmp, mode), os.Rename(tmp, path)); err != nil {
		os.Remove(tmp)
		return err
	}
	return nil
}

// without returns the hook without git-meta's block, and whether it had one.
func without(data []byte) ([]byte, bool, error) {
	begin := bytes.Index(data, []byte(beginMark))
	if begin < 0 {
		return data, false, nil
	}
	n := bytes.Index(data[begin:], []byte(endMark+"\n"))
	if n < 0 {
		return nil, true, meta.Invalid("git-meta's block", "its last line is missing", "mend the hook by hand: the block ends with "+endMark)
	}
	return slices.Concat(data[:begin], data[begin+n+len(endMark)+1:]), true, nil
}

// Uninstall takes git-meta out of the hooks again; what others put there stays.
func Uninstall(ctx context.Context, repo *gitdb.Repo) ([]State, error) {
	dir, err := Dir(ctx, repo)
	if err != nil {
		return nil, err
	}
	for _, name := range Names {
		if err := uninstall(filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("hook %s: %w", name, err)
		}
	}
	return Status(ctx, repo)
}

func uninstall(path string) error {
	old, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	rest, had, err := without(old)
	if err != nil || !had {
		return err
	}
	if _, err := os.Lstat(path + asideName); err == nil {
		return os.Rename(path+asideName, path)
	}
	if strings.TrimSpace(string(rest)) == "#!/bin/sh" {
		return os.Remove(path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return write(path, rest, info.Mode().Perm())
}

// Status tells what the hooks are.
func Status(ctx context.Context, repo *gitdb.Repo) ([]State, error) {
	dir, err := Dir(ctx, repo)
	if err != nil {
		return nil, err
	}
	var out []State
	for _, name := range Names {
		s := State{Name: name, Path: filepath.Join(dir, name)}
		data, err := os.ReadFile(s.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("hook %s: %w", name, err)
		}
		if err == nil {
			rest, had, _ := without(data)
			s.Installed = had
			s.Others = strings.TrimSpace(string(rest)) != "#!/bin/sh"
			if info, err := os.Stat(s.Path); err == nil {
				s.Disabled = info.Mode().Perm()&0o111 == 0
			}
			if _, err := os.Lstat(s.Path + asideName); err == nil {
				s.Aside = s.Path + asideName
			}
		}
		out = append(out, s)
	}
	return out, nil
}
