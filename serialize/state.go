package serialize

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// stateOf returns the state that v has in a tree.
func stateOf(v meta.Value) *keyState {
	s := &keyState{}
	switch v.Type {
	case meta.String:
		s.value = gitdb.HashObject(blobObject, []byte(v.String))
	case meta.List:
		s.entries = make(map[string]gitdb.Hash, len(v.Entries))
		for _, e := range v.Entries {
			s.entries[e.Name()] = gitdb.HashObject(blobObject, []byte(e.Value))
		}
	case meta.Set:
		s.members = make(map[string]gitdb.Hash, len(v.Members))
		for _, m := range v.Members {
			id := gitdb.HashObject(blobObject, []byte(m))
			s.members[id.String()] = id
		}
	}
	return s
}

// sameValue reports whether a and b hold the same value; both may be nil.
func sameValue(a, b *keyState) bool {
	ka, oka := a.kind()
	kb, okb := b.kind()
	if !oka || !okb {
		return oka == okb
	}
	if ka != kb {
		// an empty collection is the same whatever its type
		return ka != meta.String && kb != meta.String && a.size()+b.size() == 0
	}
	switch ka {
	case meta.String:
		return a.value == b.value
	case meta.List:
		return maps.Equal(a.entries, b.entries)
	}
	return sameMembers(a.members, b.members)
}

func (s *keyState) size() int { return len(s.entries) + len(s.members) }

// sameMembers compares by content: names are not trusted.
func sameMembers(a, b map[string]gitdb.Hash) bool {
	return len(a) == len(b) && maps.Equal(byContent(a), byContent(b))
}

func byContent(m map[string]gitdb.Hash) map[gitdb.Hash]bool {
	out := make(map[gitdb.Hash]bool, len(m))
	for _, id := range m {
		out[id] = true
	}
	return out
}

// sameRow reports whether the row value v is what the tree state s holds. An empty
// collection of the store has no path in a tree.
func sameRow(v meta.Value, s *keyState) bool {
	r := stateOf(v)
	if _, ok := s.kind(); !ok {
		return v.Type != meta.String && r.size() == 0
	}
	if v.Type != meta.String && r.size() == 0 {
		return s.value == zero && s.size() == 0
	}
	return sameValue(r, s)
}

// readValue reads the blobs of s. The error says which path can't be taken over.
func readValue(ctx context.Context, rd gitdb.Objects, s *keyState) (meta.Value, error) {
	t, ok := s.kind()
	if !ok {
		return meta.Value{}, meta.ErrNotFound
	}
	v := meta.Value{Type: t}
	text := func(id gitdb.Hash) (string, error) {
		_, data, err := rd.Read(ctx, id)
		if err != nil {
			return "", err
		}
		if !utf8.Valid(data) {
			return "", fmt.Errorf("blob %s is not valid UTF-8", id)
		}
		return string(data), nil
	}
	var err error
	switch t {
	case meta.String:
		v.String, err = text(s.value)
		return v, err
	case meta.List:
		for _, name := range slices.Sorted(maps.Keys(s.entries)) {
			value, err := text(s.entries[name])
			if err != nil {
				return v, err
			}
			ms, ok := meta.EntryTime(name)
			if !ok {
				return v, fmt.Errorf("list entry %s: the time does not fit", name)
			}
			v.Entries = append(v.Entries, meta.Entry{Time: ms, Value: value})
		}
		meta.SortEntries(v.Entries)
	case meta.Set:
		for _, id := range s.members {
			value, err := text(id)
			if err != nil {
				return v, err
			}
			v.Members = append(v.Members, value)
		}
		slices.Sort(v.Members)
		v.Members = slices.Compact(v.Members)
	}
	return v, nil
}

// readTombstones reads the tombstones of s. Those that can't be read are left out.
func readTombstones(ctx context.Context, rd gitdb.Objects, ref meta.KeyRef, s *keyState, when int64, email string) ([]meta.Tombstone, error) {
	var out []meta.Tombstone
	read := func(id gitdb.Hash) ([]byte, error) {
		_, data, err := rd.Read(ctx, id)
		return data, err
	}
	if s.tomb != zero {
		data, err := read(s.tomb)
		if err != nil {
			return nil, err
		}
		if ms, mail, explicit, err := meta.DecodeTombstone(data); err == nil {
			out = append(out, meta.Tombstone{Kind: meta.KeyTombstone, KeyRef: ref, Time: ms, Email: mail, Explicit: explicit})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.popped)) {
		data, err := read(s.popped[name])
		if err != nil {
			return nil, err
		}
		if ms, mail, _, err := meta.DecodeTombstone(data); err == nil {
			out = append(out, meta.Tombstone{Kind: meta.EntryTombstone, KeyRef: ref, Name: name, Time: ms, Email: mail})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.gone)) {
		data, err := read(s.gone[name])
		if err != nil {
			return nil, err
		}
		if utf8.Valid(data) && meta.MemberID(string(data)) == name {
			out = append(out, meta.Tombstone{Kind: meta.MemberTombstone, KeyRef: ref, Name: name, Member: string(data), Time: when, Email: email})
		}
	}
	return out, nil
}
