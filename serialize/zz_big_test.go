package serialize
import ("testing";"time";"fmt";"runtime";"github.com/git-meta/git-meta-go/meta";"github.com/git-meta/git-meta-go/store")
func TestZZBig(t *testing.T) {
	w := newWorld(t)
	n := 200000
	w.update(func(tx *store.Tx) error {
		for i := range n {
			k := meta.KeyRef{Target: meta.Target{Type: meta.Commit, Value: fmt.Sprintf("%040x", i*7919)}, Key: "ci:url"}
			if err := tx.Put(k, meta.Value{Type: meta.String, String: "value"}, edit(int64(i)), store.PutOptions{}); err != nil { return err }
		}
		return nil
	})
	s := time.Now()
	w.serialize(Options{})
	t.Log("serialize", time.Since(s))
	w.update(func(tx *store.Tx) error {
		for i := range n/2 {
			k := meta.KeyRef{Target: meta.Target{Type: meta.Commit, Value: fmt.Sprintf("%040x", i*2*7919)}, Key: "ci:url"}
			if _, err := tx.LocalPrune([]meta.KeyRef{k}, store.LocalPruneOptions{UpTo: 1<<62}); err != nil { return err }
			if err := tx.PutWithheld(store.Withheld{KeyRef: k, EditTime: 1, Why: store.Swept}); err != nil { return err }
		}
		return nil
	})
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	s = time.Now()
	r := w.serialize(Options{DryRun: true})
	t.Log("dry", time.Since(s), r.Retention.KeysDropped)
	s = time.Now()
	r = w.serialize(Options{})
	runtime.ReadMemStats(&m1)
	t.Log("retain", time.Since(s), r.Retention.KeysDropped, "MB", (m1.TotalAlloc-m0.TotalAlloc)>>20, "sys", m1.Sys>>20)
	s = time.Now()
	for range 100 { w.idle() }
	t.Log("idle", time.Since(s)/100)
	s = time.Now()
	c := 0
	if err := Births(t.Context(), w.reader(), zero, w.tip(), func(Birth) error { c++; return nil }); err != nil { t.Fatal(err) }
	t.Log("births", time.Since(s), c)
}
