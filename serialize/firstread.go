package serialize

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// firstKey is a key as a part of a tree holds it.
type firstKey struct {
	loadKey
	path  string // tree path + "/"
	value meta.Value
	bad   error // why the value can't be taken over
}

// firstKeys are some keys of a tree, in the order of their paths.
type firstKeys struct {
	keys []firstKey
	odd  []oddPath
	err  error
}

// So many keys, or bytes of values, are handed on together.
const (
	someKeys  = 1000
	someBytes = 1 << 20
)

// eachKeys reads the keys of a tree with their values, part by part, several side by side,
// and hands them to fn in the tree's order. Nothing is fetched.
func eachKeys(ctx context.Context, rd gitdb.Objects, tree gitdb.Hash, fn func(*firstKeys) error) error {
	parts, err := treeParts(ctx, rd, tree)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	read := make([]chan *firstKeys, len(parts))
	for i := range read {
		read[i] = make(chan *firstKeys, 1)
	}
	workers := runtime.GOMAXPROCS(0)
	next := make(chan int)
	ahead := make(chan struct{}, 4*workers) // parts that are begun and not taken yet
	wg.Go(func() {
		defer close(next)
		for i := range parts {
			select {
			case ahead <- struct{}{}:
			case <-ctx.Done():
				return
			}
			next <- i
		}
	})
	for range workers {
		wg.Go(func() {
			for i := range next {
				give := func(k *firstKeys) error {
					select {
					case read[i] <- k:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				if err := parts[i].first(ctx, rd, give); err != nil {
					_ = give(&firstKeys{err: err})
				}
				close(read[i])
			}
		})
	}
	for i := range parts {
		for more := true; more; {
			var k *firstKeys
			select {
			case k, more = <-read[i]:
			case <-ctx.Done():
				return ctx.Err()
			}
			if !more {
				break
			}
			if k.err != nil {
				return k.err
			}
			if err := fn(k); err != nil {
				return err
			}
			clear(k.keys) // the rest of the part may take long
		}
		<-ahead
	}
	return ctx.Err()
}

// first reads the keys of a part with their values.
func (t *treePart) first(ctx context.Context, rd gitdb.Objects, give func(*firstKeys) error) error {
	p := &keyPart{keys: map[meta.KeyRef]*keyState{}}
	if err := t.walk(ctx, rd, p); err != nil {
		return err
	}
	if p.aliased != nil {
		return errGeneralWay
	}
	keys := make([]firstKey, len(p.order))
	for i, ref := range p.order {
		keys[i] = firstKey{loadKey: loadKey{ref, p.keys[ref], -1, origin{}}, path: meta.KeyPath(ref.Target.BasePath(), ref.Key) + "/"}
	}
	slices.SortFunc(keys, func(a, b firstKey) int { return strings.Compare(a.path, b.path) })
	from, size := 0, 0
	for i := range keys {
		k := &keys[i]
		v, err := readValue(ctx, rd, k.state)
		switch {
		case err == nil:
			k.value = v
		case isNotFound(err):
		case errors.Is(err, gitdb.ErrObjectMissing) || ctx.Err() != nil:
			return fmt.Errorf("read %s: %w", k.KeyRef, err)
		default:
			k.bad = err
		}
		size += len(v.String)
		for _, e := range v.Entries {
			size += len(e.Value)
		}
		for _, m := range v.Members {
			size += len(m)
		}
		if i+1-from < someKeys && size < someBytes {
			continue
		}
		if err := give(&firstKeys{keys: keys[from : i+1]}); err != nil {
			return err
		}
		from, size = i+1, 0
	}
	return give(&firstKeys{keys: keys[from:], odd: p.odd})
}
