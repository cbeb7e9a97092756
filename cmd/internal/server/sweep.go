package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune/retention"
)

// Sweeper deletes what the confirmed bounds no longer keep, in the background.
type Sweeper struct {
	// Auto does a pass if one is due.
	Auto func(context.Context) (*retention.AutoResult, error)
	// Pass does one more pass over the confirmed collections.
	Pass func(context.Context) (*retention.SweepResult, error)

	Pause time.Duration // between passes of one sweep; 0: 200 ms
	Check time.Duration // between looks whether a pass is due, at most; 0: a minute
}

// sweep runs until ctx ends. An error never ends it.
func (s *Server) sweep(ctx context.Context) {
	o := *s.c.Sweeper
	if o.Pause == 0 {
		o.Pause = 200 * time.Millisecond
	}
	if o.Check == 0 {
		o.Check = time.Minute
	}
	said := "" // what was last said of a trouble: once is enough
	for {
		next, trouble := s.sweepOnce(ctx, o)
		if ctx.Err() != nil {
			return
		}
		if trouble != "" && trouble != said {
			s.c.Log.Warn("sweep", "trouble", trouble)
		}
		said = trouble
		if !pause(ctx, next) {
			return
		}
	}
}

// sweepOnce does a whole sweep if one is due. It returns when to look again, and what the
// owner should know.
func (s *Server) sweepOnce(ctx context.Context, o Sweeper) (next time.Duration, trouble string) {
	next = o.Check
	defer func() {
		if p := recover(); p != nil {
			s.c.Log.Error("panic", "in", "sweep", "panic", p, "stack", string(debug.Stack()))
			trouble = fmt.Sprint(p)
		}
	}()
	res, err := o.Auto(ctx)
	if err != nil {
		return next, s.said(err)
	}
	if res == nil {
		return next, ""
	}
	if n := len(res.Uncounted); n > 0 {
		trouble = fmt.Sprintf("bounds of %d collections that nobody has confirmed in this repository: git meta retention counts what they would delete", n)
	}
	if len(res.Unconfirmed) > 0 {
		var parts []string
		for _, u := range res.Unconfirmed {
			parts = append(parts, fmt.Sprintf("%s (%d rows)", meta.OneLine(u.Collection), u.WouldPrune))
		}
		trouble = "over bounds that nobody has confirmed in this repository: " + strings.Join(parts, ", ") + "; git meta retention sweep, or git meta retention --accept"
	}
	pass := res.Swept
	for pass != nil {
		s.report(pass)
		if pass.Done {
			break
		}
		if !pause(ctx, o.Pause) {
			return next, trouble
		}
		if pass, err = o.Pass(ctx); err != nil {
			return next, strings.Trim(trouble+"; "+s.said(err), "; ")
		}
	}
	if res.Next > 0 {
		next = max(min(next, time.Until(time.UnixMilli(res.Next))), o.Pause)
	}
	return next, trouble
}

// said is the text of an error with its hint.
func (s *Server) said(err error) string {
	if errors.Is(err, context.Canceled) {
		return ""
	}
	if h := s.c.Hint(err); h != "" {
		return err.Error() + "; " + h
	}
	return err.Error()
}

func (s *Server) report(res *retention.SweepResult) {
	for _, c := range res.Collections {
		s.c.Log.Info("swept", "collection", c.Collection, "rows", c.Rows, "bytes", c.Bytes, "leftover", c.Leftover)
	}
}

// pause waits; false if ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
