//go:build unix

package ui

import (
	"os"

	"golang.org/x/sys/unix"
)

// nobodyReads asks the system about the other end of a pipe, as GNU tail does.
func nobodyReads(f *os.File) bool {
	gone := false
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	_ = conn.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(fds, 0)
		gone = err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return gone
}
