package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
)

// The stream of changes has events of two types, as git meta changes --json has two kinds
// of lines: "change" and "resync". The data is that line, the id the cursor in it, so that
// a client that connects again sends the last one as Last-Event-ID, which counts more than
// ?since=. Without either the stream begins with the first change that the log has;
// ?since=now begins at the end, with an event that has an id and nothing else. Comments
// keep a quiet stream open.

// patience is how long a watcher tries to read a store that it could read before; then its
// client has to connect again.
const patience = 10 * time.Second

func (s *Server) getChanges(w http.ResponseWriter, r *http.Request, _ string) error {
	from, frames, err := s.start(r)
	if err != nil {
		return err
	}
	leave, err := s.hub.join()
	if err != nil {
		return err
	}
	defer leave()
	b, moved := s.hub.next(from)
	if b.err != nil {
		return b.err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // proxies must not wait for more
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	if err := out.SetReadDeadline(time.Time{}); err != nil { // the request's would end the stream
		panic(http.ErrAbortHandler)
	}
	beat := time.NewTicker(s.heartbeat)
	defer beat.Stop()
	defer s.hurry(out)()
	send := func(p []byte) bool {
		// A client that does not read is cut off; nothing is queued for it.
		if out.SetWriteDeadline(time.Now().Add(requestTime)) != nil || s.isClosing() {
			return false
		}
		if _, err := w.Write(p); err != nil {
			return false
		}
		return out.Flush() == nil
	}
	if !send(append([]byte("retry: 1000\n\n"), frames...)) {
		return nil
	}
	for failing := (time.Time{}); ; {
		if b.err == nil {
			failing = time.Time{}
			if len(b.frames) > 0 {
				if !send(b.frames) {
					return nil
				}
				beat.Reset(s.heartbeat)
			}
			from = b.Cursor
		} else if failing.IsZero() {
			failing = time.Now()
		} else if time.Since(failing) > patience {
			s.c.Log.Error("a watcher is cut off", "error", b.err)
			return nil
		}
		more := b.err == nil && b.More
		for wait := !more; wait; {
			var again <-chan time.Time
			if b.err != nil {
				again = time.After(time.Second)
			}
			select {
			case <-s.live.Done():
				return nil
			case <-r.Context().Done():
				return nil
			case <-beat.C:
				if !send([]byte(":\n\n")) {
					return nil
				}
			case <-again:
				wait = false
			case <-moved:
				wait = false
			}
		}
		if s.isClosing() || r.Context().Err() != nil {
			return nil
		}
		b, moved = s.hub.next(from)
	}
}

// partingTime is how long a client may take for what is being sent when the server ends.
const partingTime = time.Second

func (s *Server) isClosing() bool { return s.live.Err() != nil }

// hurry shortens the time for what is being sent once the server ends. The caller calls
// done when it returns.
func (s *Server) hurry(out *http.ResponseController) (done func()) {
	finished := make(chan struct{})
	forget := context.AfterFunc(s.live, func() {
		defer close(finished)
		_ = out.SetWriteDeadline(time.Now().Add(partingTime))
	})
	return func() {
		if !forget() {
			<-finished
		}
	}
}

// start returns the cursor that a client asks for, and what to send before all else.
func (s *Server) start(r *http.Request) (from store.FeedCursor, frames []byte, err error) {
	since := r.URL.Query().Get("since")
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		since = id
	} else if r.URL.Query().Has("since") && since == "" {
		return from, nil, fail(http.StatusBadRequest, "leave since away to begin with the first change", "since: empty")
	}
	switch since {
	case "":
		return from, nil, nil
	case "now":
		from, err = s.c.Feed.End(r.Context())
		return from, []byte("id: " + from.String() + "\n\n"), err
	}
	from, err = store.ParseFeedCursor(since)
	if errors.Is(err, meta.ErrInvalid) {
		err = fail(http.StatusBadRequest, "take the id of an event, or now", "%v", err)
	}
	return from, nil, err
}

// frame appends an event.
func frame(dst []byte, event, id, data string) []byte {
	dst = append(dst, "id: "...)
	dst = append(dst, id...)
	dst = append(dst, "\nevent: "...)
	dst = append(dst, event...)
	dst = append(dst, "\ndata: "...)
	dst = append(dst, data...)
	return append(dst, "\n\n"...)
}
