package store

import (
	"crypto/sha1"
	"fmt"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
)

// checkPath refuses a key whose path in a tree would be read as that of another row's
// target: key "299:x" of branch "topic" and key "x" of branch "topic/299" share one, since
// both names happen to have the same shard, and beside any key of "topic/299" the first
// would be taken for one of its keys. Only a match of shards costs a statement.
func (tx *Tx) checkPath(k meta.KeyRef) error {
	if k.Target.Type != meta.Branch && k.Target.Type != meta.ChangeID {
		return nil
	}
	value, segs := strings.Split(k.Target.Value, "/"), strings.Split(k.Key, ":")
	if len(value) == 1 && len(segs) == 1 {
		return nil
	}
	all := append(value[:len(value):len(value)], segs...)
	shard := shardByte(k.Target.Value)
	for n := 1; n < len(all); n++ {
		if n == len(value) {
			continue
		}
		other := meta.KeyRef{Target: meta.Target{Type: k.Target.Type, Value: strings.Join(all[:n], "/")}, Key: strings.Join(all[n:], ":")}
		if shardByte(other.Target.Value) != shard {
			continue
		}
		rival, err := tx.rival(k, other, n > len(value))
		if err != nil {
			return err
		}
		if rival != "" {
			return meta.Invalid(fmt.Sprintf("key %q of %s", k.Key, k.Target),
				fmt.Sprintf("in a tree it could not be told from %s", rival), "use another key")
		}
	}
	return nil
}

// rival names a row that k could not be told from, where other is what k's path also
// spells; longer tells that other's target is the longer one.
func (tx *Tx) rival(k, other meta.KeyRef, longer bool) (string, error) {
	q := Query{Target: &other.Target}
	if !longer { // any key of the shorter target that starts with the rest of k's target
		q.Namespace = strings.ReplaceAll(strings.TrimPrefix(k.Target.Value, other.Target.Value+"/"), "/", ":")
	}
	for row, err := range tx.Rows(q) {
		if err != nil {
			return "", err
		}
		if !longer && row.Key == q.Namespace {
			continue // its path ends where the longer target's begins
		}
		return fmt.Sprintf("key %q of %s", row.Key, row.Target), nil
	}
	return "", nil
}

// shardByte is what the two hex digits below branch/ and change-id/ stand for.
func shardByte(value string) byte {
	sum := sha1.Sum([]byte(value))
	return sum[0]
}
