package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1 // failed, or the answer is no
	exitUsage       = 2
	exitInterrupted = 130
)

// usageError is an invocation that cannot work: exit code 2.
type usageError struct {
	text string
	hint string
}

func (e *usageError) Error() string    { return e.text }
func (e *usageError) HintText() string { return e.hint }

func usageErrorf(hint, format string, args ...any) error {
	return &usageError{text: fmt.Sprintf(format, args...), hint: hint}
}

// failf is an error of a command itself, with a hint.
func failf(hint, format string, args ...any) error {
	return &meta.Error{Err: fmt.Errorf(format, args...), Hint: hint}
}

// errStopped is the end of a command that runs until it is interrupted: there is nothing
// to say about it.
var errStopped = errors.New("interrupted")

// exit turns err into text, hint and exit code. It is the one place where that
// happens.
func (a *app) exit(ctx context.Context, err error) int {
	out := a.Out.Flush()
	switch {
	case out != nil && isClosedPipe(out):
		// Whoever reads has seen enough.
		if err == nil || errors.Is(err, out) {
			return exitOK
		}
	case out != nil && (err == nil || errors.Is(err, out)):
		err = fmt.Errorf("output: %w", out)
	}
	if err == nil {
		return exitOK
	}
	code := exitFailed
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		code = exitUsage
	}
	text, hint := err.Error(), hintOf(err)
	if ctx.Err() != nil {
		if errors.Is(err, errStopped) {
			return exitInterrupted
		}
		code, text, hint = exitInterrupted, "interrupted", "nothing is half done; run the command again"
	}
	a.printError(code, text, hint)
	return code
}

func (a *app) printError(code int, text, hint string) {
	if a.json {
		o := (&ui.Object{}).Add("error", text)
		if hint != "" {
			o.Add("hint", hint)
		}
		a.Errf("%s", ui.JSON(o.Add("exit_code", code)))
		return
	}
	p := a.ErrPainter()
	a.Errf("%s %s", p.Paint(ui.Error, "error:"), ui.Printable(strings.TrimRight(text, "\n")))
	if hint != "" {
		a.Errf("%s %s", p.Paint(ui.Hint, "hint:"), ui.Printable(hint))
	}
}

// hintOf returns the first hint in err's chain.
func hintOf(err error) string {
	if h := meta.HintOf(err); h != "" {
		return h
	}
	var withHint interface {
		error
		Hint() string
	}
	if errors.As(err, &withHint) && withHint.Hint() != "" {
		return withHint.Hint()
	}
	if e := (*gitdb.Error)(nil); errors.As(err, &e) && e.Hint != "" {
		return e.Hint
	}
	if e := (*store.FileError)(nil); errors.As(err, &e) && e.Hint != "" {
		return e.Hint
	}
	switch {
	case errors.Is(err, gitdb.ErrNotCommit):
		return "name a commit; git cat-file -t REV tells what a revision is"
	case errors.Is(err, gitdb.ErrUnknownRevision), errors.Is(err, gitdb.ErrNoCommits):
		return "git log --all --oneline lists the commits that are here"
	case errors.Is(err, gitdb.ErrNoRepository):
		return "git init, or change to a directory inside a repository"
	case errors.Is(err, meta.ErrConflict):
		return "another process keeps writing; try again"
	}
	return ""
}
