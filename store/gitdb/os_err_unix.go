//go:build unix

package gitdb

import (
	"errors"
	"syscall"
)

// isNotDir: a parent of the path is a file.
func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// isDirErr: a file was expected and a directory found.
func isDirErr(err error) bool { return errors.Is(err, syscall.EISDIR) }

func isReadOnly(err error) bool {
	return errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM)
}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
