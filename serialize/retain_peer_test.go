package serialize_test

import (
	"strings"
	"testing"

	"github.com/git-meta/git-meta-go/store"
)

// TestPeerRetention: the Rust program in a team that uses retention. To it a retention
// commit is a prune: it deletes its rows of what has gone and makes tombstones of that,
// which it publishes only when it next writes another key of the same target, and which
// do not count. Our clones keep their rows, and R stands still after two rounds. What the
// Rust program has edited before it pulls comes back for everybody.
func TestPeerRetention(t *testing.T) {
	peerBin(t)
	t.Parallel()
	s := schedOf(3, "")
	s.peer = 1
	c := &caseWorld{newRealWorld(t, t.TempDir(), s, true), t}
	c.w.after = c.troubles
	t.Cleanup(c.close)
	peer := c.w.sites[1].(*realPeer)
	held := func(key string, want store.Why) {
		t.Helper()
		if got := c.why(2, key); got != want {
			t.Errorf("C withholds %s as %q, want %q", key, got, want)
		}
	}
	c.run("A.set_x A.set_y A.add_g_m A.sync B.sync C.sync A.sweep_x A.sweep_g A.sync B.sync A.sync C.sync")
	c.published("y=v0002")
	c.rows(0, "y=v0002")
	c.rows(2, "g=set[m] x=v0001 y=v0002")
	if got := peer.rows().String(); got != "y=v0002" {
		t.Errorf("the peer has %s", got)
	}

	// it writes another key of that target, with a tombstone for the absence
	peer.run("set", "path:src/x", "z", "v")
	c.run("B.sync")
	if _, _, text := c.realWorld.tip(); !strings.Contains(text, "path/src/x/__target__/__tombstones/k/__deleted") {
		t.Errorf("the peer made no tombstone of the absence; R has\n%s", text)
	}
	c.run("A.sync C.sync")
	c.rows(0, "x.z=v y=v0002")
	c.rows(2, "g=set[m] x=v0001 x.z=v y=v0002")
	held("x", store.Retained)
	held("g", store.Retained)

	// it pulls with an edit of its own: a merge, which it pushes flattened
	c.run("A.set_q A.set_o A.sync B.sync C.sync A.sweep_q A.sweep_o A.sync B.set_o B.set_y B.sync A.sync C.sync")
	c.published("o=v0005 x.z=v y=v0006")
	c.rows(0, "o=v0005 x.z=v y=v0006")
	c.rows(2, "g=set[m] o=v0005 q=v0003 x=v0001 x.z=v y=v0006")
	held("q", store.Retained)
	held("o", "")

	// an edit of ours of a key that the peer believes removed
	c.run("C.set_q C.sync B.sync A.sync")
	c.rows(0, "o=v0005 q=v0007 x.z=v y=v0006")
	if got := peer.rows().String(); got != "o=v0005 q=v0007 y=v0006" {
		t.Errorf("the peer has %s", got)
	}

	tip, _, _ := c.realWorld.tip()
	for range 5 {
		c.run("A.sync B.sync C.sync")
	}
	if now, _, _ := c.realWorld.tip(); now != tip {
		t.Errorf("R still moves: %q", c.subjects())
	}
	if bad := c.fsck(); bad != nil {
		t.Error(bad)
	}
}
