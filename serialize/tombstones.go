package serialize

import (
	"iter"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
)

// tombstoneGroups yields the tombstones of one key at a time.
type tombstoneGroups struct {
	pull func() (meta.Tombstone, error, bool)
	stop func()
	head meta.Tombstone
	more bool
	init bool
}

func groupTombstones(tx *store.Tx) *tombstoneGroups {
	g := &tombstoneGroups{}
	g.pull, g.stop = iter.Pull2(tx.AllTombstones())
	return g
}

func (g *tombstoneGroups) advance() error {
	t, err, ok := g.pull()
	g.head, g.more = t, ok
	if !ok {
		return nil
	}
	return err
}

// next returns the next key and its tombstones; ok is false at the end.
func (g *tombstoneGroups) next() (c change, ok bool, err error) {
	if !g.init {
		g.init = true
		if err := g.advance(); err != nil {
			return c, false, err
		}
	}
	if !g.more {
		return c, false, nil
	}
	c.KeyRef = g.head.KeyRef
	for g.more && g.head.KeyRef == c.KeyRef {
		c.tombs = append(c.tombs, g.head)
		if err := g.advance(); err != nil {
			return c, false, err
		}
	}
	return c, true, nil
}
