//go:build !windows

package cmd

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// catchPipeSignal makes writing to a closed pipe an error instead of the end of the
// process: a command finishes its work although nobody reads its output. Child
// processes are not affected.
func catchPipeSignal(out io.Writer) {
	if out == io.Writer(os.Stdout) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
}

func isClosedPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}
