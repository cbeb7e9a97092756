//go:build unix

package cmd_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
)

// peak MIB program args… runs a program; it fails if the program, or one that it waited
// for, needed more memory than that.
func peak() {
	limit, err := strconv.ParseInt(os.Args[1], 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, "usage: peak MIB program args...")
		os.Exit(2)
	}
	c := exec.Command(os.Args[2], os.Args[3:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			os.Exit(exit.ExitCode())
		}
		fmt.Fprintln(os.Stderr, "peak:", err)
		os.Exit(127)
	}
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &use); err != nil {
		fmt.Fprintln(os.Stderr, "peak:", err)
		os.Exit(127)
	}
	mib := int64(use.Maxrss) >> 10
	if runtime.GOOS == "darwin" {
		mib >>= 10
	}
	if mib > limit && !raceEnabled {
		fmt.Fprintf(os.Stderr, "peak: %d MiB, more than %d\n", mib, limit)
		os.Exit(125)
	}
}
