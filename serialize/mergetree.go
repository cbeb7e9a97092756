package serialize

import (
	"bytes"
	"fmt"
	"maps"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// settle works out what the published history says of every decided key: first, in the
// commit that brings the local changes, and final, after what is pruned has gone again.
func (m *merger) settle() error {
	for _, d := range m.keys {
		rest, err := m.restTombstone(d)
		if err != nil {
			return err
		}
		left := d.left()
		value := d.state(left)
		without := &keyState{tomb: rest, gone: left.gone, popped: left.popped}
		theirs := d.in.Remote
		if d.out.Result != nil && !d.in.Both() {
			without.tomb = zero // an edit that stood against a removal leaves no tombstone
		}
		if without.tomb == zero { // alone, item tombstones would say that the key is empty
			without.gone, without.popped = nil, nil
		}
		removedHere := d.mine != nil && d.mine.removed
		v := d.out.Result
		switch {
		case v != nil && d.out.Shown:
			d.first, d.final = value, value
		case v != nil && (d.mine == nil || d.retained()): // nothing here to publish: only the row stays
			d.first, d.final = d.r, d.r
		case v != nil && (theirs.Shown || theirs.Last == nil || !sameVersion(v, theirs.Last)):
			d.first, d.final = value, without
		case v == nil && theirs.Shown && !removedHere && !d.out.Unload: // swept here
			d.first, d.final = d.r, without
		default:
			d.first, d.final = without, without
		}
		if v != nil || !removedHere {
			continue
		}
		unknown := theirs.Last != nil || !theirs.Removed
		if !sameState(d.first, d.r) || unknown || d.mine.removedAt > theirs.RemovedAt {
			if err := m.bury(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// left returns the merged tombstones of the key's items, whatever its type.
func (d *mergedKey) left() *keyState {
	return &keyState{
		gone:   threeWayIDs(maps3(d, func(s *keyState) map[string]gitdb.Hash { return s.gone })),
		popped: threeWayIDs(maps3(d, func(s *keyState) map[string]gitdb.Hash { return s.popped })),
	}
}

// sameVersion reports whether v is what the remote line had last. A time that its line
// did not touch is that of the base.
func sameVersion(v, last *meta.Version) bool {
	return v.Content.Same(last.Content) && maps.Equal(v.Content.Gone, last.Content.Gone) &&
		(v.Time == last.Time || last.Time == unknownTime)
}

// state returns the tree state of the merged value, with the tombstones left beside it.
func (d *mergedKey) state(left *keyState) *keyState {
	v := d.out.Result
	if v == nil {
		return nil
	}
	s := &keyState{gone: left.gone, popped: left.popped}
	ids := func(m map[string]string) map[string]gitdb.Hash {
		out := make(map[string]gitdb.Hash, len(m))
		for name, hex := range m {
			out[name], _ = gitdb.ParseHash(hex)
		}
		return out
	}
	switch c := v.Content; c.Type {
	case meta.String:
		s.value, _ = gitdb.ParseHash(c.Text)
	case meta.List:
		s.entries, s.popped = ids(c.Items), ids(c.Gone)
	case meta.Set:
		s.members, s.gone = ids(c.Items), ids(c.Gone)
	}
	for name := range s.entries {
		delete(s.popped, name)
	}
	for name := range s.members {
		delete(s.gone, name)
	}
	return s
}

func maps3(d *mergedKey, get func(*keyState) map[string]gitdb.Hash) (b, l, r map[string]gitdb.Hash) {
	of := func(s *keyState) map[string]gitdb.Hash {
		if s == nil {
			return nil
		}
		return get(s)
	}
	return of(d.b), of(d.l), of(d.r)
}

// threeWayIDs merges tombstones: dropped by one side is dropped, both changed: the
// greater id, so that the result is the same on both sides.
func threeWayIDs(b, l, r map[string]gitdb.Hash) map[string]gitdb.Hash {
	out := map[string]gitdb.Hash{}
	for _, m := range []map[string]gitdb.Hash{l, r} {
		for name := range m {
			if id := threeWayID(b[name], l[name], r[name]); id != zero {
				out[name] = id
			}
		}
	}
	return out
}

func threeWayID(b, l, r gitdb.Hash) gitdb.Hash {
	switch {
	case l == b:
		return r
	case r == b || l == r:
		return l
	case bytes.Compare(l[:], r[:]) > 0:
		return l
	}
	return r
}

// restTombstone merges the key's own tombstone: both changed: the later, then the greater
// id.
func (m *merger) restTombstone(d *mergedKey) (gitdb.Hash, error) {
	of := func(s *keyState) gitdb.Hash {
		if _, has := s.kind(); s == nil || has {
			return zero
		}
		return s.tomb
	}
	b, l, r := of(d.b), of(d.l), of(d.r)
	if l == b || r == b || l == r {
		return threeWayID(b, l, r), nil
	}
	tl, err := m.tombTime(l)
	if err != nil {
		return zero, err
	}
	tr, err := m.tombTime(r)
	if err != nil {
		return zero, err
	}
	switch {
	case tl > tr:
		return l, nil
	case tr > tl:
		return r, nil
	}
	return threeWayID(zero, l, r), nil
}

// tombTime returns the time a tombstone blob says, -1 for none.
func (m *merger) tombTime(id gitdb.Hash) (int64, error) {
	if id == zero {
		return -1, nil
	}
	_, data, err := m.rd.Read(m.ctx, id)
	if err != nil {
		return 0, err
	}
	ms, _, _, err := meta.DecodeTombstone(data)
	if err != nil {
		return -1, nil
	}
	return ms, nil
}

// bury makes the serialize commit tell of a removal made here, with its tombstone.
func (m *merger) bury(d *mergedKey) error {
	d.dead, d.deadTime = true, d.mine.removedAt
	old := zero
	if d.first != nil {
		old = d.first.tomb
	}
	t, err := m.tombTime(old)
	if err != nil || t >= d.deadTime {
		return err
	}
	s := keyState{}
	if d.first != nil {
		s = *d.first
	}
	if d.mine.removedBy != zero {
		look := lookup{ctx: m.ctx, rd: m.rd, root: d.mine.removedBy}
		was, err := readKey(&look, d.KeyRef)
		if err != nil {
			return err
		}
		if was != nil {
			s.tomb = was.tomb
		}
	}
	if s.tomb == old {
		d.tombstone = meta.EncodeTombstone(d.deadTime, "unknown", false)
		s.tomb = gitdb.HashObject(blobObject, d.tombstone)
	}
	d.first = &s
	return nil
}

func sameState(a, b *keyState) bool {
	if a == nil {
		a = &keyState{}
	}
	if b == nil {
		b = &keyState{}
	}
	return a.value == b.value && a.tomb == b.tomb && maps.Equal(a.entries, b.entries) &&
		maps.Equal(a.members, b.members) && maps.Equal(a.gone, b.gone) && maps.Equal(a.popped, b.popped)
}

// addState makes the builder's tree say s of the key.
func (b *builder) addState(d *mergedKey, s *keyState, ms int64) error {
	base := d.Target.BasePath()
	k := meta.KeyPath(base, d.Key)
	i := int32(len(b.ed.keys))
	_, has := s.kind()
	if !has && !d.dead {
		ms = 0 // an absence, no removal
	}
	b.ed.keys = append(b.ed.keys, keyEdit{KeyRef: d.KeyRef, path: k, time: ms, explicit: d.dead && !has})
	b.rows = append(b.rows, has)
	b.force = append(b.force, d.dead && !has)
	ops := appendClears(nil, base, k, d.Key, i)
	for _, alias := range b.look.aliases(d.Target) {
		b.upper = appendClears(b.upper, alias, meta.KeyPath(alias, d.Key), d.Key, i)
	}
	put := func(path string, id gitdb.Hash, value bool) {
		ops = append(ops, op{path: path, kind: opPut, mode: modeBlob, have: true, value: value, key: i, id: id})
	}
	if s != nil {
		if s.value != zero {
			put(meta.ValuePath(k), s.value, true)
		}
		for name, id := range s.entries {
			put(meta.ListPath(k)+"/"+name, id, true)
		}
		for _, id := range s.members {
			put(meta.SetPath(k)+"/"+id.String(), id, true)
		}
		for name, id := range s.popped {
			put(meta.ListTombstonesPath(k)+"/"+name, id, false)
		}
		for name, id := range s.gone {
			put(meta.MemberTombstonesPath(k)+"/"+name, id, false)
		}
		if s.tomb != zero && !has {
			put(meta.TombstonePath(base, d.Key), s.tomb, false)
		}
		if has {
			ops = appendMarker(ops, d.Target)
		}
	}
	b.upper = append(b.upper, ops...)
	return nil
}

// odd merges by path what no reader of ours understands: what only this side changed is
// taken over, what both changed goes by the greater blob id.
func (m *merger) odd() ([]op, error) {
	collect := func(from, to gitdb.Hash) (map[string]leafDiff, error) {
		out := map[string]leafDiff{}
		err := diffLeaves(m.ctx, m.rd, from, to, "", 0, func(d leafDiff) error {
			if p, err := d.leaf.Decode(); err != nil || meta.IsLocal(p.Key) {
				out[d.leaf.Path] = d
			}
			return nil
		})
		return out, err
	}
	if m.localTree == zero {
		return nil, nil
	}
	mine, err := collect(m.baseTree, m.localTree)
	if err != nil || len(mine) == 0 {
		return nil, err
	}
	theirs, err := collect(m.baseTree, m.remoteTree)
	if err != nil {
		return nil, err
	}
	var ops []op
	for path, d := range mine {
		if t, both := theirs[path]; both && bytes.Compare(t.new[:], d.new[:]) >= 0 {
			continue
		}
		if d.new == zero {
			ops = append(ops, op{path: path, kind: opDelete, key: -1})
		} else {
			ops = append(ops, op{path: path, kind: opPut, mode: d.leaf.Mode, have: true, key: -1, id: d.new})
		}
	}
	return ops, nil
}

// keepLosers publishes, before the merge, the values that lost to a later edit or removal
// on the remote: its own losers are in its history already, these would be in nobody's
// (design §8: the loser stays in history). The merge then goes on from there.
func (m *merger) keepLosers() error {
	var losers []*mergedKey
	for _, d := range m.keys {
		o := &d.out
		if o.Resolution != "remote" || o.Loser == nil || !d.in.Local.Shown {
			continue
		}
		removed := o.Result == nil && d.r != nil && d.r.tomb != zero && d.first != nil && d.first.tomb == d.r.tomb
		if removed || o.Result != nil && o.Shown && d.in.Remote.Shown {
			losers = append(losers, d)
		}
	}
	if len(losers) == 0 {
		return nil
	}
	w, err := m.env.Repo.NewWriter(m.ctx)
	if err != nil {
		return err
	}
	m.early = w
	b := newBuilder(m.ctx, m.rd, w, m.remoteTree)
	b.fresh = false
	for _, d := range losers {
		if err := b.addState(d, d.l, d.out.Loser.Time); err != nil {
			return err
		}
	}
	tree, err := b.finish()
	if err != nil {
		return err
	}
	lines, times := b.changed(false)
	data, err := m.env.serializeCommit(m.ctx, tree, m.remote, lines, times)
	if err != nil {
		return err
	}
	m.remote, m.remoteTree = gitdb.HashObject(commitObject, data), tree
	if err := w.Put(commitObject, m.remote, data); err != nil {
		return err
	}
	for _, d := range losers {
		d.r = d.l
	}
	return w.Finish(m.ctx)
}

// merged is what the published history becomes: up to four commits on the remote tip,
// one with the local values that lost, the merge, a prune, a retention.
type merged struct {
	tip, tree gitdb.Hash
	lines     []line
}

// write builds the commits on the remote tip. Without local changes there are none.
func (m *merger) write(w *gitdb.Writer) (*merged, error) {
	out := &merged{tip: m.remote, tree: m.remoteTree}
	if m.local == zero {
		return out, nil
	}
	odd, err := m.odd()
	if err != nil {
		return nil, err
	}
	build := func(pick func(*mergedKey) *keyState) (*builder, gitdb.Hash, error) {
		b := newBuilder(m.ctx, m.rd, w, m.remoteTree)
		b.fresh = false
		for _, d := range m.keys {
			s := pick(d)
			if sameState(s, d.r) && !d.dead {
				continue
			}
			ms := d.deadTime
			if v := d.out.Result; v != nil {
				ms = v.Time
			}
			if err := b.addState(d, s, ms); err != nil {
				return nil, zero, err
			}
			if d.tombstone != nil {
				if err := w.Put(blobObject, gitdb.HashObject(blobObject, d.tombstone), d.tombstone); err != nil {
					return nil, zero, err
				}
			}
			if err := m.putRow(w, d); err != nil {
				return nil, zero, err
			}
		}
		b.upper = append(b.upper, odd...)
		tree, err := b.finish()
		return b, tree, err
	}
	b, first, err := build(func(d *mergedKey) *keyState { return d.first })
	if err != nil {
		return nil, err
	}
	lines, times := b.changed(false)
	commit := func(data []byte, tree gitdb.Hash) error {
		id := gitdb.HashObject(commitObject, data)
		out.tip, out.tree = id, tree
		return w.Put(commitObject, id, data)
	}
	if first != m.remoteTree || len(lines) > 0 {
		if first == zero {
			first = m.remoteTree
		}
		out.lines = lines
		data, err := m.env.serializeCommit(m.ctx, first, m.remote, lines, times)
		if err != nil {
			return nil, err
		}
		if err := commit(data, first); err != nil {
			return nil, err
		}
	}
	held := func(d *mergedKey) *keyState { return d.first }
	pruned := func(d *mergedKey) *keyState {
		if d.mine != nil && d.mine.swept {
			return d.first
		}
		return d.final
	}
	final := func(d *mergedKey) *keyState { return d.final }
	for _, stage := range []struct {
		from, pick func(*mergedKey) *keyState
		message    func(dropped int64) (string, error)
	}{{held, pruned, m.pruneMessage}, {pruned, final, m.retentionMessage}} {
		_, tree, err := build(stage.pick)
		if err != nil {
			return nil, err
		}
		if tree == out.tree {
			continue
		}
		msg, err := stage.message(m.dropped(stage.from, stage.pick))
		if err != nil {
			return nil, err
		}
		data, err := m.env.PruneCommit(m.ctx, tree, out.tip, msg)
		if err != nil {
			return nil, err
		}
		if err := commit(data, tree); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// putRow writes the blobs of a merged value that only the store holds.
func (m *merger) putRow(w *gitdb.Writer, d *mergedKey) error {
	if d.row == nil || d.parked || d.out.Result == nil || d.in.Local.Shown {
		return nil
	}
	var blobs [][]byte
	for _, item := range d.row.Value.Items() {
		blobs = append(blobs, []byte(item))
	}
	for _, t := range d.items {
		blobs = append(blobs, itemTombstone(t))
	}
	for _, data := range blobs {
		id := gitdb.HashObject(blobObject, data)
		if m.rd.Has(m.ctx, id) {
			continue
		}
		if err := w.Put(blobObject, id, data); err != nil {
			return err
		}
	}
	return nil
}

// dropped returns the number of keys, without those of the project, that have a value by
// from and none by to.
func (m *merger) dropped(from, to func(*mergedKey) *keyState) (n int64) {
	for _, d := range m.keys {
		_, had := from(d).kind()
		if _, has := to(d).kind(); had && !has && d.Target.Type != meta.Project {
			n++
		}
	}
	return n
}

// pruneMessage returns the message of the local line's newest prune, with the number of
// keys that this merge drops.
func (m *merger) pruneMessage(dropped int64) (string, error) {
	n := len(m.mine.prunes)
	if n == 0 {
		return "git-meta: auto-prune\n\n" + prunedLine, nil
	}
	lines := strings.Split(m.mine.prunes[n-1].Message, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "keys-dropped: ") {
			lines[i] = fmt.Sprintf("keys-dropped: %d", dropped)
		}
	}
	return strings.Join(lines, "\n"), nil
}

func (m *merger) retentionMessage(dropped int64) (string, error) {
	left, err := shownKeys(m.tx)
	for _, d := range m.keys { // the store is as it was before the merge
		was := (d.row != nil) != d.in.Withheld
		switch _, is := d.final.kind(); {
		case is && !was:
			left++
		case was && !is:
			left--
		}
	}
	return retentionMessage(dropped, max(0, left)), err
}
