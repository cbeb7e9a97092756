//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package gitdb

import "os"

// isTerminal cannot tell the null device from a terminal; good enough for
// deciding whether git may ask for a password.
func isTerminal(f *os.File) bool {
	fi, err := f.Stat()
	return err == nil && fi.Mode()&os.ModeCharDevice != 0
}
