package gitdb

import (
	"os"

	"golang.org/x/sys/unix"
)

// oneJournal reports whether dir is on a file system that keeps one journal, in order:
// ext4 and xfs. There one sync makes durable all that was written and renamed before it,
// once the data has been handed to the disk: core.fsyncMethod=batch of git-config(1).
func oneJournal(dir string) bool {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return false
	}
	return int64(st.Type) == unix.EXT4_SUPER_MAGIC || int64(st.Type) == unix.XFS_SUPER_MAGIC
}

// flushData hands the data of f to the disk, without waiting for its journal.
func flushData(f *os.File) error {
	return os.NewSyscallError("sync_file_range", unix.SyncFileRange(int(f.Fd()), 0, 0,
		unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER))
}
