package serialize_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// Real clones: a store, a repository, serialize.Run, Materialize and prune, and a bare
// repository that they share. Times are those of the schedule.

const (
	realStart   = 1_600_000_000_000 // ms; before the clock of the machine
	localMain   = "refs/meta/local/main"
	trackedMain = "refs/meta/remotes/main"
	remoteMain  = "refs/meta/main"
)

// realWorld is what the clones of one schedule share.
type realWorld struct {
	t       testing.TB
	dir     string
	bare    *gitdb.Repo
	plain   bool // exchange with the git program; else through one object folder
	w       *world
	commits map[gitdb.Hash]*realCommit
	env     []string
}

type realCommit struct {
	values views
	text   string
	gone   []string
	parent gitdb.Hash
	swept  bool // a retention commit
}

// realRepo is a repository that exchanges with the bare one.
type realRepo struct {
	*realWorld
	i    int
	dir  string
	repo *gitdb.Repo
	err  error // the first thing that went wrong
}

type realClone struct {
	realRepo
	skew    int64
	db      *store.DB
	e       *serialize.Env
	warn    []string
	unclear int // removals reported as unclear
}

// keyOf is the key of a schedule's letter.
func keyOf(letter string) meta.KeyRef {
	return meta.KeyRef{Target: meta.Target{Type: meta.Path, Value: "src/" + letter}, Key: "k"}
}

func letterOf(k meta.KeyRef) string {
	out := strings.TrimPrefix(k.Target.Value, "src/")
	if k.Key != "k" {
		out += "." + k.Key
	}
	return out
}

func (r *realWorld) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *realWorld) git(dir string, args ...string) (string, error) {
	c := exec.Command("git", append([]string{"-C", dir}, args...)...)
	c.Env = r.env
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// initRepo makes a repository without starting a process; without config it is bare.
func (r *realWorld) initRepo(dir, config string) *gitdb.Repo {
	r.t.Helper()
	r.must(os.MkdirAll(filepath.Join(dir, "refs/heads"), 0o777))
	objects := filepath.Join(dir, "objects")
	if config != "" && !r.plain {
		r.must(os.Symlink(filepath.Join(r.dir, "r.git", "objects"), objects))
	} else {
		r.must(os.MkdirAll(filepath.Join(objects, "pack"), 0o777))
		r.must(os.MkdirAll(filepath.Join(objects, "info"), 0o777))
	}
	for name, text := range map[string]string{
		"HEAD": "ref: refs/heads/main\n",
		// names of their own, or two clones make the same prune commit in one second
		"config": fmt.Sprintf("[core]\n\trepositoryformatversion = 0\n\tbare = %v\n[user]\n\tname = %s\n\temail = t@e.x\n%s",
			config == "", filepath.Base(filepath.Dir(dir)), config),
	} {
		r.must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	repo, err := gitdb.Discover(context.Background(), dir)
	r.must(err)
	return repo
}

// newRealWorld makes the clones of s below dir.
func newRealWorld(t testing.TB, dir string, s schedule, plain bool) *realWorld {
	t.Helper()
	r := &realWorld{t: t, dir: dir, plain: plain, commits: map[gitdb.Hash]*realCommit{}}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "GIT_") {
			r.env = append(r.env, kv)
		}
	}
	r.env = append(r.env, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	r.bare = r.initRepo(filepath.Join(dir, "r.git"), "")
	var sites []site
	for i := range s.clones {
		repo := realRepo{realWorld: r, i: i, dir: filepath.Join(dir, string(rune('a'+i)))}
		repo.repo = r.initRepo(filepath.Join(repo.dir, ".git"), fmt.Sprintf(
			"[remote \"origin\"]\n\turl = %s\n\tfetch = +%s:%s\n\tmeta = true\n", filepath.Join(dir, "r.git"), remoteMain, trackedMain))
		if i == s.peer {
			sites = append(sites, &realPeer{realRepo: repo})
			continue
		}
		c := &realClone{realRepo: repo, skew: s.skew[i]}
		c.open()
		if s.maximum > 0 { // beside the two rules themselves
			c.edit(func(tx *store.Tx) error {
				for k, n := range map[string]int{prune.KeyMaxKeys: s.maximum + 2, prune.KeyMinKeys: max(1, s.maximum/2)} {
					v := meta.Value{Type: meta.String, String: fmt.Sprint(n)}
					if err := tx.Put(meta.KeyRef{Target: meta.ProjectTarget, Key: k}, v, store.Edit{Time: realStart}, store.PutOptions{}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		sites = append(sites, c)
	}
	r.w = newWorld(s, sites, r)
	return r
}

func (r *realWorld) close() {
	for _, s := range r.w.sites {
		switch c := s.(type) {
		case *realClone:
			c.db.Close()
			c.repo.Close()
		case *realPeer:
			c.repo.Close()
		}
	}
	r.bare.Close()
}

func (c *realClone) clock() time.Time {
	now := int64(0)
	if c.w != nil {
		now = c.w.now
	}
	return time.UnixMilli(realStart + now + c.skew)
}

func (c *realClone) open() {
	db, err := store.Open(context.Background(), filepath.Join(c.dir, ".git", store.FileName), store.Options{Now: c.clock})
	c.must(err)
	c.db = db
	c.e = &serialize.Env{Repo: c.repo, DB: db, Namespace: "meta", Now: c.clock, Warn: func(s string) { c.warn = append(c.warn, s) }}
}

func (c *realClone) ours() bool { return true }

func (c *realRepo) fail(what string, err error) {
	if err != nil && c.err == nil {
		c.err = fmt.Errorf("%c %s: %w", 'A'+c.i, what, err)
	}
}

// edit runs f; a key that is not there or of another type is no failure.
func (c *realClone) edit(f func(*store.Tx) error) bool {
	err := c.db.Update(context.Background(), f)
	if errors.Is(err, store.ErrType) || errors.Is(err, meta.ErrNotFound) {
		return false
	}
	c.fail("edit", err)
	return err == nil
}

// load brings back what an edit of a collection starts from.
func (c *realClone) load(key string) {
	ctx := context.Background()
	c.fail("load", serialize.LoadForEdit(ctx, c.e, keyOf(key)))
	swept := false
	c.fail("load", c.db.View(ctx, func(tx *store.Tx) error {
		w, _, err := tx.Withheld(keyOf(key))
		swept = w.Why == store.Swept
		return err
	}))
	if _, have := c.rows()[key]; !have && !swept {
		c.fail("load", serialize.LoadFromHistory(ctx, c.e, keyOf(key)))
	}
}

func (c *realClone) do(s schedStep) (at int64, done bool) {
	ctx, k := context.Background(), keyOf(s.key)
	if _, ok := edits[s.op]; ok {
		done = c.edit(func(tx *store.Tx) (err error) {
			e := store.Edit{Email: string(rune('a'+c.i)) + "@e.x"}
			switch s.op {
			case "set":
				err = tx.Set(k, s.item, e)
			case "rm":
				err = tx.Remove(k, e)
			case "add":
				err = tx.SetAdd(k, s.item, e)
			case "drop":
				err = tx.SetRemove(k, s.item, e)
			case "append":
				err = tx.ListPush(k, s.item, e)
			case "pop":
				err = tx.ListPop(k, s.item, e)
			}
			if err != nil {
				return err
			}
			row, ok, err := tx.Row(k)
			at = row.Time
			if ok || err != nil {
				return err
			}
			ts, err := tx.Tombstones(k)
			for _, t := range ts {
				if t.Kind == meta.KeyTombstone {
					at = t.Time
				}
			}
			return err
		})
		return at, done
	}
	switch s.op {
	case "serialize", "full":
		_, err := serialize.Run(ctx, c.e, serialize.Options{ForceFull: s.op == "full", Pruner: prune.Auto{}})
		c.fail(s.op, err)
	case "fetch":
		c.fail(s.op, c.fetch())
	case "pull":
		c.fail(s.op, c.pull())
	case "push":
		c.fail(s.op, c.push())
	case "sync":
		err := c.pull()
		if err == nil {
			err = c.push()
		}
		c.fail(s.op, err)
	case "crash":
		c.fail(s.op, c.crash())
	case "prune":
		c.fail(s.op, c.prune())
	case "local-prune":
		return 0, c.localPrune(k)
	case "sweep":
		return 0, c.sweep(k)
	case "restore":
		return 0, c.restore(s.key)
	}
	return 0, true
}

// sweep deletes a row as a retention sweep does, which may also delete what is not live.
func (c *realClone) sweep(k meta.KeyRef) (done bool) {
	c.edit(func(tx *store.Tx) error {
		row, ok, err := tx.Row(k)
		if err != nil || !ok {
			return err
		}
		ts, err := tx.Tombstones(k)
		if err != nil {
			return err
		}
		for _, t := range ts {
			if err := tx.DeleteTombstone(t); err != nil {
				return err
			}
		}
		if _, err := tx.LocalPrune([]meta.KeyRef{k}, store.LocalPruneOptions{UpTo: math.MaxInt64}); err != nil {
			return err
		}
		done = true
		return tx.PutWithheld(store.Withheld{KeyRef: k, EditTime: row.Time, Why: store.Swept})
	})
	return done
}

func (c *realRepo) fetch() error {
	if c.plain {
		_, err := c.git(c.dir, "fetch", "-q", "origin")
		if err != nil && strings.Contains(err.Error(), "couldn't find remote ref") {
			return nil
		}
		return err
	}
	return c.setRef(c.repo, trackedMain, c.bareTip())
}

func (r *realWorld) bareTip() gitdb.Hash { return r.refOf(r.bare, remoteMain) }

func (r *realWorld) refOf(repo *gitdb.Repo, ref string) gitdb.Hash {
	id, err := repo.Ref(context.Background(), ref)
	if err != nil && !errors.Is(err, gitdb.ErrRefNotFound) {
		r.t.Fatal(err)
	}
	return id
}

// setRef writes a ref without a process.
func (r *realWorld) setRef(repo *gitdb.Repo, ref string, id gitdb.Hash) error {
	if id.IsZero() {
		return nil
	}
	path := filepath.Join(repo.CommonDir, filepath.FromSlash(ref))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(id.String()+"\n"), 0o666)
}

func (c *realClone) run() error {
	_, err := serialize.Run(context.Background(), c.e, serialize.Options{Pruner: prune.Auto{}})
	return err
}

func (c *realClone) materialize() error {
	if c.refOf(c.repo, trackedMain).IsZero() {
		return nil
	}
	res, err := serialize.Materialize(context.Background(), c.e, trackedMain, serialize.MergeOptions{Pruner: prune.Auto{}})
	if err == nil {
		c.unclear += len(res.Unclear)
	}
	return err
}

func (c *realClone) pull() error {
	if err := c.fetch(); err != nil {
		return err
	}
	if c.refOf(c.repo, trackedMain).IsZero() {
		return c.run()
	}
	return c.materialize()
}

func (c *realClone) push() error {
	if err := c.run(); err != nil {
		return err
	}
	for range 5 {
		if err := c.materialize(); err != nil {
			return err
		}
		local := c.refOf(c.repo, localMain)
		if local.IsZero() || c.pushed(local) {
			return nil
		}
		if err := c.fetch(); err != nil {
			return err
		}
	}
	return errors.New("push never ends")
}

func (c *realClone) pushed(local gitdb.Hash) bool {
	if c.plain {
		_, err := c.git(c.dir, "push", "-q", "origin", localMain+":"+remoteMain)
		if err == nil {
			c.must(c.setRef(c.repo, trackedMain, local))
		}
		return err == nil
	}
	if c.refOf(c.repo, trackedMain) != c.bareTip() {
		return false
	}
	c.must(c.setRef(c.bare, remoteMain, local))
	c.must(c.setRef(c.repo, trackedMain, local))
	return true
}

// crash is a pull that dies after the ref has moved and before the store is told, and the
// serialize that comes after.
func (c *realClone) crash() error {
	if err := c.fetch(); err != nil {
		return err
	}
	if err := c.run(); err != nil || c.refOf(c.repo, trackedMain).IsZero() {
		return err
	}
	before := filepath.Join(c.realWorld.dir, "before.sqlite")
	if err := c.db.Close(); err != nil {
		return err
	}
	path := filepath.Join(c.dir, ".git", store.FileName)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(before, text, 0o666); err != nil {
		return err
	}
	c.open()
	if _, err := serialize.Materialize(context.Background(), c.e, trackedMain, serialize.MergeOptions{}); err != nil {
		return err
	}
	if err := c.db.Close(); err != nil {
		return err
	}
	for _, end := range []string{"-wal", "-shm"} {
		os.Remove(path + end)
	}
	if err := os.Rename(before, path); err != nil {
		return err
	}
	c.open()
	return c.run()
}

// prune drops the oldest key of the published tree, and every older tombstone.
func (c *realClone) prune() error {
	ctx := context.Background()
	if err := c.run(); err != nil {
		return err
	}
	tip := c.refOf(c.repo, localMain)
	if tip.IsZero() {
		return nil
	}
	rd, err := c.repo.Objects(ctx)
	if err != nil {
		return err
	}
	want := map[meta.KeyRef]bool{}
	for k := range c.commit(tip).values {
		want[keyOf(k)] = true
	}
	times, err := serialize.KeyTimes(ctx, rd, tip, want)
	if err != nil || len(want) == 0 {
		return err
	}
	err = c.db.View(ctx, func(tx *store.Tx) error {
		for k := range want {
			row, ok, err := tx.Row(k)
			if err != nil {
				return err
			}
			if ok {
				times[k] = row.Time
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.pruneBefore(slices.Min(slices.Collect(maps.Values(times))) + 1)
}

func (c *realClone) pruneBefore(ms int64) error {
	e := *c.e
	e.Now = func() time.Time { return time.UnixMilli(ms).Add(24 * time.Hour) }
	_, err := prune.Manual(context.Background(), &e, prune.ManualOptions{Since: "1d", Force: true})
	return err
}

func (c *realClone) localPrune(k meta.KeyRef) (done bool) {
	ctx := context.Background()
	rd, err := c.repo.Objects(ctx)
	c.fail("local-prune", err)
	c.edit(func(tx *store.Tx) error {
		row, ok, err := tx.Row(k)
		if err != nil || !ok || c.refOf(c.repo, trackedMain).IsZero() || c.refOf(c.repo, localMain).IsZero() {
			return err
		}
		if _, pending, err := c.e.Tip(ctx, tx, localMain); err != nil || pending[k] {
			return nil
		}
		published, at, err := c.e.Published(ctx, rd, tx, []store.Row{row})
		if err != nil || !published[k] {
			return err
		}
		n, err := tx.LocalPrune([]meta.KeyRef{k}, store.LocalPruneOptions{UpTo: at.RowID})
		done = n > 0
		return err
	})
	return done
}

// restore puts an old copy of the store back: an old value, without cursor and without
// what was withheld.
func (c *realClone) restore(letter string) bool {
	ctx, k := context.Background(), keyOf(letter)
	tip := c.refOf(c.repo, localMain)
	if tip.IsZero() || c.w.loss[c.i][letter] {
		return false
	}
	var old *view
	for id := tip; !id.IsZero(); id = c.commit(id).parent {
		if v, ok := c.commit(id).values[letter]; ok {
			old = &v
		}
	}
	if old == nil {
		return false
	}
	done := false
	c.edit(func(tx *store.Tx) error {
		_, pending, err := c.e.Tip(ctx, tx, localMain)
		if err != nil || len(pending) > 0 {
			return nil
		}
		if swept, err := tx.HasSwept(); err != nil || swept {
			return err
		}
		var held []meta.KeyRef
		for w, err := range tx.AllWithheld() {
			if err != nil {
				return err
			}
			held = append(held, w.KeyRef)
		}
		for _, k := range held {
			if err := tx.DeleteWithheld(k); err != nil {
				return err
			}
		}
		if err := tx.DeleteCursors(localMain); err != nil {
			return err
		}
		done = true
		v, at := meta.Value{Type: meta.String, String: old.text}, int64(0)
		for _, e := range c.w.events {
			if e.key == letter && e.arg == old.text {
				at = e.time
			}
		}
		return tx.Put(k, v, store.Edit{Time: at}, store.PutOptions{NoLog: true})
	})
	if done {
		c.fail("restore", c.run())
	}
	return done
}

func valueView(v meta.Value) view {
	out := view{kind: string(v.Type), text: v.String}
	if v.Type != meta.String {
		out.item = map[string]bool{}
		for _, s := range v.Items() {
			out.item[s] = true
		}
	}
	return out
}

func (c *realClone) rows() views {
	out := views{}
	err := c.db.View(context.Background(), func(tx *store.Tx) error {
		for rec, err := range tx.Records(store.Query{Type: meta.Path, Publishable: true}) {
			if err != nil {
				return err
			}
			out[letterOf(rec.KeyRef)] = valueView(rec.Value)
		}
		return nil
	})
	c.fail("rows", err)
	return out
}

func name(id gitdb.Hash) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

func (c *realRepo) tracking() string { return name(c.refOf(c.repo, trackedMain)) }

func (c *realRepo) tip() (string, views, string) { return c.shown(c.repo, localMain) }

func (r *realWorld) tip() (string, views, string) { return r.shown(r.bare, remoteMain) }

func (r *realWorld) shown(repo *gitdb.Repo, ref string) (string, views, string) {
	id := r.refOf(repo, ref)
	if id.IsZero() {
		return "", nil, ""
	}
	x := r.commitOf(repo, id)
	return id.String(), x.values, x.text
}

func (c *realRepo) commit(id gitdb.Hash) *realCommit { return c.commitOf(c.repo, id) }

func (r *realWorld) commitOf(repo *gitdb.Repo, id gitdb.Hash) *realCommit {
	r.t.Helper()
	if x, ok := r.commits[id]; ok {
		return x
	}
	ctx := context.Background()
	rd, err := repo.Objects(ctx)
	r.must(err)
	c, err := rd.Commit(ctx, id)
	r.must(err)
	x := &realCommit{values: views{}, swept: strings.HasPrefix(c.Message, "git-meta: retention\n")}
	if len(c.Parents) > 0 {
		x.parent = c.Parents[0]
	}
	var b strings.Builder
	state := map[string]meta.Value{}
	err = serialize.WalkTree(ctx, rd, c.Tree, func(l serialize.Leaf) error {
		fmt.Fprintf(&b, "%s %s\n", l.Path, l.Hash.String()[:7])
		p, err := l.Decode()
		if err != nil || p.Target.Type != meta.Path {
			return nil
		}
		k := letterOf(p.KeyRef)
		_, data, err := rd.Read(ctx, l.Hash)
		v := state[k]
		switch p.Kind {
		case meta.PathValue:
			v = meta.Value{Type: meta.String, String: string(data)}
		case meta.PathEntry:
			v.Type, v.Entries = meta.List, append(v.Entries, meta.Entry{Value: string(data)})
		case meta.PathMember:
			v.Type, v.Members = meta.Set, append(v.Members, string(data))
		case meta.PathEntryTombstone:
			if v.Type == "" {
				v.Type = meta.List
			}
		case meta.PathMemberTombstone:
			if v.Type == "" {
				v.Type = meta.Set
			}
		case meta.PathTombstone:
			x.gone = append(x.gone, k)
			return err
		default:
			return err
		}
		state[k] = v
		return err
	})
	r.must(err)
	x.text = b.String()
	for _, k := range x.gone {
		if v, ok := state[k]; ok && len(v.Entries)+len(v.Members) == 0 && v.String == "" {
			delete(state, k)
		}
	}
	for k, v := range state {
		x.values[k] = valueView(v)
	}
	for line := range strings.SplitSeq(c.Message, "\n") {
		if f := strings.Split(line, "\t"); len(f) == 3 && f[0] == "D" {
			x.gone = append(x.gone, strings.TrimPrefix(f[1], "path:src/"))
		}
	}
	r.commits[id] = x
	return x
}

func (r *realWorld) line() (out []schedCommit) {
	for id := r.bareTip(); !id.IsZero(); {
		x := r.commitOf(r.bare, id)
		gone := slices.Clone(x.gone)
		if x.swept {
			for k := range r.commitOf(r.bare, x.parent).values {
				if _, ok := x.values[k]; !ok {
					gone = append(gone, k)
				}
			}
		}
		out = append(out, schedCommit{x.values, gone})
		id = x.parent
	}
	slices.Reverse(out)
	return out
}

// troubles returns what went wrong in a step that must not fail, or a store and tree that
// differ without saying so.
func (c *realClone) troubles(synced bool) *broken {
	if c.err != nil {
		return &broken{"ERROR", c.err.Error()}
	}
	if !synced {
		return nil
	}
	_, tree, _ := c.tip()
	rows := c.rows()
	var bad *broken
	say := func(format string, a ...any) {
		bad = &broken{"P0", fmt.Sprintf("%c ", 'A'+c.i) + fmt.Sprintf(format, a...)}
	}
	err := c.db.View(context.Background(), func(tx *store.Tx) error {
		for k := range tree {
			_, have := rows[k]
			w, ok, err := tx.Withheld(keyOf(k))
			if err != nil {
				return err
			}
			switch {
			case have && !rows[k].equal(tree[k]):
				say("has %s=%s, its tree %s", k, rows[k], tree[k])
			case have && ok:
				say("withholds %s (%s), which is in its tree", k, w.Why)
			case !have && (!ok || w.Why != store.LocalPruned):
				say("has %s in the tree, no row and no reason", k)
			}
		}
		for k := range rows {
			w, ok, err := tx.Withheld(keyOf(k))
			if err != nil {
				return err
			}
			if _, in := tree[k]; !in && !rows[k].empty() && (!ok || w.Why == store.LocalPruned) {
				say("has row %s, not in the tree, and no reason", k)
			}
		}
		return nil
	})
	if err != nil {
		return &broken{"ERROR", err.Error()}
	}
	return bad
}

// troubles looks at every clone after step x.
func (r *realWorld) troubles(x schedStep) *broken {
	for _, site := range r.w.sites {
		switch c := site.(type) {
		case *realClone:
			if b := c.troubles(x.clone == c.i && (x.op == "sync" || x.op == "pull")); b != nil {
				return b
			}
		case *realPeer:
			if c.err != nil {
				return &broken{"PEER", c.err.Error()}
			}
		}
	}
	return nil
}

// hasEmpty reports whether a collection without items is about.
func hasEmpty(w *world) bool {
	for _, c := range w.sites {
		_, tree, _ := c.tip()
		for _, v := range []views{tree, c.rows()} {
			for _, x := range v {
				if x.empty() {
					return true
				}
			}
		}
	}
	return false
}

// beside runs the model too and says where the real clones differ from it.
func (r *realWorld) beside(s schedule) func(schedStep) *broken {
	model := modelWorld(s)
	prunes := s.maximum > 0 || slices.ContainsFunc(s.steps, func(x schedStep) bool { return x.op == "prune" })
	return func(x schedStep) *broken {
		if model == nil {
			return nil
		}
		if model.run(x); model.bad != nil {
			r.t.Fatalf("the model itself: %s\n%s", model.bad, s)
		}
		if prunes && hasEmpty(model) {
			model = nil // an empty collection counts as a key there, with a time of its own
			return nil
		}
		for i, c := range r.w.sites {
			_, tree, _ := c.tip()
			_, want, _ := model.sites[i].tip()
			if !maps.EqualFunc(tree, want, view.equal) {
				return &broken{"MODEL", fmt.Sprintf("after %s the tree of %c has %s, in the model %s", x, 'A'+i, tree, want)}
			}
			if got, want := c.rows(), model.sites[i].rows(); !maps.EqualFunc(got, want, view.equal) {
				return &broken{"MODEL", fmt.Sprintf("after %s the store of %c has %s, in the model %s", x, 'A'+i, got, want)}
			}
		}
		return nil
	}
}

// playReal runs s on real clones, exchanging with the git program if plain; with twin, the
// model runs beside and must show the same after every step.
func playReal(t testing.TB, s schedule, plain, twin bool) *broken {
	t.Helper()
	dir, err := os.MkdirTemp("", "schedule")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	r := newRealWorld(t, dir, s, plain)
	defer r.close()
	same := func(schedStep) *broken { return nil }
	if twin {
		same = r.beside(s)
	}
	r.w.after = func(x schedStep) *broken {
		if b := r.troubles(x); b != nil {
			return b
		}
		return same(x)
	}
	bad := r.w.play()
	if bad == nil {
		return r.fsck()
	}
	for _, site := range r.w.sites {
		if c, ok := site.(*realClone); ok && len(c.warn) > 0 {
			bad.text += fmt.Sprintf("\n%c warned: %s", 'A'+c.i, strings.Join(c.warn, "; "))
		}
	}
	return bad
}

func (r *realWorld) fsck() *broken {
	dirs := []string{filepath.Join(r.dir, "r.git")}
	for i := range r.w.sites {
		if r.plain {
			dirs = append(dirs, filepath.Join(r.dir, string(rune('a'+i))))
		}
	}
	for _, d := range dirs {
		if out, err := r.git(d, "fsck", "--strict", "--no-dangling"); err != nil {
			return &broken{"FSCK", fmt.Sprint(err, out)}
		}
	}
	return nil
}
