package server

import (
	"errors"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// handler returns the server's handler: log, recover, admit, route.
func (s *Server) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &recorder{ResponseWriter: w}
		defer func() {
			if p := recover(); p != nil {
				if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
					panic(p) // the handler's way to cut a stream off
				}
				s.c.Log.Error("panic", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				if rec.status == 0 {
					s.refuse(rec, fail(http.StatusInternalServerError, "", "internal error"))
				}
			}
			s.c.Log.Info("request", "method", r.Method, "path", r.URL.Path, "status", rec.status,
				"ms", time.Since(start).Milliseconds(), "from", r.RemoteAddr)
		}()
		h := rec.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		if f := s.admit(r); f != nil {
			if f.status == http.StatusUnauthorized {
				h.Set("WWW-Authenticate", `Bearer realm="git-meta"`)
			}
			s.refuse(rec, f)
			return
		}
		r.Body = http.MaxBytesReader(rec, r.Body, maxBody)
		if err := s.route(rec, r); err != nil {
			s.refuse(rec, err)
		}
	})
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// route finds the handler. Nothing is redirected or guessed.
func (s *Server) route(w http.ResponseWriter, r *http.Request) error {
	parts := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for i, p := range parts {
		var err error
		if parts[i], err = url.PathUnescape(p); err != nil {
			return fail(http.StatusBadRequest, "", "path %q: not escaped correctly", r.URL.Path)
		}
	}
	var methods map[string]func(http.ResponseWriter, *http.Request, string) error
	name := ""
	switch {
	case len(parts) < 3 || parts[0] != "v1" || parts[1] != "apps":
	case len(parts) == 4 && parts[3] == "changes":
		methods = map[string]func(http.ResponseWriter, *http.Request, string) error{http.MethodGet: s.getChanges}
	case len(parts) == 6 && parts[3] == "collections" && parts[5] == "retention":
		name = parts[4]
		methods = map[string]func(http.ResponseWriter, *http.Request, string) error{
			http.MethodGet: s.getRetention, http.MethodHead: s.getRetention, http.MethodPatch: s.patchRetention,
		}
	}
	if methods == nil {
		return fail(http.StatusNotFound, "/v1/apps/default/collections/NAME/retention or /v1/apps/default/changes", "path %q: not found", r.URL.Path)
	}
	if !slices.Contains(s.c.Apps, parts[2]) {
		return fail(http.StatusNotFound, "use default, the repository that is served", "app %q: not found", parts[2])
	}
	handle, ok := methods[r.Method]
	if !ok {
		var allow []string
		for m := range methods {
			allow = append(allow, m)
		}
		slices.Sort(allow)
		list := strings.Join(allow, ", ")
		w.Header().Set("Allow", list)
		return fail(http.StatusMethodNotAllowed, "use "+list, "method %s: not allowed here", r.Method)
	}
	return handle(w, r, name)
}
