package gitdb

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestCommand(t *testing.T) {
	dir := newRepo(t)
	r := discover(t, dir)
	out, err := r.Git(t.Context(), "-c", "a.b=c", "rev-parse", "--verify", "nothing").Output()
	var ge *GitError
	if len(out) > 0 || !errors.As(err, &ge) || ge.Code != 128 || err.Error() != "git rev-parse: Needed a single revision" {
		t.Errorf("%q, %v", out, err)
	}
	if s, err := r.Git(t.Context(), "hash-object", "--stdin").StdinString("x").Text(); err != nil || s != HashObject(BlobObject, []byte("x")).String() {
		t.Error(s, err)
	}
	var progress strings.Builder
	if err := r.Git(t.Context(), "nonsense-command").Stderr(&progress).Run(); err == nil || !strings.Contains(progress.String(), "nonsense-command") {
		t.Error(progress.String(), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	in, hold, err := os.Pipe() // an input that never ends
	must(err)
	defer hold.Close()
	defer in.Close()
	err = r.Git(ctx, "cat-file", "--batch").Stdin(in).Run()
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	t.Setenv("PATH", t.TempDir())
	err = r.Git(t.Context(), "version").Run()
	if !errors.Is(err, ErrNoGit) || Hint(err) == "" {
		t.Error(err)
	}
}
