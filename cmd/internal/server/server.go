// Package server is HTTP for tools beside a repository: the retention of its collections
// and the feed of its changes (git meta serve).
//
// # Routes
//
//	GET    /v1/apps/{id}/collections/{name}/retention
//	PATCH  /v1/apps/{id}/collections/{name}/retention
//	GET    /v1/apps/{id}/changes?since=CURSOR
//
// id is the name of the repository's folder, or default. name is a declared collection, or
// one that has an override, as one path segment (%-escaped where needed). The answer about
// retention is the object that git meta retention NAME --json prints. A PATCH takes a JSON
// object with maxRows, maxAgeDays or both: a whole number sets the override, null clears
// it, a missing field leaves it. The changes are server-sent events: see events.go.
//
// # Access
//
// Every request carries "Authorization: Bearer TOKEN". A request whose Host is not an
// address of this server is refused, so that a web page cannot reach it under a name of
// its own (DNS rebinding), and so is one with the Origin of another site.
//
// # Errors
//
// An error is an object {"error": text, "hint": text or null} with one of
//
//	400  not a JSON object of known fields with the right types; not a cursor
//	401  the token is missing or wrong
//	403  a foreign Host or Origin
//	404  no such app, collection or path
//	405  another method; Allow names those that work
//	413  a body of more than 64 KiB
//	415  a body that is not application/json
//	422  a value that is rejected
//	503  the store is locked, or there are too many watchers: try again
//	500  anything else
package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/git-meta/git-meta-go/prune/retention"
	"github.com/git-meta/git-meta-go/store"
)

// Retention is what the server does with collections.
type Retention struct {
	Get func(ctx context.Context, name string) (*retention.State, error)
	Set func(ctx context.Context, name string, p retention.Patch) (*retention.State, error)
}

// Feed is where the changes come from.
type Feed interface {
	// Next returns at most limit records behind from.
	Next(ctx context.Context, from store.FeedCursor, limit int) (store.Feed, error)
	// End returns the cursor behind the newest record.
	End(ctx context.Context) (store.FeedCursor, error)
}

// Config says what to serve.
type Config struct {
	Apps      []string // names of the repository; at least one
	Token     string   // what clients must show
	Retention Retention
	Feed      Feed
	Changed   func() bool // reports whether the store may have changed since the last call
	Sweeper   *Sweeper    // nil: nothing is swept

	Log  *slog.Logger
	Hint func(error) string // what to do about an error; "" if nothing is known
}

// Limits of the server.
const (
	maxBody      = 64 << 10
	maxHeader    = 16 << 10
	maxWatchers  = 128
	maxWork      = 8 // requests about retention that run at once; others wait
	headerTime   = 5 * time.Second
	requestTime  = 30 * time.Second // to read a request; to write an answer, or a part of a stream
	idleTime     = time.Minute
	shutdownTime = 10 * time.Second
)

// Server serves one repository. Make one with [New].
type Server struct {
	c    Config
	http *http.Server
	hub  *hub
	work chan struct{}

	base    context.Context // of requests; ends when shutting down has taken too long
	cutBase context.CancelFunc
	live    context.Context // of streams; ends when shutting down begins
	cutLive context.CancelFunc

	heartbeat time.Duration
	host      string // as the listener was asked for; "" if by address
}

// New returns a server that has not started.
func New(c Config) *Server {
	s := &Server{c: c, work: make(chan struct{}, maxWork), heartbeat: 15 * time.Second}
	s.base, s.cutBase = context.WithCancel(context.Background())
	s.live, s.cutLive = context.WithCancel(s.base)
	s.hub = newHub(s.live, c)
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       requestTime,
		WriteTimeout:      2 * requestTime, // streams set their own
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return s.base },
		ErrorLog:          slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn),
	}
	return s
}

// Serve answers requests on l and sweeps in the background until ctx ends. Then it takes
// no more requests, ends the streams and returns when those in flight are done, after
// [shutdownTime] at the latest. host is the name or address that l was asked for; clients
// may use it, besides l's own address.
func (s *Server) Serve(ctx context.Context, l net.Listener, host string) error {
	s.host = host
	var tasks sync.WaitGroup
	background, stop := context.WithCancel(ctx)
	defer tasks.Wait()
	defer stop()
	tasks.Go(func() { s.hub.poll(background) })
	if s.c.Sweeper != nil {
		tasks.Go(func() { s.sweep(background) })
	}
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(l) }()
	select {
	case err := <-failed:
		s.cutBase()
		return err
	case <-ctx.Done():
	}
	s.cutLive()
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err := s.http.Shutdown(wait)
	s.cutBase()
	if errors.Is(err, context.DeadlineExceeded) {
		s.c.Log.Warn("requests in flight are cut off", "after", shutdownTime)
		return s.http.Close()
	}
	return err
}
