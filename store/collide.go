package store

import (
	"crypto/sha1"
	"fmt"
	"strings"

	"github.com/git-meta/git-meta-go/meta"
)

// checkPath refuses a key whose path in a tree another row holds: key "299:x" of branch
// "topic" and key "x" of branch "topic/299" share one, since both names happen to have
// the same shard. Only a match of shards costs a statement.
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
		row, ok, err := tx.Row(other)
		if err != nil {
			return err
		}
		if ok && !row.Promised {
			return meta.Invalid(fmt.Sprintf("key %q of %s", k.Key, k.Target),
				fmt.Sprintf("in a tree it would have the path of key %q of %s", other.Key, other.Target), "use another key")
		}
	}
	return nil
}

// shardByte is what the two hex digits below branch/ and change-id/ stand for.
func shardByte(value string) byte {
	sum := sha1.Sum([]byte(value))
	return sum[0]
}
