package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store/sqlitefile"
)

// Fill collects the keys of a store that is empty: a file beside it with the rows and
// their index entries as they will be in the store, so that [DB.PutFill] has only to copy
// them. It is not safe for concurrent use.
type Fill struct {
	path string
	file *sqlitefile.File

	rows, records, entries, members *sqlitefile.Table
	sources, times, ofSet, unique   *sqlitefile.Index // those that ascend as keys are added
	roots                           map[string]uint32

	keys      []fillKey
	unsorted  bool // keys do not ascend
	bytes     int  // of values
	nEntries  int64
	nMembers  int64
	row, item sqlitefile.Record
}

// fillKey is what the indexes of metadata and metadata_log need; the rowid is the
// position, from 1.
type fillKey struct {
	meta.KeyRef
	time int64
}

// A store should be filled with so many keys and bytes of values at most: it is locked
// meanwhile, about 5 µs for a key, and the bytes take the place on the disk twice.
const (
	fillMaxKeys  = 250_000
	fillMaxBytes = 512 << 20
)

// fillPage is the page size of the file: fewer pages to look at than with the usual 4096.
const fillPage = 16384

// FillPattern is the name of the files of a Fill, in the folder of the store. One that was
// killed leaves its file; the next removes what is older than [oldFill].
const FillPattern = FileName + "-load-*"

const oldFill = time.Hour

// FillFiles returns the files of Fills in a folder.
func FillFiles(dir string) []string {
	var out []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if ok, _ := filepath.Match(FillPattern, e.Name()); ok && e.Type().IsRegular() {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out
}

func removeOldFills(dir string) {
	for _, path := range FillFiles(dir) {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > oldFill {
			os.Remove(path)
		}
	}
}

// NewFill makes an empty Fill for db. Close it.
func (db *DB) NewFill(ctx context.Context) (f *Fill, err error) {
	dir := filepath.Dir(db.path)
	removeOldFills(dir)
	tmp, err := os.CreateTemp(dir, FillPattern)
	if err != nil {
		return nil, &FileError{Path: db.path, Err: err}
	}
	f = &Fill{path: tmp.Name()}
	tmp.Close()
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if err := f.create(); err != nil {
		return nil, db.wrap(ctx, err)
	}
	if f.file, err = sqlitefile.Open(f.path); err != nil {
		return nil, err
	}
	f.rows, f.records = f.file.Table(f.roots["metadata"]), f.file.Table(f.roots["metadata_log"])
	f.entries, f.members = f.file.Table(f.roots["list_values"]), f.file.Table(f.roots["set_values"])
	f.sources = f.file.Index(f.roots["idx_metadata_source_ref"])
	f.times = f.file.Index(f.roots["idx_list_values_metadata_timestamp"])
	f.ofSet = f.file.Index(f.roots["idx_set_values_metadata"])
	f.unique = f.file.Index(f.roots["sqlite_autoindex_set_values_1"])
	return f, nil
}

// create lets SQLite make the file and its tables.
func (f *Fill) create() error {
	name, err := dsn(f.path, "mode=rw", fmt.Sprintf("_pragma=page_size(%d)", fillPage), "_pragma=journal_mode(off)", "_pragma=synchronous(off)")
	if err != nil {
		return err
	}
	c, err := dial(name)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.script("BEGIN"); err != nil {
		return err
	}
	if err := c.upgrade(); err != nil {
		return err
	}
	if err := c.script(indexesSQL + "COMMIT"); err != nil {
		return err
	}
	r, err := c.query(bg, "SELECT name, rootpage FROM sqlite_master")
	if err != nil {
		return err
	}
	defer r.close()
	f.roots = map[string]uint32{}
	for {
		ok, err := r.next()
		if !ok || err != nil {
			return err
		}
		f.roots[r.str(0)] = uint32(r.num(1))
	}
}

// Add adds a key with its value, as [Tx.Put] would store it: fastest in ascending order.
func (f *Fill) Add(l Loaded) error {
	k, v := l.KeyRef, l.Value
	encoded, logged, err := encodeValue(k, v)
	if err != nil {
		return fmt.Errorf("load %s: %w", k, err)
	}
	if n := len(f.keys); n > 0 && f.keys[n-1].Compare(k) >= 0 {
		f.unsorted = true
	}
	if len(f.keys) == cap(f.keys) {
		f.keys = slices.Grow(f.keys, len(f.keys)+1024) // twice as many, not a quarter more
	}
	f.keys = append(f.keys, fillKey{k, l.Time})
	f.bytes += len(v.String)
	id := int64(len(f.keys))
	typ, value := string(k.Target.Type), k.Target.Value
	// target_type, target_value, key, value, value_type, last_timestamp, is_git_ref, is_promised, source_ref, promised_commit
	r := f.row.Reset().Text(typ).Text(value).Text(k.Key).Text(encoded).Text(string(v.Type)).Int(l.Time).Int(0).Int(0).Null().Null()
	if err := f.rows.Add(id, r); err != nil {
		return err
	}
	f.sources.Add(f.item.Reset().Null().Int(id))
	// target_type, target_value, key, value, value_type, operation, email, timestamp
	r = f.row.Reset().Text(typ).Text(value).Text(k.Key).Text(logged).Text(string(v.Type)).Text(opSet).Text(orUnknown(l.Email)).Int(l.Time)
	if err := f.records.Add(id, r); err != nil {
		return err
	}
	if err := f.addEntries(id, v.Entries); err != nil {
		return err
	}
	return f.addMembers(id, v.Members, l.Time)
}

func (f *Fill) addEntries(id int64, entries []meta.Entry) error {
	byTime := func(a, b meta.Entry) int { return cmp.Compare(a.Time, b.Time) }
	if !slices.IsSortedFunc(entries, byTime) {
		entries = slices.Clone(entries)
		slices.SortStableFunc(entries, byTime)
	}
	for _, e := range entries {
		f.nEntries++
		f.bytes += len(e.Value)
		// metadata_id, value, timestamp, is_git_ref
		if err := f.entries.Add(f.nEntries, f.row.Reset().Int(id).Text(e.Value).Int(e.Time).Int(0)); err != nil {
			return err
		}
		f.times.Add(f.item.Reset().Int(id).Int(e.Time).Int(f.nEntries))
	}
	return nil
}

func (f *Fill) addMembers(id int64, members []string, ms int64) error {
	type member struct{ id, value string }
	all := make([]member, len(members))
	for i, m := range members {
		all[i] = member{meta.MemberID(m), m}
	}
	slices.SortFunc(all, func(a, b member) int { return cmp.Compare(a.id, b.id) })
	for i, m := range all {
		if i > 0 && m.id == all[i-1].id {
			continue
		}
		f.nMembers++
		f.bytes += len(m.value)
		// metadata_id, member_id, value, timestamp
		if err := f.members.Add(f.nMembers, f.row.Reset().Int(id).Text(m.id).Text(m.value).Int(ms)); err != nil {
			return err
		}
		f.unique.Add(f.item.Reset().Int(id).Text(m.id).Int(f.nMembers))
		f.ofSet.Add(f.item.Reset().Int(id).Int(f.nMembers))
	}
	return nil
}

// Keys returns how many keys were added.
func (f *Fill) Keys() int { return len(f.keys) }

// Full reports whether there is more than should be stored in one transaction.
func (f *Fill) Full() bool { return len(f.keys) > fillMaxKeys || f.bytes > fillMaxBytes }

// ErrTwice: a key was added to a [Fill] twice.
var ErrTwice = errors.New("it is there twice")

// Finish completes the file; nothing may be added after it. The error is [ErrTwice] if a
// key was.
func (f *Fill) Finish() error {
	order := make([]int32, len(f.keys))
	for i := range order {
		order[i] = int32(i)
	}
	if f.unsorted {
		slices.SortFunc(order, func(a, b int32) int { return f.keys[a].Compare(f.keys[b].KeyRef) })
	}
	for i := 1; i < len(order); i++ {
		if f.keys[order[i-1]].KeyRef == f.keys[order[i]].KeyRef {
			return fmt.Errorf("load %s: %w", f.keys[order[i]].KeyRef, ErrTwice)
		}
	}
	var g errgroup.Group
	g.Go(func() error {
		for _, t := range []*sqlitefile.Table{f.rows, f.records, f.entries, f.members} {
			t.Finish()
		}
		for _, x := range []*sqlitefile.Index{f.sources, f.times, f.ofSet, f.unique} {
			x.Finish()
		}
		var r sqlitefile.Record
		var all []*sqlitefile.Index
		for _, name := range []string{"sqlite_autoindex_metadata_1", "idx_metadata_target", "idx_metadata_log_lookup"} {
			all = append(all, f.file.Index(f.roots[name]))
		}
		for _, i := range order {
			k := &f.keys[i]
			r.Reset().Text(string(k.Target.Type)).Text(k.Target.Value).Text(k.Key).Int(int64(i) + 1)
			for _, x := range all {
				x.Add(&r)
			}
		}
		for _, x := range all {
			x.Finish()
		}
		return nil
	})
	byTime := slices.Clone(order)
	g.Go(func() error {
		var r sqlitefile.Record
		for name, turn := range map[string]int{"idx_metadata_log_timestamp": 1, "idx_metadata_recency": -1} {
			copy(byTime, order)
			slices.SortStableFunc(byTime, func(a, b int32) int { return turn * cmp.Compare(f.keys[a].time, f.keys[b].time) })
			x := f.file.Index(f.roots[name])
			for _, i := range byTime {
				k := &f.keys[i]
				x.Add(r.Reset().Int(k.time).Text(string(k.Target.Type)).Text(k.Target.Value).Text(k.Key).Int(int64(i) + 1))
			}
			x.Finish()
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return err
	}
	err := f.file.Close()
	f.file = nil
	return err
}

// Close removes the file.
func (f *Fill) Close() error {
	if f.file != nil {
		f.file.Close()
		f.file = nil
	}
	return os.Remove(f.path)
}
