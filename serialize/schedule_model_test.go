package serialize_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/meta"
)

// The model: clones without store and git, decided by meta.Merge. It is a port of the
// Python model, lists and the order of its properties included.

type mTomb struct {
	time     int64
	explicit bool
}

// mNode is what a tree says of a key: a value, or a tombstone.
type mNode struct {
	c    *meta.Content
	tomb *mTomb
}

func (n mNode) equal(o mNode) bool {
	gone := func(c *meta.Content) map[string]string {
		if c == nil {
			return nil
		}
		return c.Gone
	}
	return n.c.Same(o.c) && maps.Equal(gone(n.c), gone(o.c)) && (n.tomb == nil) == (o.tomb == nil) && (n.tomb == nil || *n.tomb == *o.tomb)
}

type mTree map[string]mNode

func (t mTree) equal(o mTree) bool { return maps.EqualFunc(t, o, mNode.equal) }

func (t mTree) has(k string) bool { return t[k].c != nil }

type mVersion struct {
	c    *meta.Content
	time int64
}

func (v *mVersion) version() *meta.Version {
	if v == nil {
		return nil
	}
	return &meta.Version{Content: v.c, Time: v.time}
}

type mRemoval struct {
	time int64
	tomb *mTomb
}

type mCommit struct {
	id       int
	parents  []*mCommit
	tree     mTree
	ktime    map[string]int64
	dlines   map[string]bool
	pruned   bool
	date     int64
	line     map[int]*mCommit // itself and what it contains
	removals map[string]mRemoval
	last     map[string]mVersion // the value each key has, or had before it was pruned
}

func (c *mCommit) treeOf() mTree {
	if c == nil {
		return nil
	}
	return c.tree
}

func (c *mCommit) lastOf(k string) *mVersion {
	if c == nil {
		return nil
	}
	if v, ok := c.last[k]; ok {
		return &v
	}
	return nil
}

func (c *mCommit) contains(o *mCommit) bool {
	return o == nil || c != nil && c.line[o.id] != nil
}

func (c *mCommit) name() string {
	if c == nil {
		return ""
	}
	return strconv.Itoa(c.id)
}

// between returns the commits of tip that base does not contain, oldest first.
func between(base, tip *mCommit) (out []*mCommit) {
	if tip == nil {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(tip.line)) {
		if base == nil || base.line[id] == nil {
			out = append(out, tip.line[id])
		}
	}
	return out
}

func modelBase(a, b *mCommit) (best *mCommit) {
	if a == nil || b == nil {
		return nil
	}
	for id, c := range a.line {
		if b.line[id] != nil && (best == nil || id > best.id) {
			best = c
		}
	}
	return best
}

// mRemote is the remote and what all clones share.
type mRemote struct {
	head    *mCommit
	commits int
	now     func() int64
	maximum int
}

func (r *mRemote) commit(parents []*mCommit, tree mTree, ktime map[string]int64, dlines map[string]bool, pruned bool, date int64, swept map[string]bool) *mCommit {
	r.commits++
	c := &mCommit{
		id: r.commits, parents: parents, tree: tree, ktime: ktime, dlines: dlines, pruned: pruned, date: date,
		line: map[int]*mCommit{}, removals: map[string]mRemoval{}, last: map[string]mVersion{},
	}
	c.line[c.id] = c
	for _, p := range parents {
		maps.Copy(c.line, p.line)
	}
	var before mTree
	if len(parents) > 0 {
		before = parents[0].tree
		for k, n := range tree { // a key that is the same has no new time in a header
			if n.c != nil && n.equal(before[k]) {
				ktime[k] = parents[0].ktime[k]
			}
		}
	}
	keys := maps.Clone(dlines)
	if keys == nil {
		keys = map[string]bool{}
	}
	for k := range tree {
		keys[k] = true
	}
	for k := range keys {
		n, p := tree[k], before[k]
		if n.c != nil {
			continue
		}
		fresh := n.tomb != nil && (p.tomb == nil || *p.tomb != *n.tomb || p.c != nil)
		if dlines[k] || fresh && n.tomb.explicit {
			r := mRemoval{date, n.tomb}
			if n.tomb != nil {
				r.time = n.tomb.time
			}
			c.removals[k] = r
		}
	}
	if len(parents) > 0 {
		for k, v := range parents[0].last {
			if _, gone := c.removals[k]; !gone && !swept[k] {
				c.last[k] = v
			}
		}
	}
	for k, n := range tree {
		if n.c != nil {
			c.last[k] = mVersion{n.c, ktime[k]}
		}
	}
	return c
}

func (r *mRemote) tip() (string, views, string) { return r.head.views() }

func (r *mRemote) line() (out []schedCommit) {
	for _, c := range between(nil, r.head) {
		_, v, _ := c.views()
		gone := slices.Collect(maps.Keys(c.removals))
		if len(c.parents) > 0 {
			for k := range c.parents[0].last {
				if _, ok := c.last[k]; !ok {
					gone = append(gone, k)
				}
			}
		}
		out = append(out, schedCommit{v, gone})
	}
	return out
}

func viewOf(c *meta.Content) view {
	v := view{kind: string(c.Type), text: c.Text}
	if c.Type != meta.String {
		v.item = map[string]bool{}
		for k := range c.Items {
			v.item[k] = true
		}
	}
	return v
}

func (c *mCommit) views() (string, views, string) {
	out := views{}
	var lines []string
	for k, n := range c.treeOf() {
		if n.c != nil {
			out[k] = viewOf(n.c)
			lines = append(lines, fmt.Sprint(k, " ", out[k], " gone ", slices.Sorted(maps.Keys(n.c.Gone))))
		} else if n.tomb != nil {
			lines = append(lines, fmt.Sprint(k, " tomb ", *n.tomb))
		}
	}
	slices.Sort(lines)
	return c.name(), out, strings.Join(lines, "\n")
}

// mBase is what both kinds of clones have.
type mBase struct {
	r     *mRemote
	skew  int64
	store map[string]mVersion
	tombs map[string]mTomb
	dirty map[string]bool
	l, t  *mCommit
}

func newBase(r *mRemote, skew int64) mBase {
	return mBase{r: r, skew: skew, store: map[string]mVersion{}, tombs: map[string]mTomb{}, dirty: map[string]bool{}}
}

func (b *mBase) now() int64 { return b.r.now() + b.skew }

func (b *mBase) tip() (string, views, string) { return b.l.views() }
func (b *mBase) tracking() string             { return b.t.name() }

func (b *mBase) rows() views {
	out := views{}
	for k, v := range b.store {
		out[k] = viewOf(v.c)
	}
	return out
}

// stamp lifts an edit above the time the key had, here and in the tip.
func (b *mBase) stamp(k string) int64 {
	t := b.now()
	if row, ok := b.store[k]; ok {
		t = max(t, row.time+1)
	}
	if tomb, ok := b.tombs[k]; ok {
		t = max(t, tomb.time+1)
	}
	if last := b.l.lastOf(k); last != nil {
		t = max(t, last.time+1)
	}
	if n := b.l.treeOf()[k]; n.tomb != nil {
		t = max(t, n.tomb.time+1)
	}
	return t
}

// edit carries out an edit that was found to apply.
func (b *mBase) edit(s schedStep, ended func(string)) int64 {
	k, t := s.key, b.stamp(s.key)
	row := b.store[k]
	change := func(typ meta.ValueType, f func(items, gone map[string]string)) {
		c := &meta.Content{Type: typ, Items: map[string]string{}, Gone: map[string]string{}}
		if row.c != nil {
			maps.Copy(c.Items, row.c.Items)
			maps.Copy(c.Gone, row.c.Gone)
		}
		f(c.Items, c.Gone)
		b.store[k] = mVersion{c, t}
		delete(b.tombs, k)
	}
	add := func(items, gone map[string]string) { items[s.item] = s.item; delete(gone, s.item) }
	drop := func(items, gone map[string]string) { delete(items, s.item); gone[s.item] = s.item }
	switch s.op {
	case "set":
		b.store[k] = mVersion{&meta.Content{Type: meta.String, Text: s.item}, t}
		delete(b.tombs, k)
	case "rm":
		delete(b.store, k)
		b.tombs[k] = mTomb{t, !b.l.treeOf().has(k)}
	case "add":
		change(meta.Set, add)
	case "drop":
		change(meta.Set, drop)
	case "append":
		change(meta.List, add)
	case "pop":
		change(meta.List, drop)
	}
	b.dirty[k] = true
	ended(k)
	return t
}

// tryPush moves the remote if it is where the tracking ref says.
func (b *mBase) tryPush() bool {
	if b.r.head == b.t && b.l != nil && b.l != b.t {
		b.r.head, b.t = b.l, b.l
		return true
	}
	return b.l == b.t && b.r.head == b.t
}

// mClone is a clone that follows our rules.
type mClone struct {
	mBase
	withheld map[string]string
	swept    map[string]bool
	lost     map[string]bool
}

func newClone(r *mRemote, skew int64) *mClone {
	return &mClone{newBase(r, skew), map[string]string{}, map[string]bool{}, map[string]bool{}}
}

func (c *mClone) ours() bool { return true }

func (c *mClone) ended(k string) {
	delete(c.withheld, k)
	delete(c.swept, k)
}

func (c *mClone) load(k string) {
	_, have := c.store[k]
	_, dead := c.tombs[k]
	if last := c.l.lastOf(k); last != nil && !have && !dead && c.withheld[k] != "swept" {
		c.store[k] = *last
	}
}

func (c *mClone) do(s schedStep) (int64, bool) {
	switch s.op {
	case "set", "rm", "add", "drop", "append", "pop":
		return c.edit(s, c.ended), true
	case "serialize":
		c.serialize(false)
	case "full":
		c.serialize(true)
	case "fetch":
		c.t = c.r.head
	case "pull", "crash":
		c.pull()
	case "push":
		c.push()
	case "sync":
		c.pull()
		c.push()
	case "prune":
		c.prune()
	case "local-prune":
		return 0, c.localPrune(s.key)
	case "sweep":
		if _, ok := c.store[s.key]; !ok {
			return 0, false
		}
		delete(c.store, s.key)
		delete(c.dirty, s.key)
		c.lost[s.key], c.withheld[s.key], c.swept[s.key] = true, "swept", true
	case "restore":
		return 0, c.restore(s.key)
	}
	return 0, true
}

func (c *mClone) commit(tree mTree, ktime map[string]int64, dlines map[string]bool, pruned bool, swept map[string]bool) {
	// the rules, which are not modelled, make a first commit
	if tree.equal(c.l.treeOf()) && len(dlines) == 0 && (c.l != nil || c.r.maximum == 0) {
		return
	}
	var parents []*mCommit
	if c.l != nil {
		parents = []*mCommit{c.l}
	}
	c.l = c.r.commit(parents, tree, ktime, dlines, pruned, c.now(), swept)
}

func (c *mClone) copyTip() (mTree, map[string]int64) {
	if c.l == nil {
		return mTree{}, map[string]int64{}
	}
	return maps.Clone(c.l.tree), maps.Clone(c.l.ktime)
}

func (c *mClone) serialize(full bool) {
	tree, kt := c.copyTip()
	dl := map[string]bool{}
	if full {
		for k := range c.store {
			if _, w := c.withheld[k]; c.withheld[k] != "retention" && (w || !tree.has(k)) {
				delete(c.withheld, k)
				c.dirty[k] = true
			}
		}
	}
	for k := range c.dirty {
		if row, ok := c.store[k]; ok {
			tree[k], kt[k] = mNode{c: row.c}, row.time
		} else if t, ok := c.tombs[k]; ok {
			tree[k] = mNode{tomb: &t}
			delete(kt, k)
			dl[k] = true
		}
	}
	clear(c.dirty)
	c.commit(tree, kt, dl, false, nil)
	if len(c.swept) > 0 {
		drop := map[string]bool{}
		for k := range c.swept {
			if c.l.treeOf().has(k) {
				drop[k] = true
			}
		}
		c.cut(drop, -1, false, maps.Clone(c.swept))
		for k := range c.swept {
			c.ended(k)
		}
	}
	c.autoPrune()
}

// timeOf is the edit time that a prune goes by: the row's, else the tip's.
func (c *mClone) timeOf(k string) int64 {
	if row, ok := c.store[k]; ok {
		return row.time
	}
	return c.l.ktime[k]
}

func (c *mClone) byAge() []string {
	var live []string
	for k, n := range c.l.treeOf() {
		if n.c != nil {
			live = append(live, k)
		}
	}
	slices.SortFunc(live, func(a, b string) int {
		if d := c.timeOf(b) - c.timeOf(a); d != 0 {
			return int(max(-1, min(1, d)))
		}
		return strings.Compare(a, b)
	})
	return live
}

func (c *mClone) autoPrune() {
	live, top := c.byAge(), c.r.maximum
	if top > 0 && len(live) > top {
		keep := max(1, top/2)
		drop := map[string]bool{}
		for _, k := range live[keep:] {
			drop[k] = true
		}
		c.cut(drop, c.timeOf(live[keep-1]), true, nil)
	}
}

func (c *mClone) cut(drop map[string]bool, oldest int64, spareNew bool, swept map[string]bool) {
	tree, kt := c.copyTip()
	for k := range drop {
		delete(tree, k)
		delete(kt, k)
		if _, ok := c.store[k]; ok {
			c.withheld[k] = "pruned"
		}
	}
	if oldest >= 0 {
		for k, n := range tree {
			held := (mNode{tomb: c.t.treeOf()[k].tomb}).equal(mNode{tomb: n.tomb})
			if n.c == nil && n.tomb != nil && n.tomb.time < oldest && (held || !spareNew) {
				delete(tree, k)
			}
		}
	}
	c.commit(tree, kt, nil, true, swept)
}

func (c *mClone) prune() {
	c.serialize(false)
	live := c.byAge()
	if len(live) == 0 {
		return
	}
	cutoff := c.timeOf(live[len(live)-1]) + 1
	drop := map[string]bool{}
	for _, k := range live {
		if c.timeOf(k) < cutoff {
			drop[k] = true
		}
	}
	c.cut(drop, cutoff, false, nil)
}

func (c *mClone) localPrune(k string) bool {
	row, ok := c.store[k]
	if !ok || c.t == nil || c.dirty[k] {
		return false
	}
	for _, p := range c.t.line {
		if p.tree[k].c.Same(row.c) {
			delete(c.store, k)
			c.lost[k] = true
			if _, hidden := c.withheld[k]; hidden {
				delete(c.withheld, k)
			} else {
				c.withheld[k] = "local"
			}
			return true
		}
	}
	return false
}

// restore puts an old copy of the store back; the cursor and what was withheld are gone.
func (c *mClone) restore(k string) bool {
	if len(c.dirty) > 0 || len(c.swept) > 0 || c.lost[k] || c.l == nil {
		return false
	}
	held := false
	for _, p := range c.l.line {
		held = held || p.tree.has(k)
	}
	if !held {
		return false
	}
	for k, why := range c.withheld {
		if why != "retention" { // the history says so
			delete(c.withheld, k)
		}
	}
	if last := c.l.lastOf(k); last != nil {
		c.store[k] = *last
		return true
	}
	when := int64(0)
	for _, p := range c.l.line {
		if r, ok := p.removals[k]; ok {
			when = max(when, r.time)
		}
	}
	c.unload(k, when)
	return true
}

func (c *mClone) unload(k string, when int64) {
	delete(c.store, k)
	delete(c.withheld, k)
	c.tombs[k] = mTomb{when, false}
}

func (c *mClone) pull() {
	c.t = c.r.head
	c.serialize(false)
	c.merge()
}

func (c *mClone) push() {
	c.serialize(false)
	for range 20 {
		c.merge()
		if c.l == nil || c.tryPush() {
			return
		}
		c.t = c.r.head
	}
	panic("push never ends")
}

// decision is what the merge says of one key.
type decision struct {
	node  mNode
	time  int64
	shown bool
}

func removedIn(base, tip *mCommit) map[string]int64 {
	out := map[string]int64{}
	for _, c := range between(base, tip) {
		for k, r := range c.removals {
			out[k] = max(r.time, out[k])
		}
	}
	return out
}

func (c *mClone) merge() {
	if c.t == nil || c.l.contains(c.t) {
		return
	}
	base := modelBase(c.l, c.t)
	hl, hr := removedIn(base, c.l), removedIn(base, c.t)
	keys := map[string]bool{}
	for _, m := range []*mCommit{base, c.l, c.t} {
		for k := range m.treeOf() {
			keys[k] = true
		}
		if m != nil {
			for k := range m.last {
				keys[k] = true
			}
		}
	}
	for _, m := range []map[string]int64{hl, hr} {
		for k := range m {
			keys[k] = true
		}
	}
	b, l, r := base.treeOf(), c.l.treeOf(), c.t.treeOf()
	tree, kt := mTree{}, map[string]int64{}
	hidden := map[string]mVersion{}
	retained := map[string]bool{}
	for k := range keys {
		if old := base.lastOf(k); old != nil && c.t.lastOf(k) == nil && hr[k] == 0 && c.store[k].c.Same(old.c) {
			retained[k] = true
		}
		d := c.mergeKey(k, b, l, r, hl, hr, base.lastOf(k))
		switch {
		case d.shown && d.node.c != nil:
			tree[k], kt[k] = d.node, d.time
		case d.shown && d.node.tomb != nil:
			tree[k] = d.node
		case d.node.c != nil:
			hidden[k] = mVersion{d.node.c, d.time}
		}
	}
	mine := c.l
	c.l = c.t
	for k := range r {
		_, in := tree[k]
		_, hid := hidden[k]
		_, gone := hl[k]
		if !in && !hid && !gone && r.has(k) {
			hidden[k] = mVersion{r[k].c, c.t.ktime[k]}
		}
	}
	// what only we pruned, or changed and pruned, goes through one commit that holds it
	// and one that drops it
	first, ft := maps.Clone(tree), maps.Clone(kt)
	for k, v := range hidden {
		last := c.t.lastOf(k)
		if retained[k] {
			continue
		}
		if last == nil || !(mNode{c: v.c}).equal(mNode{c: last.c}) || v.time != last.time || r.has(k) {
			first[k], ft[k] = mNode{c: v.c}, v.time
		}
	}
	if mine != nil {
		dead := map[string]bool{}
		for k, at := range hl {
			_, lives := ft[k]
			_, hid := hidden[k]
			there, known := hr[k]
			unknown := c.t.lastOf(k) != nil || !known
			if !lives && !hid && (!first[k].equal(r[k]) || unknown || at > there) {
				dead[k] = true
				if n := first[k]; n.tomb == nil || n.tomb.time < at {
					first[k] = mNode{tomb: &mTomb{at, false}}
				}
			}
		}
		c.commit(first, ft, dead, false, nil)
		swept := map[string]bool{} // by our line: they go in a commit of their own
		held, ht := maps.Clone(tree), maps.Clone(kt)
		for k := range first {
			if first.has(k) && !tree.has(k) && mine.lastOf(k) == nil && base.lastOf(k) != nil && hl[k] == 0 {
				swept[k] = true
				held[k], ht[k] = first[k], ft[k]
			}
		}
		c.commit(held, ht, nil, true, nil)
		c.commit(tree, kt, nil, true, swept)
	}
	c.autoPrune()
	for k := range c.store {
		if c.l.treeOf().has(k) {
			delete(c.withheld, k)
		} else if retained[k] {
			c.withheld[k] = "retention"
		} else if c.withheld[k] == "" {
			c.withheld[k] = "pruned"
		}
	}
}

func (c *mClone) mergeKey(k string, b, l, r mTree, hl, hr map[string]int64, old *mVersion) decision {
	row, haveRow := c.store[k]
	_, withheld := c.withheld[k]
	in := meta.MergeInput{Base: old.version(), BaseShown: b.has(k), Row: haveRow, Withheld: withheld}
	in.Local.Shown, in.Remote.Shown = l.has(k), r.has(k)
	switch {
	case l.has(k):
		in.Local.Last = &meta.Version{Content: l[k].c, Time: c.l.ktime[k]}
	case haveRow && c.withheld[k] == "retention": // it counts as absent
	case haveRow:
		in.Local.Last = row.version()
	default:
		in.Local.Last = c.l.lastOf(k).version()
	}
	in.Remote.Last = c.t.lastOf(k).version()
	in.Local.RemovedAt, in.Local.Removed = hl[k], false
	_, in.Local.Removed = hl[k]
	in.Remote.RemovedAt = hr[k]
	_, in.Remote.Removed = hr[k]
	out := meta.Merge(in)
	if out.Unload {
		c.unload(k, hr[k])
	}
	if out.Load {
		c.store[k] = mVersion{out.Result.Content, out.Result.Time}
		delete(c.tombs, k)
		delete(c.withheld, k)
	}
	rest := mergeTomb(b[k], l[k], r[k])
	if out.Result == nil {
		return decision{rest, 0, true}
	}
	if !out.Shown && in.Both() && rest.tomb != nil {
		return decision{rest, 0, true} // it does not count
	}
	return decision{mNode{c: out.Result.Content}, out.Result.Time, out.Shown}
}

func mergeTomb(b, l, r mNode) mNode {
	b.c, l.c, r.c = nil, nil, nil
	switch {
	case l.equal(b):
		return r
	case r.equal(b):
		return l
	case l.tomb == nil:
		return r
	case r.tomb == nil || l.tomb.time > r.tomb.time || l.tomb.time == r.tomb.time && l.tomb.explicit:
		return l
	}
	return r
}

// mPeer runs the other program: absence becomes rm and a tombstone, local wins,
// collections unite, push flattens.
type mPeer struct {
	mBase
	dl map[string]bool
}

func newPeer(r *mRemote, skew int64) *mPeer { return &mPeer{newBase(r, skew), map[string]bool{}} }

func (p *mPeer) ours() bool  { return false }
func (p *mPeer) load(string) {}

func (p *mPeer) do(s schedStep) (int64, bool) {
	switch s.op {
	case "set", "rm", "add", "drop", "append", "pop":
		return p.edit(s, func(k string) {
			if _, ok := p.store[k]; !ok {
				p.dl[k] = true
			}
		}), true
	case "serialize":
		p.serialize()
	case "fetch":
		p.t = p.r.head
	case "pull":
		p.pull()
	case "push":
		p.push()
	case "sync":
		p.pull()
		p.push()
	}
	return 0, true
}

func (p *mPeer) node(k string) mNode {
	if row, ok := p.store[k]; ok && (row.c.Type == meta.String || len(row.c.Items) > 0) {
		return mNode{c: row.c}
	}
	if t, ok := p.tombs[k]; ok {
		return mNode{tomb: &mTomb{t.time, false}}
	}
	return mNode{}
}

func (p *mPeer) serialize() {
	if len(p.dirty)+len(p.store)+len(p.tombs) == 0 {
		return
	}
	tree := mTree{}
	if len(p.dirty) > 0 && p.l != nil {
		tree = maps.Clone(p.l.tree)
	}
	keys := p.dirty
	if len(tree) == 0 {
		keys = map[string]bool{}
		for k := range p.store {
			keys[k] = true
		}
		for k := range p.tombs {
			keys[k] = true
		}
	}
	for k := range keys {
		delete(tree, k)
		if n := p.node(k); n.c != nil || n.tomb != nil {
			tree[k] = n
		}
	}
	dl := p.dl
	p.dl = map[string]bool{}
	p.dirty = map[string]bool{}
	if p.l != nil && tree.equal(p.l.tree) {
		return
	}
	var parents []*mCommit
	if p.l != nil {
		parents = []*mCommit{p.l}
	}
	p.l = p.make(parents, tree, dl, false)
	var live []string
	for k, n := range tree {
		if n.c != nil {
			live = append(live, k)
		}
	}
	if top := p.r.maximum; top > 0 && len(live) > top {
		slices.SortFunc(live, func(a, b string) int {
			if d := p.store[b].time - p.store[a].time; d != 0 {
				return int(max(-1, min(1, d)))
			}
			return strings.Compare(a, b)
		})
		kept := mTree{}
		for _, k := range live[:max(1, top/2)] {
			kept[k] = tree[k]
		}
		p.l = p.make([]*mCommit{p.l}, kept, nil, true)
	}
}

func (p *mPeer) make(parents []*mCommit, tree mTree, dl map[string]bool, pruned bool) *mCommit {
	kt := map[string]int64{}
	for k, n := range tree {
		if n.c == nil {
			continue
		}
		kt[k] = p.now()
		if len(parents) > 0 && parents[0].tree[k].c.Same(n.c) {
			kt[k] = parents[0].ktime[k]
		}
	}
	return p.r.commit(parents, tree, kt, dl, pruned, p.now(), nil)
}

func (p *mPeer) pull() {
	p.t = p.r.head
	if p.t != nil && !p.l.contains(p.t) {
		p.serialize()
		p.materialize()
	}
}

func (p *mPeer) materialize() {
	if p.t == nil || p.l.contains(p.t) {
		return
	}
	h, r, base := p.l.treeOf(), p.t.tree, modelBase(p.l, p.t)
	merged := mTree{}
	implied := map[string]bool{}
	if p.l == nil || base == p.l {
		merged = maps.Clone(r)
		for k := range h {
			if h.has(k) && !r.has(k) {
				implied[k] = true
			}
		}
		p.l = p.t
	} else {
		b := base.treeOf()
		keys := map[string]bool{}
		for _, t := range []mTree{b, h, r} {
			for k := range t {
				keys[k] = true
			}
		}
		for k := range keys {
			bv, lv, rv := b[k].c, h[k].c, r[k].c
			v := lv
			switch {
			case lv.Same(bv):
				v = rv
			case rv.Same(bv):
			case lv == nil || rv == nil:
				if lv == nil {
					v = rv
				}
			case lv.Type != meta.String && rv.Type == lv.Type:
				v = &meta.Content{Type: lv.Type, Items: maps.Clone(lv.Items)}
				maps.Copy(v.Items, rv.Items)
			}
			if v != nil && (v.Type == meta.String || len(v.Items) > 0) {
				c := *v
				c.Gone = map[string]string{}
				for _, o := range []*meta.Content{lv, rv} {
					if o != nil && c.Type != meta.String {
						maps.Copy(c.Gone, o.Gone)
					}
				}
				for m := range c.Items {
					delete(c.Gone, m)
				}
				merged[k] = mNode{c: &c}
			} else if t := h[k].tomb; t != nil {
				merged[k] = mNode{tomb: &mTomb{t.time, false}}
			} else if t := r[k].tomb; t != nil {
				merged[k] = mNode{tomb: &mTomb{t.time, false}}
			}
		}
		for k := range b {
			if _, ok := merged[k]; b.has(k) && !ok {
				implied[k] = true
			}
		}
		p.l = p.make([]*mCommit{p.l, p.t}, merged, nil, false)
	}
	for k, n := range merged {
		if n.c != nil {
			if row, ok := p.store[k]; !ok || !row.c.Same(n.c) {
				p.store[k] = mVersion{n.c, p.now()}
			}
			delete(p.tombs, k)
		} else if n.tomb != nil {
			delete(p.store, k)
			p.tombs[k] = *n.tomb
		}
	}
	for k := range implied {
		delete(p.store, k)
		p.tombs[k] = mTomb{p.now(), false}
	}
}

func (p *mPeer) push() {
	if len(p.dirty) > 0 || p.l == nil {
		p.serialize()
	}
	for range 5 {
		if p.l == nil || p.l == p.t && p.r.head == p.t {
			return
		}
		if p.t != nil && p.l != p.t && !(len(p.l.parents) == 1 && p.l.parents[0] == p.t) {
			var dl map[string]bool
			if len(p.l.parents) < 2 {
				dl = p.l.dlines
			}
			p.l = p.make([]*mCommit{p.t}, p.l.tree, dl, p.l.pruned)
		}
		if p.tryPush() {
			return
		}
		p.t = p.r.head
		p.materialize()
		if len(p.dirty) > 0 {
			p.serialize()
		}
	}
}

// modelWorld returns clones of the model for s.
func modelWorld(s schedule) *world {
	r := &mRemote{maximum: s.maximum}
	var sites []site
	for i := range s.clones {
		if i == s.peer {
			sites = append(sites, newPeer(r, s.skew[i]))
		} else {
			sites = append(sites, newClone(r, s.skew[i]))
		}
	}
	w := newWorld(s, sites, r)
	r.now = func() int64 { return w.now }
	return w
}

func playModel(s schedule) *broken { return modelWorld(s).play() }

// Read before TestMain clears the environment.
var (
	campaignSeconds = os.Getenv("GIT_META_CAMPAIGN")
	replayed        = os.Getenv("GIT_META_SCHEDULE")
	peerProgram     = os.Getenv("GIT_META_PEER")
)

// budget returns how long a campaign may take: GIT_META_CAMPAIGN seconds, 0 if unset.
func budget(t *testing.T) time.Duration {
	t.Helper()
	text := campaignSeconds
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("GIT_META_CAMPAIGN: %v", err)
	}
	return time.Duration(n) * time.Second
}

// TestModelExhaustive runs every short schedule of two clones.
func TestModelExhaustive(t *testing.T) {
	depth := 2 // 3 takes 10 s, 4 three minutes
	switch b := budget(t); {
	case b >= 5*time.Minute:
		depth = 4
	case b > 0:
		depth = 3
	}
	for _, peer := range []int{-1, 1} {
		for _, name := range slices.Sorted(maps.Keys(alphabets)) {
			t.Run(fmt.Sprintf("%s peer %d", name, peer), func(t *testing.T) {
				t.Parallel()
				c := &campaign{t: t, play: playModel}
				exhaustive(name, depth, 0, 0, peer, c.run)
				exhaustive(name, depth, 1_000_000, 0, peer, c.run)
				exhaustive(name, depth, 0, 1, peer, c.run)
				t.Logf("%d schedules, failures %v", c.runs, c.fails)
			})
		}
	}
}

// TestModelRandom runs long random schedules of two to four clones.
func TestModelRandom(t *testing.T) {
	n, end := 600, time.Now().Add(budget(t))
	for _, peer := range []bool{false, true} {
		t.Run(fmt.Sprintf("peer %v", peer), func(t *testing.T) {
			t.Parallel()
			c := &campaign{t: t, play: playModel}
			r := rand.New(rand.NewPCG(uint64(1+time.Until(end)/time.Second), 2))
			for i := 0; i < n || time.Now().Before(end); i++ {
				c.run(randomSchedule(r, randomOps, peer, 60))
			}
			t.Logf("%d schedules, failures %v", c.runs, c.fails)
		})
	}
}
