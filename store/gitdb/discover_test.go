package gitdb

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// layouts builds one of each kind and returns the directories to look from.
func layouts(t *testing.T) map[string]string {
	dir := newRepo(t)
	top := filepath.Dir(dir)
	sub := filepath.Join(dir, "sub", "dir")
	must(os.MkdirAll(sub, 0o777))
	git(t, top, "clone", "-q", "--bare", dir, "bare.git")
	git(t, dir, "worktree", "add", "-q", "../wt")
	must(os.MkdirAll(filepath.Join(top, "wt", "deep"), 0o777))
	git(t, top, "init", "-q", "--separate-git-dir", filepath.Join(top, "sep.git"), "sep")
	git(t, top, "clone", "-q", dir, "super")
	git(t, filepath.Join(top, "super"), "submodule", "--quiet", "add", dir, "mod")
	must(os.Symlink(dir, filepath.Join(top, "link")))
	git(t, top, "clone", "-q", dir, "symdot")
	must(os.Rename(filepath.Join(top, "symdot/.git"), filepath.Join(top, "elsewhere.git")))
	must(os.Symlink("../elsewhere.git", filepath.Join(top, "symdot/.git")))
	git(t, top, "clone", "-q", dir, "elsewt")
	must(os.Mkdir(filepath.Join(top, "other"), 0o777))
	git(t, filepath.Join(top, "elsewt"), "config", "core.worktree", "../../other")
	git(t, top, "clone", "-q", dir, "sparse")
	git(t, filepath.Join(top, "sparse"), "sparse-checkout", "init", "--cone")
	git(t, top, "clone", "-q", dir, "barecfg")
	git(t, filepath.Join(top, "barecfg"), "config", "core.bare", "true")
	return map[string]string{
		"top": dir, "sub": sub, "inside .git": filepath.Join(dir, ".git"),
		"deep inside .git": filepath.Join(dir, ".git", "objects"), "bare": filepath.Join(top, "bare.git"),
		"inside bare": filepath.Join(top, "bare.git", "refs"), "worktree": filepath.Join(top, "wt", "deep"),
		"worktree git dir": filepath.Join(dir, ".git", "worktrees", "wt"),
		"separate":         filepath.Join(top, "sep"), "submodule": filepath.Join(top, "super", "mod"),
		"submodule git dir": filepath.Join(top, "super/.git/modules/mod"),
		"symlink":           filepath.Join(top, "link", "sub"), "symlinked .git": filepath.Join(top, "symdot"),
		"core.worktree": filepath.Join(top, "elsewt"), "sparse": filepath.Join(top, "sparse"),
		"core.bare": filepath.Join(top, "barecfg"),
	}
}

// compareWithGit checks a Repo against git rev-parse run in the same place.
func compareWithGit(t *testing.T, dir string) *Repo {
	t.Helper()
	r := discover(t, dir)
	common := git(t, dir, "rev-parse", "--path-format=absolute", "--git-common-dir")
	worktree, _ := gitErr(dir, "", "rev-parse", "--show-toplevel")
	if strings.Contains(worktree, "fatal:") {
		worktree = ""
	}
	real, err := filepath.EvalSymlinks(common)
	must(err)
	got := []string{r.GitDir, r.CommonDir, r.WorkTree}
	want := []string{git(t, dir, "rev-parse", "--absolute-git-dir"), real, worktree}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("%s: got -, git +:\n%s", dir, d)
	}
	if got, want := r.Bare, git(t, dir, "rev-parse", "--is-bare-repository") == "true"; got != want {
		t.Errorf("%s: Bare = %v, git says %v", dir, got, want)
	}
	// What runs in the repository sees the same repository.
	if out, err := r.Git(t.Context(), "rev-parse", "--absolute-git-dir").Text(); err != nil || out != r.GitDir {
		t.Errorf("%s: Git runs in %q, %v", dir, out, err)
	}
	return r
}

func TestDiscoverLayouts(t *testing.T) {
	for name, dir := range layouts(t) {
		t.Run(name, func(t *testing.T) {
			compareWithGit(t, dir)
			real, err := realPath(dir)
			must(err)
			plain, err := discoverPlain(real)
			if errors.Is(err, errAskGit) {
				if name == "top" || name == "sub" || name == "bare" || name == "worktree" || name == "submodule" || name == "sparse" {
					t.Errorf("ordinary layout is put to git")
				}
				return
			}
			asked, err2 := discoverGit(t.Context(), real)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			opt := cmp.FilterPath(func(p cmp.Path) bool {
				n := p.Last().String()
				return n == ".mu" || n == ".local" || n == ".config" || n == ".objects"
			}, cmp.Ignore())
			if d := cmp.Diff(plain, asked, cmp.AllowUnexported(Repo{}), opt); d != "" {
				t.Errorf("plain -, asked +:\n%s", d)
			}
		})
	}
}

func TestDiscoverEnvironment(t *testing.T) {
	l := layouts(t)
	top := filepath.Dir(l["top"])
	for name, env := range map[string]map[string]string{
		"GIT_DIR":              {"GIT_DIR": l["bare"]},
		"relative GIT_DIR":     {"GIT_DIR": "../../.git"},
		"GIT_WORK_TREE":        {"GIT_DIR": filepath.Join(l["top"], ".git"), "GIT_WORK_TREE": filepath.Join(top, "other")},
		"worktree GIT_DIR":     {"GIT_DIR": l["worktree git dir"]},
		"object dir":           {"GIT_OBJECT_DIRECTORY": filepath.Join(l["bare"], "objects")},
		"ceiling of no matter": {"GIT_CEILING_DIRECTORIES": filepath.Dir(top)},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range env {
				t.Setenv(k, v)
			}
			r := compareWithGit(t, l["sub"])
			if o := env["GIT_OBJECT_DIRECTORY"]; o != "" && r.ObjectDir != o {
				t.Errorf("ObjectDir = %q", r.ObjectDir)
			}
		})
	}
	t.Run("ceiling", func(t *testing.T) {
		t.Setenv("GIT_CEILING_DIRECTORIES", l["top"])
		if _, err := Discover(t.Context(), l["sub"]); !errors.Is(err, ErrNoRepository) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("hook", func(t *testing.T) {
		hook := filepath.Join(l["top"], ".git/hooks/post-commit")
		write(t, hook, "#!/bin/sh\nenv >hook-env\n")
		must(os.Chmod(hook, 0o777))
		git(t, l["top"], "commit", "-q", "--allow-empty", "-m", "hook")
		env, err := os.ReadFile(filepath.Join(l["top"], "hook-env"))
		must(err)
		for line := range strings.Lines(string(env)) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok && strings.HasPrefix(k, "GIT_") {
				t.Setenv(k, v)
			}
		}
		r := compareWithGit(t, l["top"])
		if _, err := r.Git(t.Context(), "status", "--porcelain").Output(); err != nil {
			t.Error(err)
		}
	})
}

func TestDiscoverErrors(t *testing.T) {
	dir := tempDir(t)
	check := func(name, dir string, want error, text string) {
		t.Helper()
		_, err := Discover(t.Context(), dir)
		if !errors.Is(err, want) || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %v with %q", name, err, want, text)
		}
	}
	check("none", dir, ErrNoRepository, dir)
	check("missing", filepath.Join(dir, "no"), os.ErrNotExist, "no")
	git(t, dir, "init", "-q", "--object-format=sha256", "sha256")
	check("sha256", filepath.Join(dir, "sha256"), ErrUnsupported, "SHA-256 repositories are not supported yet")
	git(t, dir, "init", "-q", "ext")
	git(t, filepath.Join(dir, "ext"), "config", "core.repositoryformatversion", "1")
	git(t, filepath.Join(dir, "ext"), "config", "extensions.whoKnows", "true")
	check("extension", filepath.Join(dir, "ext"), ErrUnsupported, "whoknows")
	git(t, dir, "init", "-q", "version")
	git(t, filepath.Join(dir, "version"), "config", "core.repositoryformatversion", "7")
	check("version", filepath.Join(dir, "version"), ErrUnsupported, "7")
	write(t, filepath.Join(dir, "badfile", ".git"), "garbage\n")
	if _, err := Discover(t.Context(), filepath.Join(dir, "badfile")); err == nil {
		t.Error("bad .git file accepted")
	}
	git(t, dir, "init", "-q", "syntax")
	write(t, filepath.Join(dir, "syntax/.git/config"), "[core\n")
	if _, err := Discover(t.Context(), filepath.Join(dir, "syntax")); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("bad config: %v", err)
	}
	git(t, dir, "init", "-q", "--bare", "bare.git")
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "safe.bareRepository")
	t.Setenv("GIT_CONFIG_VALUE_0", "explicit")
	check("safe.bareRepository", filepath.Join(dir, "bare.git"), ErrUnsafeRepository, "safe.bareRepository")
}

func TestDiscoverOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir := newRepo(t)
	for _, p := range []string{".git", "."} {
		t.Run(p, func(t *testing.T) {
			must(os.Lchown(filepath.Join(dir, p), 65534, 65534))
			defer os.Lchown(filepath.Join(dir, p), 0, 0)
			_, err := Discover(t.Context(), dir)
			var e *Error
			if !errors.Is(err, ErrUnsafeRepository) || !errors.As(err, &e) || e.Hint != "git config --global --add safe.directory "+dir {
				t.Fatalf("got %v, hint %v", err, e)
			}
			t.Setenv("SUDO_UID", "65534")
			if _, err := Discover(t.Context(), dir); err != nil {
				t.Errorf("SUDO_UID: %v", err)
			}
			os.Unsetenv("SUDO_UID")
			cfg := filepath.Join(t.TempDir(), "config")
			write(t, cfg, "[safe]\n\tdirectory = "+dir+"\n")
			t.Setenv("GIT_CONFIG_GLOBAL", cfg)
			compareWithGit(t, dir)
		})
	}
}
