package serialize

import (
	"context"
	"slices"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// fate is what a history says of a key that its tip may not hold any more.
type fate int

const (
	fateUnknown fate = iota // it does not know the key
	fateRemoved             // the last that happened to it is a removal or a retention commit
	fateHeld                // its last value is state
)

// located is what was found of one key.
type located struct {
	meta.KeyRef
	fate  fate
	state *keyState
	tip   bool // the tip itself holds it
	org   origin
}

// locate finds the last values of keys in the history of tip, newest first. Trees are
// read for as long as one of the keys is open, and of each only the way to the targets;
// blobs are not read.
func locate(ctx context.Context, rd *gitdb.Reader, tip gitdb.Hash, keys []meta.KeyRef) ([]*located, error) {
	l := &locator{ctx: ctx, rd: rd}
	var out []*located
	byTarget := map[meta.Target]*watched{}
	for _, k := range keys {
		w := byTarget[k.Target]
		if w == nil {
			w = &watched{Target: k.Target}
			byTarget[k.Target] = w
			l.targets = append(l.targets, w)
		}
		f := &located{KeyRef: k}
		w.open = append(w.open, f)
		out = append(out, f)
	}
	if tip == zero {
		return out, nil
	}
	return out, history(ctx, rd, tip, zero, l.step)
}

// locator is one walk.
type locator struct {
	ctx     context.Context
	rd      *gitdb.Reader
	targets []*watched
	begun   bool
}

// watched is a target with keys that are not settled.
type watched struct {
	meta.Target
	open []*located
	sign string // the ids of the target's folders in the commit at hand
}

// signature returns the ids of all folders that can hold keys of t: equal signatures,
// equal states.
func signature(look *lookup, t meta.Target) (string, error) {
	id, err := look.tree(t.BasePath())
	if err != nil {
		return "", err
	}
	out := id.String()
	for _, alias := range look.aliases(t) {
		if id, err = look.tree(alias); err != nil {
			return "", err
		}
		out += " " + id.String()
	}
	return out, nil
}

// step takes in one commit; later ones have been.
func (l *locator) step(s step) (more bool, err error) {
	after := lookup{ctx: l.ctx, rd: l.rd, root: s.commit.Tree}
	before := lookup{ctx: l.ctx, rd: l.rd, root: s.before}
	if !l.begun {
		l.begun = true
		if err := l.begin(&after); err != nil {
			return false, err
		}
	}
	gone := map[meta.KeyRef]bool{}
	if strings.Contains(s.commit.Message, "\nD\t") {
		for _, k := range removals(s.commit.Message) {
			gone[k] = true
		}
	}
	var times map[meta.KeyRef]int64
	for _, w := range l.targets {
		if len(w.open) == 0 {
			continue
		}
		sign, err := signature(&before, w.Target)
		if err != nil {
			return false, err
		}
		if changed := sign != w.sign; changed || len(gone) > 0 {
			w.sign = sign
			for _, f := range w.open {
				written, err := f.take(s, &before, &after, changed, gone[f.KeyRef])
				if err != nil {
					return false, err
				}
				if !written {
					continue
				}
				if times == nil {
					if times, err = l.times(s); err != nil {
						return false, err
					}
				}
				ms, ok := times[f.KeyRef]
				if !ok {
					ms = s.commit.Author.When.Unix() * 1000
				}
				f.org = origin{ms, s.commit.Author.Email, true}
			}
			w.open = slices.DeleteFunc(w.open, func(f *located) bool { return f.fate == fateRemoved || f.org.known })
		}
		more = more || len(w.open) > 0
	}
	return more, nil
}

// begin reads what the tip says.
func (l *locator) begin(tip *lookup) (err error) {
	for _, w := range l.targets {
		if w.sign, err = signature(tip, w.Target); err != nil {
			return err
		}
		for _, f := range w.open {
			state, err := readKey(tip, f.KeyRef)
			if err != nil {
				return err
			}
			if _, has := state.kind(); has {
				f.fate, f.state, f.tip = fateHeld, state, true
			}
		}
	}
	return nil
}

// take says what a commit did to f: with written, it wrote the value that is f.state.
func (f *located) take(s step, before, after *lookup, changed, dline bool) (written bool, err error) {
	if !changed {
		if dline && f.fate == fateUnknown {
			f.fate = fateRemoved
		}
		return false, nil
	}
	was, err := readKey(before, f.KeyRef)
	if err != nil {
		return false, err
	}
	if f.fate == fateHeld {
		return !sameValue(was, f.state), nil
	}
	is, err := readKey(after, f.KeyRef)
	if err != nil {
		return false, err
	}
	_, had := was.kind()
	switch {
	case dline, tombOf(is) != tombOf(was), had && isRetentionCommit(s.commit.Message):
		f.fate = fateRemoved
	case had:
		f.fate, f.state = fateHeld, was
	}
	return false, nil
}

func tombOf(s *keyState) gitdb.Hash {
	if s == nil {
		return zero
	}
	return s.tomb
}

// times returns the edit times in the commit's header.
func (l *locator) times(s step) (map[meta.KeyRef]int64, error) {
	out := map[meta.KeyRef]int64{}
	if !slices.ContainsFunc(s.commit.Headers, func(h gitdb.Header) bool { return h.Key == meta.TimesHeader }) {
		return out, nil
	}
	keys, err := changedKeys(l.ctx, l.rd, s.before, s.commit.Tree)
	if err != nil {
		return nil, err
	}
	ms := commitTimes(s, keys)
	if ms == nil {
		return out, nil
	}
	n := 0
	for _, k := range keys {
		if k.has {
			out[k.KeyRef] = ms[n]
			n++
		}
	}
	return out, nil
}
