package ui

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/git-meta/git-meta-go/meta"
)

const (
	progressDelay    = 250 * time.Millisecond
	progressInterval = 100 * time.Millisecond
)

// Progress returns a progress display on the error stream, in git's words
// ("Serializing keys:  40% (4/10)"). It shows nothing unless the stream is a
// terminal and the phase takes longer than 250 ms. Safe for concurrent use.
func (s *IO) Progress() meta.Progress {
	if !s.ErrTTY {
		return meta.NoProgress{}
	}
	return newProgress(s.Err, time.Now)
}

type progress struct {
	mu      sync.Mutex
	w       io.Writer
	now     func() time.Time
	title   string
	total   int
	done    int
	started time.Time
	shown   time.Time // last time a line was drawn; zero: none in this phase
}

func newProgress(w io.Writer, now func() time.Time) *progress { return &progress{w: w, now: now} }

func (p *progress) Start(title string, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.title, p.total, p.done = title, total, 0
	p.started, p.shown = p.now(), time.Time{}
}

func (p *progress) Add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	now := p.now()
	if now.Sub(p.started) < progressDelay || now.Sub(p.shown) < progressInterval {
		return
	}
	p.shown = now
	p.draw("\r")
}

func (p *progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.shown.IsZero() {
		p.draw(", done.\n")
	}
	p.shown, p.started = time.Time{}, p.now()
}

func (p *progress) draw(end string) {
	if p.total > 0 {
		_, _ = fmt.Fprintf(p.w, "%s: %3d%% (%d/%d)%s", p.title, p.done*100/p.total, p.done, p.total, end)
	} else {
		_, _ = fmt.Fprintf(p.w, "%s: %d%s", p.title, p.done, end)
	}
}
