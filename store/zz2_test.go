package store
import ("testing";"time";"github.com/git-meta/git-meta-go/meta")
func TestZZTime(t *testing.T) {
	db, err := Open(t.Context(), "/tmp/c/big/.git/git-meta.sqlite", Options{})
	if err != nil { t.Fatal(err) }
	defer db.Close()
	db.View(t.Context(), func(tx *Tx) error {
		for _, v := range []string{"", "2000", "23", "8000","f000"} {
		for _, n := range []int{1, 2000} {
		s := time.Now()
		k, err := tx.UncountedAfter(meta.KeyRef{Target: meta.Target{Type: "commit", Value: v}, Key: "x"}, []string{"ci"}, n)
		t.Log(v, n, len(k), err, time.Since(s))
		s = time.Now()
		c, err := tx.CreatedAfter(meta.KeyRef{Target: meta.Target{Type: "commit", Value: v}, Key: "x"}, n)
		t.Log(v, n, len(c), err, time.Since(s))
		}}
		return nil
	})
}
