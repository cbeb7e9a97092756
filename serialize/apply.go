package serialize

import (
	"fmt"
	"unicode/utf8"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// load is a row to be written, with its text read.
type load struct {
	value meta.Value
	gone  []meta.Tombstone
}

// needsLoad reports whether the store's row differs from the merged value.
func (d *mergedKey) needsLoad() bool {
	if !d.out.Load || d.out.Result == nil {
		return false
	}
	v := d.out.Result
	return d.row == nil || d.row.Time != v.Time || !contentOf(stateOf(d.row.Value)).Same(v.Content) && !emptyBoth(d.row.Value, v.Content)
}

func emptyBoth(v meta.Value, c *meta.Content) bool {
	return v.Type != meta.String && c.Type != meta.String && len(v.Entries)+len(v.Members)+len(c.Items) == 0
}

// readLoads reads the text of the rows to be written, before the store is locked. What
// can't be taken over is reported and left as it is in the tree.
func (m *merger) readLoads() (map[meta.KeyRef]load, error) {
	out := map[meta.KeyRef]load{}
	for _, d := range m.keys {
		if !d.needsLoad() {
			continue
		}
		l, err := m.readLoad(d)
		if err != nil {
			if m.ctx.Err() != nil {
				return nil, m.ctx.Err()
			}
			m.env.Warnf("%s: %v; left as it is in the tree", d.KeyRef, err)
			continue
		}
		out[d.KeyRef] = l
	}
	return out, nil
}

func (m *merger) readLoad(d *mergedKey) (l load, err error) {
	c := d.out.Result.Content
	if d.row != nil && contentOf(stateOf(d.row.Value)).Same(c) {
		l.value = d.row.Value
	} else if l.value, err = readValue(m.ctx, m.rd, d.state(&keyState{})); err != nil {
		return l, err
	}
	for name, hex := range c.Gone {
		if own, ok := d.items[name]; ok && gitdb.HashObject(blobObject, itemTombstone(own)).String() == hex {
			l.gone = append(l.gone, own)
			continue
		}
		t := meta.Tombstone{KeyRef: d.KeyRef, Name: name, Time: d.out.Result.Time, Email: d.out.Result.Email}
		id, _ := gitdb.ParseHash(hex)
		_, data, err := m.rd.Read(m.ctx, id)
		if err != nil {
			return l, err
		}
		if c.Type == meta.Set {
			if !utf8.Valid(data) {
				continue
			}
			t.Kind, t.Member = meta.MemberTombstone, string(data)
		} else {
			t.Kind = meta.EntryTombstone
			if t.Time, t.Email, _, err = meta.DecodeTombstone(data); err != nil {
				continue
			}
		}
		l.gone = append(l.gone, t)
	}
	return l, nil
}

// apply writes the merge to the store.
func (m *merger) apply(tx *store.Tx, loads map[meta.KeyRef]load, res *MergeResult) error {
	for _, d := range m.keys {
		if err := m.applyOne(tx, d, loads, res); err != nil {
			return fmt.Errorf("materialize %s: %w", d.KeyRef, err)
		}
	}
	return nil
}

func (m *merger) applyOne(tx *store.Tx, d *mergedKey, loads map[meta.KeyRef]load, res *MergeResult) error {
	if d.private {
		return nil
	}
	hasRow := d.row != nil
	if l, ok := loads[d.KeyRef]; ok {
		v := d.out.Result
		email := v.Email
		if email == "" {
			var err error
			if email, _, err = tx.Author(d.KeyRef); err != nil {
				return err
			}
		}
		if err := tx.Put(d.KeyRef, l.value, store.Edit{Email: email, Time: v.Time}, store.PutOptions{KeepWithheld: true}); err != nil {
			return err
		}
		if err := m.setTombstones(tx, d.KeyRef, l.gone); err != nil {
			return err
		}
		hasRow = true
		res.Loaded++
	}
	if d.out.Unload {
		if err := m.unload(tx, d); err != nil {
			return err
		}
		if hasRow {
			res.Removed++
		}
		hasRow = false
	}
	_, shown := d.final.kind()
	switch {
	case hasRow && shown:
		return endWithheld(tx, d.KeyRef)
	case hasRow:
		why := store.Pruned
		switch {
		case d.unclear:
			why = store.Unclear
		case d.retained():
			why = store.Retained
		}
		w, withheld, err := tx.Withheld(d.KeyRef)
		if err != nil {
			return err
		}
		row, ok, err := tx.Row(d.KeyRef)
		// an entry of the same value says more: why it was withheld first
		if err != nil || !ok || withheld && w.EditTime == row.Time && w.Why != store.Pruned && why != store.Retained {
			return err
		}
		return tx.PutWithheld(store.Withheld{KeyRef: d.KeyRef, EditTime: row.Time, Why: why})
	case !shown:
		w, withheld, err := tx.Withheld(d.KeyRef)
		if err != nil || withheld && w.Why == store.Gone {
			return err
		}
		return tx.DeleteWithheld(d.KeyRef) // gone from the tree and from here
	}
	return nil
}

// setTombstones makes want the key's entry and member tombstones.
func (m *merger) setTombstones(tx *store.Tx, k meta.KeyRef, want []meta.Tombstone) error {
	have, err := tx.Tombstones(k)
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, t := range want {
		keep[string(t.Kind)+t.Name] = true
	}
	for _, t := range have {
		if t.Kind == meta.KeyTombstone {
			continue
		}
		if !keep[string(t.Kind)+t.Name] {
			if err := tx.DeleteTombstone(t); err != nil {
				return err
			}
		}
		delete(keep, string(t.Kind)+t.Name)
	}
	for _, t := range want {
		if keep[string(t.Kind)+t.Name] {
			if err := tx.PutTombstone(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// unload removes the row of a key that the remote removed, and keeps its tombstone.
func (m *merger) unload(tx *store.Tx, d *mergedKey) error {
	t := meta.Tombstone{Kind: meta.KeyTombstone, KeyRef: d.KeyRef, Time: d.in.Remote.RemovedAt, Email: "unknown"}
	if d.theirs != nil && d.theirs.removedBy != zero {
		look := lookup{ctx: m.ctx, rd: m.rd, root: d.theirs.removedBy}
		s, err := readKey(&look, d.KeyRef)
		if err != nil {
			return err
		}
		if s != nil && s.tomb != zero {
			_, data, err := m.rd.Read(m.ctx, s.tomb)
			if err != nil {
				return err
			}
			if ms, email, explicit, err := meta.DecodeTombstone(data); err == nil {
				t.Time, t.Email, t.Explicit = ms, email, explicit
			}
		}
	}
	if err := tx.DropRow(d.KeyRef, store.Edit{Email: t.Email, Time: t.Time}); err != nil {
		return err
	}
	if err := tx.DeleteWithheld(d.KeyRef); err != nil {
		return err
	}
	return tx.PutTombstone(t)
}

// report notes conflicts and unclear removals.
func (m *merger) report(res *MergeResult) {
	for _, d := range m.keys {
		if d.out.Reason != "" {
			c := Conflict{KeyRef: d.KeyRef, Reason: d.out.Reason, Resolution: d.out.Resolution}
			if l := d.out.Loser; l != nil {
				c.Loser = m.describe(d, l)
			}
			res.Conflicts = append(res.Conflicts, c)
		}
		if d.unclear && d.row != nil {
			res.Unclear = append(res.Unclear, d.KeyRef)
		}
	}
}

// describe shows a value that lost, in short.
func (m *merger) describe(d *mergedKey, v *meta.Version) string {
	if v.Content.Type != meta.String {
		return fmt.Sprintf("a %s of %d", v.Content.Type, len(v.Content.Items))
	}
	if d.row != nil && contentOf(stateOf(d.row.Value)).Same(v.Content) {
		return short(d.row.Value.String)
	}
	if id, ok := gitdb.ParseHash(v.Content.Text); ok {
		if _, data, err := m.rd.Read(m.ctx, id); err == nil {
			return short(string(data))
		}
	}
	return v.Content.Text
}

// short cuts s to 200 bytes at a character.
func short(s string) string {
	if len(s) <= 200 {
		return s
	}
	n := 200
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// preview fills in what a merge would do to the rows.
func (m *merger) preview(res *MergeResult) error {
	loads, err := m.readLoads()
	if err != nil {
		return err
	}
	for _, d := range m.keys {
		if l, ok := loads[d.KeyRef]; ok {
			res.Changes = append(res.Changes, RowChange{KeyRef: d.KeyRef, Value: l.value})
		}
		if d.out.Unload && d.row != nil {
			res.Changes = append(res.Changes, RowChange{KeyRef: d.KeyRef, Remove: true})
		}
	}
	return nil
}
