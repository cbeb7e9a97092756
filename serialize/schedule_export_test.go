package serialize

import (
	"context"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
)

// LoadFromHistory loads a key that is known from history only, as an edit of a promised row
// has to: it is no change by itself.
func LoadFromHistory(ctx context.Context, env *Env, k meta.KeyRef) error {
	l, err := lastPublished(ctx, env, k)
	if err != nil || l == nil {
		return err
	}
	return env.DB.Update(ctx, func(tx *store.Tx) error {
		e := store.Edit{Email: l.org.email, Time: l.org.time}
		if err := tx.Put(k, l.value, e, store.PutOptions{NoLog: true}); err != nil {
			return err
		}
		for _, t := range l.tombs {
			if err := tx.PutTombstone(t); err != nil {
				return err
			}
		}
		return tx.PutWithheld(store.Withheld{KeyRef: k, EditTime: e.Time, Why: store.Pruned})
	})
}
