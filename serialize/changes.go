package serialize

import (
	"context"
	"slices"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
)

// KeyShortTargets is the project key that allows 1- and 2-byte targets in trees.
const KeyShortTargets = "meta:short-targets"

func shortAllowed(tx *store.Tx) (bool, error) {
	v, _, err := tx.ProjectString(KeyShortTargets)
	return v == "true", err
}

// source finds the changes of one output and feeds them to a builder.
type source struct {
	ctx   context.Context
	env   *Env
	tx    *store.Tx
	fil   *meta.Filter
	out   *output
	short bool // 1- and 2-byte targets may be published

	filterSet string
	look      *lookup

	keys    []meta.KeyRef // with fromCursor: the keys to write
	rules   bool          // a prune rule changed
	ended   []meta.KeyRef
	skipped map[meta.KeyRef]bool

	withheld map[meta.KeyRef]store.Withheld // read ahead by feedAll
}

// choose decides how the changes are found, and notes the position that will be held.
func (s *source) choose(force bool) error {
	out := s.out
	var err error
	if out.pos, err = s.tx.LogPosition(); err != nil {
		return err
	}
	cur, ok := out.base, out.base.Ref != ""
	if !ok {
		if cur, ok, err = s.tx.Cursor(out.ref, hexOf(out.tip)); err != nil {
			return err
		}
	}
	if ok {
		if ok, err = s.tx.LogHolds(cur.Log); err != nil {
			return err
		}
	}
	out.base = cur
	if !ok {
		out.base = store.Cursor{Ref: out.ref}
	}
	out.mode = fromCursor
	switch {
	case !ok && out.tip == zero || force:
		out.mode = fromScratch
	case !ok || cur.FilterSet != s.filterSet:
		out.mode = fromAll
	}
	out.base.FilterSet = s.filterSet
	if out.mode != fromCursor {
		s.rules = true // any may have changed
		return nil
	}
	changes, err := s.tx.ChangesSince(out.base.Log)
	if err != nil {
		return err
	}
	for _, c := range changes {
		s.keys = append(s.keys, c.KeyRef)
		s.rules = s.rules || c.Target == meta.ProjectTarget && strings.HasPrefix(c.Key, "meta:prune:")
	}
	for k := range out.publish {
		s.keys = append(s.keys, k)
	}
	slices.SortFunc(s.keys, meta.KeyRef.Compare)
	s.keys = slices.Compact(s.keys)
	return nil
}

// manyKeys is the number of keys from which reading all rows in order is cheaper than
// looking up each.
const manyKeys = 20_000

func (s *source) feed(b *builder) error {
	if s.out.mode == fromCursor && len(s.keys) < manyKeys {
		return s.feedKeys(b)
	}
	return s.feedAll(b)
}

// feedKeys writes the listed keys, one look-up each.
func (s *source) feedKeys(b *builder) error {
	b.solo = func(t meta.Target) bool { return false }
	for _, k := range s.keys {
		c := change{KeyRef: k}
		rec, err := s.tx.Get(k)
		switch {
		case err == nil && rec.SourceRef == "":
			c.rec = &rec
		case err != nil && !isNotFound(err):
			return err
		}
		if c.tombs, err = s.tx.Tombstones(k); err != nil {
			return err
		}
		if err := s.take(b, c); err != nil {
			return err
		}
	}
	return nil
}

// feedAll writes every key, or of every key those listed, in the order of the tables.
func (s *source) feedAll(b *builder) error {
	only := map[meta.KeyRef]bool(nil)
	if s.out.mode == fromCursor {
		only = make(map[meta.KeyRef]bool, len(s.keys))
		for _, k := range s.keys {
			only[k] = true
		}
	}
	if err := s.findSolo(b); err != nil {
		return err
	}
	left, err := s.readWithheld()
	if err != nil {
		return err
	}
	bar := s.env.progress()
	n, _, err := s.tx.Counts()
	if err != nil {
		return err
	}
	bar.Start("Serializing keys", int(n))
	if only == nil {
		b.expect(int(n))
	}
	defer bar.Done()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	batches := make(chan []change, 4)
	readErr := make(chan error, 1)
	go func() {
		defer close(batches)
		readErr <- readAll(ctx, s.tx, only, batches)
	}()
	for batch := range batches {
		for i := range batch {
			for len(left) > 0 && left[0].KeyRef.Compare(batch[i].KeyRef) < 0 && err == nil {
				err, left = b.add(left[0]), left[1:]
			}
			if err == nil {
				err = s.take(b, batch[i])
			}
			if err != nil {
				cancel()
				for range batches {
				}
				<-readErr
				return err
			}
		}
		bar.Add(len(batch))
	}
	for _, c := range left {
		if err := b.add(c); err != nil {
			return err
		}
	}
	return <-readErr
}

// readWithheld reads what store and tree differ in on purpose, once for all keys. It
// returns the keys without a row that the filter keeps out of this output now, in order:
// they leave the tree.
func (s *source) readWithheld() (left []change, err error) {
	s.withheld = map[meta.KeyRef]store.Withheld{}
	for w, err := range s.tx.AllWithheld() {
		if err != nil {
			return nil, err
		}
		s.withheld[w.KeyRef] = w
		if w.Why == store.LocalPruned && s.out.tip != zero && !s.fil.Sends(w.Key, s.out.dest) {
			left = append(left, change{KeyRef: w.KeyRef, leave: true})
		}
	}
	slices.SortFunc(left, func(a, b change) int { return a.KeyRef.Compare(b.KeyRef) })
	return left, nil
}

// isWithheld returns the key's withheld entry, if it has one.
func (s *source) isWithheld(k meta.KeyRef) (store.Withheld, bool, error) {
	if s.withheld == nil {
		return s.tx.Withheld(k)
	}
	w, ok := s.withheld[k]
	return w, ok, nil
}

// findSolo finds the branches and change-ids whose folder nobody shares: those without a
// '/' in them that are not the first component of another.
func (s *source) findSolo(b *builder) error {
	shared := map[meta.Target]bool{}
	share := func(t meta.Target) {
		if first, _, ok := strings.Cut(t.Value, "/"); ok {
			shared[meta.Target{Type: t.Type, Value: first}] = true
		}
	}
	for _, typ := range []meta.TargetType{meta.Branch, meta.ChangeID} {
		last := ""
		for row, err := range s.tx.Rows(store.Query{Type: typ}) {
			if err != nil {
				return err
			}
			if row.Target.Value == last {
				continue
			}
			last = row.Target.Value
			share(row.Target)
		}
	}
	for t, err := range s.tx.AllTombstones() { // they have paths too
		if err != nil {
			return err
		}
		if t.Target.Type != meta.Branch && t.Target.Type != meta.ChangeID {
			break // the other types come after these two
		}
		share(t.Target)
	}
	b.solo = func(t meta.Target) bool {
		return b.fresh && !strings.Contains(t.Value, "/") && !shared[t]
	}
	return nil
}

const batchSize = 256

// readAll merges rows and tombstones by key and sends them in batches.
func readAll(ctx context.Context, tx *store.Tx, only map[meta.KeyRef]bool, to chan<- []change) error {
	batch := make([]change, 0, batchSize)
	bytes := 0
	send := func(c change) error {
		if only != nil && !only[c.KeyRef] {
			return nil
		}
		batch = append(batch, c)
		if c.rec != nil {
			bytes += len(c.rec.Value.String)
		}
		if len(batch) < batchSize && bytes < 1<<20 {
			return nil
		}
		select {
		case to <- batch:
		case <-ctx.Done():
			return ctx.Err()
		}
		batch, bytes = make([]change, 0, batchSize), 0
		return nil
	}
	tombs := groupTombstones(tx)
	defer tombs.stop()
	t, tok, err := tombs.next()
	if err != nil {
		return err
	}
	for rec, err := range tx.Records(store.Query{Publishable: true}) {
		if err != nil {
			return err
		}
		for tok && t.KeyRef.Compare(rec.KeyRef) < 0 {
			if err := send(t); err != nil {
				return err
			}
			if t, tok, err = tombs.next(); err != nil {
				return err
			}
		}
		c := change{KeyRef: rec.KeyRef, rec: &rec}
		if tok && t.KeyRef == rec.KeyRef {
			c.tombs = t.tombs
			if t, tok, err = tombs.next(); err != nil {
				return err
			}
		}
		if err := send(c); err != nil {
			return err
		}
	}
	for ; tok; t, tok, err = tombs.next() {
		if err != nil {
			return err
		}
		if err := send(t); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	select {
	case to <- batch:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// take decides what becomes of one key and hands it to the builder.
func (s *source) take(b *builder, c change) error {
	if meta.IsLocal(c.Key) {
		return nil
	}
	sends := s.fil.Sends(c.Key, s.out.dest)
	if !sends && b.fresh {
		return nil
	}
	if !s.publishable(c) {
		return nil
	}
	w, withheld, err := s.isWithheld(c.KeyRef)
	if err != nil {
		return err
	}
	if withheld {
		switch {
		case (w.Why == store.Swept || w.Why == store.Gone) && c.rec != nil: // the peer wrote it: a change like others
			s.ended = append(s.ended, c.KeyRef)
		case (w.Why == store.Unclear || w.Why == store.Retained) && s.out.mode != fromCursor:
			return nil
		case c.rec == nil && s.out.mode != fromCursor: // local-pruned: it stays in the tree
			return nil
		case s.out.mode == fromAll:
			return nil
		case c.rec != nil && s.out.dest == meta.MainDestination:
			s.ended = append(s.ended, c.KeyRef)
		}
	}
	if !sends {
		c.leave = true
		return b.add(c)
	}
	if c.rec == nil && !b.fresh {
		ok, err := s.removal(c)
		if err != nil || !ok {
			return err
		}
	}
	return b.add(c)
}

// removal reports whether a key without a row is a removal to be published: one that
// somebody made knowingly, or one of a key that the tip holds. An absence is none.
func (s *source) removal(c change) (bool, error) {
	t, ok := c.keyTombstone()
	if !ok {
		return false, nil
	}
	if t.Explicit {
		return true, nil
	}
	state, err := readKey(s.look, c.KeyRef)
	if err != nil {
		return false, err
	}
	return state != nil, nil
}

// publishable reports whether the key can be a tree path; a row that can't is named in a
// warning, once.
func (s *source) publishable(c change) bool {
	err := c.Target.Publishable()
	if err == nil {
		err = meta.KeyPublishable(c.Key)
	}
	switch {
	case err != nil:
	case c.Target.Short() && !s.short:
		return false
	default:
		return true
	}
	if c.rec != nil && s.out.dest == meta.MainDestination && !s.skipped[c.KeyRef] {
		if s.skipped == nil {
			s.skipped = map[meta.KeyRef]bool{}
		}
		s.skipped[c.KeyRef] = true
		s.env.Warnf("%v: not published; to remove it: git meta rm '%s' '%s'", err, c.Target, c.Key)
	}
	return false
}
