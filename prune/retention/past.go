package retention

import (
	"context"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/store"
)

// dayMillis is a day, in UTC and everywhere else.
const dayMillis = 86_400_000

// Past reports whether a key that is about to be made with the time ms (in ms) is over
// its collection's maxAgeDays from the start, and returns the collection and the bound.
// A key that has a row already keeps its creation time. It reads the manifest and a few
// settings; where they cannot be read the answer is no.
func Past(ctx context.Context, env *serialize.Env, tx *store.Tx, k meta.KeyRef, ms int64) (collection string, maxAgeDays int64, past bool, err error) {
	if k.Target.Type == meta.Project {
		return "", 0, false, nil
	}
	row, ok, err := tx.Row(k)
	if err != nil || ok && !row.Promised {
		return "", 0, false, err
	}
	p, err := loadPolicy(ctx, env, tx)
	if err != nil {
		return "", 0, false, nil // a broken manifest enforces nothing
	}
	name, ok := p.owner(k.Key)
	if !ok {
		return "", 0, false, nil
	}
	d, _ := p.find(name)
	days := d.effective.MaxAgeDays
	return name, days, days > 0 && ms < nowMillis(env)-days*dayMillis, nil
}
