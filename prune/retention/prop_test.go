package retention

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
)

var (
	randomStores = flag.Int("stores", 0, "how many random stores TestPreviewEqualsSweep makes (0: 1000, or 25 with -short)")
	randomSeed   = flag.Uint64("storeseed", 0, "make only the store with this seed")
)

// What a preview says is what a sweep deletes, and what is counted is a full count after
// every step, whatever has happened to the store, by this program or the Rust one.
func TestPreviewEqualsSweep(t *testing.T) {
	n := *randomStores
	if n == 0 {
		n = 1000
		if testing.Short() {
			n = 25
		}
	}
	defer func(d time.Duration) { workFor = d }(workFor)
	g := newRepo(t)
	first := uint64(1)
	if *randomSeed != 0 {
		first, n = *randomSeed, 1
	}
	for seed := first; seed < first+uint64(n); seed++ {
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := *g
			g.t = t
			r := &randomWorld{world: g.world(fmt.Sprintf("m%d", seed)), r: rand.New(rand.NewPCG(seed, 5))}
			r.run()
			r.env.DB.Close()
		})
		if !ok {
			t.FailNow()
		}
	}
}

type randomWorld struct {
	*world
	r      *rand.Rand
	bounds map[string]Bounds
	log    []string
}

func (r *randomWorld) say(format string, a ...any) { r.log = append(r.log, fmt.Sprintf(format, a...)) }

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

var (
	randomNames   = []string{"ci", "ci:log", "ci:log:x", "agent", "a", "c"}
	randomKeys    = []string{"ci", "ci:log", "ci:log:x", "ci:log:x:y", "ci:url", "cix", "agent:a", "agent:b", "agents:c", "a", "a:b:c", "other", "c:d"}
	randomTargets = []string{"project:", "path:src/a", "path:src/b", "branch:main", "commit:1234567890123456789012345678901234567890", "change-id:Iabc"}
)

func (r *randomWorld) key() (string, string) { return pick(r.r, randomTargets), pick(r.r, randomKeys) }

// time returns a time in ms: mostly past, some of them the same, some in the future.
func (r *randomWorld) time() int64 {
	switch r.r.IntN(6) {
	case 0:
		return r.g.now.UnixMilli() + r.r.Int64N(3)*day.Milliseconds()/2
	case 1:
		return r.g.now.UnixMilli() - 3*day.Milliseconds() // exactly
	}
	return r.g.now.UnixMilli() - r.r.Int64N(20)*day.Milliseconds()/2
}

func (r *randomWorld) redeclare() {
	r.bounds = map[string]Bounds{}
	var list []string
	for _, n := range randomNames {
		if r.r.IntN(3) > 0 {
			continue
		}
		b := Bounds{MaxRows: r.r.Int64N(6), MaxAgeDays: r.r.Int64N(5)}
		r.bounds[n] = b
		list = append(list, fmt.Sprint(n, " ", b.MaxRows, " ", b.MaxAgeDays))
	}
	if len(list) == 0 {
		r.redeclare()
		return
	}
	r.say("declare %q", list)
	r.declare(list...)
}

func (r *randomWorld) run() {
	defer func() {
		if r.t.Failed() {
			r.t.Logf("what was done:\n%s", strings.Join(r.log, "\n"))
		}
	}()
	r.g.now = time.UnixMilli(t0)
	workFor = pick(r.r, []time.Duration{0, 0, time.Millisecond, 30 * time.Millisecond})
	r.redeclare()
	withGit := r.r.IntN(5) == 0
	for range 5 + r.r.IntN(30) {
		r.step(withGit)
		if r.r.IntN(3) == 0 {
			r.catchUp()
			r.audit()
		}
	}
	r.check()
	for range r.r.IntN(8) {
		r.step(withGit)
	}
	r.check()
}

func (r *randomWorld) step(withGit bool) {
	target, key := r.key()
	k := kref(target, key)
	ms := r.time()
	e := store.Edit{Email: "a@b", Time: ms}
	if r.r.IntN(3) == 0 {
		e.Time = 0
	}
	what := r.r.IntN(23)
	r.say("%d %s %s %d", what, target, key, e.Time)
	try := func(f func(tx *store.Tx) error) {
		err := r.env.DB.Update(context.Background(), f)
		if err != nil {
			r.say("  %v", err)
		}
	}
	row := func(tx *store.Tx) bool {
		row, ok, _ := tx.Row(k)
		return ok && !row.Promised
	}
	switch what {
	case 0, 1, 2, 3:
		try(func(tx *store.Tx) error { return tx.Set(k, strings.Repeat("é", r.r.IntN(5)), e) })
	case 4:
		try(func(tx *store.Tx) error { return tx.ListPush(k, "entry", e) })
	case 5:
		try(func(tx *store.Tx) error { return tx.SetAdd(k, pick(r.r, []string{"a", "bb", "ccc"}), e) })
	case 6:
		try(func(tx *store.Tx) error { return tx.Remove(k, e) })
	case 7:
		try(func(tx *store.Tx) error {
			row, ok, err := tx.Row(k)
			if err != nil || !ok || row.Promised {
				return err
			}
			return tx.PutWithheld(store.Withheld{KeyRef: k, EditTime: row.Time, Why: pick(r.r, []store.Why{store.Pruned, store.TooBig, store.Unclear, store.Retained, store.Retained})})
		})
	case 8:
		try(func(tx *store.Tx) error { return tx.DeleteWithheld(k) })
	case 9:
		try(func(tx *store.Tx) error {
			p, err := tx.LogPosition()
			if err != nil {
				return err
			}
			_, err = tx.LocalPrune([]meta.KeyRef{k}, store.LocalPruneOptions{UpTo: p.RowID, Unpublished: r.r.IntN(2) == 0})
			return err
		})
	case 10:
		try(func(tx *store.Tx) error {
			return tx.Put(k, meta.Value{Type: meta.String, String: "quiet"}, store.Edit{Time: ms}, store.PutOptions{NoLog: true})
		})
	case 11:
		try(func(tx *store.Tx) error {
			if row(tx) {
				return nil
			}
			return tx.Put(k, meta.Value{Type: meta.String, String: "side"}, store.Edit{Time: ms}, store.PutOptions{NoLog: true, SourceRef: "refs/x"})
		})
	case 12:
		try(func(tx *store.Tx) error { _, err := tx.PutPromised(k, "abc"); return err })
	case 13:
		try(func(tx *store.Tx) error {
			_, err := tx.PutFromHistory(k, meta.Value{Type: meta.String, String: "past"}, store.Edit{Time: ms})
			return err
		})
	case 14:
		r.peerHydrate()
	case 15:
		r.peerSet(target, key, "peer", ms)
	case 16:
		r.peerRemove(target, key, ms)
	case 17:
		r.peerPush(target, key, "p", ms)
	case 18:
		if r.r.IntN(3) == 0 {
			r.peerLocalPrune(ms)
		}
	case 19:
		if r.r.IntN(3) == 0 {
			r.redeclare()
		}
	case 20:
		r.g.now = r.g.now.Add(time.Duration(r.r.IntN(3)-1) * 13 * time.Hour)
	case 21:
		if withGit {
			res, err := serialize.Run(context.Background(), r.env, serialize.Options{})
			r.say("  %+v %v", res, err)
		}
	case 22:
		res := r.sweep(SweepOptions{Limit: 1 + r.r.Int64N(3), Passes: 1})
		r.say("  swept %+v", res)
	}
}

// doomed returns what a sweep must delete, worked out the simple way: for each collection
// its live rows, and the leftover ones.
func (r *randomWorld) doomed() (live map[string][]string, leftover map[string][]string) {
	type row struct {
		created  int64
		name, id string
	}
	live, leftover = map[string][]string{}, map[string][]string{}
	now := r.g.now.UnixMilli()
	all := map[string][]row{}
	for _, l := range r.lines("SELECT created, collection, target_type || ':' || target_value || ' ' || key FROM x_created ORDER BY target_type, target_value, key") {
		f := strings.SplitN(l, "|", 3)
		var ms int64
		fmt.Sscan(f[0], &ms)
		all[f[1]] = append(all[f[1]], row{min(ms, now), f[1], f[2]})
	}
	for name, rows := range all {
		b := r.bounds[name]
		// stable: of equal times the first by type, value, key is the newest
		slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.created, a.created) })
		for i, row := range rows {
			if b.MaxRows > 0 && int64(i) >= b.MaxRows || b.MaxAgeDays > 0 && row.created < now-b.MaxAgeDays*day.Milliseconds() {
				live[name] = append(live[name], row.id)
			}
		}
	}
	for _, l := range r.lines(`SELECT key, target_type || ':' || target_value || ' ' || key FROM metadata m JOIN x_withheld w USING(target_type, target_value, key)
		WHERE w.why = 'retention' AND w.edit_time = m.last_timestamp AND m.is_promised = 0 AND m.source_ref IS NULL AND m.target_type <> 'project'`) {
		f := strings.SplitN(l, "|", 2)
		if name := meta.NamespacesOf(r.names).Longest(f[0]); name != "" && r.bounds[name] != (Bounds{}) {
			leftover[name] = append(leftover[name], f[1])
		}
	}
	return live, leftover
}

// check previews, in several ways, and sweeps.
func (r *randomWorld) check() {
	t := r.t
	ctx := context.Background()
	// A reader counts the same, without writing.
	before := strings.Join(r.lines("SELECT * FROM x_created"), "\n") + strings.Join(r.lines("SELECT * FROM x_facts"), "\n")
	rd := *r.env
	var err error
	if rd.DB, err = store.OpenRead(ctx, r.path, store.Options{}); err != nil {
		t.Fatal(err)
	}
	defer rd.DB.Close()
	read, err := List(ctx, &rd)
	if err != nil {
		t.Fatal(err)
	}
	limit := r.r.Int64N(6)
	readDry, err := Sweep(ctx, &rd, SweepOptions{DryRun: true, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	if now := strings.Join(r.lines("SELECT * FROM x_created"), "\n") + strings.Join(r.lines("SELECT * FROM x_facts"), "\n"); now != before {
		t.Fatalf("a reader wrote: %s\n%s", before, now)
	}

	r.catchUp()
	r.audit()
	live, leftover := r.doomed()
	states, err := List(ctx, r.env)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(read) != fmt.Sprint(states) {
		t.Fatalf("read-only %v\nwritable  %v", read, states)
	}
	for _, s := range states {
		if s.WouldPrune != int64(len(live[s.Collection])) || s.Leftover != int64(len(leftover[s.Collection])) {
			t.Fatalf("%s: wouldPrune %d, leftover %d; want %v, %v", s.Collection, s.WouldPrune, s.Leftover, live[s.Collection], leftover[s.Collection])
		}
	}

	rows := strings.Split(r.keys(), "\n")
	logs := r.lines("SELECT rowid, target_type || ':' || target_value || ' ' || key FROM metadata_log WHERE timestamp > 0")
	bytes := r.bytes()
	dry := r.sweep(SweepOptions{DryRun: true, Limit: limit})
	if fmt.Sprint(*dry) != fmt.Sprint(*readDry) {
		t.Fatalf("dry run %+v, read-only %+v", dry, readDry)
	}
	var passes []SweepResult
	res := r.sweep(SweepOptions{Limit: limit, Pass: func(p SweepResult) { passes = append(passes, p) }})
	if fmt.Sprint(*dry) != fmt.Sprint(*res) {
		t.Fatalf("dry run %+v, sweep %+v", dry, res)
	}
	r.say("limit %d: %+v", limit, res)
	if limit > 0 && res.Rows+res.Leftover > limit || limit > 0 && !res.Done && res.Rows+res.Leftover < limit {
		t.Fatalf("limit %d: %+v", limit, res)
	}
	if freed := bytes - r.bytes(); freed != res.Bytes {
		t.Fatalf("%d bytes freed, %d said", freed, res.Bytes)
	}
	r.catchUp()
	r.audit()
	// The rest.
	rest := r.sweep(SweepOptions{})
	if !rest.Done {
		t.Fatalf("not done: %+v", rest)
	}
	r.catchUp()
	r.audit()
	var gone []string
	now := map[string]bool{}
	for _, l := range strings.Split(r.keys(), "\n") {
		now[l] = true
	}
	for _, l := range rows {
		if l != "" && !now[l] {
			gone = append(gone, l)
		}
	}
	var want []string
	for _, m := range []map[string][]string{live, leftover} {
		for _, l := range m {
			want = append(want, l...)
		}
	}
	slices.Sort(want)
	if !slices.Equal(gone, want) {
		t.Fatalf("deleted %q\nwant    %q", gone, want)
	}
	// Nothing is left of them, and nothing else is gone.
	for _, l := range logs {
		_, id, _ := strings.Cut(l, "|")
		n := len(r.lines("SELECT 1 FROM metadata_log WHERE target_type || ':' || target_value || ' ' || key = ?", id))
		if slices.Contains(gone, id) != (n == 0) {
			t.Fatalf("%d log records of %q are left", n, id)
		}
	}
	for _, id := range gone {
		if n := len(r.lines("SELECT 1 FROM tombstones WHERE target_type || ':' || target_value || ' ' || key = ?", id)); n > 0 {
			t.Fatalf("%q has a tombstone", id)
		}
		if why := r.lines("SELECT why FROM x_withheld WHERE target_type || ':' || target_value || ' ' || key = ?", id); !slices.Equal(why, []string{"swept"}) {
			t.Fatalf("%q: %q", id, why)
		}
	}
	for _, table := range []string{"list_values", "set_values"} {
		if n := r.lines("SELECT count(*) FROM " + table + " WHERE metadata_id NOT IN (SELECT rowid FROM metadata)"); n[0] != "0" {
			t.Fatalf("%s rows in %s without a row", n[0], table)
		}
	}
}

// bytes is the length of all live rows of collections.
func (r *randomWorld) bytes() (n int64) {
	for _, l := range r.lines("SELECT coalesce(sum(bytes), 0) FROM x_created") {
		fmt.Sscan(l, &n)
	}
	return n
}
