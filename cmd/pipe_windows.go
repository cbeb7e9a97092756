package cmd

import (
	"errors"
	"io"
	"syscall"
)

func catchPipeSignal(io.Writer) {}

func isClosedPipe(err error) bool {
	const noData = syscall.Errno(232) // ERROR_NO_DATA: the pipe is being closed
	return errors.Is(err, syscall.ERROR_BROKEN_PIPE) || errors.Is(err, noData) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}
