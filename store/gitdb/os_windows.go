//go:build windows

package gitdb

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// ownedByUser compares the owner with the user of the process. Anything else
// that git accepts (the Administrators group, some file systems without
// owners) is left to git.
func ownedByUser(p string) bool {
	sd, err := windows.GetNamedSecurityInfo(p, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return false
	}
	owner, _, err := sd.Owner()
	if err != nil || owner == nil {
		return false
	}
	u, err := windows.GetCurrentProcessToken().GetTokenUser()
	return err == nil && windows.EqualSid(owner, u.User.Sid)
}

func sameDevice(_ os.FileInfo, p string) bool {
	return !strings.HasPrefix(filepath.VolumeName(p), `\\`)
}

func mapFile(f *os.File, size int) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	h, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return nil, err
	}
	defer windows.CloseHandle(h) // the view keeps the mapping
	addr, err := windows.MapViewOfFile(h, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		return nil, err
	}
	// The view is not Go memory; vet cannot know that.
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), size), nil
}

func unmapFile(b []byte) error {
	return windows.UnmapViewOfFile(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// syncDir does nothing: Windows has no way to sync a directory.
func syncDir(string) error { return nil }

func processGone(pid int) bool {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return err == windows.ERROR_INVALID_PARAMETER
	}
	windows.CloseHandle(h)
	return false
}

func politely(cmd *exec.Cmd) { cmd.WaitDelay = 5 * time.Second }
