package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/prune/retention"
	"github.com/google/go-cmp/cmp"
)

const ciPath = "/v1/apps/default/collections/ci/retention"

func TestAdmission(t *testing.T) {
	t.Parallel()
	b := start(t, nil, nil)
	port := b.url[strings.LastIndexByte(b.url, ':')+1:]
	for _, tc := range []struct {
		name   string
		header map[string]string // "Host" too; "-" removes
		want   int
	}{
		{"as printed", nil, 200},
		{"localhost", map[string]string{"Host": "localhost:" + port}, 200},
		{"localhost in capitals", map[string]string{"Host": "LocalHost:" + port}, 200},
		{"another loopback address", map[string]string{"Host": "[::1]:" + port}, 200},
		{"no token", map[string]string{"Authorization": "-"}, 401},
		{"empty token", map[string]string{"Authorization": "Bearer "}, 401},
		{"wrong token", map[string]string{"Authorization": "Bearer " + testToken + "0"}, 401},
		{"the beginning of the token", map[string]string{"Authorization": "Bearer " + testToken[:8]}, 401},
		{"another scheme", map[string]string{"Authorization": "Basic " + testToken}, 401},
		{"scheme in lower case", map[string]string{"Authorization": "bearer " + testToken}, 200},
		{"foreign host", map[string]string{"Host": "evil.example:" + port}, 403},
		{"foreign host without a token", map[string]string{"Host": "evil.example:" + port, "Authorization": "-"}, 403},
		{"a name that begins the same", map[string]string{"Host": "localhost.evil.example:" + port}, 403},
		{"an address as a name", map[string]string{"Host": "127.0.0.1.evil.example:" + port}, 403},
		{"another address", map[string]string{"Host": "192.0.2.1:" + port}, 403},
		{"another port", map[string]string{"Host": "127.0.0.1:1"}, 403},
		{"no port", map[string]string{"Host": "127.0.0.1"}, 403},
		{"own origin", map[string]string{"Origin": "http://127.0.0.1:" + port}, 200},
		{"own origin, other name", map[string]string{"Origin": "http://localhost:" + port}, 200},
		{"foreign origin", map[string]string{"Origin": "http://evil.example"}, 403},
		{"null origin", map[string]string{"Origin": "null"}, 403},
		{"another scheme's origin", map[string]string{"Origin": "https://127.0.0.1:" + port}, 403},
		{"another server's origin", map[string]string{"Origin": "http://127.0.0.1:1"}, 403},
	} {
		r := b.request(http.MethodGet, ciPath, "")
		for k, v := range tc.header {
			switch {
			case k == "Host":
				r.Host = v
			case v == "-":
				r.Header.Del(k)
			default:
				r.Header.Set(k, v)
			}
		}
		got, body, h := b.do(r)
		if got != tc.want {
			t.Errorf("%s: %d, want %d: %s", tc.name, got, tc.want, body)
		}
		if h.Get("Access-Control-Allow-Origin") != "" || (got == 401) != (h.Get("WWW-Authenticate") != "") {
			t.Errorf("%s: headers %v", tc.name, h)
		}
	}
	// What needs no token to be refused is refused without one: nothing is told.
	r := b.request(http.MethodGet, "/nowhere", "")
	r.Header.Del("Authorization")
	if got, _, _ := b.do(r); got != 401 {
		t.Errorf("an unknown path without a token: %d", got)
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	var asked atomic.Pointer[string]
	b := start(t, func(c *Config) {
		f := newFake()
		f.enter = func(name string) { asked.Store(&name) }
		c.Retention = Retention{Get: f.get, Set: f.set}
	}, nil)
	for _, tc := range []struct {
		method, path string
		want         int
		allow, name  string
	}{
		{"GET", ciPath, 200, "", "ci"},
		{"HEAD", ciPath, 200, "", "ci"},
		{"GET", "/v1/apps/repo/collections/ci/retention", 200, "", "ci"},
		{"GET", "/v1/apps/other/collections/ci/retention", 404, "", ""},
		{"GET", "/v1/apps//collections/ci/retention", 404, "", ""},
		{"GET", "/v1/apps/default/collections/ci%3Alog/retention", 404, "", "ci:log"},
		{"GET", "/v1/apps/default/collections/ci:log/retention", 404, "", "ci:log"},
		{"GET", "/v1/apps/default/collections/a%2Fb/retention", 404, "", "a/b"},
		{"GET", "/v1/apps/default/collections/a/b/retention", 404, "", ""},
		{"GET", "/v1/apps/default/collections/../retention", 404, "", ".."},
		{"GET", ciPath + "/", 404, "", ""},
		{"GET", "/" + ciPath, 404, "", ""},
		{"GET", "/", 404, "", ""},
		{"GET", "/v1/apps/default", 404, "", ""},
		{"GET", "/V1/apps/default/changes", 404, "", ""},
		{"GET", "/v2/apps/default/changes", 404, "", ""},
		{"POST", ciPath, 405, "GET, HEAD, PATCH", ""},
		{"PUT", ciPath, 405, "GET, HEAD, PATCH", ""},
		{"DELETE", ciPath, 405, "GET, HEAD, PATCH", ""},
		{"OPTIONS", ciPath, 405, "GET, HEAD, PATCH", ""},
		{"POST", "/v1/apps/default/changes", 405, "GET", ""},
		{"HEAD", "/v1/apps/default/changes", 405, "GET", ""},
		{"PATCH", "/v1/apps/other/changes", 404, "", ""},
		{"GET", "/v1/apps/default/collections/locked/retention", 503, "", "locked"},
		{"GET", "/v1/apps/default/collections/broken/retention", 500, "", "broken"},
		{"GET", "/v1/apps/default/collections/panic/retention", 500, "", "panic"},
		{"GET", ciPath, 200, "", "ci"},
	} {
		none := ""
		asked.Store(&none)
		got, body, h := b.do(b.request(tc.method, tc.path, ""))
		if got != tc.want || h.Get("Allow") != tc.allow || *asked.Load() != tc.name {
			t.Errorf("%s %s: %d %q for %q, want %d %q for %q: %s", tc.method, tc.path, got, h.Get("Allow"), *asked.Load(), tc.want, tc.allow, tc.name, body)
		}
		if (got == 503) != (h.Get("Retry-After") != "") {
			t.Errorf("%s %s: Retry-After %q", tc.method, tc.path, h.Get("Retry-After"))
		}
	}
	if log := b.log.String(); !strings.Contains(log, "on purpose") || !strings.Contains(log, "status=404") {
		t.Errorf("log: %s", log)
	}
}

func TestPatch(t *testing.T) {
	t.Parallel()
	b := start(t, nil, nil)
	big := `{"maxRows": 5` + strings.Repeat(" ", maxBody) + `}`
	for _, tc := range []struct {
		body     string
		want     int
		contains string // of the answer
	}{
		{`{"maxRows": 5}`, 200, `"override":{"maxRows":5,"maxAgeDays":null}`},
		{`{"maxAgeDays": 30}`, 200, `"override":{"maxRows":5,"maxAgeDays":30}`},
		{`{}`, 200, `"override":{"maxRows":5,"maxAgeDays":30}`},
		{` {"maxRows" : null} ` + "\n", 200, `"override":{"maxRows":null,"maxAgeDays":30}`},
		{`{"maxRows": 7, "maxAgeDays": null}`, 200, `"effective":{"maxRows":7,"maxAgeDays":null}`},
		{`{"maxRows": 9, "maxAgeDays": 0}`, 422, "greater than zero"},
		{`{"maxRows": 0}`, 422, "greater than zero"},
		{`{"maxRows": -1}`, 422, "greater than zero"},
		{`{"maxRows": 1.5}`, 422, "not a whole number"},
		{`{"maxRows": 1.0}`, 422, "not a whole number"},
		{`{"maxRows": 1e3}`, 422, "not a whole number"},
		{`{"maxRows": 99999999999999999999}`, 422, "out of range"},
		{`{"maxRows": "5"}`, 400, `field \"maxRows\": neither a number nor null`},
		{`{"maxRows": true}`, 400, "neither a number nor null"},
		{`{"maxRows": [5]}`, 400, "neither a number nor null"},
		{`{"maxRows": {"a": 5}}`, 400, "neither a number nor null"},
		{`{"maxrows": 5}`, 400, `field \"maxrows\": unknown`},
		{`{"maxRows": 5, "max_rows": 5}`, 400, "unknown"},
		{`{"": 5}`, 400, "unknown"},
		{`{"maxRows": 5, "maxRows": 6}`, 400, "given twice"},
		{`{"maxRows": 5, "maxRows": null}`, 400, "given twice"},
		{``, 400, "empty"},
		{`   `, 400, "empty"},
		{`null`, 400, "not an object"},
		{`[]`, 400, "not an object"},
		{`5`, 400, "not an object"},
		{`{"maxRows": 5`, 400, "not valid JSON"},
		{`{"maxRows": 5} x`, 400, "not valid JSON"},
		{`{"maxRows": 5}{"maxRows": 6}`, 400, "more than one document"},
		{`{"maxRows": 05}`, 400, "not valid JSON"},
		{`{'maxRows': 5}`, 400, "not valid JSON"},
		{"\ufeff" + `{"maxRows": 5}`, 400, "not valid JSON"},
		{big, 413, "more than 65536 bytes"},
	} {
		r := b.request(http.MethodPatch, ciPath, tc.body)
		r.Header.Set("Content-Type", "application/json")
		got, body, _ := b.do(r)
		if got != tc.want || !strings.Contains(body, tc.contains) {
			t.Errorf("%.60s: %d %s, want %d with %s", tc.body, got, body, tc.want, tc.contains)
		}
	}
	_, state, _ := b.do(b.request(http.MethodGet, ciPath, ""))
	want := `{"collection":"ci","effective":{"maxRows":7,"maxAgeDays":null},"authorDefault":{"maxRows":10,"maxAgeDays":null},` +
		`"override":{"maxRows":7,"maxAgeDays":null},"wouldPrune":0,"rows":0,"bytes":0,"confirmed":false,"detached":false,"problem":null}` + "\n"
	if diff := cmp.Diff(state, want); diff != "" {
		t.Errorf("what was refused has changed something (-got +want):\n%s", diff)
	}
	for typ, want := range map[string]int{
		"": 415, "text/plain": 415, "application/x-www-form-urlencoded": 415, "application/jsonx": 415, "application/json; charset=latin1": 415, ";": 415,
		"application/json; charset=UTF-8": 200, "Application/JSON": 200, "application/merge-patch+json": 200,
	} {
		r := b.request(http.MethodPatch, ciPath, `{"maxRows": 7}`)
		if r.Header.Set("Content-Type", typ); typ == "" {
			r.Header.Del("Content-Type")
		}
		if got, body, _ := b.do(r); got != want {
			t.Errorf("content type %q: %d, want %d: %s", typ, got, want, body)
		}
	}
	r := b.request(http.MethodPatch, ciPath, `{"maxRows": 7}`)
	r.Header.Set("Content-Encoding", "gzip")
	if got, _, _ := b.do(r); got != 415 {
		t.Errorf("compressed: %d", got)
	}
	if got, _, _ := b.do(b.request(http.MethodPatch, "/v1/apps/default/collections/none/retention", `{"maxRows": 7}`)); got != 404 {
		t.Errorf("an undeclared collection: %d", got)
	}
}

func FuzzPatch(f *testing.F) {
	f.Add(`{"maxRows": 5, "maxAgeDays": null}`)
	f.Add(`{"maxRows": 1e3, "maxRows": {}}`)
	f.Fuzz(func(t *testing.T, body string) {
		p, err := parsePatch([]byte(body))
		if e := (*failure)(nil); err != nil && (!errors.As(err, &e) || e.status < 400 || e.status > 422) {
			t.Errorf("%q: %v", body, err)
		}
		if err == nil && (p.MaxRows.Set && p.MaxRows.Clear || p.MaxAgeDays.Set && p.MaxAgeDays.Clear) {
			t.Errorf("%q: %v", body, p)
		}
	})
}

// Shutting down waits for what is in flight, and no request sees its context end.
func TestShutdown(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan bool), make(chan bool)
	b := start(t, func(c *Config) {
		f := newFake()
		c.Retention = Retention{Get: f.get, Set: func(ctx context.Context, name string, p retention.Patch) (*retention.State, error) {
			close(entered)
			<-leave
			if ctx.Err() != nil {
				t.Error("the request was cancelled")
			}
			return f.set(ctx, name, p)
		}}
	}, nil)
	b.set("a")
	w := b.watch("", "")
	w.expect("change a")
	answered := make(chan int)
	go func() {
		got, _, _ := b.do(b.request(http.MethodPatch, ciPath, `{"maxRows": 3}`))
		answered <- got
	}()
	<-entered
	ended := make(chan error)
	go func() { ended <- b.stop() }()
	if got := w.event(5 * time.Second); got != "" {
		t.Errorf("the stream goes on: %q", got)
	}
	select {
	case err := <-ended:
		t.Fatalf("ended while a request was in flight: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(leave)
	if got := <-answered; got != 200 {
		t.Errorf("the request in flight: %d", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := http.Get(b.url); err == nil {
		t.Error("still there")
	}
}

// Requests about retention that run at once are few; the others wait.
func TestWork(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int32
	b := start(t, func(c *Config) {
		f := newFake()
		f.enter = func(string) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(5 * time.Millisecond)
			now.Add(-1)
		}
		c.Retention = Retention{Get: f.get, Set: f.set}
	}, nil)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			method, body := http.MethodGet, ""
			if i%2 == 0 {
				method, body = http.MethodPatch, fmt.Sprintf(`{"maxRows": %d}`, i+1)
			}
			if got, body, _ := b.do(b.request(method, ciPath, body)); got != 200 {
				t.Errorf("%d: %s", got, body)
			}
		})
	}
	all.Wait()
	if n := most.Load(); n > maxWork {
		t.Errorf("%d at once", n)
	}
}

func TestSweeper(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var calls []string
	done := make(chan bool)
	call := func(what string) int {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, what)
		return len(calls)
	}
	b := start(t, func(c *Config) {
		c.Sweeper = &Sweeper{
			Pause: time.Millisecond, Check: time.Millisecond,
			Auto: func(context.Context) (*retention.AutoResult, error) {
				switch call("auto") {
				case 1:
					return nil, errors.New("trouble here")
				case 2:
					return nil, errors.New("trouble here")
				case 3:
					panic("in the sweep")
				case 4:
					return &retention.AutoResult{Unconfirmed: []retention.State{{Collection: "log", WouldPrune: 3}}}, nil
				case 5:
					return &retention.AutoResult{Swept: &retention.SweepResult{Collections: []retention.Swept{{Collection: "ci", Rows: 1000}}}}, nil
				case 8:
					close(done)
				}
				return nil, nil
			},
			Pass: func(context.Context) (*retention.SweepResult, error) {
				n := call("pass")
				return &retention.SweepResult{Done: n == 7, Collections: []retention.Swept{{Collection: "ci", Rows: int64(n)}}}, nil
			},
		}
	}, nil)
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("stuck")
	}
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(calls[:8], " "); got != "auto auto auto auto auto pass pass auto" {
		t.Errorf("calls: %s", got)
	}
	log := b.log.String()
	for _, want := range []string{"in the sweep", "log (3 rows); git meta retention sweep, or", "rows=1000", "rows=6 ", "rows=7 "} {
		if !strings.Contains(log, want) {
			t.Errorf("log without %q: %s", want, log)
		}
	}
	if strings.Count(log, "trouble here") != 1 {
		t.Errorf("the same trouble is told again: %s", log)
	}
}

func TestTokenFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, err := NewTokenFile(dir, "127.0.0.1:80")
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewTokenFile(dir, "[::1]:80")
	if err != nil {
		t.Fatal(err)
	}
	if a.Path == b.Path || a.Token == b.Token || len(a.Token) != 64 {
		t.Errorf("%v, %v", a, b)
	}
	text, err := os.ReadFile(a.Path)
	if err != nil || string(text) != a.Token+"\n" {
		t.Errorf("%q, %v", text, err)
	}
	info, err := os.Stat(a.Path)
	if err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	// The file of a server that was killed is replaced, and not removed by that one.
	next, err := NewTokenFile(dir, "127.0.0.1:80")
	if err != nil || next.Path != a.Path {
		t.Fatal(next, err)
	}
	if err := a.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(next.Path); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := errors.Join(next.Remove(), b.Remove()); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(dir); len(left) != 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := NewTokenFile(filepath.Join(dir, "none"), "x"); err == nil {
		t.Error("a token without a folder")
	}
}
