package serialize_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// realOps are the operations that real clones can do.
func realOps() []string {
	return append(slices.Clone(randomOps), "crash")
}

func seed(end time.Time) *rand.Rand {
	if time.Now().After(end) {
		return rand.New(rand.NewPCG(1, 3))
	}
	return rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 3))
}

// TestScheduleRandom runs random schedules on real clones, beside the model.
func TestScheduleRandom(t *testing.T) {
	t.Parallel()
	n, end := 20, time.Now().Add(budget(t))
	if testing.Short() {
		n = 8
	}
	c := &campaign{t: t, play: func(s schedule) *broken { return playReal(t, s, false, true) }}
	r := seed(end)
	for i := 0; i < n || time.Now().Before(end); i++ {
		c.run(randomSchedule(r, realOps(), false, 30))
	}
	t.Logf("%d schedules, failures %v", c.runs, c.fails)
}

// TestScheduleFound runs schedules that failed once, on clones that exchange with git.
func TestScheduleFound(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		// an edit that stands against a removal leaves no tombstone under it
		"A.set_x A.sync B.sync B.rm_x A.set_x A.prune | [[0 1] [1 0]] skew [0 0] max 0 peer -1",
		// a fast-forward over a prune has nothing to add: times that no line touched are equal
		"B.set_x C.set_y C.append_l | [[0 1 2] [0 1 2]] skew [0 0 0] max 2 peer -1",
		"B.set_y B.add_g_m A.add_g_m A.append_l B.add_h_m | [[0 1] [1 0]] skew [-35500 0] max 3 peer -1",
		// item tombstones of a pruned list alone would say that it is empty
		"A.set_y B.append_l B.pop_l A.append_l A.add_g_m | [[1 2 0] [1 0 2]] skew [0 0 0] max 2 peer -1",
		// an emptied set that was pruned before it was pushed still has its tombstones
		"B.add_g_m B.sync C.pull B.append_l C.drop_g_m B.sync C.prune | [[0 2 1] [2 0 1]] skew [0 0 0] max 2 peer -1",
		// tombstones alone make a version another
		"A.append_l A.pop_l C.set_y C.append_l C.sync C.append_l B.set_x B.sync | [[0 2 1] [2 0 1]] skew [0 0 0] max 2 peer -1",
		// a merge that died after it moved the ref: united, lost, removed and new keys
		"A.add_g_m A.sync C.add_g_n C.crash | [[0 1 2] [2 0 1]] skew [0 0 0] max 0 peer -1",
		"A.set_x A.sync B.sync A.set_x B.set_x B.push A.crash | [[0 1] [1 0]] skew [0 0] max 0 peer -1",
		"A.set_x A.set_y A.sync B.sync A.set_x A.set_y B.rm_x B.rm_y B.append_l B.push A.set_y A.crash | [[0 1] [1 0]] skew [0 0] max 0 peer -1",
		"A.set_x A.set_y A.sync B.sync B.set_x B.prune B.push A.append_l A.crash | [[0 1] [1 0]] skew [0 0] max 0 peer -1",
	} {
		s, err := parseSchedule(text)
		if err != nil {
			t.Fatal(err)
		}
		if bad := playReal(t, s, true, true); bad != nil {
			t.Errorf("%s\nschedule: %s", bad, s)
		}
	}
}

// TestScheduleReplay runs the schedule in GIT_META_SCHEDULE, as a failure prints it, and
// shows every step.
func TestScheduleReplay(t *testing.T) {
	if replayed == "" {
		t.Skip("GIT_META_SCHEDULE is not set")
	}
	s, err := parseSchedule(replayed)
	if err != nil {
		t.Fatal(err)
	}
	r := newRealWorld(t, t.TempDir(), s, false)
	defer r.close()
	r.w.after = func(x schedStep) *broken {
		id, tree, _ := r.tip()
		t.Logf("%s: R %.7s %s", x, id, tree)
		for i, site := range r.w.sites {
			id, tree, _ := site.tip()
			t.Logf("   %c %.7s tree %s | rows %s", 'A'+i, id, tree, site.rows())
		}
		return r.troubles(x)
	}
	if bad := r.w.play(); bad != nil {
		t.Error(bad)
	}
	for _, dir := range []string{"a", "b", "r.git"} {
		out, err := r.git(filepath.Join(r.dir, dir), "log", "--format=%h %at %s%n%b", "--raw", "-r", "--all")
		t.Logf("%s\n%s %v", dir, out, err)
	}
}
