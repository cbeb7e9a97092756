package serialize_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A schedule is a list of operations of several clones that share one remote. It runs on
// clones of the model (schedule_model_test.go) or on real ones (schedule_real_test.go),
// and afterwards the properties of design §8 must hold. The executable model in Python is
// the reference for both.

// step is one operation of a schedule.
type schedStep struct {
	clone     int
	op        string
	key, item string
}

func (s schedStep) String() string {
	out := string(rune('A'+s.clone)) + "." + s.op
	for _, a := range []string{s.key, s.item} {
		if a != "" {
			out += "_" + a
		}
	}
	return out
}

// schedule is what to run and in what order all clones sync at the end.
type schedule struct {
	clones  int
	skew    []int64 // ms by clone
	maximum int     // keys; 0: no auto-prune
	peer    int     // the clone that runs the other program, -1: none
	steps   []schedStep
	order   [][]int // of the rounds of syncs at the end
}

func (s schedule) String() string {
	var b strings.Builder
	for _, x := range s.steps {
		fmt.Fprintf(&b, "%s ", x)
	}
	fmt.Fprintf(&b, "| %v skew %v max %d peer %d", s.order, s.skew, s.maximum, s.peer)
	return b.String()
}

// tickMS is the time between two steps.
const tickMS = 10_000

// view is the value of a key: a string, or the items of a collection by text.
type view struct {
	kind string // string, list, set
	text string
	item map[string]bool
}

func (v view) equal(o view) bool {
	return v.kind == o.kind && v.text == o.text && maps.Equal(v.item, o.item) ||
		v.kind != "string" && o.kind != "string" && len(v.item)+len(o.item) == 0
}

func (v view) empty() bool { return v.kind != "string" && len(v.item) == 0 }

func (v view) String() string {
	if v.kind == "string" {
		return v.text
	}
	return fmt.Sprint(v.kind, slices.Sorted(maps.Keys(v.item)))
}

type views map[string]view

func (v views) String() string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(v)) {
		out = append(out, k+"="+v[k].String())
	}
	return strings.Join(out, " ")
}

// site is a clone.
type site interface {
	do(s schedStep) (at int64, done bool) // at: time of an edit; done: it took effect
	load(key string)                      // what an edit of a collection starts from
	rows() views
	tip() (id string, values views, text string) // of the local ref; text: everything in the tree
	tracking() string
	ours() bool
}

// line is one commit of the remote's history.
type schedCommit struct {
	values  views
	removed []string // removed or swept
}

type remote interface {
	tip() (id string, values views, text string)
	line() []schedCommit // oldest first
}

const maxEvents = 512

type eventSet [maxEvents / 64]uint64

func (s *eventSet) add(i int)     { s[i/64] |= 1 << (i % 64) }
func (s eventSet) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }
func (s *eventSet) join(o eventSet) {
	for i := range s {
		s[i] |= o[i]
	}
}

// event is an edit that took effect.
type event struct {
	kind, key, arg string
	clone          int
	time           int64
	seen           eventSet // what the clone knew before
	over           string   // the string that it replaced
}

// broken is a property that does not hold.
type broken struct{ name, text string }

func (b *broken) String() string { return b.name + ": " + b.text }

type world struct {
	schedule
	now    int64 // ms
	sites  []site
	remote remote

	events  []event
	known   []eventSet // by clone
	knownAt map[string]eventSet
	had     []map[string]bool // by clone: key + "\x00" + value that it had
	loss    []map[string]bool // keys dropped by the clone itself
	removed map[string]bool
	full    bool
	names   int
	bad     *broken
	after   func(s schedStep) *broken // looks at every step
}

func newWorld(s schedule, sites []site, r remote) *world {
	w := &world{schedule: s, sites: sites, remote: r, knownAt: map[string]eventSet{}, removed: map[string]bool{}}
	w.known = make([]eventSet, len(sites))
	for range sites {
		w.had = append(w.had, map[string]bool{})
		w.loss = append(w.loss, map[string]bool{})
	}
	return w
}

var edits = map[string]string{"set": "set", "rm": "rm", "add": "add", "drop": "drop", "append": "add", "pop": "drop"}

// run carries out one step and notes who knows what.
func (w *world) run(s schedStep) {
	w.now += tickMS
	c := w.sites[s.clone]
	w.full = w.full || s.op == "full"
	if kind, ok := edits[s.op]; ok {
		if s.op != "set" && s.op != "rm" {
			c.load(s.key)
		}
		row, have := c.rows()[s.key]
		over := ""
		if have && row.kind == "string" {
			over = row.text
		}
		apply := true
		switch s.op {
		case "set", "append":
			w.names++
			s.item = fmt.Sprintf("v%04d", w.names)
			apply = s.op == "set" || !have || row.kind == "list"
		case "rm":
			apply, s.item = have, "-"
		case "add":
			apply = !have || row.kind == "set" && !row.item[s.item]
		case "drop":
			apply = have && row.kind == "set" && row.item[s.item]
		case "pop":
			if apply = have && row.kind == "list" && len(row.item) > 0; apply {
				s.item = slices.Max(slices.Collect(maps.Keys(row.item)))
			}
		}
		if apply && len(w.events) < maxEvents {
			if at, done := c.do(s); done {
				e := event{kind, s.key, s.item, s.clone, at, w.known[s.clone], over}
				w.known[s.clone].add(len(w.events))
				w.events = append(w.events, e)
				if kind == "rm" {
					w.removed[s.key] = true
				}
			}
		}
	} else {
		before, _, _ := w.remote.tip()
		tracked := c.tracking()
		_, done := c.do(s)
		switch s.op {
		case "sync", "pull", "push", "crash":
			if id, _, _ := c.tip(); id != "" || s.op != "push" { // nothing to push: nothing is fetched
				w.known[s.clone].join(w.knownAt[before])
			}
			w.known[s.clone].join(w.knownAt[tracked])
		case "local-prune", "sweep":
			if done {
				w.loss[s.clone][s.key] = true
			}
			if done && s.op == "sweep" {
				e := event{kind: "sweep", key: s.key, arg: "-", clone: s.clone, time: w.now, seen: w.known[s.clone]}
				w.events = append(w.events, e)
			}
		}
	}
	if id, _, _ := c.tip(); id != "" {
		if _, ok := w.knownAt[id]; !ok { // a commit holds what its maker knew
			w.knownAt[id] = w.known[s.clone]
		}
	}
	for i, c := range w.sites {
		if c.ours() && w.bad == nil {
			w.bad = w.watch(i, c.rows())
		}
	}
	if w.after != nil && w.bad == nil {
		w.bad = w.after(s)
	}
}

// watch checks that no row is lost that nobody removed.
func (w *world) watch(i int, rows views) *broken {
	for k, v := range rows {
		if v.kind == "string" {
			w.had[i][k+"\x00"+v.text] = true
		} else {
			w.had[i][k+"\x00"] = true
		}
	}
	for kv := range w.had[i] {
		k, _, _ := strings.Cut(kv, "\x00")
		if _, ok := rows[k]; !ok && !w.removed[k] && !w.loss[i][k] {
			return &broken{"P3/P8", fmt.Sprintf("%c lost row %s that nobody removed", 'A'+i, k)}
		}
	}
	return nil
}

// play runs the schedule and checks the properties.
func (w *world) play() *broken {
	for _, s := range w.steps {
		if w.run(s); w.bad != nil {
			return w.bad
		}
	}
	sync := func(i int) { w.run(schedStep{clone: i, op: "sync"}) }
	for round := range 2 {
		for _, i := range w.order[round%len(w.order)] {
			if sync(i); w.bad != nil {
				return w.bad
			}
		}
	}
	return w.check(sync)
}

func (w *world) check(sync func(int)) *broken {
	mixed := w.peer >= 0
	before, tip, text := w.remote.tip()
	if !mixed {
		for i, c := range w.sites {
			if _, _, got := c.tip(); got != text {
				return &broken{"P1", fmt.Sprintf("trees differ after two rounds: %c has\n%s\nR has\n%s", 'A'+i, got, text)}
			}
		}
		for i := range w.sites {
			if sync(i); w.bad != nil {
				return w.bad
			}
		}
		if id, _, _ := w.remote.tip(); id != before {
			return &broken{"P1", "a further sync makes a commit"}
		}
	} else {
		for round := range 4 {
			_, _, text = w.remote.tip()
			for _, i := range w.order[round%len(w.order)] {
				if sync(i); w.bad != nil {
					return w.bad
				}
			}
		}
		if _, _, now := w.remote.tip(); now != text {
			return &broken{"P1-peer", fmt.Sprintf("R still changes in round 6, from\n%s\nto\n%s", text, now)}
		}
		return nil
	}
	full := maps.Clone(tip)
	maps.DeleteFunc(full, func(_ string, v view) bool { return v.empty() })
	if w.maximum > 0 && len(full) > w.maximum { // an empty collection is no key
		return &broken{"P7", fmt.Sprintf("R holds %v, the maximum is %d", tip, w.maximum)}
	}
	if !w.full {
		if b := w.republished(); b != nil {
			return b
		}
	}
	for _, k := range []string{"x", "y"} {
		if b := w.checkString(k, tip); b != nil {
			return b
		}
	}
	for _, k := range []string{"g", "h", "l"} {
		if b := w.checkItems(k, tip); b != nil {
			return b
		}
	}
	return nil
}

// republished looks for a commit that brings back the value that a key had when it was
// pruned.
func (w *world) republished() *broken {
	last := views{}
	var before views
	for n, c := range w.remote.line() {
		for k, v := range c.values {
			if _, there := before[k]; there || v.kind != "string" {
				continue
			}
			if old, ok := last[k]; ok && old.equal(v) {
				return &broken{"P7", fmt.Sprintf("commit %d publishes the pruned %s=%s again", n, k, v)}
			}
		}
		maps.Copy(last, c.values)
		for _, k := range c.removed {
			delete(last, k)
		}
		before = c.values
	}
	return nil
}

// winner returns the latest edit of those that no other edit of the key has seen.
func (w *world) winner(k string) *event {
	var seen eventSet
	for _, e := range w.events {
		if e.key == k && (e.kind == "set" || e.kind == "rm") {
			seen.join(e.seen)
		}
	}
	var best *event
	for i, e := range w.events {
		if e.key != k || e.kind != "set" && e.kind != "rm" || seen.has(i) {
			continue
		}
		if best == nil || e.time > best.time || e.time == best.time && e.arg > best.arg {
			best = &w.events[i]
		}
	}
	return best
}

// goneBy tells whether the string v was replaced by an edit made on top of it: rm, set or
// "".
func (w *world) goneBy(k, v string) string {
	by := ""
	for _, e := range w.events {
		if e.key == k && e.over == v && (e.kind == "set" || e.kind == "rm") && by != "rm" {
			by = e.kind
		}
	}
	return by
}

func (w *world) swept(k string) bool {
	return slices.ContainsFunc(w.events, func(e event) bool { return e.key == k && e.kind == "sweep" })
}

func (w *world) checkString(k string, tip views) *broken {
	win := w.winner(k)
	if win == nil {
		return nil
	}
	swept := w.swept(k)
	for i, c := range w.sites {
		row, have := c.rows()[k]
		switch {
		case win.kind == "rm":
			if have {
				name := "P5"
				if w.goneBy(k, row.text) != "" {
					name = "P4"
				}
				return &broken{name, fmt.Sprintf("%c shows %s=%s, removed at %d", 'A'+i, k, row, win.time)}
			}
		case swept || w.loss[i][k]:
		case w.had[i][k+"\x00"+win.arg] && (!have || row.text != win.arg):
			return &broken{"P2", fmt.Sprintf("%c had %s=%s and now has %s", 'A'+i, k, win.arg, row)}
		case have && w.goneBy(k, row.text) == "rm":
			return &broken{"P4", fmt.Sprintf("%c shows removed %s=%s", 'A'+i, k, row)}
		}
	}
	if v, ok := tip[k]; ok && !swept && v.text != win.arg {
		return &broken{"P5", fmt.Sprintf("R has %s=%s, latest is %s %s", k, v, win.kind, win.arg)}
	}
	return nil
}

func (w *world) checkItems(k string, tip views) *broken {
	type edit struct {
		i int
		event
	}
	items := map[string][]edit{}
	for i, e := range w.events {
		if e.key != k {
			continue
		}
		if e.kind == "sweep" || e.kind == "rm" {
			return nil
		}
		items[e.arg] = append(items[e.arg], edit{i, e})
	}
	for m, es := range items {
		var dropped eventSet
		var drops []edit
		for _, e := range es {
			if e.kind == "drop" {
				dropped.add(e.i)
				drops = append(drops, e)
			}
		}
		alive, mine, open := false, map[int]bool{}, false
		for _, e := range es {
			if e.kind != "add" {
				continue
			}
			all := true // it knew of every removal
			for n := range dropped {
				all = all && dropped[n]&^e.seen[n] == 0
			}
			if all {
				alive, mine[e.clone] = true, true
			}
			open = open || !slices.ContainsFunc(drops, func(d edit) bool { return d.seen.has(e.i) })
		}
		if !alive && open {
			continue // added and removed at once: either, but the same for all
		}
		for i, c := range w.sites {
			row, have := c.rows()[k]
			have = have && row.item[m]
			if !alive && have {
				return &broken{"P6", fmt.Sprintf("%c shows removed item %s of %s", 'A'+i, m, k)}
			}
			if alive && mine[i] && !have && !w.loss[i][k] {
				return &broken{"P6", fmt.Sprintf("%c lost its item %s of %s", 'A'+i, m, k)}
			}
		}
		if v, ok := tip[k]; ok && alive != v.item[m] {
			return &broken{"P6", fmt.Sprintf("R has %s=%s; item %s is there: %v", k, v, m, alive)}
		}
	}
	return nil
}

// ---- schedules ----

func parseSteps(text string) []schedStep {
	var out []schedStep
	for f := range strings.FieldsSeq(text) {
		p := strings.Split(f[2:], "_")
		s := schedStep{clone: int(f[0] - 'A'), op: p[0]}
		if len(p) > 1 {
			s.key = p[1]
		}
		if len(p) > 2 {
			s.item = p[2]
		}
		out = append(out, s)
	}
	return out
}

func schedOf(clones int, text string) schedule {
	order := make([]int, clones)
	for i := range order {
		order[i] = i
	}
	return schedule{clones: clones, skew: make([]int64, clones), peer: -1, steps: parseSteps(text), order: [][]int{order}}
}

var (
	alphabets = map[string][]string{
		"string":         {"set_x", "rm_x", "set_y", "sync", "prune"},
		"string+local":   {"set_x", "rm_x", "sync", "local-prune_x", "sweep_x", "prune"},
		"string+full":    {"set_x", "rm_x", "sync", "full", "prune", "fetch"},
		"string+restore": {"set_x", "rm_x", "set_y", "sync", "prune", "restore_x"},
		"set":            {"add_g_m", "drop_g_m", "add_g_n", "sync", "prune"},
		"set+local":      {"add_g_m", "drop_g_m", "add_g_n", "sync", "local-prune_g"},
		"list":           {"append_l", "pop_l", "set_y", "sync", "prune"},
	}
	starts = map[string]string{
		"string": "A.set_x A.sync B.sync", "set": "A.add_g_m A.sync B.sync", "list": "A.append_l A.sync B.sync",
	}
	randomOps = strings.Fields(`set_x set_y rm_x rm_y add_g_m add_g_n drop_g_m drop_g_n add_h_m append_l append_l pop_l
		sync sync pull push fetch serialize prune full local-prune_x local-prune_g sweep_y restore_x`)
	orders = [][][]int{{{0, 1}, {0, 1}}, {{0, 1}, {1, 0}}, {{1, 0}, {0, 1}}}
)

// exhaustive calls fn for every schedule of so many free steps of two clones.
func exhaustive(name string, depth int, skew int64, maximum, peer int, fn func(schedule)) {
	var ops []schedStep
	for c := range 2 {
		for _, o := range alphabets[name] {
			s := parseSteps("A." + o)[0]
			s.clone = c
			if c != peer || !slices.Contains([]string{"prune", "full", "local-prune", "sweep", "restore", "rm", "drop"}, s.op) {
				ops = append(ops, s)
			}
		}
	}
	kind, _, _ := strings.Cut(name, "+")
	head := parseSteps(starts[kind])
	at := make([]int, depth)
	for n := 0; ; n++ {
		steps := slices.Clone(head)
		for _, i := range at {
			steps = append(steps, ops[i])
		}
		fn(schedule{2, []int64{0, skew}, maximum, peer, steps, orders[n%3]})
		i := 0
		for ; i < depth; i++ {
			if at[i]++; at[i] < len(ops) {
				break
			}
			at[i] = 0
		}
		if i == depth {
			return
		}
	}
}

// randomSchedule makes one of 2 to 4 clones from the given operations.
func randomSchedule(r *rand.Rand, pool []string, peer bool, longest int) schedule {
	n := 2 + r.IntN(3)
	s := schedule{clones: n, peer: -1, maximum: []int{0, 0, 2, 3}[r.IntN(4)]}
	if peer {
		s.peer = n - 1
	}
	for range n {
		s.skew = append(s.skew, []int64{0, 0, 35_500, -35_500, 1_000_500}[r.IntN(5)])
	}
	ops := slices.Clone(pool)
	r.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
	ops = append(ops[:min(len(ops), 5+r.IntN(max(1, len(ops)-4)))], "sync", "sync")
	for range 6 + r.IntN(longest-5) {
		x := parseSteps("A." + ops[r.IntN(len(ops))])[0]
		x.clone = r.IntN(n)
		not := func(ops ...string) bool { return slices.Contains(ops, x.op) }
		if peer && not("rm", "local-prune", "drop", "pop") || x.clone == s.peer && not("prune", "full", "local-prune", "sweep", "fetch", "restore", "crash") {
			continue
		}
		s.steps = append(s.steps, x)
	}
	for range 2 {
		s.order = append(s.order, r.Perm(n))
	}
	return s
}

// shrink leaves out steps and skews as long as the same property is broken.
func shrink(s schedule, bad *broken, play func(schedule) *broken) (schedule, *broken) {
	same := func(t schedule) bool {
		got := play(t)
		if got == nil || got.name != bad.name {
			return false
		}
		s, bad = t, got
		return true
	}
	for again := true; again; {
		again = false
		for i := 0; i < len(s.steps); i++ {
			t := s
			t.steps = slices.Delete(slices.Clone(s.steps), i, i+1)
			if same(t) {
				again = true
				i--
			}
		}
		t := s
		if t.skew = make([]int64, s.clones); !slices.Equal(t.skew, s.skew) {
			again = same(t) || again
		}
	}
	return s, bad
}

// campaign runs schedules and reports the smallest failure of each property.
type campaign struct {
	t     *testing.T
	play  func(schedule) *broken
	runs  int
	fails map[string]int
}

func (c *campaign) run(s schedule) {
	c.t.Helper()
	c.runs++
	bad := c.play(s)
	if bad == nil {
		return
	}
	if c.fails == nil {
		c.fails = map[string]int{}
	}
	if c.fails[bad.name]++; c.fails[bad.name] > 1 {
		c.t.Fail()
		return
	}
	s, bad = shrink(s, bad, c.play)
	c.t.Errorf("%s\nschedule: %s", bad, s)
}

// parseSchedule reads what schedule.String prints.
func parseSchedule(text string) (s schedule, err error) {
	steps, tail, _ := strings.Cut(text, "|")
	s.steps = parseSteps(steps)
	var ints []int
	var lists [][]int
	inside := false
	for f := range strings.FieldsSeq(strings.NewReplacer("[", " [ ", "]", " ] ").Replace(tail)) {
		var n int
		switch _, bad := fmt.Sscan(f, &n); {
		case f == "[":
			ints, inside = nil, true
		case f == "]":
			if ints != nil {
				lists = append(lists, ints)
			}
			ints, inside = nil, false
		case bad == nil && inside:
			ints = append(ints, n)
		}
	}
	if len(lists) < 2 {
		return s, fmt.Errorf("schedule %q: no order or skew", text)
	}
	s.order = lists[:len(lists)-1]
	for _, n := range lists[len(lists)-1] {
		s.skew = append(s.skew, int64(n))
	}
	s.clones = len(s.skew)
	_, rest, _ := strings.Cut(tail, "max")
	_, err = fmt.Sscanf(rest, " %d peer %d", &s.maximum, &s.peer)
	return s, err
}
