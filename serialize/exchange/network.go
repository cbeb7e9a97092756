package exchange

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// network prepares a git process that talks to a remote: its progress is shown where
// there is a terminal, and its questions are the user's to answer where somebody is
// there. Messages are in English because the one that says why is picked out of them;
// nothing is decided by their words.
func (e *Env) network(ctx context.Context, args ...string) *gitdb.Command {
	c := e.Repo.Git(ctx, args...)
	if _, set := os.LookupEnv("GIT_TERMINAL_PROMPT"); e.NoPrompt && !set {
		c.Env("GIT_TERMINAL_PROMPT=0")
	}
	if e.Terminal != nil {
		c.Stderr(e.Terminal)
	}
	return c
}

// trouble words the failure of a git process that talked to a remote.
func (e *Env) trouble(ctx context.Context, url string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	hint := ""
	if shown := Redact(url); shown == url {
		hint = "check the URL and your access: git ls-remote " + shellWord(url)
	}
	return &meta.Error{Op: "remote " + Redact(url), Err: &redactedError{err, url}, Hint: hint}
}

// remoteRefs is what a remote has.
type remoteRefs struct {
	main   gitdb.Hash // zero: there is no metadata in the namespace
	others []string   // namespaces of other refs/X/main
}

// inspect asks a remote for its refs: git ls-remote, with a line read at a time.
func (e *Env) inspect(ctx context.Context, url, ns string) (remoteRefs, error) {
	var refs remoteRefs
	c := e.network(ctx, "ls-remote", "--refs", "--", url)
	out, err := c.Start()
	if err != nil {
		return refs, e.trouble(ctx, url, err)
	}
	format := error(nil)
	in := bufio.NewScanner(out)
	for in.Scan() {
		id, name, _ := strings.Cut(in.Text(), "\t")
		x, ok := mainNamespace(name)
		if !ok {
			continue
		}
		if x != ns {
			refs.others = append(refs.others, x)
			continue
		}
		if refs.main, ok = gitdb.ParseHash(id); !ok && format == nil {
			format = fmt.Errorf("%s is %q: the remote uses another object format than this repository", name, id)
		}
	}
	_, _ = io.Copy(io.Discard, out)
	if err := errors.Join(in.Err(), c.Wait()); err != nil {
		return refs, e.trouble(ctx, url, err)
	}
	if format != nil {
		return refs, &meta.Error{Op: "remote " + Redact(url), Err: format}
	}
	slices.Sort(refs.others)
	return refs, nil
}

// mainNamespace returns X of refs/X/main, if X may be a namespace of metadata.
func mainNamespace(ref string) (string, bool) {
	x, ok := strings.CutPrefix(ref, "refs/")
	if !ok {
		return "", false
	}
	x, ok = strings.CutSuffix(x, "/main")
	if !ok || strings.Contains(x, "/") || slices.Contains([]string{"heads", "tags", "remotes", "notes", "stash"}, x) {
		return "", false
	}
	return x, true
}

// pushed is what became of a push.
type pushed int

const (
	refused  pushed = iota // the remote's ref is not what was expected, or it said no
	created                // the ref was made by this push
	moved                  // the ref was moved by this push
	upToDate               // the ref was there already
)

// push makes ref on the remote commit, if it still is at old there (zero: does not
// exist). It is pushed by the remote's name, so that git moves the tracking ref. The
// user's pre-push hook does not run: it is about code, and may itself push metadata.
//
// The answer comes from git push --porcelain, not from its messages; with refused, err
// says why.
func (e *Env) push(ctx context.Context, r Remote, commit gitdb.Hash, old gitdb.Hash) (pushed, error) {
	ref, expect := r.MainRef(), ""
	if !old.IsZero() {
		expect = old.String()
	}
	args := []string{"push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no",
		"--force-with-lease=" + ref + ":" + expect}
	if e.Terminal != nil {
		args = append(args, "--progress")
	}
	out, err := e.network(ctx, append(args, "--", r.Name, commit.String()+":"+ref)...).Output()
	for line := range strings.Lines(string(out)) {
		f := strings.SplitN(strings.TrimRight(line, "\r\n"), "\t", 3)
		if len(f) < 2 || !strings.HasSuffix(f[1], ":"+ref) {
			continue
		}
		switch f[0] {
		case "*":
			return created, err
		case " ", "+":
			return moved, err
		case "=":
			return upToDate, err
		case "!":
			if err != nil && len(f) == 3 {
				err = fmt.Errorf("%s: %w", f[2], err)
			}
		}
	}
	if err == nil {
		err = errors.New("git push said nothing about " + ref)
	}
	return refused, err
}

// shellWord quotes s for a shell where that is needed.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@+,=", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
