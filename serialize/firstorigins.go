package serialize

import (
	"context"
	"slices"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// tipOrigins tells when and by whom the keys of a tip were written, one after the other, as
// [eachOrigin] does; but it holds no more than what changed after the oldest commit, which
// most keys are from.
type tipOrigins struct {
	newer  map[meta.KeyRef]origin
	oldest origin
	times  []int64  // of the oldest commit's keys that have a value, in the order of their paths
	left   []string // paths, in order, of those of them that newer commits have changed
	n      int      // of times: those before the next key
}

// maxNewer is how many keys the newer commits may have changed.
const maxNewer = 250_000

// readOrigins reads the history of tip, whose tree is tree.
func readOrigins(ctx context.Context, rd *gitdb.Reader, tip, tree gitdb.Hash) (*tipOrigins, error) {
	o := &tipOrigins{newer: map[meta.KeyRef]origin{}, oldest: origin{email: "unknown"}}
	var root *step
	var newer []changedKey
	// Of what was before a prune nothing may be left: from there on, how many keys of the tip
	// are unexplained.
	open := -1
	held := lookup{ctx: ctx, rd: rd, root: tree}
	count := func(k changedKey) error {
		here, err := readKey(&held, k.KeyRef)
		if here != nil {
			open--
		}
		return err
	}
	err := history(ctx, rd, tip, zero, func(s step) (bool, error) {
		if s.before == zero {
			root = &s
			return false, nil
		}
		if open < 0 && isPruneCommit(s.commit.Message) {
			var err error
			open = 0
			if err = walkKeys(ctx, rd, tree, func(p *keyPart) { open += len(p.keys) }); err != nil {
				return false, err
			}
			for _, k := range newer {
				if err := count(k); err != nil {
					return false, err
				}
			}
		}
		keys, err := changedKeys(ctx, rd, s.before, s.commit.Tree)
		if err != nil {
			return false, err
		}
		s.origins(keys, func(k changedKey, org origin) {
			if _, known := o.newer[k.KeyRef]; known || err != nil {
				return
			}
			o.newer[k.KeyRef] = org
			newer = append(newer, k)
			if open >= 0 {
				err = count(k)
			}
		})
		if err == nil && len(newer) > maxNewer {
			err = errGeneralWay
		}
		return open != 0, err
	})
	if err != nil || root == nil {
		return o, err
	}
	o.oldest, o.times = root.origin(), headerTimes(*root, -1)
	if o.times == nil || len(newer) == 0 {
		return o, nil
	}
	was := lookup{ctx: ctx, rd: rd, root: root.commit.Tree}
	for _, k := range newer {
		s, err := readKey(&was, k.KeyRef)
		if err != nil {
			return nil, err
		}
		if s.items() {
			o.left = append(o.left, k.path)
		}
	}
	slices.Sort(o.left)
	return o, nil
}

// next returns the origin of the next key; items says whether it has a value.
func (o *tipOrigins) next(k meta.KeyRef, path string, items bool) origin {
	if org, ok := o.newer[k]; ok {
		return org
	}
	for len(o.left) > 0 && o.left[0] < path {
		o.left = o.left[1:]
		o.n++
	}
	org := o.oldest
	if items {
		if o.n < len(o.times) {
			org.time = o.times[o.n]
		}
		o.n++
	}
	return org
}

// fit reports, after the last key, whether the times of the oldest commit were of its keys.
func (o *tipOrigins) fit() bool { return o.times == nil || o.n+len(o.left) == len(o.times) }
