package retention

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
)

// declared is a collection of the manifest, or one that has nothing but an override.
type declared struct {
	name          string
	effective     Bounds // what is enforced; zero on an axis that a problem takes out
	authorDefault Bounds
	override      Bounds // as the project's strings say, above the cap too
	confirmed     bool   // hash is the one that was confirmed in this repository
	problem       error  // of the manifest entry or an override
	hash          string // of what is enforced, and on which keys
	line          int    // in the manifest; 0: detached
	lines         Bounds // in which the author's defaults stand
	enforced      bool   // false: a fault in the manifest, or detached
	wrong         bool   // there is an override that is no bound
}

// policy is what the manifest and the project's strings say now.
type policy struct {
	collections []declared // that own keys, by name; a faulty or empty one has no bounds
	detached    []declared // by name; not in the manifest, or (line > 0) under no valid name there
	cap         int64      // meta:prune:max-keys; 0: none
	manifest    string     // its name, for messages
	index       map[string]int
}

// loadPolicy reads the manifest and, in tx, the overrides; a nil tx stands for an empty
// store. It returns an error where the manifest as a whole can't be read: then nothing
// must be swept.
func loadPolicy(ctx context.Context, env *serialize.Env, tx *store.Tx) (*policy, error) {
	entries, file, err := readEntries(ctx, env.Repo)
	if err != nil {
		return nil, err
	}
	limit, overrides, err := readSettings(tx)
	if err != nil {
		return nil, err
	}
	p := &policy{cap: limit, manifest: file, index: map[string]int{}}
	for _, e := range entries {
		d := e.declare(limit)
		if o := overrides[d.name]; o != nil {
			d.apply(o, limit)
			delete(overrides, d.name)
		}
		if e.valid {
			p.collections = append(p.collections, d)
		} else {
			p.detached = append(p.detached, d)
		}
	}
	for name, o := range overrides {
		p.detached = append(p.detached, declared{name: name, override: o.Bounds, problem: o.wrong})
	}
	byName := func(a, b declared) int { return strings.Compare(a.name, b.name) }
	slices.SortFunc(p.collections, byName)
	slices.SortStableFunc(p.detached, byName)
	for i := range p.collections {
		p.index[p.collections[i].name] = i
	}
	for i := range p.collections {
		d := &p.collections[i]
		d.hash = p.hashOf(d)
		if tx == nil {
			continue
		}
		was, ok, err := tx.Fact(factConfirmed + d.name)
		if err != nil {
			return nil, err
		}
		d.confirmed = ok && was == d.hash
	}
	return p, nil
}

// owner returns the collection that key belongs to: the longest declared name.
func (p *policy) owner(key string) (name string, ok bool) {
	return meta.LongestNamespace(p.index, key)
}

// names returns the names that own keys, ascending.
func (p *policy) names() []string {
	out := make([]string, len(p.collections))
	for i := range p.collections {
		out[i] = p.collections[i].name
	}
	return out
}

// find returns a collection that owns keys; ok is false if there is none of that name.
func (p *policy) find(name string) (d declared, ok bool) {
	i, ok := p.index[name]
	if !ok {
		return declared{}, false
	}
	return p.collections[i], true
}

// findDetached returns a collection that owns no keys.
func (p *policy) findDetached(name string) (d declared, ok bool) {
	i := slices.IndexFunc(p.detached, func(d declared) bool { return d.name == name })
	if i < 0 {
		return declared{}, false
	}
	return p.detached[i], true
}

// factConfirmed and the name of a collection are the fact that holds the hash which was
// confirmed in this repository.
const factConfirmed = "retention:confirmed:"

// confirm stores that the automatic sweep may act on what d says now.
func confirm(tx *store.Tx, d declared) error {
	return tx.PutFact(factConfirmed+d.name, d.hash)
}

// hashOf is over everything that decides what a sweep of d deletes: the bounds of both
// layers, what follows from them under the cap, and the collections that take keys out.
func (p *policy) hashOf(d *declared) string {
	h := sha256.New()
	for _, b := range []Bounds{d.authorDefault, d.override, d.effective} {
		fmt.Fprintf(h, "%d %d\n", b.MaxRows, b.MaxAgeDays)
	}
	if d.wrong { // somebody wanted other bounds than these
		fmt.Fprintln(h, "wrong override")
	}
	// They stand together: the names are sorted, and there may be thousands.
	inside := d.name + ":"
	i, _ := slices.BinarySearchFunc(p.collections, inside, func(c declared, to string) int { return strings.Compare(c.name, to) })
	for ; i < len(p.collections) && strings.HasPrefix(p.collections[i].name, inside); i++ {
		fmt.Fprintf(h, "%s\n", p.collections[i].name)
	}
	return hex.EncodeToString(h.Sum(nil))
}
