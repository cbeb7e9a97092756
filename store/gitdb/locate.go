package gitdb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

var errTryAll = errors.New("not in a pack")

// findPacked is the quick way to an object in a healthy pack; nil if there is
// none.
func (rd *Reader) findPacked(id Hash) (*pack, int64) {
	last := rd.lastHit.Load()
	if last != nil {
		if off, ok, err := last.find(id); ok && err == nil {
			return last, off
		}
	}
	for _, p := range rd.packList(false) {
		if p == last {
			continue
		}
		if off, ok, err := p.find(id); ok && err == nil {
			rd.lastHit.Store(p)
			return p, off
		}
	}
	return nil, 0
}

// locate tries every copy of an object: packs, loose, packs again if their
// folders changed, and git at last.
func (rd *Reader) locate(ctx context.Context, id Hash, fetch bool,
	fromPack func(*pack, int64) error, fromLoose func(path string) error, fromGit func() error,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var damage error // the first copy that could not be decoded
	note := func(path string, err error) {
		if damage == nil && !notFound(err) {
			damage = &ObjectError{ID: id, Path: path, Err: err}
		}
	}
	try := func(p *pack) bool {
		off, ok, err := p.find(id)
		if err != nil {
			if errors.Is(err, errOddIdx) {
				rd.odd.Store(true)
			} else {
				note(p.base+".idx", err)
			}
			return false
		}
		if !ok {
			return false
		}
		if err := fromPack(p, off); err != nil {
			note(p.base+".pack", err)
			return false
		}
		rd.lastHit.Store(p)
		return true
	}
	packs := rd.packList(false)
	for range 2 {
		last := rd.lastHit.Load()
		if last != nil && try(last) {
			return nil
		}
		for _, p := range packs {
			if p != last && try(p) {
				return nil
			}
		}
		for _, dir := range rd.dirs {
			path := loosePath(dir, id)
			err := fromLoose(path)
			if err == nil {
				return nil
			}
			note(path, err)
		}
		again := rd.packList(true)
		if slices.Equal(again, packs) {
			break
		}
		packs = again
	}
	if damage != nil || rd.odd.Load() || fetch && rd.promisor(ctx) {
		err := fromGit()
		if err == nil || damage == nil || ctx.Err() != nil {
			return err
		}
		return damage
	}
	return &ObjectError{ID: id, Err: ErrObjectMissing}
}

// racy is how close to the time of a scan a change may be and still have the
// same time stamp, on the coarsest file systems.
const racy = 2 * time.Second

// packList returns the known packs; refresh reads the folders again whose
// time stamp is not older than what is known of them.
func (rd *Reader) packList(refresh bool) []*pack {
	if !refresh {
		if ps := rd.packs.Load(); ps != nil {
			return *ps
		}
	}
	rd.scanMu.Lock()
	defer rd.scanMu.Unlock()
	old := rd.packs.Load()
	if !refresh && old != nil {
		return *old
	}
	var known []*pack
	if old != nil {
		known = *old
	}
	byBase := make(map[string]*pack, len(known))
	for _, p := range known {
		byBase[p.base] = p
	}
	var list []*pack
	changed := false
	for i, dir := range rd.dirs {
		dir = filepath.Join(dir, "pack")
		s := &rd.scans[i]
		fi, err := os.Stat(dir)
		if err == nil && s.done && fi.ModTime().Equal(s.mtime) && s.at.Sub(s.mtime) > racy {
			for _, p := range known {
				if filepath.Dir(p.base) == dir {
					list = append(list, p)
				}
			}
			continue
		}
		if err == nil {
			*s = scan{mtime: fi.ModTime(), at: time.Now(), done: true}
		}
		names, _ := os.ReadDir(dir)
		for _, e := range names {
			name, ok := strings.CutSuffix(e.Name(), ".idx")
			if !ok || !strings.HasPrefix(name, "pack-") {
				continue
			}
			base := filepath.Join(dir, name)
			p := byBase[base]
			if p == nil || p.gone.Load() {
				p, changed = &pack{base: base}, true
			}
			list = append(list, p)
		}
	}
	if old != nil && !changed && len(list) == len(known) {
		return known
	}
	// Packs that are gone stay mapped until Close: others may be reading.
	for _, p := range known {
		if !slices.Contains(list, p) {
			rd.closed = append(rd.closed, p)
		}
	}
	if last := rd.lastHit.Load(); last != nil && !slices.Contains(list, last) {
		rd.lastHit.CompareAndSwap(last, nil)
	}
	rd.packs.Store(&list)
	return list
}
