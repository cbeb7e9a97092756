package serialize

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// bothWays loads tip into two new stores, by [readFirst] and by [reconcile], and compares
// them and what else comes of it. first is false where readFirst leaves it to reconcile.
func (g *gitRepo) bothWays(t tester, tip gitdb.Hash, rules ...string) (first bool, contents string) {
	t.Helper()
	ctx := context.Background()
	fil := meta.NewFilter(rules)
	a := g.world(t)
	f, err := readFirst(ctx, a.env, a.reader(), tip, fil)
	if err != nil {
		t.Fatalf("readFirst: %v", err)
	}
	if f == nil {
		return false, ""
	}
	defer f.close()
	atA, err := f.carryOut(ctx, a.env)
	if err != nil {
		t.Fatalf("carryOut: %v", err)
	}
	b := g.world(t)
	v, atB := b.general(tip, fil)
	diff := cmp.Diff(b.contents(), a.contents()) + cmp.Diff(v.publish, f.publish) + cmp.Diff(sorted(b.warnings), sorted(a.warnings))
	if diff != "" {
		t.Fatalf("reconcile against readFirst (-want +got):\n%s\ntree:\n%s", diff, list(t, a.reader(), mustTree(t, a.reader(), tip)))
	}
	for w, at := range map[*world]store.Position{a: atA, b: atB} {
		w.view(func(tx *store.Tx) error {
			now, err := tx.LogPosition()
			if now != at {
				t.Fatalf("carryOut says %v, the log is at %v", at, now)
			}
			return err
		})
	}
	contents = a.contents()
	a.db.Close()
	b.db.Close()
	return true, contents
}

// general loads tip as any tip that the store has not seen.
func (w *world) general(tip gitdb.Hash, fil *meta.Filter) (v *verdict, at store.Position) {
	w.t.Helper()
	ctx := context.Background()
	w.view(func(tx *store.Tx) (err error) {
		v, err = reconcile(ctx, w.env, w.reader(), tx, w.ref, tip, fil, fil.ID())
		return err
	})
	at, err := carryOut(ctx, w.env, w.reader(), v)
	if err != nil {
		w.t.Fatalf("carryOut: %v", err)
	}
	return v, at
}

func mustTree(t tester, rd *gitdb.Reader, commit gitdb.Hash) gitdb.Hash {
	t.Helper()
	tree, err := treeOf(context.Background(), rd, commit)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return tree
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// contents lists all that the tables of a store hold about keys; rowids count only for
// the order of a list.
func (w *world) contents() string {
	w.t.Helper()
	db, err := sql.Open("sqlite", w.path)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	defer db.Close()
	var out strings.Builder
	for _, query := range []string{
		"SELECT * FROM metadata ORDER BY 1, 2, 3",
		"SELECT m.target_type, m.target_value, m.key, l.value, l.timestamp, l.is_git_ref FROM list_values l LEFT JOIN metadata m ON m.rowid = l.metadata_id ORDER BY 1, 2, 3, l.rowid",
		"SELECT m.target_type, m.target_value, m.key, s.member_id, s.value, s.timestamp FROM set_values s LEFT JOIN metadata m ON m.rowid = s.metadata_id ORDER BY 1, 2, 3, 4",
		"SELECT * FROM tombstones ORDER BY 1, 2, 3, 4, 5",
		"SELECT * FROM x_explicit ORDER BY 1, 2, 3",
		"SELECT * FROM x_withheld ORDER BY 1, 2, 3",
		"SELECT * FROM x_recount ORDER BY 1, 2, 3",
		"SELECT * FROM metadata_log ORDER BY 1, 2, 3, 4, 5, 6, 7, 8",
		"SELECT * FROM sqlite_master ORDER BY type, name",
		"PRAGMA integrity_check",
		"PRAGMA journal_mode",
	} {
		if err := appendRows(&out, db, query); err != nil {
			w.t.Fatalf("%s: %v", query, err)
		}
	}
	return out.String()
}

func appendRows(out *strings.Builder, db *sql.DB, query string) error {
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	vals := make([]any, len(columns))
	into := make([]any, len(columns))
	for i := range vals {
		into[i] = &vals[i]
	}
	fmt.Fprintf(out, "%s\n", query)
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for i, v := range vals {
			if columns[i] == "rootpage" {
				continue
			}
			text := fmt.Sprint(v)
			if len(text) > 300 {
				text = fmt.Sprintf("%s… %d %s", text[:40], len(text), gitdb.HashObject(blobObject, []byte(text)))
			}
			fmt.Fprintf(out, " %q", text)
		}
		out.WriteByte('\n')
	}
	return rows.Err()
}

// planted is a commit to be made of a historian's paths.
type planted struct {
	parents []gitdb.Hash
	msg     string
	email   string              // of the author; "": a@example.com
	times   func(n int) []int64 // git-meta-times, given the number of keys that need one
	headers []gitdb.Header      // before it
}

// plant makes a commit of the paths.
func (h *historian) plant(p planted) gitdb.Hash {
	h.t.Helper()
	ctx := context.Background()
	bare := h.commit(zero, "")
	rd := h.reader()
	c, err := rd.Commit(ctx, bare)
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	before := zero
	if c.Parents = p.parents; len(p.parents) > 0 && rd.Has(ctx, p.parents[0]) {
		before = mustTree(h.t, rd, p.parents[0])
	}
	c.Message, c.Headers = p.msg, p.headers
	if p.email != "" {
		c.Author.Email = strings.TrimSpace(p.email)
	}
	if p.times != nil {
		keys, err := changedKeys(ctx, rd, before, c.Tree)
		if err != nil {
			h.t.Fatalf("%v", err)
		}
		n := 0
		for _, k := range keys {
			if k.has {
				n++
			}
		}
		if v := meta.EncodeTimes(p.times(n), c.Author.When.Unix()); v != "" {
			c.Headers = append(c.Headers, gitdb.Header{Key: meta.TimesHeader, Value: v})
		}
	}
	w, err := h.g.repo.NewWriter(ctx)
	if err != nil {
		h.t.Fatalf("%v", err)
	}
	defer w.Abort()
	data := c.Encode()
	id := gitdb.HashObject(commitObject, data)
	if err := errors.Join(w.Put(commitObject, id, data), w.Finish(ctx), w.Release()); err != nil {
		h.t.Fatalf("%v", err)
	}
	return id
}

// each returns times that differ from each other and from any date, for n + more keys.
func eachTime(more int) func(n int) []int64 {
	return func(n int) []int64 {
		out := make([]int64, max(n+more, 0))
		for i := range out {
			out[i] = t0 + 333 + int64(i*7919%5000)
		}
		return out
	}
}

// scribe draws trees.
type scribe struct {
	*historian
	r  *rand.Rand
	of map[meta.KeyRef][]string // paths
}

var (
	treeTargets = []string{
		"project", "project", "branch:main", "branch:feature/x", "branch:feature/x/y", "branch:topic/299", "branch:topic", "branch:Topic/_a",
		"change-id:topic/299", "change-id:abcd1234", "commit:98afc48127dd62ab6e54b17aa86aac61885501e6", "commit:98bbbb8127dd62ab6e54b17aa86aac61885501e6",
		"commit:00bbbb8127dd62ab6e54b17aa86aac61885501e6", "path:src", "path:src/main.go", "path:src/__gen/~t", "path:.gitmodules", "path:~1000000", "path:Src/_a",
	}
	treeKeyNames = []string{"a", "a:b", "a:X", "a:B:c", "a:b:c", "a:_x", "A", "A:b", "Z", "a-b", "a b", "a^", "a`", "_x", "\u00e9", "local:x", "z"}
	treeTexts    = []string{"", "v", "w", "x", "\"quoted\"\n\tb\\", "\u00e9\u20ac\U0001f600", "nul\x00byte", strings.Repeat("long", 300), strings.Repeat("longer", 4_000)}
	oddPaths     = []string{
		"README.md", "future/ab/x/__value", "project/README", "project/a:b/__value", "project/__x/y", "path/abc/k/__value", "commit/ab/abcdef", "project/a/__set/strange/deep",
		"project/bad/__tombstones/__deleted", "project/__tombstones/__deleted", "project/a/__list/notes.txt", "project/a/__list/99999999999999999999-aaaaa", "branch/" + "zz", "project/caf\xe9/__value",
	}
)

func (s *scribe) text() string {
	if s.r.IntN(60) == 0 {
		return "caf\xe9"
	}
	return treeTexts[s.r.IntN(len(treeTexts))]
}

func (s *scribe) odds(percent int) bool { return s.r.IntN(100) < percent }

// draw gives a key another state.
func (s *scribe) draw(k meta.KeyRef) {
	for _, p := range s.of[k] {
		delete(s.paths, p)
	}
	s.of[k] = nil
	put := func(path, text string) {
		s.paths[path] = text
		s.of[k] = append(s.of[k], path)
	}
	base := k.Target.BasePath()
	at := meta.KeyPath(base, k.Key)
	tombstone := func() string {
		if s.odds(8) {
			return "not json"
		}
		return string(meta.EncodeTombstone(t0+s.r.Int64N(9000), []string{"p@e", "", "q@e"}[s.r.IntN(3)], s.odds(50)))
	}
	name := func() string {
		e := meta.Entry{Time: []int64{0, t0, t0, t0 + 1, t0 + s.r.Int64N(1e6)}[s.r.IntN(5)], Value: s.text()}
		name := e.Name()
		if s.odds(10) {
			name = "0" + name
		}
		if s.odds(10) {
			name = strings.ToUpper(name)
		}
		return name
	}
	value := func() { put(meta.ValuePath(at), s.text()) }
	items := func() {
		for range 1 + s.r.IntN(4) {
			put(meta.ListPath(at)+"/"+name(), s.text())
		}
	}
	members := func() {
		for range 1 + s.r.IntN(4) {
			text := s.text()
			id := meta.MemberID(text)
			if s.odds(10) {
				id = "strange" + id[:4]
			}
			put(meta.SetPath(at)+"/"+id, text)
		}
	}
	popped := func() {
		for range 1 + s.r.IntN(3) {
			put(meta.ListTombstonesPath(at)+"/"+name(), tombstone())
		}
	}
	gone := func() {
		for range 1 + s.r.IntN(3) {
			text := s.text()
			id := meta.MemberID(text)
			if s.odds(10) {
				text += "other"
			}
			put(meta.MemberTombstonesPath(at)+"/"+id, text)
		}
	}
	tomb := func() { put(meta.TombstonePath(base, k.Key), tombstone()) }
	maybe := func(f func()) {
		if s.odds(30) {
			f()
		}
	}
	switch s.r.IntN(14) {
	case 0, 1, 2, 3:
		value()
		maybe(gone)
		maybe(popped)
	case 4, 5:
		items()
		maybe(popped)
	case 6, 7:
		members()
		maybe(gone)
	case 8:
		popped()
		maybe(gone)
	case 9:
		gone()
	case 10, 11:
		tomb()
		maybe(popped)
		maybe(gone)
	case 12:
		maybe(value)
		maybe(items)
		maybe(members)
		maybe(tomb)
	case 13:
		value()
		tomb()
	}
	if k.Target.NeedsMarker() && len(s.of[k]) > 0 {
		put(k.Target.MarkerPath(), "")
	}
}

// some draws about n keys.
func (s *scribe) some(n int) {
	for range n {
		s.draw(keyRef(treeTargets[s.r.IntN(len(treeTargets))] + " " + treeKeyNames[s.r.IntN(len(treeKeyNames))]))
	}
	if s.odds(20) {
		s.paths[oddPaths[s.r.IntN(len(oddPaths))]] = s.text()
	}
}
