package gitdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// newCommits makes n commits that no ref names.
func newCommits(t testing.TB, dir string, n int) []Hash {
	var out []Hash
	for i := range n {
		h, err := gitErr(dir, "", "commit-tree", "-m", fmt.Sprint("c", i), "HEAD^{tree}")
		must(err)
		out = append(out, hashOf(t, h))
	}
	return out
}

func checkRefs(t *testing.T, r *Repo, dir string) {
	t.Helper()
	for _, prefix := range []string{"", "refs/", "refs/h", "refs/heads/", "refs/meta", "refs/meta/", "refs/meta/a", "refs/none/"} {
		got, err := r.Refs(t.Context(), prefix)
		if err != nil {
			t.Fatal(err)
		}
		var want []Ref
		for line := range strings.Lines(git(t, dir, "for-each-ref", "--format=%(objectname) %(refname)")) {
			h, n, _ := strings.Cut(strings.TrimSpace(line), " ")
			if strings.HasPrefix(n, prefix) && n != "" {
				want = append(want, Ref{n, hashOf(t, h)})
			}
		}
		if d := cmp.Diff(got, want); d != "" && len(got)+len(want) > 0 {
			t.Errorf("Refs(%q): got -, git +:\n%s", prefix, d)
		}
		for _, w := range want {
			if id, err := r.Ref(t.Context(), w.Name); err != nil || id != w.Hash {
				t.Errorf("Ref(%q) = %v, %v", w.Name, id, err)
			}
		}
	}
}

func TestRefs(t *testing.T) {
	t.Parallel()
	dir := newRepo(t)
	c := newCommits(t, dir, 3)
	for i, n := range []string{"refs/meta/a", "refs/meta/ab/c", "refs/heads/x", "refs/tags/t", "refs/metallic"} {
		git(t, dir, "update-ref", n, c[i%3].String())
	}
	git(t, dir, "symbolic-ref", "refs/meta/sym", "refs/heads/x")
	git(t, dir, "symbolic-ref", "refs/meta/dangling", "refs/heads/none")
	git(t, dir, "tag", "-a", "-m", "x", "annotated")
	git(t, dir, "worktree", "add", "-q", "../wt")
	wt := filepath.Join(filepath.Dir(dir), "wt")
	git(t, wt, "update-ref", "refs/worktree/w", c[0].String())
	for _, step := range []string{"loose", "packed", "both"} {
		switch step {
		case "packed":
			git(t, dir, "pack-refs", "--all", "--prune")
		case "both":
			git(t, dir, "update-ref", "refs/meta/a", c[2].String())
			git(t, dir, "update-ref", "refs/new/x", c[2].String())
		}
		t.Run(step, func(t *testing.T) {
			checkRefs(t, discover(t, dir), dir)
			checkRefs(t, discover(t, wt), wt)
		})
	}
	r := discover(t, dir)
	for _, n := range []string{"refs/meta", "refs/meta/a/b", "refs/meta/dangling", "refs/heads/none", "FETCH_HEAD"} {
		if _, err := r.Ref(t.Context(), n); !errors.Is(err, ErrRefNotFound) {
			t.Errorf("Ref(%q): %v", n, err)
		}
	}
	for _, n := range []string{"", "refs/../HEAD", "/etc/passwd", "refs/a..b", "refs/x.lock", "-x", "refs/.a", "refs//a", "main", "refs/a b", "refs/heads/"} {
		if _, err := r.Ref(t.Context(), n); !errors.Is(err, ErrRefName) {
			t.Errorf("Ref(%q): %v", n, err)
		}
	}
	if b, id, err := r.Head(t.Context()); b != "refs/heads/main" || id.IsZero() || err != nil {
		t.Error(b, id, err)
	}
	for _, text := range []string{"", "zzz", "ref: ../x\n", strings.Repeat("0", 40) + "\n"} {
		p := filepath.Join(dir, ".git/refs/meta/broken")
		write(t, p, text)
		_, err := r.Ref(t.Context(), "refs/meta/broken")
		if !errors.Is(err, ErrBrokenRef) || !strings.Contains(err.Error(), "refs/meta/broken") {
			t.Errorf("broken %q: %v", text, err)
		}
		// Git repairs some of these.
		err = r.UpdateRef(t.Context(), "refs/meta/broken", c[0], ZeroHash, "x")
		if id, rerr := r.Ref(t.Context(), "refs/meta/broken"); err == nil && (rerr != nil || id != c[0]) || err != nil && !errors.Is(err, ErrBrokenRef) {
			t.Errorf("update of broken %q: %v", text, err)
		}
	}
}

func TestUpdateRef(t *testing.T) {
	t.Parallel()
	dir := newRepo(t)
	c := newCommits(t, dir, 3)
	r := discover(t, dir)
	ctx := t.Context()
	const name = "refs/meta/local/main"
	want := func(err, target error) {
		t.Helper()
		if !errors.Is(err, target) {
			t.Errorf("got %v, want %v", err, target)
		}
	}
	at := func(id Hash) {
		t.Helper()
		if got, err := r.Ref(ctx, name); got != id || id.IsZero() != errors.Is(err, ErrRefNotFound) {
			t.Errorf("ref is at %v, %v; want %v", got, err, id)
		}
	}
	git(t, dir, "config", "core.logAllRefUpdates", "always")
	want(r.UpdateRef(ctx, name, c[1], c[0], "x"), ErrRefMoved)
	want(r.UpdateRef(ctx, name, c[0], ZeroHash, "two\nlines"), nil)
	at(c[0])
	if log := git(t, dir, "reflog", "show", name); !strings.Contains(log, "two lines") {
		t.Errorf("reflog %q", log)
	}
	want(r.UpdateRef(ctx, name, c[1], ZeroHash, ""), ErrRefMoved)
	git(t, dir, "pack-refs", "--all", "--prune")
	want(r.UpdateRef(ctx, name, c[2], c[1], "x"), ErrRefMoved)
	at(c[0])
	want(r.UpdateRef(ctx, name, c[1], c[0], "x"), nil)
	want(r.DeleteRef(ctx, name, c[0], "x"), ErrRefMoved)
	want(r.DeleteRef(ctx, name, c[1], "x"), nil)
	at(ZeroHash)
	want(r.DeleteRef(ctx, name, c[1], "x"), ErrRefNotFound)

	var ge *GitError
	missing := HashObject(BlobObject, []byte("not written"))
	if err := r.UpdateRef(ctx, name, missing, ZeroHash, "x"); !errors.As(err, &ge) {
		t.Errorf("missing object: %v", err)
	}
	// In the way, above and below, loose and packed.
	for _, packed := range []bool{false, true} {
		for ref, other := range map[string]string{name: "refs/meta/local", "refs/meta": "refs/meta/x/y"} {
			git(t, dir, "update-ref", other, c[0].String())
			if packed {
				git(t, dir, "pack-refs", "--all", "--prune")
			}
			var ce *RefConflictError
			if err := r.UpdateRef(ctx, ref, c[0], ZeroHash, "x"); !errors.As(err, &ce) || ce.Existing != other {
				t.Errorf("%s beside %s: %v", ref, other, err)
			}
			git(t, dir, "update-ref", "-d", other)
		}
	}
	// A lock that stays, and one that goes.
	lock := filepath.Join(dir, ".git", name+".lock")
	write(t, lock, "")
	var le *LockError
	start := time.Now()
	if err := r.UpdateRef(ctx, name, c[0], ZeroHash, "x"); !errors.As(err, &le) || le.Path != lock {
		t.Errorf("lock: %v", err)
	}
	if d := time.Since(start); d < 500*time.Millisecond || d > 5*time.Second {
		t.Errorf("waited %v", d)
	}
	time.AfterFunc(400*time.Millisecond, func() { os.Remove(lock) })
	want(r.UpdateRef(ctx, name, c[0], ZeroHash, "x"), nil)
	at(c[0])
	cctx, cancel := context.WithCancel(ctx)
	cancel()
	want(r.UpdateRef(cctx, name, c[1], c[0], "x"), context.Canceled)
	// A hook that refuses is not a lock and is not asked again and again.
	hook := filepath.Join(dir, ".git/hooks/reference-transaction")
	write(t, hook, "#!/bin/sh\necho x >>hook-log\necho no >&2\nexit 1\n")
	must(os.Chmod(hook, 0o777))
	if err := r.UpdateRef(ctx, name, c[1], c[0], "x"); !errors.As(err, &ge) {
		t.Errorf("hook: %v", err)
	}
	at(c[0])
}

func TestUpdateRefRace(t *testing.T) {
	t.Parallel()
	dir := newRepo(t)
	c := newCommits(t, dir, 21)
	r := discover(t, dir)
	const name = "refs/meta/local/main"
	must(r.UpdateRef(t.Context(), name, c[20], ZeroHash, "start"))
	var wg sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		wg.Go(func() { errs[i] = r.UpdateRef(t.Context(), name, c[i], c[20], "race") })
	}
	wg.Wait()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won < 0:
			won = i
		case err == nil:
			t.Error("two winners")
		case !errors.Is(err, ErrRefMoved):
			t.Errorf("loser: %v", err)
		}
	}
	if id, err := r.Ref(t.Context(), name); err != nil || won < 0 || id != c[won] {
		t.Error(id, err, won)
	}
	// Everybody gets through by re-reading.
	for i := range errs {
		wg.Go(func() {
			for {
				old, err := r.Ref(t.Context(), name)
				if err == nil {
					err = r.UpdateRef(t.Context(), name, c[i], old, "again")
				}
				if !errors.Is(err, ErrRefMoved) {
					errs[i] = err
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	git(t, dir, "fsck", "--strict")
}

func TestResolveCommit(t *testing.T) {
	t.Parallel()
	dir := newRepo(t)
	write(t, filepath.Join(dir, "f"), "x")
	git(t, dir, "add", "f")
	git(t, dir, "commit", "-q", "-m", "two")
	git(t, dir, "tag", "-a", "-m", "t", "v1")
	git(t, dir, "tag", "-a", "-m", "t", "v2", "v1")
	git(t, dir, "tag", "-a", "-m", "t", "vtree", "HEAD^{tree}")
	head := git(t, dir, "rev-parse", "HEAD")
	r := discover(t, dir)
	for _, rev := range []string{
		"HEAD", "@", head, strings.ToUpper(head), head[:7], "main", "v1", "v2", "refs/heads/main", "main@{0}", ":/two",
		git(t, dir, "rev-parse", "v2"), git(t, dir, "rev-parse", "v1")[:10], "v1^{}", "HEAD^{commit}", "HEAD~0",
	} {
		id, ok, err := r.ResolveCommit(t.Context(), rev)
		if err != nil || !ok || id.String() != head {
			t.Errorf("%q: %v %v %v", rev, id, ok, err)
		}
	}
	for rev, want := range map[string]error{
		"HEAD^{tree}": ErrNotCommit, git(t, dir, "rev-parse", "HEAD^{tree}"): ErrNotCommit, "HEAD:f": ErrNotCommit, "vtree": ErrNotCommit,
		git(t, dir, "rev-parse", "HEAD:f"): ErrNotCommit, "nothing": ErrUnknownRevision, "": ErrUnknownRevision, "--all": ErrUnknownRevision,
		"-h": ErrUnknownRevision, "^HEAD": ErrUnknownRevision, "HEAD~1..HEAD": ErrUnknownRevision, "HEAD~99": ErrUnknownRevision, "a\nb": ErrUnknownRevision,
		"--git-dir": ErrUnknownRevision, "HEAD^@ x": ErrUnknownRevision, "0": ErrUnknownRevision,
	} {
		id, ok, err := r.ResolveCommit(t.Context(), rev)
		if !errors.Is(err, want) || ok || !id.IsZero() {
			t.Errorf("%q: %v %v %v, want %v", rev, id, ok, err, want)
		}
	}
	unknown := strings.Repeat("12", 20)
	if id, ok, err := r.ResolveCommit(t.Context(), unknown); err != nil || ok || id.String() != unknown {
		t.Error(id, ok, err)
	}
	// Two commits that share four digits.
	seen := map[string]bool{}
	for i := 0; ; i++ {
		data := fmt.Appendf(nil, "tree %s\nauthor a <a> %d +0000\ncommitter a <a> 0 +0000\n\nx\n", emptyTree, i)
		id := HashObject(CommitObject, data)
		must(putLoose(r, CommitObject, data))
		if p := id.String()[:4]; seen[p] {
			_, _, err := r.ResolveCommit(t.Context(), p)
			var re *RevisionError
			if !errors.As(err, &re) || len(re.Candidates) < 2 || re.Reason != "ambiguous" {
				t.Errorf("ambiguous: %v", err)
			}
			break
		} else {
			seen[p] = true
		}
		if i > 2000 {
			t.Skip("no collision")
		}
	}
	empty := filepath.Join(t.TempDir(), "empty")
	git(t, t.TempDir(), "init", "-q", empty)
	for _, rev := range []string{"HEAD", "@", "HEAD~1"} {
		if _, _, err := discover(t, empty).ResolveCommit(t.Context(), rev); !errors.Is(err, ErrNoCommits) || rev == "HEAD" && !strings.Contains(err.Error(), "no commits yet") {
			t.Errorf("unborn %q: %v", rev, err)
		}
	}
}

var emptyTree = HashObject(TreeObject, nil).String()

// putLoose writes one object without any flushing.
func putLoose(r *Repo, t ObjectType, data []byte) error {
	id := HashObject(t, data)
	p := loosePath(r.ObjectDir, id)
	if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
		return err
	}
	return os.WriteFile(p, appendStored(nil, append(appendObjectHeader(nil, t, int64(len(data))), data...)), 0o666)
}
