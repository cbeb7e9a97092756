//go:build windows

package gitdb

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

func isNotDir(err error) bool { return errors.Is(err, windows.ERROR_PATH_NOT_FOUND) }

// isDirErr: reading a directory fails in several ways here.
func isDirErr(err error) bool {
	return errors.Is(err, windows.ERROR_INVALID_FUNCTION) || errors.Is(err, windows.ERROR_INVALID_HANDLE)
}

func isReadOnly(err error) bool {
	return errors.Is(err, os.ErrPermission) || errors.Is(err, windows.ERROR_WRITE_PROTECT)
}

func isFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}
