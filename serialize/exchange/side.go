package exchange

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// SideImport is what was taken over from a side remote.
type SideImport struct {
	UpToDate bool // the commit was read before
	Loaded   int  // rows written, or in a dry run to be written
	Skipped  int  // keys that have a value of our own
}

// sideBatch is how many keys are written in one transaction: others may write between.
const sideBatch = 5000

// sideKey is a key of a side remote's tree, by ids.
type sideKey struct {
	meta.KeyRef
	value   gitdb.Hash
	entries map[string]gitdb.Hash
	members map[gitdb.Hash]bool
}

// importSide reads a side remote's tree into rows that name ref as their source and are
// never published. Only values count: tombstones and absences there change nothing here.
// Keys with a row of our own stay ours. Not taken over are the project's settings
// (meta:…), which would steer this repository, and local keys. Edit times and authors
// are those of the history.
func importSide(ctx context.Context, env *serialize.Env, ref string, dryRun bool) (*SideImport, error) {
	res := &SideImport{}
	tip, err := env.Repo.Ref(ctx, ref)
	if err != nil {
		return nil, err
	}
	rd, err := env.Repo.Objects(ctx)
	if err != nil {
		return nil, err
	}
	// The cursor of a tracking ref says which commit has been read.
	err = env.DB.View(ctx, func(tx *store.Tx) error {
		cur, ok, err := tx.LatestCursor(ref)
		res.UpToDate = ok && cur.Commit == tip.String()
		return err
	})
	if err != nil || res.UpToDate {
		return res, err
	}
	commit, err := rd.Commit(ctx, tip)
	if err != nil {
		return nil, err
	}
	keys, err := sideKeys(ctx, env, rd, commit.Tree)
	if err != nil {
		return nil, err
	}
	want := map[meta.KeyRef]bool{}
	err = env.DB.View(ctx, func(tx *store.Tx) error {
		keys = slices.DeleteFunc(keys, func(k *sideKey) bool {
			if err != nil {
				return true
			}
			var open, ours bool
			open, ours, err = k.open(tx, ref)
			if ours {
				res.Skipped++
			}
			want[k.KeyRef] = open
			return !open
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	if dryRun {
		res.Loaded = len(keys)
		return res, nil
	}
	maps.DeleteFunc(want, func(_ meta.KeyRef, open bool) bool { return !open })
	times, err := serialize.KeyTimes(ctx, rd, tip, want)
	if err != nil {
		return nil, err
	}
	for batch := range slices.Chunk(keys, sideBatch) {
		values := make([]*meta.Value, len(batch))
		for i, k := range batch {
			v, err := k.read(ctx, rd)
			switch {
			case err == nil:
				values[i] = &v
			case ctx.Err() != nil || errors.Is(err, gitdb.ErrObjectMissing):
				return nil, fmt.Errorf("read %s: %w", k.KeyRef, err)
			default:
				env.Warnf("%s: %s: %v; not taken over", ref, k.KeyRef, err)
			}
		}
		err = env.DB.Update(ctx, func(tx *store.Tx) error {
			for i, k := range batch {
				if values[i] == nil {
					continue
				}
				open, _, err := k.open(tx, ref)
				if err != nil {
					return err
				}
				if !open {
					continue // somebody was faster
				}
				ms, ok := times[k.KeyRef]
				if !ok {
					ms = commit.Author.When.Unix() * 1000
				}
				err = tx.Put(k.KeyRef, *values[i], store.Edit{Email: commit.Author.Email, Time: ms}, store.PutOptions{SourceRef: ref, NoLog: true, KeepWithheld: true})
				if errors.Is(err, meta.ErrInvalid) {
					env.Warnf("%s: %s: %v; not taken over", ref, k.KeyRef, err)
					continue
				}
				if err != nil {
					return err
				}
				res.Loaded++
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return res, env.DB.Update(ctx, func(tx *store.Tx) error {
		if err := tx.DeleteCursors(ref); err != nil {
			return err
		}
		return tx.PutCursor(store.Cursor{Ref: ref, Commit: tip.String(), PruneChecked: true})
	})
}

// sideKeys returns the keys of a tree that have a value, sorted.
func sideKeys(ctx context.Context, env *serialize.Env, rd *gitdb.Reader, tree gitdb.Hash) ([]*sideKey, error) {
	found := map[meta.KeyRef]*sideKey{}
	odd := map[string]error{}
	err := serialize.WalkTree(ctx, rd, tree, func(l serialize.Leaf) error {
		p, err := l.Decode()
		if err != nil {
			odd[l.Path] = err
			return nil
		}
		if p.Kind != meta.PathValue && p.Kind != meta.PathEntry && p.Kind != meta.PathMember || meta.IsLocal(p.Key) ||
			p.Target.Type == meta.Project && meta.InNamespace(p.Key, "meta") {
			return nil
		}
		k := found[p.KeyRef]
		if k == nil {
			k = &sideKey{KeyRef: p.KeyRef, entries: map[string]gitdb.Hash{}, members: map[gitdb.Hash]bool{}}
			found[p.KeyRef] = k
		}
		switch p.Kind {
		case meta.PathValue:
			k.value = l.Hash
		case meta.PathEntry:
			k.entries[p.Name] = l.Hash
		default:
			k.members[l.Hash] = true
		}
		return nil
	})
	env.WarnOdd(odd, "not taken over")
	return slices.SortedFunc(maps.Values(found), func(a, b *sideKey) int { return a.Compare(b.KeyRef) }), err
}

// open reports whether the key is to be written: there is no row, or an older one of the
// same source. ours says that there is a row of our own, or of another side remote.
func (k *sideKey) open(tx *store.Tx, ref string) (open, ours bool, err error) {
	row, ok, err := tx.Row(k.KeyRef)
	if err != nil {
		return false, false, err
	}
	if !ok || row.Promised {
		// local-pruned or swept: the value of our own is in the tree
		_, held, err := tx.Withheld(k.KeyRef)
		return !held, held, err
	}
	if row.SourceRef != ref {
		return false, true, nil
	}
	rec, err := tx.Get(k.KeyRef)
	return err == nil && !k.holds(rec.Value), false, err
}

// holds reports whether v is the value of the key.
func (k *sideKey) holds(v meta.Value) bool {
	blob := func(s string) gitdb.Hash { return gitdb.HashObject(gitdb.BlobObject, []byte(s)) }
	switch {
	case !k.value.IsZero():
		return v.Type == meta.String && blob(v.String) == k.value
	case len(k.entries) > 0:
		if v.Type != meta.List || len(v.Entries) != len(k.entries) {
			return false
		}
		return !slices.ContainsFunc(v.Entries, func(e meta.Entry) bool { return k.entries[e.Name()] != blob(e.Value) })
	}
	if v.Type != meta.Set || len(v.Members) != len(k.members) {
		return false
	}
	return !slices.ContainsFunc(v.Members, func(m string) bool { return !k.members[blob(m)] })
}

// read reads the value: a string beats a list beats a set.
func (k *sideKey) read(ctx context.Context, rd *gitdb.Reader) (v meta.Value, err error) {
	text := func(id gitdb.Hash) string {
		if err != nil {
			return ""
		}
		var data []byte
		if _, data, err = rd.Read(ctx, id); err == nil && !utf8.Valid(data) {
			err = errors.New("not valid UTF-8")
		}
		return string(data)
	}
	switch {
	case !k.value.IsZero():
		v = meta.Value{Type: meta.String, String: text(k.value)}
	case len(k.entries) > 0:
		v.Type = meta.List
		for _, name := range slices.Sorted(maps.Keys(k.entries)) {
			ms, ok := meta.EntryTime(name)
			if !ok {
				return v, fmt.Errorf("list entry %s: the time does not fit", name)
			}
			v.Entries = append(v.Entries, meta.Entry{Time: ms, Value: text(k.entries[name])})
		}
		slices.SortStableFunc(v.Entries, func(a, b meta.Entry) int { return int(min(max(a.Time-b.Time, -1), 1)) })
	default:
		v.Type = meta.Set
		for id := range k.members {
			v.Members = append(v.Members, text(id))
		}
		slices.Sort(v.Members)
	}
	return v, err
}
