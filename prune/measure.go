package prune

import (
	"context"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

const modeTree = 0o40000

// cachedDepth is how many levels of folders are kept in tree_stats: the root, the target
// types and the fan-out. A row for every small subtree is slower than walking it.
const cachedDepth = 2

// measurer measures trees. It keeps what it finds for the upper levels in found, and
// takes from known what was measured before.
type measurer struct {
	rd    *gitdb.Reader
	sizes bool // bytes are wanted too
	known func(id string) (store.Stats, bool)

	mu    sync.Mutex
	found map[string]store.Stats
}

func (m *measurer) cached(id gitdb.Hash) (store.Stats, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.found[id.String()]; ok {
		return s, true
	}
	s, ok := m.known(id.String())
	return s, ok && s.HasKeys && (s.HasBytes || !m.sizes)
}

func (m *measurer) keep(id gitdb.Hash, s store.Stats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.HasKeys, s.HasBytes = true, m.sizes
	m.found[id.String()] = s
}

// measure returns keys and bytes below the tree id, which is depth levels below the root.
func (m *measurer) measure(ctx context.Context, id gitdb.Hash, depth int) (store.Stats, error) {
	if depth > cachedDepth {
		var s store.Stats
		err := m.walk(ctx, id, &s)
		return s, err
	}
	if s, ok := m.cached(id); ok {
		return s, nil
	}
	entries, err := m.rd.Tree(ctx, id)
	if err != nil {
		return store.Stats{}, err
	}
	subs := make([]store.Stats, len(entries))
	g, gctx := errgroup.WithContext(ctx)
	if depth == cachedDepth-1 {
		g.SetLimit(runtime.GOMAXPROCS(0))
	}
	var s store.Stats
	for i, e := range entries {
		if serialize.IsKeyEntry(e) {
			s.Keys++
		}
		if e.Mode != modeTree {
			if err := m.blob(ctx, e, &s); err != nil {
				return s, err
			}
			continue
		}
		g.Go(func() (err error) {
			subs[i], err = m.measure(gctx, e.Hash, depth+1)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return s, err
	}
	for _, sub := range subs {
		s.Keys += sub.Keys
		s.Bytes += sub.Bytes
	}
	m.keep(id, s)
	return s, nil
}

// walk adds up what lies below id without keeping anything. Without sizes it does not
// read the folders of lists and sets: they hold no keys.
func (m *measurer) walk(ctx context.Context, id gitdb.Hash, s *store.Stats) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := m.rd.Tree(ctx, id)
	if err != nil {
		return err
	}
	for _, e := range entries {
		key := serialize.IsKeyEntry(e)
		if key {
			s.Keys++
		}
		switch {
		case e.Mode != modeTree:
			err = m.blob(ctx, e, s)
		case m.sizes || !key && e.Name != "__tombstones":
			err = m.walk(ctx, e.Hash, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *measurer) blob(ctx context.Context, e gitdb.TreeEntry, s *store.Stats) error {
	if !m.sizes || e.Mode&0o170000 == 0o160000 {
		return nil
	}
	_, n, err := m.rd.Header(ctx, e.Hash)
	s.Bytes += n
	return err
}

// foreign returns what lies under target types that this program does not know: bytes
// that count, keys that do not.
func (m *measurer) foreign(ctx context.Context, root gitdb.Hash) (store.Stats, error) {
	var sum store.Stats
	if root.IsZero() {
		return sum, nil
	}
	entries, err := m.rd.Tree(ctx, root)
	if err != nil {
		return sum, err
	}
	for _, e := range entries {
		if e.Mode != modeTree || meta.TargetType(e.Name).Known() {
			continue
		}
		s, err := m.measure(ctx, e.Hash, 1)
		if err != nil {
			return sum, err
		}
		sum.Keys += s.Keys
		sum.Bytes += s.Bytes
	}
	return sum, nil
}

func newMeasurer(rd *gitdb.Reader, tx *store.Tx, r Rules) *measurer {
	return &measurer{
		rd: rd, sizes: r.MaxSize > 0, found: map[string]store.Stats{},
		known: func(id string) (store.Stats, bool) {
			s, ok, err := tx.TreeStats(id)
			return s, ok && err == nil
		},
	}
}
