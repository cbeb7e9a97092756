package gitdb

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
)

// finish completes the pack and gives it its name. Contents are flushed before
// names appear; the index comes last, because git finds packs by it.
func (p *packWriter) finish(ctx context.Context) (path, keep string, err error) {
	defer func() {
		if err != nil {
			if cause := ctx.Err(); cause != nil {
				err = cause
			}
			if keep != "" {
				os.Remove(keep)
			}
			p.abort()
		} else {
			p.stop(errWriterDone)
		}
	}()
	if err := p.flush(); err != nil {
		return "", "", err
	}
	p.end()
	if err := p.failed(); err != nil {
		return "", "", err
	}
	if int64(len(p.ents)) > math.MaxUint32 {
		return "", "", errors.New("too many objects for one pack")
	}
	sum, err := p.seal(ctx)
	if err != nil {
		return "", "", err
	}
	idx, err := p.writeIndex(sum)
	if err != nil {
		return "", "", err
	}
	if err := ctx.Err(); err != nil {
		return "", "", err
	}
	base := filepath.Join(p.dir, "pack-"+hex.EncodeToString(sum[:]))
	if keep, err = createKeep(base + ".keep"); err != nil {
		return "", "", err
	}
	if err := os.Rename(p.f.Name(), base+".pack"); err != nil {
		return "", keep, err
	}
	if err := os.Rename(idx, base+".idx"); err != nil {
		if _, serr := os.Lstat(base + ".idx"); serr != nil {
			os.Remove(base + ".pack") // nobody can use it
		}
		return "", keep, err
	}
	p.tmp = nil
	if err := syncDir(p.dir); err != nil {
		return "", keep, err
	}
	return base + ".pack", keep, nil
}

// seal writes count and checksum, and flushes the pack to the disk.
func (p *packWriter) seal(ctx context.Context) (sum Hash, err error) {
	if err := p.bw.Flush(); err != nil {
		return sum, err
	}
	var n [4]byte
	binary.BigEndian.PutUint32(n[:], uint32(len(p.ents)))
	if _, err := p.f.WriteAt(n[:], 8); err != nil {
		return sum, err
	}
	h := sha1.New()
	buf := make([]byte, 1<<20)
	for at := int64(0); at < p.off; {
		m, err := p.f.ReadAt(buf[:min(int64(len(buf)), p.off-at)], at)
		if err != nil {
			return sum, err
		}
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		h.Write(buf[:m])
		at += int64(m)
	}
	h.Sum(sum[:0])
	if _, err := p.f.WriteAt(sum[:], p.off); err != nil {
		return sum, err
	}
	if err := errors.Join(p.f.Sync(), p.f.Close()); err != nil {
		return sum, err
	}
	return sum, p.share.adjust(p.f.Name())
}

func (p *packWriter) writeIndex(sum Hash) (string, error) {
	f, err := createTemp(p.dir, "tmp_idx_")
	if err != nil {
		return "", err
	}
	p.tmp = append(p.tmp, f.Name())
	err = writeIdx(f, p.ents, sum)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return f.Name(), p.share.adjust(f.Name())
}
