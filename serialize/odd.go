package serialize

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// oddMax is how many paths are named one by one.
const oddMax = 20

// WarnOdd names the paths of a tree that can't be read as keys, with the reason, and says
// what is done about each. Those of a target type that a newer program may know are named
// by the type. Files beside the types, such as a README, are nothing odd.
func (e *Env) WarnOdd(odd map[string]error, done string) {
	types := map[string]int{}
	n := 0
	for _, p := range slices.Sorted(maps.Keys(odd)) {
		if errors.Is(odd[p], meta.ErrUnknownPath) {
			if typ, _, below := strings.Cut(p, "/"); below {
				types[typ]++
			}
			continue
		}
		if n++; n <= oddMax {
			e.Warnf("%s: %v; %s", p, odd[p], done)
		}
	}
	if n > oddMax {
		e.Warnf("%d more paths can't be read; %s", n-oddMax, done)
	}
	for _, typ := range slices.Sorted(maps.Keys(types)) {
		files := "files"
		if types[typ] == 1 {
			files = "file"
		}
		e.Warnf("%s/: an unknown target type, %d %s; %s", typ, types[typ], files, done)
	}
}

// oddSince returns the paths of the tree after that can't be read as keys, and were not the
// same in the tree before.
func oddSince(ctx context.Context, rd *gitdb.Reader, before, after gitdb.Hash) (map[string]error, error) {
	odd := map[string]error{}
	if before == zero {
		err := walkKeys(ctx, rd, after, func(p *keyPart) {
			for _, o := range p.odd {
				odd[o.path] = o.why
			}
		})
		return odd, err
	}
	err := diffLeaves(ctx, rd, before, after, "", 0, func(d leafDiff) error {
		if d.new == zero {
			return nil
		}
		if _, err := d.leaf.Decode(); err != nil {
			odd[d.leaf.Path] = err
		}
		return nil
	})
	return odd, err
}
