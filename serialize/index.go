package serialize

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// IndexOptions says how to index a history.
type IndexOptions struct {
	// Stop and what lies before it was indexed already; zero: the whole history.
	Stop gitdb.Hash
	// From: the commits after it were indexed already. They are read for what they
	// removed, no more. Zero: nothing was.
	From gitdb.Hash
	// Step is told of each commit that is indexed, with how many keys it lost for good;
	// nil: nobody listens.
	Step func(id gitdb.Hash, c *gitdb.Commit, lost int)
	// Checkpoint is called when everything after next is in the store, with the commits
	// read and the rows written so far; nil: never.
	Checkpoint func(next gitdb.Hash, commits, keys int) error
}

// Index is what a run of [IndexHistory] found.
type Index struct {
	Commits int        // read
	Keys    int        // promised rows written
	Known   int        // keys that had a row
	Removed int        // keys that were lost to a removal: nothing is noted of them
	Dropped int        // promised rows that went: the key is back, or was removed
	Cut     gitdb.Hash // where the history ends at a shallow cut, else zero
}

const (
	// indexBatch is the number of keys written in one transaction.
	indexBatch = 4000
	// checkpointAfter is how long a run works without saying how far it is.
	checkpointAfter = 2 * time.Second
)

// IndexHistory notes which keys the history of tip, a commit of the tracking ref, knows
// and its tree does not hold: a promised row for each names the newest commit whose tree
// has it (format.md §4.6). Keys that were removed are left out, by a D line, a tombstone
// or a retention commit, and so are settings of the project (meta:…), which no prune
// drops, and local keys. Rows with a value stay as they are.
//
// The cost follows what changed: trees are compared with their first parents', blobs are
// not read, nothing is fetched. A shallow history is read as far as it goes.
func IndexHistory(ctx context.Context, env *Env, tip gitdb.Hash, o IndexOptions) (*Index, error) {
	rd, err := env.Repo.Objects(ctx)
	if err != nil {
		return nil, err
	}
	tree, err := treeOf(ctx, rd, tip)
	if err != nil {
		return nil, err
	}
	x := &indexer{ctx: ctx, env: env, rd: rd, o: o, seen: map[meta.KeyRef]bool{}, last: time.Now()}
	x.tip = lookup{ctx: ctx, rd: rd, root: tree}
	x.writing = o.From == zero
	err = env.DB.View(ctx, func(tx *store.Tx) error {
		x.stale, err = tx.HasPromised()
		return err
	})
	if err != nil {
		return nil, err
	}
	bar := env.progress()
	bar.Start("Indexing commits", 0)
	defer bar.Done()
	err = history(ctx, rd, tip, o.Stop, func(s step) (bool, error) {
		bar.Add(1)
		return true, x.commit(s)
	})
	if err == nil {
		err = x.flush()
	}
	if err == nil {
		err = x.sweep()
	}
	return &x.Index, err
}

// indexer is one run.
type indexer struct {
	Index
	ctx     context.Context
	env     *Env
	rd      *gitdb.Reader
	o       IndexOptions
	tip     lookup
	writing bool      // From is passed
	stale   bool      // there were promised rows before
	last    time.Time // of the newest checkpoint

	// seen holds the keys whose last event is known: true for those that are promised.
	seen map[meta.KeyRef]bool
	// back holds the keys that a range of history touched and its tip holds.
	back    []meta.KeyRef
	pending []promise
	drop    []meta.KeyRef
}

// promise is a key and the commit whose tree holds it.
type promise struct {
	meta.KeyRef
	commit gitdb.Hash
}

// touch is what one commit did to a key's paths.
type touch struct {
	meta.KeyRef
	lost bool // part of a value
	tomb bool // its tombstone came, went or changed
}

// commit takes in one commit; later ones have been.
func (x *indexer) commit(s step) error {
	x.writing = x.writing || s.id == x.o.From
	x.Commits++
	lost := 0
	touched, err := x.touched(s)
	if err != nil {
		return err
	}
	after := lookup{ctx: x.ctx, rd: x.rd, root: s.commit.Tree}
	gone := map[meta.KeyRef]bool{}
	if strings.Contains(s.commit.Message, "\nD\t") {
		for _, k := range removals(s.commit.Message) {
			gone[k] = true
			if !slices.ContainsFunc(touched, func(t touch) bool { return t.KeyRef == k }) {
				touched = append(touched, touch{KeyRef: k, tomb: true})
			}
		}
	}
	retention := isRetentionCommit(s.commit.Message)
	for _, t := range touched {
		if _, done := x.seen[t.KeyRef]; done {
			continue
		}
		if !t.lost && !t.tomb {
			x.returned(t.KeyRef)
			continue
		}
		state, err := readKey(&after, t.KeyRef)
		if err != nil {
			return err
		}
		if _, has := state.kind(); has {
			x.returned(t.KeyRef)
			continue
		}
		promised := t.lost && !t.tomb && !retention && !gone[t.KeyRef] && !settled(t.KeyRef)
		if promised {
			if state, err = readKey(&x.tip, t.KeyRef); err != nil {
				return err
			}
			if _, has := state.kind(); has {
				x.returned(t.KeyRef)
				continue
			}
		}
		x.seen[t.KeyRef] = promised
		if t.lost {
			lost++
		}
		switch {
		case !promised:
			x.Removed++
			if x.stale {
				x.drop = append(x.drop, t.KeyRef)
			}
		case x.writing:
			x.pending = append(x.pending, promise{t.KeyRef, s.commit.Parents[0]})
		}
	}
	if x.o.Step != nil && x.writing {
		x.o.Step(s.id, s.commit, lost)
	}
	if s.cut {
		x.Cut = s.id
	}
	return x.checkpoint(s)
}

// settled reports whether a key is not for prunes to drop: if it is gone it was removed,
// by whatever program. The Rust program moreover fails on a promised setting.
func settled(k meta.KeyRef) bool {
	return meta.IsLocal(k.Key) || k.Target.Type == meta.Project && meta.InNamespace(k.Key, "meta")
}

// returned notes that a key is in the tip's tree: a promised row of it goes.
func (x *indexer) returned(k meta.KeyRef) {
	if x.stale && x.o.Stop != zero {
		x.seen[k] = true
		x.back = append(x.back, k)
	}
}

// listsChanges reports whether the message is one with a line for each change.
func listsChanges(msg string) bool {
	return strings.HasPrefix(msg, subjectSerialize) && strings.Contains(msg, "\t")
}

// touched returns what the commit changed, each key once, in the order of the tree. Of a
// commit whose parent is not here nothing is known.
func (x *indexer) touched(s step) ([]touch, error) {
	if s.before == zero {
		return nil, nil
	}
	var out []touch
	at := map[meta.KeyRef]int{}
	all := x.stale && x.o.Stop != zero
	// What is new has lost nothing; tombstones in it are in the list of changes too.
	into := func(old, _ gitdb.TreeEntry) bool { return old.Hash != zero }
	if all || !listsChanges(s.commit.Message) {
		into = nil
	}
	err := diffSome(x.ctx, x.rd, s.before, s.commit.Tree, "", 0, into, func(d leafDiff) error {
		if d.old == zero && !all && !strings.HasSuffix(d.leaf.Path, "/__deleted") {
			return nil // most of it
		}
		p, err := d.leaf.Decode()
		if err != nil {
			return nil
		}
		t := touch{KeyRef: p.KeyRef}
		switch p.Kind {
		case meta.PathMarker:
			return nil
		case meta.PathValue, meta.PathEntry, meta.PathMember:
			t.lost = d.new == zero
		case meta.PathTombstone:
			t.tomb = true
		}
		i, ok := at[t.KeyRef]
		if !ok {
			i = len(out)
			at[t.KeyRef] = i
			out = append(out, t)
		}
		out[i].lost, out[i].tomb = out[i].lost || t.lost, out[i].tomb || t.tomb
		return nil
	})
	return out, err
}

// checkpoint writes what is pending once it is enough.
func (x *indexer) checkpoint(s step) error {
	if len(x.pending)+len(x.drop) < indexBatch && time.Since(x.last) < checkpointAfter {
		return nil
	}
	if err := x.flush(); err != nil {
		return err
	}
	x.last = time.Now()
	if x.o.Checkpoint == nil || !x.writing || len(s.commit.Parents) == 0 {
		return nil
	}
	return x.o.Checkpoint(s.commit.Parents[0], x.Commits, x.Keys)
}

// flush writes what is pending.
func (x *indexer) flush() error {
	for batch := range slices.Chunk(x.pending, indexBatch) {
		err := x.env.DB.Update(x.ctx, func(tx *store.Tx) error {
			for _, p := range batch {
				isNew, err := tx.PutPromised(p.KeyRef, p.commit.String())
				if err != nil {
					return err
				}
				if isNew {
					x.Keys++
				} else {
					x.Known++
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	x.pending = x.pending[:0]
	err := x.dropRows(x.drop)
	x.drop = x.drop[:0]
	return err
}

func (x *indexer) dropRows(keys []meta.KeyRef) error {
	for batch := range slices.Chunk(keys, indexBatch) {
		err := x.env.DB.Update(x.ctx, func(tx *store.Tx) error {
			for _, k := range batch {
				ok, err := tx.DropPromised(k)
				if err != nil {
					return err
				}
				if ok {
					x.Dropped++
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sweep drops the promised rows of keys that the tip's tree holds or that the history
// has removed, from whatever program they are.
func (x *indexer) sweep() error {
	if !x.stale {
		return nil
	}
	if x.o.Stop != zero {
		return x.dropRows(x.back)
	}
	var rows []meta.KeyRef
	err := x.env.DB.View(x.ctx, func(tx *store.Tx) error {
		for row, err := range tx.Promised() {
			if err != nil {
				return err
			}
			rows = append(rows, row.KeyRef)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(rows, meta.KeyRef.Compare)
	var drop []meta.KeyRef
	for _, k := range rows {
		promised, known := x.seen[k]
		if !known { // it stays, unless it is back
			state, err := readKey(&x.tip, k)
			if err != nil {
				return err
			}
			_, has := state.kind()
			promised = !has
		}
		if !promised {
			drop = append(drop, k)
		}
	}
	return x.dropRows(drop)
}
