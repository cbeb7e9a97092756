package gitdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Command is a git process that has not been started. Configure it with the
// methods that return the Command, then call Run, Output or Start once.
type Command struct {
	ctx    context.Context
	cmd    *exec.Cmd
	args   []string
	stderr tail
}

// Git prepares git with args in the repository: GIT_DIR and GIT_WORK_TREE are
// set, so that it works from anywhere, in hooks too; messages are in English
// (LC_ALL=C); git asks for passwords only if there is a terminal. Cancelling
// ctx ends the process with SIGTERM, on which git removes its lock files, and
// after five seconds for good.
//
// Put "--" or "--end-of-options" before words that come from the user.
func (r *Repo) Git(ctx context.Context, args ...string) *Command {
	c := newCommand(ctx, r.dir, args)
	c.Env("GIT_DIR=" + r.GitDir)
	if r.WorkTree != "" {
		c.Env("GIT_WORK_TREE=" + r.WorkTree)
	}
	if _, ok := os.LookupEnv("GIT_COMMON_DIR"); ok {
		c.Env("GIT_COMMON_DIR=" + r.CommonDir)
	}
	if os.Getenv("GIT_OBJECT_DIRECTORY") != "" {
		c.Env("GIT_OBJECT_DIRECTORY=" + r.ObjectDir)
	}
	return c
}

func newCommand(ctx context.Context, dir string, args []string) *Command {
	c := &Command{ctx: ctx, args: args, cmd: exec.CommandContext(ctx, "git", args...)}
	c.cmd.Dir = dir
	c.cmd.Stderr = &c.stderr
	c.cmd.Env = append(os.Environ(), "LC_ALL=C", "LANGUAGE=C")
	if _, ok := os.LookupEnv("GIT_TERMINAL_PROMPT"); !ok && !isTerminal(os.Stderr) && !isTerminal(os.Stdin) {
		c.cmd.Env = append(c.cmd.Env, "GIT_TERMINAL_PROMPT=0")
	}
	politely(c.cmd)
	return c
}

// Stdin gives the process its input.
func (c *Command) Stdin(r io.Reader) *Command { c.cmd.Stdin = r; return c }

// StdinString gives the process its input.
func (c *Command) StdinString(s string) *Command { return c.Stdin(strings.NewReader(s)) }

// Stdout streams the output of [Command.Run] to w.
func (c *Command) Stdout(w io.Writer) *Command { c.cmd.Stdout = w; return c }

// Stderr shows the error output on w as it comes, for progress; the end of it
// is kept for the error all the same.
func (c *Command) Stderr(w io.Writer) *Command {
	c.cmd.Stderr = io.MultiWriter(w, &c.stderr)
	return c
}

// Env adds or replaces variables, "NAME=value".
func (c *Command) Env(kv ...string) *Command { c.cmd.Env = append(c.cmd.Env, kv...); return c }

// Unset removes variables from the environment of the process.
func (c *Command) Unset(names ...string) *Command {
	kept := c.cmd.Env[:0:0]
	for _, kv := range c.cmd.Env {
		drop := false
		for _, n := range names {
			drop = drop || strings.HasPrefix(kv, n+"=")
		}
		if !drop {
			kept = append(kept, kv)
		}
	}
	c.cmd.Env = kept
	return c
}

// Dir sets the directory the process runs in.
func (c *Command) Dir(dir string) *Command { c.cmd.Dir = dir; return c }

// Run runs the process to its end. A code other than 0 is a [*GitError]; a
// cancelled context is the context's error; no git is [ErrNoGit].
func (c *Command) Run() error { return c.err(c.cmd.Run()) }

// Output runs the process and returns its standard output, also with a
// [*GitError].
func (c *Command) Output() ([]byte, error) {
	var b bytes.Buffer
	c.cmd.Stdout = &b
	err := c.Run()
	return b.Bytes(), err
}

// Text is Output as a string without the last line feed.
func (c *Command) Text() (string, error) {
	b, err := c.Output()
	return strings.TrimSuffix(string(b), "\n"), err
}

// Start starts the process and returns its standard output; end it with
// [Command.Wait] after the last read.
func (c *Command) Start() (io.ReadCloser, error) {
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, c.err(err)
	}
	return out, nil
}

// Wait waits for the end of a started process; errors as [Command.Run].
func (c *Command) Wait() error { return c.err(c.cmd.Wait()) }

func (c *Command) err(err error) error {
	if err == nil {
		return nil
	}
	if c.ctx.Err() != nil {
		return fmt.Errorf("git %s: %w", verb(c.args), c.ctx.Err())
	}
	var ee *exec.ExitError
	switch {
	case errors.As(err, &ee):
		return &GitError{Args: c.args, Code: ee.ExitCode(), Stderr: c.stderr.String()}
	case errors.Is(err, exec.ErrNotFound):
		return &Error{Op: "run", Path: "git", Err: ErrNoGit, Hint: "install git and make sure that it is on the PATH"}
	}
	return fmt.Errorf("git %s: %w", verb(c.args), err)
}

// verb returns the subcommand in a list of arguments.
func verb(args []string) string {
	for i := 0; i < len(args); i++ {
		if a := args[i]; a == "-c" || a == "-C" {
			i++
		} else if !strings.HasPrefix(a, "-") {
			return a
		}
	}
	return ""
}

// tail keeps the last 64 KiB written to it.
type tail struct{ b []byte }

const tailMax = 64 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > 2*tailMax {
		t.b = append(t.b[:0], t.b[len(t.b)-tailMax:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.b[max(0, len(t.b)-tailMax):]) }
