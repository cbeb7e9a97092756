package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
)

// failure is an error with its status.
type failure struct {
	status int
	text   string
	hint   string
}

func (f *failure) Error() string { return f.text }

func fail(status int, hint, format string, args ...any) *failure {
	return &failure{status, fmt.Sprintf(format, args...), hint}
}

// failureOf says what err is to a client.
func (s *Server) failureOf(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	f = &failure{http.StatusInternalServerError, err.Error(), s.c.Hint(err)}
	switch {
	case errors.Is(err, meta.ErrNotFound):
		f.status = http.StatusNotFound
	case errors.Is(err, meta.ErrInvalid):
		f.status = http.StatusUnprocessableEntity
	case errors.Is(err, meta.ErrConflict), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		f.status = http.StatusServiceUnavailable
	}
	return f
}

// refuse answers with an error.
func (s *Server) refuse(w http.ResponseWriter, err error) {
	f := s.failureOf(err)
	if f.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	var hint any
	if f.hint != "" {
		hint = f.hint
	}
	answer(w, f.status, []byte(ui.JSON((&ui.Object{}).Add("error", f.text).Add("hint", hint))))
}

// answer writes a JSON document.
func answer(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
