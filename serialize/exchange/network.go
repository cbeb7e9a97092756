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
	return c.Env(GuardVariable + "=" + e.Repo.CommonDir)
}

// GuardVariable is set for the git processes that talk to a remote, to the common
// folder of the repository they work for: a hook that they run and that starts git meta
// push, pull or sync on the same repository again would go round in circles.
const GuardVariable = "GIT_META_EXCHANGE"

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

// look asks a configured remote for its refs.
func (e *Env) look(ctx context.Context, r Remote) (remoteRefs, error) {
	return e.lsRemote(ctx, r.Name, r.URL, r.Namespace)
}

// inspect asks a URL for its refs.
func (e *Env) inspect(ctx context.Context, url, ns string) (remoteRefs, error) {
	return e.lsRemote(ctx, url, url, ns)
}

// lsRemote is git ls-remote, with a line read at a time. where is a URL or the name of a
// remote whose URL is url.
func (e *Env) lsRemote(ctx context.Context, where, url, ns string) (remoteRefs, error) {
	var refs remoteRefs
	c := e.network(ctx, "ls-remote", "--quiet", "--refs", "--", where)
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
	failed   pushed = iota // git said nothing about the ref: the transport failed, or worse
	stale                  // git did not send it: the remote's ref is not what was expected
	refused                // the remote said no
	created                // the ref was made by this push
	moved                  // the ref was moved by this push
	upToDate               // the ref was there already
)

// push makes MainRef on the remote commit, if it still is at old there (zero: does not
// exist). It is pushed by the remote's name, so that git moves the tracking ref.
func (e *Env) push(ctx context.Context, r Remote, commit, old gitdb.Hash) (pushed, error) {
	return e.pushRef(ctx, r, r.MainRef(), commit, old)
}

// pushRef is push for any ref. The user's pre-push hook does not run: it is about code,
// and may itself push metadata.
//
// The answer comes from git push --porcelain, not from its messages. With failed, stale
// and refused err says why; with refused it is a [*refusal].
func (e *Env) pushRef(ctx context.Context, r Remote, ref string, commit, old gitdb.Hash) (pushed, error) {
	expect := ""
	if !old.IsZero() {
		expect = old.String()
	}
	args := []string{
		"push", "--porcelain", "--no-verify", "--no-follow-tags", "--recurse-submodules=no", "--no-signed",
		"--force-with-lease=" + ref + ":" + expect,
	}
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
			return created, nil
		case " ", "+":
			return moved, nil
		case "=":
			return upToDate, nil
		case "!":
			if err == nil {
				err = errors.New("git push refused")
			}
			return e.rejected(err, append(f, "")[2])
		}
	}
	if err == nil {
		err = errors.New("git push said nothing about " + ref)
	}
	return failed, err
}

// rejected tells who rejected a ref, from the last field of its line in git push
// --porcelain: these words are not translated.
func (e *Env) rejected(err error, summary string) (pushed, error) {
	reason, remote := strings.CutPrefix(summary, "[remote rejected] ")
	if !remote {
		return stale, fmt.Errorf("%s: %w", summary, err)
	}
	if in, ok := strings.CutPrefix(reason, "("); ok {
		reason = strings.TrimSuffix(in, ")")
	}
	no := &refusal{reason: reason, err: err}
	var ge *gitdb.GitError
	if errors.As(err, &ge) {
		for line := range strings.Lines(ge.Stderr) {
			if text, ok := strings.CutPrefix(line, "remote: "); ok && strings.TrimSpace(text) != "" {
				no.said = append(no.said, strings.TrimSpace(text))
			}
		}
	}
	return refused, no
}

// refusal is the answer of a server that does not take a push.
type refusal struct {
	reason string   // from the protocol
	said   []string // what hooks printed
	err    error
}

// maxSaid is how many lines of a server are shown.
const maxSaid = 20

func (r *refusal) Error() string {
	text := "the remote refuses it: " + r.reason
	for _, line := range r.said[:min(len(r.said), maxSaid)] {
		text += "\n  remote: " + line
	}
	return text
}

func (r *refusal) Unwrap() error { return r.err }

// hook reports whether a hook of the server said no, in the words that git's own
// receive-pack has for it in the protocol: whatever the ref does meanwhile, it is no race.
func (r *refusal) hook() bool {
	return r.reason == "pre-receive hook declined" || r.reason == "hook declined"
}

// race reports whether the reason is one that git's receive-pack gives when another push
// held or moved the ref.
func (r *refusal) race() bool {
	return r.reason == "failed to update ref" || r.reason == "reference already exists" ||
		strings.HasPrefix(r.reason, "cannot lock ref") || strings.HasPrefix(r.reason, "incorrect old value")
}

func shellWord(s string) string { return meta.ShellWord(s) }
