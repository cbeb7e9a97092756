package retention

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Nobody waits until a large store has been counted for bounds that may not act.
func TestAutoSweepDoesNotCountALargeStore(t *testing.T) {
	defer func(n int64) { countAtOnce = n }(countAtOnce)
	countAtOnce = 5
	w := newWorld(t)
	w.declare("ci 2 0")
	w.fill(10)
	res, err := AutoSweep(t.Context(), w.env)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ci"}, res.Uncounted); diff != "" || res.Swept != nil || res.Unconfirmed != nil {
		t.Errorf("%+v", res)
	}
	if s := w.state("ci"); s.WouldPrune != 8 || s.Rows != 10 { // counts
		t.Errorf("%+v", s)
	}
	if names, err := uncounted(t.Context(), w.env); err != nil || names != nil {
		t.Errorf("after it was counted: %v, %v", names, err)
	}
}
