package serialize_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/git-meta/git-meta-go/store"
)

// realPeer is a clone that runs the Rust program, found in GIT_META_PEER. Its clock is
// that of the machine.
type realPeer struct {
	realRepo
}

func (p *realPeer) ours() bool  { return false }
func (p *realPeer) load(string) {}

// run runs a command of the peer, which must succeed.
func (p *realPeer) run(args ...string) string {
	c := exec.Command(peerProgram, args...)
	c.Dir, c.Env = p.dir, p.env
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	p.fail(strings.Join(args, " "), err)
	return string(out)
}

func (p *realPeer) do(s schedStep) (int64, bool) {
	t := "path:src/" + s.key
	switch s.op {
	case "set":
		p.run("set", t, "k", s.item)
	case "rm":
		p.run("rm", t, "k")
	case "add":
		p.run("set:add", t, "k", s.item)
	case "drop":
		p.run("set:rm", t, "k", s.item)
	case "append":
		p.run("list:push", t, "k", s.item)
	case "pop":
		p.run("list:pop", t, "k", s.item)
	case "serialize":
		p.run("serialize")
	case "fetch":
		p.fail("fetch", p.fetch())
	case "pull", "push", "sync":
		if p.bareTip().IsZero() {
			return 0, true // it needs something to pull
		}
		if s.op != "push" {
			p.run("pull")
		}
		if s.op != "pull" && (!p.refOf(p.repo, localMain).IsZero() || len(p.rows()) > 0) {
			p.run("push")
		}
	}
	return 0, true
}

func (p *realPeer) rows() views {
	out := views{}
	path := filepath.Join(p.dir, ".git", store.FileName)
	if _, err := os.Stat(path); err != nil {
		return out
	}
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	p.must(err)
	defer db.Close()
	rows, err := db.QueryContext(context.Background(), `SELECT m.target_value, m.value_type, m.value, coalesce(s.value, l.value, '')
		FROM metadata m LEFT JOIN set_values s ON s.metadata_id = m.rowid LEFT JOIN list_values l ON l.metadata_id = m.rowid
		WHERE m.target_type = 'path' AND m.is_promised = 0 AND m.key = 'k'`)
	p.must(err)
	defer rows.Close()
	for rows.Next() {
		var target, kind, text, item string
		p.must(rows.Scan(&target, &kind, &text, &item))
		k := strings.TrimPrefix(target, "src/")
		v, ok := out[k]
		if !ok {
			v = view{kind: kind}
			if kind == "string" {
				v.text = strings.Trim(text, `"`)
			} else {
				v.item = map[string]bool{}
			}
			out[k] = v
		}
		if item != "" {
			v.item[item] = true
		}
	}
	p.must(rows.Err())
	return out
}

// peerBin skips the test where the Rust program is not there.
func peerBin(t *testing.T) {
	t.Helper()
	if peerProgram == "" {
		t.Skip("GIT_META_PEER does not name the Rust git-meta")
	}
}

// playPeer runs s with a clone that runs the Rust program: all exchange is real.
func playPeer(t testing.TB, s schedule) *broken { return playReal(t, s, true, false) }

// TestSchedulePeer runs schedules in which one clone runs the Rust program: its commands
// succeed, no clone of ours loses a row to its absences or implied tombstones, and in the
// end the remote stands still.
func TestSchedulePeer(t *testing.T) {
	peerBin(t)
	t.Parallel()
	fixed := []string{
		// ours prunes, the peer pulls and turns the absence into a removal
		"A.set_x A.set_y A.sync B.sync A.prune A.sync B.sync A.sync B.set_y B.sync A.sync | [[0 1]] skew [0 0] max 0 peer 1",
		"A.set_x A.sync B.sync C.sync A.prune A.sync B.set_y B.sync C.sync B.serialize B.sync C.sync A.sync | [[0 1 2]] skew [0 0 0] max 0 peer 1",
		// sets and lists meet
		"A.add_g_m A.sync B.sync A.add_g_n B.add_g_o A.sync B.sync A.append_l B.append_l A.sync B.sync | [[0 1]] skew [0 0] max 0 peer 1",
		"A.add_g_m A.sync B.sync A.drop_g_m A.sync B.add_g_n B.sync A.sync | [[0 1]] skew [0 0] max 0 peer 1",
		// both edit one string
		"A.set_x A.sync B.sync A.set_x B.set_x B.sync A.sync | [[0 1]] skew [0 0] max 0 peer 1",
	}
	for _, text := range fixed {
		s, err := parseSchedule(text)
		if err != nil {
			t.Fatal(err)
		}
		if bad := playPeer(t, s); bad != nil {
			t.Errorf("%s\nschedule: %s", bad, s)
		}
	}
	n, end := 3, time.Now().Add(budget(t))
	c := &campaign{t: t, play: func(s schedule) *broken { return playPeer(t, s) }}
	r := seed(end)
	for i := 0; i < n || time.Now().Before(end); i++ {
		c.run(randomSchedule(r, realOps(), true, 20))
	}
	t.Logf("%d schedules, failures %v", c.runs, c.fails)
}

// TestPeerTombstones: what the Rust program makes of an absence does not count, its rm
// does.
func TestPeerTombstones(t *testing.T) {
	peerBin(t)
	t.Parallel()
	s := schedOf(3, "")
	s.peer = 1
	c := &caseWorld{newRealWorld(t, t.TempDir(), s, true), t}
	c.w.after = c.troubles
	t.Cleanup(c.close)
	c.run("A.set_x A.set_y A.set_p A.sync B.sync C.sync A.prune A.sync B.sync B.set_y")
	b := c.w.sites[1].(*realPeer)
	b.run("set", "path:src/x", "z", "v") // it rebuilds targets whole
	c.run("B.sync")
	if _, _, text := c.realWorld.tip(); !strings.Contains(text, "path/src/x/__target__/__tombstones/k/__deleted") {
		t.Fatalf("the peer made no tombstone of the absence; R has\n%s", text)
	}
	withheld := func(key string, why store.Why, reported int) {
		t.Helper()
		for _, i := range []int{0, 2} {
			x := c.clone(i)
			if x.unclear != reported {
				t.Errorf("%c reported %d unclear removals, want %d", 'A'+i, x.unclear, reported)
			}
			c.must(x.db.View(t.Context(), func(tx *store.Tx) error {
				w, _, err := tx.Withheld(keyOf(key))
				if w.Why != why {
					t.Errorf("%c: %s is withheld as %q, want %q", 'A'+i, key, w.Why, why)
				}
				return err
			}))
		}
	}
	// the tip had lost it before: still an absence
	c.run("A.sync C.sync")
	c.rows(0, "p=v0003 x=v0001 x.z=v y=v0004")
	c.rows(2, "p=v0003 x=v0001 x.z=v y=v0004")
	withheld("x", store.Pruned, 0)

	// a removal that lost its D line when the peer flattened a merge: not clear
	c.run("B.rm_p B.serialize A.set_y A.sync B.sync A.sync C.sync")
	c.rows(0, "p=v0003 x=v0001 x.z=v y=v0005")
	c.rows(2, "p=v0003 x=v0001 x.z=v y=v0005")
	withheld("p", store.Unclear, 1)
	c.run("A.full A.sync C.full C.sync B.sync A.sync C.sync")
	if _, tree, _ := c.realWorld.tip(); tree["p"].text != "" {
		t.Errorf("R holds %s: p came back", tree)
	}
	c.run("A.set_p A.sync B.sync C.sync") // an edit makes it clear
	c.rows(2, "p=v0006 x=v0001 x.z=v y=v0005")
	if got := c.w.sites[1].rows()["p"].text; got != "v0006" {
		t.Errorf("the peer reads p=%s", got)
	}

	c.run("B.rm_y B.push A.sync C.sync") // a removal with its D line
	c.rows(0, "p=v0006 x=v0001 x.z=v")
	c.rows(2, "p=v0006 x=v0001 x.z=v")
	if bad := c.fsck(); bad != nil {
		t.Error(bad)
	}
}
