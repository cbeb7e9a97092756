package server

import (
	"context"
	"net/http"

	"github.com/git-meta/git-meta-go/prune/retention"
)

func (s *Server) getRetention(w http.ResponseWriter, r *http.Request, name string) error {
	leave, err := s.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	state, err := s.c.Retention.Get(r.Context(), name)
	return s.answerState(w, state, err)
}

func (s *Server) patchRetention(w http.ResponseWriter, r *http.Request, name string) error {
	p, err := readPatch(r)
	if err != nil {
		return err
	}
	leave, err := s.enter(r.Context())
	if err != nil {
		return err
	}
	defer leave()
	var state *retention.State
	if p == (retention.Patch{}) {
		state, err = s.c.Retention.Get(r.Context(), name)
	} else {
		state, err = s.c.Retention.Set(r.Context(), name, p)
	}
	return s.answerState(w, state, err)
}

func (s *Server) answerState(w http.ResponseWriter, state *retention.State, err error) error {
	if err != nil {
		return err
	}
	body, err := state.MarshalJSON()
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, body)
	return nil
}

// enter waits until few enough requests are at work.
func (s *Server) enter(ctx context.Context) (leave func(), err error) {
	wait, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	select {
	case s.work <- struct{}{}:
		return func() { <-s.work }, nil
	case <-wait.Done():
		return nil, fail(http.StatusServiceUnavailable, "try again", "too many requests at once")
	}
}
