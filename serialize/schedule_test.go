package serialize_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// realOps are the operations that real clones can do.
func realOps() []string {
	return append(slices.DeleteFunc(slices.Clone(randomOps), func(s string) bool { return strings.HasPrefix(s, "sweep") }), "crash")
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
