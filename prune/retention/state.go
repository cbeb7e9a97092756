package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
)

// GetCollectionRetention returns the state of one collection. The error is
// [meta.ErrNotFound] if neither the manifest nor an override names it, and
// [meta.ErrInvalid] if the manifest cannot be read. It needs no store (env.DB may be nil)
// and no identity. WouldPrune is taken from an index: its cost does not depend on the
// number of rows.
func GetCollectionRetention(ctx context.Context, env *serialize.Env, name string) (*State, error) {
	var out *State
	err := look(ctx, env, func(tx *store.Tx, p *policy) (err error) {
		out, err = p.state(tx, env, name)
		return err
	})
	return out, err
}

// List returns the state of every collection that the manifest declares or that has an
// override, by name. It needs as little as [GetCollectionRetention].
func List(ctx context.Context, env *serialize.Env) ([]State, error) {
	var out []State
	err := look(ctx, env, func(tx *store.Tx, p *policy) error {
		found, err := p.counts(tx, env)
		if err != nil {
			return err
		}
		out = nil // this may not be the first time
		for _, d := range p.collections {
			out = append(out, p.stateOf(d, found[d.name]))
		}
		for _, d := range p.detached {
			out = append(out, p.stateOf(d, count{}))
		}
		slices.SortStableFunc(out, func(a, b State) int { return strings.Compare(a.Collection, b.Collection) })
		return nil
	})
	return out, err
}

// SetCollectionRetention changes the overrides of a collection, in one transaction: both
// axes of the patch or, with an error, none. It returns the new state, as
// [GetCollectionRetention] would: WouldPrune tells what a tightening will delete. An
// override is a project string (meta:retention:NAME:max-rows, :max-age-days), which
// travels with the metadata; nothing is deleted here, and the automatic sweep waits until
// the new bounds are confirmed ([Accept], [Sweep]).
//
// The error is [meta.ErrNotFound] if the manifest does not declare the collection and no
// override names it, and [meta.ErrInvalid] for a value below 1, above the limits
// ([LimitRows], [LimitAgeDays]) or above meta:prune:max-keys, and for a value on a
// detached collection. To clear an override that is not there is no error.
func SetCollectionRetention(ctx context.Context, env *serialize.Env, name string, p Patch) (*State, error) {
	if env.DB == nil {
		return nil, errNoStore
	}
	e := store.Edit{Email: env.Repo.AuthorEmail(ctx)}
	var out *State
	set := func(tx *store.Tx) error {
		pol, err := loadPolicy(ctx, env, tx)
		if err != nil {
			return err
		}
		if err := pol.patch(tx, name, p, e); err != nil {
			return err
		}
		if pol, err = loadPolicy(ctx, env, tx); err != nil {
			return err
		}
		out, err = pol.state(tx, env, name)
		if errors.Is(err, meta.ErrNotFound) {
			out, err = &State{Collection: name, Detached: true}, nil // its last override is cleared
		}
		return err
	}
	err := retry(ctx, func() error {
		if _, err := caughtUp(ctx, env); err != nil {
			return err
		}
		return env.DB.Update(ctx, set)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Check returns the error that [SetCollectionRetention] would return for a patch, as far
// as it can be told without the store.
func (p Patch) Check(name string) error {
	for _, f := range p.axes() {
		if f.Set && f.Clear {
			return meta.Invalid(fmt.Sprintf("collection %q: %s", name, f.x.field), "both set and cleared", "")
		}
		if !f.Set {
			continue
		}
		if _, err := f.x.check(name, strconv.FormatInt(f.Value, 10), 0); err != nil {
			return err
		}
	}
	return nil
}

// patched is an axis with what a patch does to it.
type patched struct {
	Axis
	x *axis
}

func (p Patch) axes() []patched { return []patched{{p.MaxRows, rowsAxis}, {p.MaxAgeDays, ageAxis}} }

// patch writes the overrides.
func (p *policy) patch(tx *store.Tx, name string, patch Patch, e store.Edit) error {
	if err := patch.Check(name); err != nil {
		return err
	}
	_, owns := p.find(name)
	err, gone := p.missing(name)
	if !owns && !gone {
		return err
	}
	for _, f := range patch.axes() {
		k := meta.KeyRef{Target: meta.ProjectTarget, Key: f.x.key(name)}
		switch {
		case f.Set:
			if !owns {
				return err
			}
			text := strconv.FormatInt(f.Value, 10)
			if _, err := f.x.check(name, text, p.cap); err != nil {
				return err
			}
			if old, ok, err := tx.ProjectString(k.Key); err == nil && ok && old == text {
				continue // said already: nothing to publish
			}
			if err := tx.Set(k, text, e); err != nil {
				return err
			}
		case f.Clear:
			if err := tx.Remove(k, e); err != nil && !errors.Is(err, meta.ErrNotFound) {
				return err
			}
		}
	}
	return nil
}

// Accept confirms the bounds of the named collections, of all declared ones if none is
// named, for the automatic sweep in this repository. A change of the manifest or of an
// override takes the confirmation back. It deletes nothing. A collection that is not
// declared is an error, and nothing is confirmed.
func Accept(ctx context.Context, env *serialize.Env, names ...string) error {
	if env.DB == nil {
		return errNoStore
	}
	return env.DB.Update(ctx, func(tx *store.Tx) error {
		p, err := loadPolicy(ctx, env, tx)
		if err != nil {
			return err
		}
		chosen, err := p.choose(names)
		if err != nil {
			return err
		}
		for _, d := range chosen {
			if err := confirm(tx, d); err != nil {
				return err
			}
		}
		return nil
	})
}

// choose returns the named collections, all that own keys if none is named, by name. One
// that is detached or not declared is an error.
func (p *policy) choose(names []string) ([]declared, error) {
	if len(names) == 0 {
		return p.collections, nil
	}
	var out []declared
	for _, name := range names {
		d, ok := p.find(name)
		if !ok {
			err, _ := p.missing(name)
			return nil, err
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b declared) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(out, func(a, b declared) bool { return a.name == b.name }), nil
}

// missing returns the error about a name that owns no keys; detached tells that there is
// an override of it.
func (p *policy) missing(name string) (err error, detached bool) {
	d, ok := p.findDetached(name)
	switch {
	case ok && d.line > 0:
		return d.problem, false
	case ok:
		return meta.Invalid(fmt.Sprintf("collection %q", name), "detached: not declared in "+p.manifest,
			"to remove its overrides: "+Command(name, "--clear-rows", "--clear-age")), true
	}
	return undeclared(name, p.names(), p.manifest, meta.NotFound), false
}

// state returns what there is to say about a collection.
func (p *policy) state(tx *store.Tx, env *serialize.Env, name string) (*State, error) {
	if d, ok := p.find(name); ok {
		found, err := p.counts(tx, env)
		if err != nil {
			return nil, err
		}
		s := p.stateOf(d, found[name])
		return &s, nil
	}
	if d, ok := p.findDetached(name); ok {
		s := p.stateOf(d, count{})
		return &s, nil
	}
	err, _ := p.missing(name)
	return nil, err
}

// counts returns what there is of each collection; nothing without a store.
func (p *policy) counts(tx *store.Tx, env *serialize.Env) (map[string]count, error) {
	if tx == nil || len(p.collections) == 0 {
		return nil, nil
	}
	return counts(tx, p, nowMillis(env))
}

func nowMillis(env *serialize.Env) int64 {
	if env.Now != nil {
		return env.Now().UnixMilli()
	}
	return time.Now().UnixMilli()
}

func (p *policy) stateOf(d declared, c count) State {
	return State{
		Collection: d.name, Effective: d.effective, AuthorDefault: d.authorDefault, Override: d.override,
		WouldPrune: c.wouldPrune, Rows: c.rows, Bytes: c.bytes, Leftover: c.leftover,
		Confirmed: d.confirmed, Detached: d.line == 0, Problem: d.problem,
		RowsFrom: p.from(d, rowsAxis), AgeFrom: p.from(d, ageAxis),
	}
}

// from says what decides an axis.
func (p *policy) from(d declared, x *axis) string {
	switch {
	case *x.of(&d.effective) == 0:
		return ""
	case *x.of(&d.override) == 0:
		return fmt.Sprintf("%s:%d", p.manifest, *x.of(&d.lines))
	}
	return x.key(d.name)
}

var errNoStore = errors.New("retention: no store to write to")

// look runs f in a read transaction with what is said now, the counts brought up to date
// before; without a store the transaction is nil.
func look(ctx context.Context, env *serialize.Env, f func(*store.Tx, *policy) error) error {
	return retry(ctx, func() error {
		p, err := caughtUp(ctx, env)
		if err != nil {
			return err
		}
		if env.DB == nil {
			return f(nil, p)
		}
		return env.DB.View(ctx, func(tx *store.Tx) error {
			if p, err = loadPolicy(ctx, env, tx); err != nil {
				return err
			}
			return f(tx, p)
		})
	})
}

// caughtUp brings the counts up to date and returns the policy that says of what.
func caughtUp(ctx context.Context, env *serialize.Env) (p *policy, err error) {
	if env.DB == nil {
		return loadPolicy(ctx, env, nil)
	}
	err = env.DB.View(ctx, func(tx *store.Tx) error {
		p, err = loadPolicy(ctx, env, tx)
		return err
	})
	if err == nil && len(p.collections) > 0 {
		err = catchUp(ctx, env, p.names())
	}
	return p, err
}
