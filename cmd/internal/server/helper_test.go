package server

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/cmd/internal/feed"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune/retention"
	"github.com/git-meta/git-meta-go/store"
)

const testToken = "0123456789abcdef"

// bench is a running server with a store and a made-up retention.
type bench struct {
	*Server
	t    *testing.T
	url  string
	path string // of the store
	src  *feed.Source
	stop func() error // ends the server and returns what Serve returned
	log  *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// fake is a retention with one collection, ci.
type fake struct {
	mu    sync.Mutex
	state retention.State
	enter func(name string) // called first, outside the lock
}

func newFake() *fake {
	return &fake{state: retention.State{Collection: "ci", AuthorDefault: retention.Bounds{MaxRows: 10}, Effective: retention.Bounds{MaxRows: 10}}}
}

func (f *fake) get(_ context.Context, name string) (*retention.State, error) {
	return f.set(context.Background(), name, retention.Patch{})
}

func (f *fake) set(_ context.Context, name string, p retention.Patch) (*retention.State, error) {
	if f.enter != nil {
		f.enter(name)
	}
	switch name {
	case "panic":
		panic("on purpose")
	case "locked":
		return nil, &meta.Error{Op: "store", Err: meta.ErrConflict, Hint: "later"}
	case "broken":
		return nil, io.ErrUnexpectedEOF
	case "ci":
	default:
		return nil, meta.NotFound("collection "+name, "not declared", "declare it")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.state
	for _, x := range []struct {
		retention.Axis
		override, effective *int64
		def                 int64
	}{
		{p.MaxRows, &next.Override.MaxRows, &next.Effective.MaxRows, next.AuthorDefault.MaxRows},
		{p.MaxAgeDays, &next.Override.MaxAgeDays, &next.Effective.MaxAgeDays, next.AuthorDefault.MaxAgeDays},
	} {
		switch {
		case x.Set && x.Value < 1:
			return nil, meta.Invalid("value", "must be greater than zero", "")
		case x.Set:
			*x.override, *x.effective = x.Value, x.Value
		case x.Clear:
			*x.override, *x.effective = 0, x.def
		}
	}
	f.state = next
	return &next, nil
}

// start runs a server; change may alter its configuration, tune what New made of it.
func start(t *testing.T, change func(*Config), tune func(*Server)) *bench {
	t.Helper()
	path := filepath.Join(t.TempDir(), store.FileName)
	src := &feed.Source{Path: path, Follow: true}
	f := newFake()
	log := &syncBuffer{}
	c := Config{
		Apps: []string{"default", "repo"}, Token: testToken,
		Retention: Retention{Get: f.get, Set: f.set},
		Feed:      src, Changed: store.NewWatch(path).Changed,
		Log: slog.New(slog.NewTextHandler(log, nil)), Hint: meta.HintOf,
	}
	if change != nil {
		change(&c)
	}
	s := New(c)
	s.hub.every = 20 * time.Millisecond
	if tune != nil {
		tune(s)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l, "") }()
	b := &bench{Server: s, t: t, url: "http://" + l.Addr().String(), path: path, src: src, log: log}
	b.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(20 * time.Second):
			return context.DeadlineExceeded
		}
	})
	t.Cleanup(func() {
		if err := b.stop(); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return b
}

// request returns a request with the token.
func (b *bench) request(method, path, body string) *http.Request {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+testToken)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// do returns status and body of an answer, which must be one JSON document; errors have
// their fixed shape.
func (b *bench) do(r *http.Request) (int, string, http.Header) {
	b.t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if r.Method == http.MethodHead {
		return res.StatusCode, string(body), res.Header
	}
	var doc map[string]any
	if err := json.Unmarshal(body, &doc); err != nil || res.Header.Get("Content-Type") != "application/json" {
		b.t.Errorf("%s %s: %v, type %q: %s", r.Method, r.URL.Path, err, res.Header.Get("Content-Type"), body)
	}
	if res.StatusCode >= 400 {
		text, _ := doc["error"].(string)
		hint, ok := doc["hint"]
		if _, isText := hint.(string); text == "" || !ok || hint != nil && !isText || len(doc) != 2 {
			b.t.Errorf("%s %s: not an error object: %s", r.Method, r.URL.Path, body)
		}
	}
	return res.StatusCode, string(body), res.Header
}

// edit changes the store as another program would.
func (b *bench) edit(f func(*store.Tx) error) {
	b.t.Helper()
	db, err := store.Open(b.t.Context(), b.path, store.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	defer db.Close()
	if err := db.Update(b.t.Context(), f); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) set(keys ...string) {
	b.t.Helper()
	b.edit(func(tx *store.Tx) error {
		for _, k := range keys {
			if err := tx.Set(meta.KeyRef{Target: meta.ProjectTarget, Key: k}, "v", store.Edit{Email: "a@b"}); err != nil {
				return err
			}
		}
		return nil
	})
}

// sweepAway does what a retention pass does to the feed.
func (b *bench) sweepAway() {
	b.t.Helper()
	b.edit(func(tx *store.Tx) error { return tx.Stamp() })
}

// stream is a client of the changes.
type stream struct {
	t      *testing.T
	res    *http.Response
	lines  chan string // closed at the end
	cancel context.CancelFunc
	lastID string
}

// watch connects; query begins with '?' or is empty.
func (b *bench) watch(query, lastID string) *stream {
	b.t.Helper()
	r := b.request(http.MethodGet, "/v1/apps/default/changes"+query, "")
	ctx, cancel := context.WithCancel(b.t.Context())
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	res, err := (&http.Transport{}).RoundTrip(r.WithContext(ctx))
	if err != nil {
		b.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		body, _ := io.ReadAll(res.Body)
		b.t.Fatalf("watch %s: %s %s", query, res.Status, body)
	}
	s := &stream{t: b.t, res: res, lines: make(chan string, 1000), cancel: cancel}
	go func() {
		defer close(s.lines)
		in := bufio.NewScanner(res.Body)
		for in.Scan() {
			s.lines <- in.Text()
		}
	}()
	b.t.Cleanup(s.close)
	return s
}

func (s *stream) close() {
	s.cancel()
	s.res.Body.Close()
}

// event returns the next event as "type key", "type" without one, "" at the end of the
// stream and "-" if nothing comes within d. Ids without data count as no event.
func (s *stream) event(d time.Duration) string {
	s.t.Helper()
	timeout := time.After(d)
	event, data, id := "", "", ""
	for {
		select {
		case <-timeout:
			return "-"
		case line, ok := <-s.lines:
			if !ok {
				return ""
			}
			name, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch {
			case line == "":
				if id != "" {
					s.lastID = id
				}
				if data == "" {
					continue
				}
				var doc struct{ Key, Cursor string }
				if err := json.Unmarshal([]byte(data), &doc); err != nil || doc.Cursor != id {
					s.t.Errorf("event %q with the data %s and the id %q: %v", event, data, id, err)
				}
				return strings.TrimSpace(event + " " + doc.Key)
			case name == "event":
				event = value
			case name == "data":
				data = value
			case name == "id":
				id = value
			}
		}
	}
}

// expect checks that exactly these events come next.
func (s *stream) expect(want ...string) {
	s.t.Helper()
	for _, w := range want {
		if got := s.event(10 * time.Second); got != w {
			s.t.Fatalf("event %q, want %q", got, w)
		}
	}
	if got := s.event(100 * time.Millisecond); got != "-" {
		s.t.Errorf("one event too many: %q", got)
	}
}
