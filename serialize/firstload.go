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
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// firstLoad is what a tip holds, ready for a store that holds nothing: most of what
// [reconcile] asks is answered then.
type firstLoad struct {
	tip     gitdb.Hash
	fill    *store.Fill
	tombs   []meta.Tombstone
	publish map[meta.KeyRef]bool // what the filter keeps out of the tree
	odd     map[string]error     // paths of the tip that can't be read
	bad     []string             // warnings about values that can't be taken over
}

// errGeneralWay: [readFirst] can't tell; [reconcile] can.
var errGeneralWay = errors.New("not a plain tree")

// readFirst reads everything that tip holds. It returns nil where the general way has to
// be taken: a tree that is too large, or that spells a key in two ways. It fetches nothing:
// the error is [gitdb.ErrObjectMissing] where something is not here.
func readFirst(ctx context.Context, env *Env, rd *gitdb.Reader, tip gitdb.Hash, fil *meta.Filter) (*firstLoad, error) {
	f := &firstLoad{tip: tip, publish: map[meta.KeyRef]bool{}, odd: map[string]error{}}
	err := f.read(ctx, env, rd, fil)
	if err == nil {
		return f, nil
	}
	f.close()
	if errors.Is(err, errGeneralWay) || errors.Is(err, store.ErrTwice) {
		err = nil
	}
	return nil, err
}

func (f *firstLoad) close() {
	if f != nil && f.fill != nil {
		f.fill.Close()
	}
}

func (f *firstLoad) read(ctx context.Context, env *Env, rd *gitdb.Reader, fil *meta.Filter) (err error) {
	tree, err := treeOf(ctx, rd, f.tip)
	if err != nil {
		return err
	}
	org, err := firstOrigins(ctx, rd, f.tip)
	if err != nil {
		return err
	}
	if f.fill, err = env.DB.NewFill(ctx); err != nil {
		return err
	}
	// every tree is read once
	rd.SetCacheBytes(0)
	defer rd.SetCacheBytes(gitdb.DefaultCacheBytes)
	bar := env.progress()
	bar.Start("Reading keys", 0)
	defer bar.Done()
	n, last := 0, ""
	err = eachPart(ctx, rd.Local(), tree, func(p *firstPart) error {
		bar.Add(len(p.keys))
		for _, o := range p.odd {
			f.odd[o.path] = o.why
		}
		for i := range p.keys {
			k := &p.keys[i]
			if k.path <= last {
				return errGeneralWay // it is not where it belongs, or it is there twice
			}
			last = k.path
			if !fil.Sends(k.Key, meta.MainDestination) {
				f.publish[k.KeyRef] = true // it leaves the tree
			}
			has := k.state.value != zero || k.state.size() > 0
			k.org = org.of(k.KeyRef, has, n)
			if has {
				n++
			}
			if f.publish[k.KeyRef] {
				continue
			}
			if err := f.add(ctx, rd, k); err != nil {
				return err
			}
		}
		if f.fill.Full() {
			return errGeneralWay
		}
		return nil
	})
	if err != nil {
		return err
	}
	if org.times != nil && len(org.times) != n {
		return errGeneralWay // the times are not of these keys
	}
	return f.fill.Finish()
}

func (f *firstLoad) add(ctx context.Context, rd *gitdb.Reader, k *firstKey) error {
	_, has := k.state.kind()
	switch {
	case k.bad != nil:
		f.bad = append(f.bad, fmt.Sprintf("%s: %v; left as it is in the tree", k.KeyRef, k.bad))
		return nil
	case has:
		if err := f.fill.Add(store.Loaded{KeyRef: k.KeyRef, Value: k.value, Edit: store.Edit{Email: k.org.email, Time: k.org.time}}); err != nil {
			return err
		}
	case k.state.tomb == zero:
		return nil
	}
	if k.state.tomb == zero && len(k.state.popped)+len(k.state.gone) == 0 {
		return nil
	}
	tombs, err := readTombstones(ctx, rd.Local(), k.KeyRef, k.state, k.org.time, k.org.email)
	if err != nil {
		return fmt.Errorf("read %s: %w", k.KeyRef, err)
	}
	for _, t := range tombs {
		if !has || t.Kind != meta.KeyTombstone {
			f.tombs = append(f.tombs, t)
		}
	}
	return nil
}

// carryOut writes what was read to the store, which must still hold nothing, and returns
// the log position behind it. Nothing has changed if the error is [errStoreMoved], where it
// holds something, or [errGeneralWay].
func (f *firstLoad) carryOut(ctx context.Context, env *Env) (at store.Position, err error) {
	err = env.DB.PutFill(ctx, f.fill, func(tx *store.Tx) error {
		for _, t := range f.tombs {
			if err := tx.PutTombstone(t); err != nil {
				return err
			}
		}
		at, err = tx.LogPosition()
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotEmpty):
		err = errStoreMoved
	case errors.Is(err, store.ErrOtherTables):
		err = errGeneralWay
	}
	if err != nil {
		return at, err
	}
	warnOdd(env, f.odd)
	for _, w := range f.bad {
		env.Warnf("%s", w)
	}
	return at, nil
}

// tipOrigins tells when and by whom the keys of a tip were written.
type tipOrigins struct {
	all   map[meta.KeyRef]origin // nil: one commit wrote all keys
	one   origin
	times []int64 // of the keys that have a value, in the order of their paths
}

// firstOrigins returns the origins of tip's keys.
func firstOrigins(ctx context.Context, rd *gitdb.Reader, tip gitdb.Hash) (o tipOrigins, err error) {
	single := false
	err = history(ctx, rd, tip, zero, func(s step) (bool, error) {
		if single = s.before == zero && (len(s.commit.Parents) == 0 || s.cut); single {
			o.one = origin{s.commit.Author.When.Unix() * 1000, s.commit.Author.Email, true}
			o.times = headerTimes(s, -1)
		}
		return false, nil
	})
	if err != nil || single {
		return o, err
	}
	tree, err := treeOf(ctx, rd, tip)
	if err != nil {
		return o, err
	}
	keys, plain, err := readTree(ctx, rd.Local(), tree, nil)
	if err != nil {
		return o, err
	}
	if !plain {
		return o, errGeneralWay
	}
	o.one = origin{email: "unknown"}
	o.all = make(map[meta.KeyRef]origin, len(keys))
	err = eachOrigin(ctx, rd, tip, len(keys), treeKeys{}, func(k meta.KeyRef, org origin) bool {
		if _, known := o.all[k]; known || keys[k] == nil {
			return false
		}
		o.all[k] = org
		return true
	})
	return o, err
}

// of returns the origin of a key, before which n have a value; has says whether it has one.
func (o *tipOrigins) of(k meta.KeyRef, has bool, n int) origin {
	if org, ok := o.all[k]; ok {
		return org
	}
	org := o.one
	if has && n < len(o.times) {
		org.time = o.times[n]
	}
	return org
}

// firstKey is a key as a part of a tree holds it.
type firstKey struct {
	loadKey
	path  string // tree path + "/"
	value meta.Value
	bad   error // why the value can't be taken over
}

type firstPart struct {
	keys []firstKey // in the order of their paths
	odd  []oddPath
	err  error
}

// eachPart reads the parts of a tree side by side and hands them to fn in the tree's
// order. Nothing is fetched.
func eachPart(ctx context.Context, rd gitdb.Objects, tree gitdb.Hash, fn func(*firstPart) error) error {
	parts, err := treeParts(ctx, rd, tree)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make([]chan *firstPart, len(parts))
	for i := range done {
		done[i] = make(chan *firstPart, 1)
	}
	workers := runtime.GOMAXPROCS(0)
	next := make(chan int)
	ahead := make(chan struct{}, 4*workers) // parts that are read and not taken yet
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
				done[i] <- parts[i].first(ctx, rd)
			}
		})
	}
	for i := range parts {
		var p *firstPart
		select {
		case p = <-done[i]:
		case <-ctx.Done():
			return ctx.Err()
		}
		<-ahead
		if p.err != nil {
			return p.err
		}
		if err := fn(p); err != nil {
			return err
		}
	}
	return nil
}

// first reads the keys of a part with their values.
func (t *treePart) first(ctx context.Context, rd gitdb.Objects) *firstPart {
	p := &keyPart{keys: map[meta.KeyRef]*keyState{}}
	out := &firstPart{}
	if out.err = t.walk(ctx, rd, p); out.err != nil {
		return out
	}
	if p.aliased != nil {
		out.err = errGeneralWay
		return out
	}
	out.odd = p.odd
	out.keys = make([]firstKey, len(p.order))
	for i, ref := range p.order {
		out.keys[i] = firstKey{loadKey: loadKey{ref, p.keys[ref], -1, origin{}}, path: meta.KeyPath(ref.Target.BasePath(), ref.Key) + "/"}
	}
	slices.SortFunc(out.keys, func(a, b firstKey) int { return strings.Compare(a.path, b.path) })
	for i := range out.keys {
		k := &out.keys[i]
		v, err := readValue(ctx, rd, k.state)
		switch {
		case err == nil:
			k.value = v
		case isNotFound(err):
		case errors.Is(err, gitdb.ErrObjectMissing) || ctx.Err() != nil:
			out.err = fmt.Errorf("read %s: %w", k.KeyRef, err)
			return out
		default:
			k.bad = err
		}
	}
	return out
}
