package gitdb

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// sharing is core.sharedRepository: the bits that files and folders get on
// top of, or instead of, what the umask leaves.
type sharing struct {
	bits    os.FileMode
	replace bool
}

// sharing reads core.sharedRepository as git_config_perm of git's setup.c.
func (r *Repo) sharing(ctx context.Context) (sharing, error) {
	c, err := r.Config(ctx)
	if err != nil {
		return sharing{}, err
	}
	v, ok := c.Get("core.sharedrepository")
	if !ok || runtime.GOOS == "windows" {
		return sharing{}, nil
	}
	group, all := sharing{bits: 0o660}, sharing{bits: 0o664}
	switch v {
	case "umask":
		return sharing{}, nil
	case "group":
		return group, nil
	case "all", "world", "everybody":
		return all, nil
	}
	if n, err := strconv.ParseUint(v, 8, 32); err == nil {
		switch n {
		case 0:
			return sharing{}, nil
		case 1, 0o660:
			return group, nil
		case 2, 0o664:
			return all, nil
		}
		if n&0o600 == 0o600 {
			return sharing{bits: os.FileMode(n & 0o666), replace: true}, nil
		}
		return sharing{}, nil
	}
	if c.Bool("core.sharedrepository", strings.EqualFold(v, "true")) {
		return group, nil
	}
	return sharing{}, nil
}

// adjust is adjust_shared_perm of git's path.c.
func (s sharing) adjust(p string) error {
	if s.bits == 0 {
		return nil
	}
	fi, err := os.Stat(p)
	if err != nil {
		return err
	}
	old := fi.Mode()
	tweak := s.bits
	if old&0o200 == 0 {
		tweak &^= 0o222
	}
	if old&0o100 != 0 {
		tweak |= tweak & 0o444 >> 2
	}
	perm := old.Perm() | tweak
	if s.replace {
		perm = tweak
	}
	special := old & (os.ModeSetgid | os.ModeSetuid | os.ModeSticky)
	if fi.IsDir() {
		perm |= perm & 0o444 >> 2
		if perm&0o060 != 0 {
			special |= os.ModeSetgid
		}
	}
	if perm == old.Perm() && special == old&(os.ModeSetgid|os.ModeSetuid|os.ModeSticky) {
		return nil
	}
	return os.Chmod(p, perm|special)
}

// mkdir makes a folder that may exist already.
func (s sharing) mkdir(p string) (made bool, err error) {
	if err := os.Mkdir(p, 0o777); err != nil {
		if fi, serr := os.Stat(p); serr == nil && fi.IsDir() {
			return false, nil
		}
		return false, err
	}
	return true, s.adjust(p)
}
