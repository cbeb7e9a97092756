package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/git-meta/git-meta-go/cmd/internal/feed"
	"github.com/git-meta/git-meta-go/store"
)

// hub is what the watchers of the feed share: one look at the store's files for all of
// them, and one reading of what is new for those that stand at the same cursor. A watcher
// that is behind reads for itself: what it still has to get is in the log, not in memory.
type hub struct {
	base    context.Context
	feed    Feed
	changed func() bool
	every   time.Duration

	mu       sync.Mutex
	watchers int
	first    chan struct{}               // capacity 1: somebody has come to watch
	moved    chan struct{}               // closed and replaced when the store may have changed
	batches  map[store.FeedCursor]*batch // read since then
}

// batch is what stands behind a cursor.
type batch struct {
	once sync.Once
	store.Feed
	frames []byte // the same as events
	err    error
}

// maxBatches is how many batches are kept for other watchers.
const maxBatches = 16

func newHub(base context.Context, c Config) *hub {
	return &hub{
		base: base, feed: c.Feed, changed: c.Changed, every: feed.Interval,
		first: make(chan struct{}, 1), moved: make(chan struct{}), batches: map[store.FeedCursor]*batch{},
	}
}

// join counts a watcher; leave must be called when it goes.
func (h *hub) join() (leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers >= maxWatchers {
		return nil, fail(http.StatusServiceUnavailable, "close another one", "%d clients watch already", h.watchers)
	}
	if h.watchers++; h.watchers == 1 {
		h.move() // nobody has looked for a while: what was read may be out of date
	}
	select {
	case h.first <- struct{}{}:
	default:
	}
	return func() {
		h.mu.Lock()
		h.watchers--
		h.mu.Unlock()
	}, nil
}

// move forgets what was read. The caller holds the lock.
func (h *hub) move() {
	close(h.moved)
	h.moved = make(chan struct{})
	clear(h.batches)
}

// poll looks at the store as long as anybody watches, until ctx ends.
func (h *hub) poll(ctx context.Context) {
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	for {
		h.mu.Lock()
		idle := h.watchers == 0
		h.mu.Unlock()
		if idle {
			select {
			case <-ctx.Done():
				return
			case <-h.first:
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if h.changed() {
			h.mu.Lock()
			h.move()
			h.mu.Unlock()
		}
	}
}

// next returns what stands behind from, and a channel that is closed when there may be
// more.
func (h *hub) next(from store.FeedCursor) (*batch, <-chan struct{}) {
	h.mu.Lock()
	moved := h.moved
	b := h.batches[from]
	if b == nil {
		if len(h.batches) >= maxBatches {
			clear(h.batches)
		}
		b = &batch{}
		h.batches[from] = b
	}
	h.mu.Unlock()
	b.once.Do(func() { h.read(b, from) })
	if b.err != nil {
		h.mu.Lock()
		if h.batches[from] == b {
			delete(h.batches, from)
		}
		h.mu.Unlock()
	}
	return b, moved
}

func (h *hub) read(b *batch, from store.FeedCursor) {
	ctx, cancel := context.WithTimeout(h.base, requestTime)
	defer cancel()
	b.err = errors.New("reading the changes has failed") // stays if Next panics
	b.Feed, b.err = h.feed.Next(ctx, from, feed.Batch)
	if b.err != nil {
		return
	}
	if b.Resync {
		b.frames = frame(b.frames, "resync", b.Cursor.String(), feed.ResyncJSON(b.Cursor))
	}
	for _, r := range b.Records {
		b.frames = frame(b.frames, "change", r.Cursor.String(), feed.JSON(r))
	}
	b.Records = nil // the frames are all that is needed
}
