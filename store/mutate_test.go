package store

import (
	"errors"
	"strings"
	"testing"

	"github.com/git-meta/git-meta-go/meta"
)

// The parts of a store that a change may touch, as text.
func contents(t *testing.T, db *DB) string {
	return dump(t, db, "SELECT 'row', target_type, key, value, value_type, last_timestamp - 1700000000000, is_git_ref, is_promised, source_ref FROM metadata ORDER BY target_type, key") +
		dump(t, db, "SELECT 'entry', m.key, l.value, CASE l.timestamp WHEN 0 THEN 'zero' ELSE l.timestamp - 1700000000000 END FROM list_values l LEFT JOIN metadata m ON m.rowid = l.metadata_id ORDER BY l.timestamp, l.rowid") +
		dump(t, db, "SELECT 'member', m.key, s.value, s.timestamp - 1700000000000 FROM set_values s LEFT JOIN metadata m ON m.rowid = s.metadata_id ORDER BY s.value") +
		dump(t, db, "SELECT 'tomb', tombstone_type, key, CASE WHEN tombstone_type = 'list_entry' THEN substr(entry_id, -5) ELSE value END, timestamp - 1700000000000, email FROM tombstones ORDER BY 2, 3, 5") +
		dump(t, db, "SELECT 'explicit', key, timestamp - 1700000000000 FROM x_explicit ORDER BY 2") +
		dump(t, db, "SELECT 'withheld', key, why FROM x_withheld ORDER BY 2") +
		dump(t, db, "SELECT 'log', key, operation, value, value_type, email, timestamp - 1700000000000 FROM metadata_log ORDER BY rowid")
}

func TestMutations(t *testing.T) {
	t.Parallel()
	k := ref("project k")
	set := func(v string) func(*Tx) error { return func(tx *Tx) error { return tx.Set(k, v, me) } }
	push := func(v string) func(*Tx) error { return func(tx *Tx) error { return tx.ListPush(k, v, me) } }
	add := func(v string) func(*Tx) error { return func(tx *Tx) error { return tx.SetAdd(k, v, me) } }
	rmMember := func(v string) func(*Tx) error { return func(tx *Tx) error { return tx.SetRemove(k, v, me) } }
	pop := func(v string) func(*Tx) error { return func(tx *Tx) error { return tx.ListPop(k, v, me) } }
	rmEntry := func(i int) func(*Tx) error { return func(tx *Tx) error { return tx.ListRemove(k, i, me) } }
	rm := func(tx *Tx) error { return tx.Remove(k, me) }
	clearAll := func(tx *Tx) error { _, err := tx.Clear(Query{Namespace: "k"}, me); return err }
	side := func(tx *Tx) error {
		return tx.Put(k, meta.Value{Type: meta.List, Entries: []meta.Entry{{Time: t0 - 9, Value: "a"}, {Time: t0 - 8, Value: "b"}}}, Edit{Time: t0 - 5}, PutOptions{SourceRef: "refs/x", NoLog: true})
	}
	promised := func(tx *Tx) error {
		return tx.run("INSERT INTO metadata(target_type, target_value, key, value, value_type, is_promised, promised_commit) VALUES ('project', '', 'k', '', 'string', 1, 'c')")
	}
	withhold := func(why Why) func(*Tx) error {
		return func(tx *Tx) error { return tx.PutWithheld(Withheld{k, t0 + 100, why}) }
	}
	mark := func(tx *Tx) error { return tx.SetLastMaterialized(t0 + 50) }

	for _, c := range []struct {
		name string
		do   []func(*Tx) error
		want string
	}{
		{"set", []func(*Tx) error{set("a\n\"é")}, `
row|project|k|"a\n\"é"|string|0|0|0|
log|k|set|"a\n\"é"|string|a@b|0`},
		{"set twice is lifted", []func(*Tx) error{set("a"), set("b")}, `
row|project|k|"b"|string|1|0|0|
log|k|set|"a"|string|a@b|0
log|k|set|"b"|string|a@b|1`},
		{"set above the peer's mark", []func(*Tx) error{mark, set("a")}, `
row|project|k|"a"|string|51|0|0|
log|k|set|"a"|string|a@b|51`},
		{"push", []func(*Tx) error{push("x"), push("x")}, `
row|project|k|[]|list|1|0|0|
entry|k|x|0
entry|k|x|1
log|k|push|[]|list|a@b|0
log|k|push|[]|list|a@b|1`},
		{"push on a string", []func(*Tx) error{set("a\nb"), push("x")}, `
row|project|k|[]|list|1|0|0|
entry|k|a
b|zero
entry|k|x|1
log|k|set|"a\nb"|string|a@b|0
log|k|push|[]|list|a@b|1`},
		{"pop takes the last equal entry", []func(*Tx) error{push("x"), push("y"), push("x"), pop("x")}, `
row|project|k|[]|list|3|0|0|
entry|k|x|0
entry|k|y|1
tomb|list_entry|k|11f6a|3|a@b
log|k|push|[]|list|a@b|0
log|k|push|[]|list|a@b|1
log|k|push|[]|list|a@b|2
log|k|pop|[]|list|a@b|3`},
		{"remove by index", []func(*Tx) error{push("x"), push("y"), rmEntry(0)}, `
row|project|k|[]|list|2|0|0|
entry|k|y|1
tomb|list_entry|k|11f6a|2|a@b
log|k|push|[]|list|a@b|0
log|k|push|[]|list|a@b|1
log|k|list_rm|[]|list|a@b|2`},
		{"the list empties", []func(*Tx) error{push("x"), pop("x")}, `
row|project|k|[]|list|1|0|0|
tomb|list_entry|k|11f6a|1|a@b
log|k|push|[]|list|a@b|0
log|k|pop|[]|list|a@b|1`},
		{"set over a list keeps entry tombstones", []func(*Tx) error{push("x"), push("y"), pop("x"), set("s")}, `
row|project|k|"s"|string|3|0|0|
tomb|list_entry|k|11f6a|2|a@b
log|k|push|[]|list|a@b|0
log|k|push|[]|list|a@b|1
log|k|pop|[]|list|a@b|2
log|k|set|"s"|string|a@b|3`},
		{"add, add again", []func(*Tx) error{add("b"), add("a"), add("b")}, `
row|project|k|[]|set|2|0|0|
member|k|a|1
member|k|b|2
log|k|set_add|[]|set|a@b|0
log|k|set_add|[]|set|a@b|1
log|k|set_add|[]|set|a@b|2`},
		{"remove members, add one again", []func(*Tx) error{add("a"), add("b"), rmMember("a"), rmMember("b"), add("a")}, `
row|project|k|[]|set|4|0|0|
member|k|a|4
tomb|set_member|k|b|3|a@b
log|k|set_add|[]|set|a@b|0
log|k|set_add|[]|set|a@b|1
log|k|set_rm|[]|set|a@b|2
log|k|set_rm|[]|set|a@b|3
log|k|set_add|[]|set|a@b|4`},
		{"set over a set drops member tombstones", []func(*Tx) error{add("a"), add("b"), rmMember("a"), set("s")}, `
row|project|k|"s"|string|3|0|0|
log|k|set_add|[]|set|a@b|0
log|k|set_add|[]|set|a@b|1
log|k|set_rm|[]|set|a@b|2
log|k|set|"s"|string|a@b|3`},
		{"rm of a list drops entry tombstones", []func(*Tx) error{push("x"), push("y"), pop("x"), rm}, `
tomb|metadata|k||3|a@b
explicit|k|3
log|k|push|[]|list|a@b|0
log|k|push|[]|list|a@b|1
log|k|pop|[]|list|a@b|2
log|k|rm|||a@b|3`},
		{"rm of a set keeps member tombstones", []func(*Tx) error{add("a"), add("b"), rmMember("a"), rm}, `
tomb|metadata|k||3|a@b
tomb|set_member|k|a|2|a@b
explicit|k|3
log|k|set_add|[]|set|a@b|0
log|k|set_add|[]|set|a@b|1
log|k|set_rm|[]|set|a@b|2
log|k|rm|||a@b|3`},
		{"clear drops member tombstones", []func(*Tx) error{add("a"), add("b"), rmMember("a"), clearAll}, `
tomb|metadata|k||3|a@b
explicit|k|3
log|k|set_add|[]|set|a@b|0
log|k|set_add|[]|set|a@b|1
log|k|set_rm|[]|set|a@b|2
log|k|rm|||a@b|3`},
		{"set after rm is later than the tombstone", []func(*Tx) error{set("a"), rm, set("b")}, `
row|project|k|"b"|string|2|0|0|
log|k|set|"a"|string|a@b|0
log|k|rm|||a@b|1
log|k|set|"b"|string|a@b|2`},
		{"a side row becomes ours by pop", []func(*Tx) error{side, pop("a")}, `
row|project|k|[]|list|0|0|0|
entry|k|b|-8
tomb|list_entry|k|86f7e|0|a@b
log|k|pop|[]|list|a@b|0`},
		{"push on a promised row", []func(*Tx) error{promised, push("x")}, `
row|project|k|[]|list|0|0|0|
entry|k|x|0
log|k|push|[]|list|a@b|0`},
		{"set on a promised row", []func(*Tx) error{promised, set("x")}, `
row|project|k|"x"|string|0|0|0|
log|k|set|"x"|string|a@b|0`},
		{"rm of a promised row", []func(*Tx) error{promised, rm}, `
tomb|metadata|k||0|a@b
explicit|k|0
log|k|rm|||a@b|0`},
		{"an edit ends P and is later", []func(*Tx) error{set("a"), withhold(Pruned), set("b")}, `
row|project|k|"b"|string|101|0|0|
log|k|set|"a"|string|a@b|0
log|k|set|"b"|string|a@b|101`},
		{"a swept key starts empty", []func(*Tx) error{withhold(Swept), push("x")}, `
row|project|k|[]|list|101|0|0|
entry|k|x|101
log|k|push|[]|list|a@b|101`},
		{"rm of a local-pruned key", []func(*Tx) error{withhold(LocalPruned), rm}, `
tomb|metadata|k||101|a@b
explicit|k|101
log|k|rm|||a@b|101`},
		{"clear of a local-pruned key", []func(*Tx) error{withhold(LocalPruned), clearAll}, `
tomb|metadata|k||101|a@b
explicit|k|101
log|k|rm|||a@b|101`},
		{"put replaces, does not lift", []func(*Tx) error{add("a"), mark, func(tx *Tx) error {
			return tx.Put(k, meta.Value{Type: meta.Set, Members: []string{"b", "c"}}, Edit{Email: "z", Time: t0 - 7}, PutOptions{})
		}}, `
row|project|k|[]|set|-7|0|0|
member|k|b|-7
member|k|c|-7
log|k|set_add|[]|set|a@b|0
log|k|set|[]|set|z|-7`},
		{"put of a list clears the key's tombstone only", []func(*Tx) error{push("x"), push("y"), pop("x"), func(tx *Tx) error {
			if err := tx.PutTombstone(meta.Tombstone{Kind: meta.KeyTombstone, KeyRef: k, Time: t0, Explicit: true}); err != nil {
				return err
			}
			return tx.Put(k, meta.Value{Type: meta.List, Entries: []meta.Entry{{Time: 0, Value: "p"}, {Time: t0, Value: "q"}}}, Edit{Time: t0}, PutOptions{NoLog: true})
		}}, `
row|project|k|[]|list|0|0|0|
entry|k|p|zero
entry|k|q|0
tomb|list_entry|k|11f6a|2|a@b
log|k|push|[]|list|a@b|0
log|k|push|[]|list|a@b|1
log|k|pop|[]|list|a@b|2`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// The same, each step in a transaction of its own and all in one.
			for _, split := range []bool{true, false} {
				db := openNew(t)
				if split {
					for _, f := range c.do {
						update(t, db, f)
					}
				} else {
					update(t, db, func(tx *Tx) error {
						for _, f := range c.do {
							if err := f(tx); err != nil {
								return err
							}
						}
						return nil
					})
				}
				if got, want := strings.TrimSpace(contents(t, db)), strings.TrimSpace(c.want); got != want {
					t.Errorf("split %v: got\n%s\nwant\n%s", split, got, want)
				}
			}
		})
	}
}

func TestMutationErrors(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	str, list, set, none := ref("project str"), ref("project list"), ref("project set"), ref("project none")
	update(t, db, func(tx *Tx) error {
		return errors.Join(tx.Set(str, "a", me), tx.ListPush(list, "a", me), tx.ListPush(list, "b", me), tx.SetAdd(set, "a", me),
			tx.PutWithheld(Withheld{none, t0, Swept}))
	})
	before := contents(t, db)
	for _, c := range []struct {
		do   func(*Tx) error
		is   error
		text string
	}{
		{func(tx *Tx) error { return tx.ListPush(set, "x", me) }, ErrType, `key "set": not a list`},
		{func(tx *Tx) error { return tx.ListPop(set, "x", me) }, ErrType, `key "set": not a list`},
		{func(tx *Tx) error { return tx.ListPop(str, "x", me) }, ErrType, `key "str": not a list`},
		{func(tx *Tx) error { return tx.ListPop(list, "zz", me) }, meta.ErrNotFound, `key "list": value "zz" not in the list`},
		{func(tx *Tx) error { return tx.ListPop(none, "zz", me) }, meta.ErrNotFound, `key "none": not found`},
		{func(tx *Tx) error { return tx.ListRemove(list, 5, me) }, meta.ErrNotFound, `key "list": index 5 out of range (2 entries)`},
		{func(tx *Tx) error { return tx.ListRemove(list, -1, me) }, meta.ErrNotFound, `key "list": index -1 out of range (2 entries)`},
		{func(tx *Tx) error { return tx.SetAdd(str, "x", me) }, ErrType, `key "str": not a set`},
		{func(tx *Tx) error { return tx.SetAdd(list, "x", me) }, ErrType, `key "list": not a set`},
		{func(tx *Tx) error { return tx.SetRemove(set, "zz", me) }, meta.ErrNotFound, `key "set": value "zz" not in the set`},
		{func(tx *Tx) error { return tx.SetRemove(none, "zz", me) }, meta.ErrNotFound, `key "none": not found`},
		{func(tx *Tx) error { return tx.Remove(none, me) }, meta.ErrNotFound, `key "none": not found`},
		{func(tx *Tx) error { return tx.Set(str, "a\xff", me) }, meta.ErrInvalid, `key "str": the value is not valid UTF-8`},
		{func(tx *Tx) error { return tx.ListPush(list, "a\xff", me) }, meta.ErrInvalid, `key "list": the value is not valid UTF-8`},
		{func(tx *Tx) error {
			return tx.Put(str, meta.Value{Type: meta.Set, Members: []string{"\xff"}}, me, PutOptions{})
		}, meta.ErrInvalid, `key "str": the value is not valid UTF-8`},
		{func(tx *Tx) error { return tx.Set(ref("project a::b"), "a", me) }, meta.ErrInvalid, `key "a::b": empty segment`},
		{func(tx *Tx) error { return tx.Set(ref("project:x a"), "a", me) }, meta.ErrInvalid, `key "a": the project has no value`},
		{func(tx *Tx) error { return tx.Set(ref("tag:x a"), "a", me) }, meta.ErrInvalid, `key "a": unknown target type "tag"`},
		{func(tx *Tx) error { return tx.Set(ref("path:a//b a"), "a", me) }, meta.ErrInvalid, `target "path:a//b": an empty component`},
	} {
		err := db.Update(t.Context(), c.do)
		if !errors.Is(err, c.is) || err.Error() != c.text {
			t.Errorf("got %v, want %q (%v)", err, c.text, c.is)
		}
	}
	if after := contents(t, db); after != before {
		t.Errorf("refused edits changed the store:\n%s\nwas\n%s", after, before)
	}
	err := db.View(t.Context(), func(tx *Tx) error { return tx.Set(str, "x", me) })
	wantIs(t, err, ErrReadOnly)
}

func TestTimestamp(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	update(t, db, func(tx *Tx) error {
		return errors.Join(tx.Set(ref("project a"), "1", me), tx.Set(ref("project a"), "2", Edit{Email: "old", Time: 5}), tx.SetLastMaterialized(t0*2))
	})
	view(t, db, func(tx *Tx) error {
		rec, err := tx.Get(ref("project a"))
		email, ms, err2 := tx.Author(ref("project a"))
		if rec.Time != 5 || rec.Value.String != "2" || email != "old" || ms != 5 {
			t.Errorf("got %v, author %s %d", rec, email, ms)
		}
		email, ms, err3 := tx.Author(ref("project none"))
		if email != "unknown" || ms != 0 {
			t.Errorf("author of nothing: %s %d", email, ms)
		}
		mark, ok, err4 := tx.LastMaterialized()
		if mark != t0*2 || !ok {
			t.Errorf("mark %d %v", mark, ok)
		}
		return errors.Join(err, err2, err3, err4)
	})
}

func TestLargeValue(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	small, big := strings.Repeat("x", 1024), strings.Repeat("x", 1025)
	update(t, db, func(tx *Tx) error {
		return errors.Join(tx.Set(ref("project a"), small, me), tx.Set(ref("project b"), big, me))
	})
	if got, want := dump(t, db, "SELECT key, value FROM metadata_log ORDER BY key"), "a|\""+small+"\"\nb|"+meta.MemberID(big)+"\n"; got != want {
		t.Errorf("log %.60s…", got)
	}
	view(t, db, func(tx *Tx) error {
		rec, err := tx.Get(ref("project b"))
		if rec.Value.String != big || rec.GitRef {
			t.Error("the big value is not in the store")
		}
		return err
	})
}

// A value that the peer has moved to git is read through Options.Blob and comes home
// when it is edited.
func TestGitRef(t *testing.T) {
	t.Parallel()
	k := ref("project k")
	oid := meta.MemberID("from git")
	db := openNew(t)
	update(t, db, func(tx *Tx) error {
		return tx.run("INSERT INTO metadata(target_type, target_value, key, value, value_type, last_timestamp, is_git_ref) VALUES ('project', '', 'k', ?, 'string', 1, 1)", oid)
	})
	view(t, db, func(tx *Tx) error {
		if _, err := tx.Get(k); err == nil || !strings.Contains(err.Error(), `key "k"`) {
			t.Errorf("got %v", err)
		}
		return nil
	})
	db.o.Blob = func(id string) ([]byte, error) {
		if id != oid {
			t.Errorf("asked for %s", id)
		}
		return []byte("from git"), nil
	}
	update(t, db, func(tx *Tx) error { return tx.ListPush(k, "x", me) })
	view(t, db, func(tx *Tx) error {
		rec, err := tx.Get(k)
		if got := strings.Join(rec.Value.Items(), ","); got != "from git,x" || rec.GitRef {
			t.Errorf("got %s %v", got, rec.GitRef)
		}
		return err
	})
}

func TestPathCollision(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	update(t, db, func(tx *Tx) error {
		return errors.Join(tx.Set(ref("branch:topic/299 x"), "v", me), tx.Set(ref("branch:topic/298 x"), "v", me),
			tx.Set(ref("branch:topic 298:x"), "v", me), tx.Set(ref("change-id:topic 299:x"), "v", me), tx.Set(ref("project 299:x"), "v", me))
	})
	for _, f := range []func(*Tx) error{
		func(tx *Tx) error { return tx.Set(ref("branch:topic 299:x"), "v", me) },
		func(tx *Tx) error { return tx.ListPush(ref("branch:topic 299:x"), "v", me) },
		func(tx *Tx) error { return tx.SetAdd(ref("change-id:topic/299 x"), "v", me) },
		func(tx *Tx) error { return tx.Set(ref("branch:topic 299:other"), "v", me) },    // the marker of topic/299 captures it
		func(tx *Tx) error { return tx.Set(ref("change-id:topic/299 other"), "v", me) }, // and the other way round
	} {
		err := db.Update(t.Context(), f)
		if !errors.Is(err, meta.ErrInvalid) || !strings.Contains(err.Error(), "could not be told from key") {
			t.Errorf("got %v", err)
		}
	}
	update(t, db, func(tx *Tx) error { return tx.Set(ref("branch:topic/299 x"), "v2", me) })
}
