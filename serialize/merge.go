package serialize

import (
	"context"
	"slices"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// merger brings the local line of history, which ends at local, and a remote one
// together (design §8). Base is their last common commit, or zero.
type merger struct {
	ctx                 context.Context
	env                 *Env
	rd                  *gitdb.Reader
	tx                  *store.Tx
	base, local, remote gitdb.Hash // commits
	baseTree            gitdb.Hash
	localTree           gitdb.Hash
	remoteTree          gitdb.Hash
	inBase, inL, inR    lookup
	mine, theirs        *pastLine
	fil                 *meta.Filter
	keys                []*mergedKey
	early               *gitdb.Writer // of the values that lost, nil: none did
}

// mergedKey is the decision on one key with what it was made from.
type mergedKey struct {
	meta.KeyRef
	row       *store.Record // nil: no row
	private   bool          // a row that is not published: it is no part of the merge and stays
	parked    bool          // a row that retention dropped elsewhere: it counts as absent
	b, l, r   *keyState
	in        meta.MergeInput
	out       meta.MergeOutcome
	mine      *keyLine // nil: the local line did not touch it
	theirs    *keyLine
	unclear   bool
	first     *keyState // what the serialize commit says
	final     *keyState // what the tree says in the end
	dead      bool      // removed here, and the remote is to know
	deadTime  int64
	tombstone []byte                    // blob of a tombstone that no tree holds
	items     map[string]meta.Tombstone // the row's item tombstones, by name
}

// contentOf returns the state's value for a merge, nil if it has none.
func contentOf(s *keyState) *meta.Content {
	t, ok := s.kind()
	if !ok {
		return nil
	}
	c := &meta.Content{Type: t}
	text := func(m map[string]gitdb.Hash) map[string]string {
		out := make(map[string]string, len(m))
		for name, id := range m {
			out[name] = id.String()
		}
		return out
	}
	switch t {
	case meta.String:
		c.Text = s.value.String()
	case meta.List:
		c.Items, c.Gone = text(s.entries), text(s.popped)
	case meta.Set:
		c.Items = make(map[string]string, len(s.members)) // by content: names are not trusted
		for _, id := range s.members {
			c.Items[id.String()] = id.String()
		}
		c.Gone = text(s.gone)
	}
	return c
}

// decide reads both lines and decides every key that one of them touched.
func (m *merger) decide() error {
	var err error
	for _, t := range []struct {
		commit gitdb.Hash
		tree   *gitdb.Hash
		look   *lookup
	}{{m.base, &m.baseTree, &m.inBase}, {m.local, &m.localTree, &m.inL}, {m.remote, &m.remoteTree, &m.inR}} {
		if *t.tree, err = treeOf(m.ctx, m.rd, t.commit); err != nil {
			return err
		}
		*t.look = lookup{ctx: m.ctx, rd: m.rd, root: *t.tree}
	}
	m.mine = &pastLine{keys: map[meta.KeyRef]*keyLine{}}
	if m.local != zero {
		if m.mine, err = lineOf(m.ctx, m.rd, m.local, m.base); err != nil {
			return err
		}
	}
	if m.theirs, err = lineOf(m.ctx, m.rd, m.remote, m.base); err != nil {
		return err
	}
	texts, err := m.tx.FilterTexts()
	if err != nil {
		return err
	}
	m.fil = meta.NewFilter(texts)
	refs := make([]meta.KeyRef, 0, len(m.mine.keys)+len(m.theirs.keys))
	for k := range m.mine.keys {
		if !meta.IsLocal(k.Key) {
			refs = append(refs, k)
		}
	}
	for k := range m.theirs.keys {
		if m.mine.keys[k] == nil && !meta.IsLocal(k.Key) { // nobody else's business: see odd
			refs = append(refs, k)
		}
	}
	slices.SortFunc(refs, meta.KeyRef.Compare)
	for _, k := range refs {
		d, err := m.one(k)
		if err != nil {
			return err
		}
		m.keys = append(m.keys, d)
	}
	return nil
}

// one decides one key.
func (m *merger) one(k meta.KeyRef) (*mergedKey, error) {
	d := &mergedKey{KeyRef: k, mine: m.mine.keys[k], theirs: m.theirs.keys[k]}
	var err error
	if d.b, err = readKey(&m.inBase, k); err != nil {
		return nil, err
	}
	if d.l, err = readKey(&m.inL, k); err != nil {
		return nil, err
	}
	if d.r, err = readKey(&m.inR, k); err != nil {
		return nil, err
	}
	rec, err := m.tx.Get(k)
	switch {
	case err == nil && rec.SourceRef == "" && !m.fil.Sends(k.Key, meta.MainDestination):
		d.private = true
	case err == nil && rec.SourceRef == "":
		d.row = &rec
	case err != nil && !isNotFound(err):
		return nil, err
	}
	w, withheld, err := m.tx.Withheld(k)
	if err != nil {
		return nil, err
	}
	d.parked = d.row != nil && withheld && w.Why == store.Retained && w.EditTime == d.row.Time
	in := &d.in
	in.Row, in.Withheld = d.row != nil, withheld && w.Why != store.Gone
	in.Greater = m.greater
	if c := contentOf(d.b); c != nil {
		in.Base, in.BaseShown = &meta.Version{Content: c, Time: unknownTime}, true
	}
	if err := m.readItems(d); err != nil {
		return nil, err
	}
	if in.Local, err = m.side(d, d.l, d.mine, true); err != nil {
		return nil, err
	}
	if in.Remote, err = m.side(d, d.r, d.theirs, false); err != nil {
		return nil, err
	}
	if err := m.deepBase(d); err != nil {
		return nil, err
	}
	d.unclear = d.theirs != nil && d.theirs.unclear && !in.Remote.Shown
	d.out = meta.Merge(*in)
	if d.private {
		d.out.Load, d.out.Unload = false, false
	}
	return d, nil
}

// retained reports whether another clone's retention took the value that the key has.
func (d *mergedKey) retained() bool {
	v, was := d.out.Result, d.in.Base
	return d.theirs != nil && d.theirs.swept && v != nil && was != nil && v.Content.Same(was.Content)
}

// unknownTime marks the time of a value that the lines did not touch: it is looked up
// where it is needed.
const unknownTime = -1

// side says what one line says of a key: s is its tree's state, l what the line did. On
// the local side the row counts too.
func (m *merger) side(d *mergedKey, s *keyState, l *keyLine, local bool) (meta.Side, error) {
	var out meta.Side
	row, base := d.row, d.in.Base
	if !local {
		row = nil
	}
	if l != nil {
		out.Removed, out.RemovedAt = l.removed, l.removedAt
	}
	c := contentOf(s)
	if c != nil && l != nil && l.pruned && c.Type != meta.String && len(c.Items) == 0 {
		c = nil
	}
	if c != nil {
		out.Shown = true
		out.Last = &meta.Version{Content: c, Time: unknownTime}
		switch {
		case l != nil && l.tree != zero:
			out.Last.Time, out.Last.Email = l.time, l.email
		case row != nil:
			out.Last.Time = row.Time
		}
		return out, nil
	}
	switch {
	case local && d.parked: // no last value (design §8)
	case row != nil:
		c := contentOf(d.rowState())
		if c == nil { // an empty collection whose tombstones are gone
			c = &meta.Content{Type: row.Value.Type}
		}
		out.Last = &meta.Version{Content: c, Time: row.Time}
	case l != nil && l.tree != zero:
		look := lookup{ctx: m.ctx, rd: m.rd, root: l.tree}
		last, err := readKey(&look, d.KeyRef)
		if err != nil {
			return out, err
		}
		if c := contentOf(last); c != nil {
			out.Last = &meta.Version{Content: c, Time: l.time, Email: l.email}
		}
	case l != nil && l.gone:
	case base != nil:
		out.Last = base
	}
	return out, nil
}

// readItems reads the tombstones of the row's items.
func (m *merger) readItems(d *mergedKey) error {
	if d.row == nil || d.row.Value.Type == meta.String {
		return nil
	}
	tombs, err := m.tx.Tombstones(d.KeyRef)
	d.items = make(map[string]meta.Tombstone, len(tombs))
	for _, t := range tombs {
		if t.Kind == meta.MemberTombstone && d.row.Value.Type == meta.Set && t.Name == meta.MemberID(t.Member) ||
			t.Kind == meta.EntryTombstone && d.row.Value.Type == meta.List && meta.IsEntryName(t.Name) {
			d.items[t.Name] = t
		}
	}
	return err
}

// rowState returns the state that the row has in a tree, with the tombstones of its items.
func (d *mergedKey) rowState() *keyState {
	s := stateOf(d.row.Value)
	s.gone, s.popped = map[string]gitdb.Hash{}, map[string]gitdb.Hash{}
	for name, t := range d.items {
		id := gitdb.HashObject(blobObject, itemTombstone(t))
		if t.Kind == meta.MemberTombstone {
			s.gone[name] = id
		} else {
			s.popped[name] = id
		}
	}
	return s
}

// itemTombstone returns the blob of a member's or entry's tombstone.
func itemTombstone(t meta.Tombstone) []byte {
	if t.Kind == meta.MemberTombstone {
		return []byte(t.Member)
	}
	return meta.EncodeTombstone(t.Time, t.Email, false)
}

// deepBase finds the value that a key without one at the base last had before it, where
// the decision depends on it: two sides that differ, or a removal against a value.
func (m *merger) deepBase(d *mergedKey) error {
	in := &d.in
	mine, theirs := in.Local.Last, in.Remote.Last
	conflict := mine != nil && theirs != nil && !mine.Content.Same(theirs.Content) || mine != nil && d.theirs != nil && d.theirs.swept ||
		mine == nil && theirs != nil && in.Local.Removed || theirs == nil && mine != nil && in.Remote.Removed
	if in.Base != nil || m.base == zero || !conflict {
		return nil
	}
	var removed bool
	return history(m.ctx, m.rd, m.base, zero, func(s step) (bool, error) {
		look := lookup{ctx: m.ctx, rd: m.rd, root: s.commit.Tree}
		state, err := readKey(&look, d.KeyRef)
		if err != nil {
			return false, err
		}
		removed = removed || state != nil && state.tomb != zero || slices.Contains(removals(s.commit.Message), d.KeyRef)
		if removed {
			return false, nil
		}
		if c := contentOf(state); c != nil {
			in.Base = &meta.Version{Content: c, Time: unknownTime}
			return false, nil
		}
		return !isRetentionCommit(s.commit.Message) || !m.droppedIn(s, d.KeyRef), nil
	})
}

// droppedIn reports whether the commit took the key's value away.
func (m *merger) droppedIn(s step, k meta.KeyRef) bool {
	look := lookup{ctx: m.ctx, rd: m.rd, root: s.before}
	state, err := readKey(&look, k)
	_, had := state.kind()
	return err == nil && had
}

// greater compares two strings by their text.
func (m *merger) greater(a, b *meta.Content) bool {
	read := func(c *meta.Content) string {
		id, ok := gitdb.ParseHash(c.Text)
		if !ok {
			return c.Text
		}
		_, data, err := m.rd.Read(m.ctx, id)
		if err != nil {
			return c.Text
		}
		return string(data)
	}
	return read(a) > read(b)
}

// resolveTimes fills in the times of values that neither line touched.
func (m *merger) resolveTimes() error {
	want := map[meta.KeyRef]bool{}
	for _, d := range m.keys {
		if v := d.out.Result; v != nil && v.Time == unknownTime {
			want[d.KeyRef] = true
		}
	}
	if len(want) == 0 {
		return nil
	}
	from := m.base
	if from == zero {
		from = m.remote
	}
	known, err := origins(m.ctx, m.rd, from, want)
	if err != nil {
		return err
	}
	for _, d := range m.keys {
		v := d.out.Result
		if v == nil || v.Time != unknownTime {
			continue
		}
		c := *v
		c.Time = 0
		if o, ok := known[d.KeyRef]; ok {
			c.Time, c.Email = o.time, o.email
		}
		d.out.Result = &c
	}
	return nil
}
