package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/serialize"
	"github.com/git-meta/git-meta-go/serialize/exchange"
	"github.com/git-meta/git-meta-go/store"
)

// fetchPromised gives keys that are known from history only their last values.
func (a *app) fetchPromised(ctx context.Context, keys []meta.KeyRef) (*serialize.Promised, error) {
	env, err := a.exchange(ctx)
	if err != nil {
		return nil, err
	}
	p, err := env.LoadPromised(ctx, keys)
	if err == nil {
		return p, nil
	}
	op := ui.Plural(len(keys), "key", "keys") + " known from history only"
	if len(keys) == 1 {
		op = fmt.Sprintf("key %q: known from history only", keys[0].Key)
	}
	hint := hintOf(err)
	if nf := (*exchange.NotFetched)(nil); errors.As(err, &nf) && hint == "" {
		hint = "try again when the remote can be reached: git meta remote list"
	}
	return nil, &meta.Error{Op: op, Err: err, Hint: hint}
}

// getPromised answers a get that promised keys match: it fetches them and shows what
// there is then. What is here is shown also where the fetch fails.
func (a *app) getPromised(ctx context.Context, o getOptions, t meta.Target, keys []meta.KeyRef) (found bool, err error) {
	p, failed := a.fetchPromised(ctx, keys)
	db, err := a.readStore(ctx)
	if err != nil {
		return false, err
	}
	err = db.View(ctx, func(tx *store.Tx) error {
		g := getter{app: a, tx: tx, o: o, here: true}
		found, err = g.show(t)
		return err
	})
	if err == nil {
		err = failed
	}
	if err != nil || len(p.Unknown) == 0 {
		return found, err
	}
	if found {
		a.note("%s could not be located in the fetched history", ui.Plural(len(p.Unknown), "value", "values"))
		return true, nil
	}
	return false, a.notLocated(o.what(t), len(p.Unknown))
}

// notLocated is the error of keys that history is said to hold and does not.
func (a *app) notLocated(what string, n int) error {
	return meta.NotFound(what, ui.Plural(n, "value", "values")+" could not be located in the fetched history", "if not all of it was fetched: git meta deepen")
}

// loadPromised loads a key that is known from history only for an edit that starts from
// its value.
func (a *app) loadPromised(ctx context.Context, k meta.KeyRef) error {
	p, err := a.fetchPromised(ctx, []meta.KeyRef{k})
	if err == nil && len(p.Unknown) > 0 {
		err = a.notLocated(fmt.Sprintf("key %q", k.Key), 1)
	}
	return err
}

// record returns the value of one key; meta.ErrNotFound, in the words of the user, if
// there is none.
func (a *app) record(ctx context.Context, k meta.KeyRef) (store.Record, error) {
	var rec store.Record
	promised := false
	get := func(tx *store.Tx) (err error) {
		if rec, err = tx.Get(k); errors.Is(err, meta.ErrNotFound) {
			row, ok, rerr := tx.Row(k)
			promised, err = ok && row.Promised, errors.Join(err, rerr)
		}
		return err
	}
	db, err := a.readStore(ctx)
	if err == nil {
		err = db.View(ctx, get)
	}
	if promised {
		if err := a.loadPromised(ctx, k); err != nil {
			return rec, err
		}
		if db, err = a.readStore(ctx); err == nil {
			err = db.View(ctx, get)
		}
	}
	if errors.Is(err, meta.ErrNotFound) {
		return rec, a.getNothing(ctx, getOptions{key: k.Key, hasKey: true}, k.Target)
	}
	return rec, err
}
