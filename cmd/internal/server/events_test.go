package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/store"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	b := start(t, nil, func(s *Server) { s.http.ReadTimeout, s.heartbeat = 150*time.Millisecond, 50*time.Millisecond })
	early := b.watch("", "") // there is no store yet
	early.expect()
	b.set("a", "b")
	early.expect("change a", "change b")
	at := early.lastID
	late := b.watch("", "")
	late.expect("change a", "change b")
	fromNow := b.watch("?since=now", "")
	fromNow.expect()
	if fromNow.lastID != at {
		t.Errorf("the cursor of now is %q, want %q", fromNow.lastID, at)
	}
	b.set("c")
	for _, w := range []*stream{early, late, fromNow} {
		w.expect("change c")
	}
	b.watch("?since="+at, "").expect("change c")
	b.watch("", at).expect("change c")
	b.watch("?since=now", at).expect("change c") // a client that connects again

	// A pass: each watcher is told once, those that come back with an old cursor too.
	b.sweepAway()
	for _, w := range []*stream{early, late, fromNow} {
		w.expect("resync")
	}
	again := b.watch("", at)
	again.expect("resync")
	b.watch("?since="+again.lastID, "").expect()
	b.set("d")
	for _, w := range []*stream{early, late, fromNow, again} {
		w.expect("change d")
	}
	// A sweep of several passes, one at once after the other, is told once. (Twice, where
	// a busy machine makes a pause.)
	for range 8 {
		b.sweepAway()
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(time.Second)
	b.set("d2")
	for _, w := range []*stream{early, late, fromNow, again} {
		n, got := 0, ""
		for got = w.event(10 * time.Second); got == "resync"; got = w.event(10 * time.Second) {
			n++
		}
		if got != "change d2" || n < 1 || n > 2 {
			t.Errorf("%d times told of a sweep, then %q", n, got)
		}
	}
	// The store is replaced.
	if err := errors.Join(os.Remove(b.path), ignoreMissing(os.Remove(b.path+"-wal")), ignoreMissing(os.Remove(b.path+"-shm"))); err != nil {
		t.Fatal(err)
	}
	early.expect("resync")
	b.set("e")
	early.expect("change e")

	for _, query := range []string{"?since=garbled", "?since=", "?since=c1.x"} {
		got, body, _ := b.do(b.request(http.MethodGet, "/v1/apps/default/changes"+query, ""))
		if got != 400 {
			t.Errorf("%s: %d %s", query, got, body)
		}
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// countedFeed counts how often the feed is read, and can fail.
type countedFeed struct {
	Feed
	reads atomic.Int32
	fail  atomic.Pointer[error]
}

func (f *countedFeed) Next(ctx context.Context, from store.FeedCursor, limit int) (store.Feed, error) {
	f.reads.Add(1)
	if err := f.fail.Load(); err != nil {
		return store.Feed{}, *err
	}
	return f.Feed.Next(ctx, from, limit)
}

// Many watchers at the same place cost one reading, and quiet ones none.
func TestWatchersShare(t *testing.T) {
	t.Parallel()
	var counted *countedFeed
	b := start(t, func(c *Config) {
		counted = &countedFeed{Feed: c.Feed}
		c.Feed = counted
	}, nil)
	b.set("a")
	const n = 30
	var all []*stream
	for range n {
		w := b.watch("", "")
		all = append(all, w)
	}
	for _, w := range all {
		if got := w.event(10 * time.Second); got != "change a" {
			t.Fatal(got)
		}
	}
	time.Sleep(1500 * time.Millisecond) // until the store's files are no longer looked at twice
	counted.reads.Store(0)
	time.Sleep(200 * time.Millisecond)
	if got := counted.reads.Load(); got != 0 {
		t.Errorf("%d readings without a change", got)
	}
	b.set("b")
	for _, w := range all {
		if got := w.event(10 * time.Second); got != "change b" {
			t.Fatal(got)
		}
	}
	// The change is seen up to twice (log, file), each time read at the old and at the new
	// end; the rest is room for a slow machine.
	if got := counted.reads.Load(); got > 8 {
		t.Errorf("%d readings for one change", got)
	}
}

// A client that does not read keeps nobody waiting, and nothing is kept for it.
func TestSlowWatcher(t *testing.T) {
	t.Parallel()
	b := start(t, nil, nil)
	slow := b.request(http.MethodGet, "/v1/apps/default/changes", "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	res, err := (&http.Transport{}).RoundTrip(slow.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() // never read
	quick := b.watch("", "")
	const rounds, each = 5, 200
	for i := range rounds {
		var keys []string
		for j := range each {
			keys = append(keys, fmt.Sprintf("%s:r%d:k%d", strings.Repeat("long", 2000), i, j))
		}
		b.set(keys...)
		for range each {
			if got := quick.event(10 * time.Second); !strings.HasPrefix(got, "change ") {
				t.Fatalf("round %d: %q", i, got)
			}
		}
	}
	b.hub.mu.Lock()
	kept := 0
	for _, x := range b.hub.batches {
		kept += len(x.frames)
	}
	b.hub.mu.Unlock()
	if kept > maxBatches*each*9000 {
		t.Errorf("%d bytes are kept", kept)
	}
	if err := b.stop(); err != nil {
		t.Error(err)
	}
}

func TestTooManyWatchers(t *testing.T) {
	t.Parallel()
	b := start(t, nil, nil)
	for range maxWatchers {
		if _, err := b.hub.join(); err != nil {
			t.Fatal(err)
		}
	}
	if got, body, _ := b.do(b.request(http.MethodGet, "/v1/apps/default/changes", "")); got != 503 {
		t.Errorf("%d: %s", got, body)
	}
}

// A store that cannot be read for a moment is no end of a stream; one that cannot be read
// at all is an error before it begins.
func TestFeedFails(t *testing.T) {
	t.Parallel()
	var counted *countedFeed
	b := start(t, func(c *Config) {
		counted = &countedFeed{Feed: c.Feed}
		c.Feed = counted
	}, nil)
	b.set("a")
	w := b.watch("", "")
	w.expect("change a")
	trouble := errors.New("disk on fire")
	counted.fail.Store(&trouble)
	// from another cursor: what was read for w is still good
	if got, body, _ := b.do(b.request(http.MethodGet, "/v1/apps/default/changes?since=c1.0.0.0.0", "")); got != 500 || !strings.Contains(body, "disk on fire") {
		t.Errorf("%d: %s", got, body)
	}
	b.set("b")
	w.expect()
	counted.fail.Store(nil)
	w.expect("change b")
}
