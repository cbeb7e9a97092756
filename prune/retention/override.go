package retention

import (
	"errors"
	"fmt"
	"time"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune"
	"github.com/git-meta/git-meta-go/store"
)

// Configuration keys, strings on the project target. An override is
// meta:retention:<collection>:max-rows or :max-age-days.
const (
	Namespace   = "meta:retention"
	KeyInterval = "meta:retention:interval"
)

// DefaultInterval is how often the automatic sweep is due at most, without a setting.
const DefaultInterval = 24 * time.Hour

// overrides are what the project's strings say of one collection.
type overrides struct {
	Bounds
	wrong error // of an axis whose value is no bound
}

// rowCap returns what no collection's maxRows can pass: meta:prune:max-keys, 0 without
// one. A value there that makes no sense is no cap.
func rowCap(text string, ok bool) int64 {
	rules, err := prune.ParseRules(func(k string) (string, bool) { return text, ok && k == prune.KeyMaxKeys })
	if err != nil {
		return 0
	}
	return rules.MaxKeys
}

// readSettings returns the project's settings that retention depends on: the cap and the
// overrides by collection. Without a transaction there are none.
func readSettings(tx *store.Tx) (limit int64, out map[string]*overrides, err error) {
	out = map[string]*overrides{}
	if tx == nil {
		return 0, out, nil
	}
	text, ok, err := tx.ProjectString(prune.KeyMaxKeys)
	if err == nil {
		limit = rowCap(text, ok)
	} else if !errors.Is(err, store.ErrType) {
		return 0, nil, err
	}
	project := meta.ProjectTarget
	for rec, err := range tx.Records(store.Query{Target: &project, Namespace: Namespace}) {
		if err != nil {
			return 0, nil, err
		}
		name, x, ok := splitKey(rec.Key)
		if !ok {
			continue
		}
		o := out[name]
		if o == nil {
			o = &overrides{}
			out[name] = o
		}
		o.read(x, rec)
	}
	return limit, out, nil
}

// read takes one axis over. A value that came by a merge may be anything; it never means
// "none".
func (o *overrides) read(x *axis, rec store.Record) {
	var err error
	if rec.Type == meta.String {
		*x.of(&o.Bounds), err = x.parse(rec.Value.String)
	} else {
		err = meta.Invalid("a "+string(rec.Type), "not a string", "")
	}
	if err != nil {
		o.wrong = join(o.wrong, &meta.Error{
			Op: rec.Key, Err: fmt.Errorf("%w; it is not in force", err),
			Hint: "git meta config --unset " + meta.ShellWord(rec.Key),
		})
	}
}

// apply puts an override over the author's default. MaxRows that came by a merge may be
// above the cap, which then acts.
func (d *declared) apply(o *overrides, limit int64) {
	d.override, d.wrong, d.problem = o.Bounds, o.wrong != nil, join(d.problem, o.wrong)
	if !d.enforced {
		return
	}
	for _, x := range axes {
		if n := *x.of(&o.Bounds); n > 0 {
			*x.of(&d.effective) = n
		}
	}
	if limit > 0 {
		d.effective.MaxRows = min(d.effective.MaxRows, limit)
	}
}

// join puts two problems into one, with the first hint.
func join(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	hint := meta.HintOf(a)
	if hint == "" {
		hint = meta.HintOf(b)
	}
	return &meta.Error{Err: fmt.Errorf("%w; %w", a, b), Hint: hint}
}

// interval returns how often the automatic sweep is due, 0 for never. A value that makes
// no sense is an error, and the default is returned with it.
func interval(tx *store.Tx) (time.Duration, error) {
	text, ok, err := tx.ProjectString(KeyInterval)
	if err == nil && ok {
		var d time.Duration
		if d, err = parseInterval(text); err == nil {
			return d, nil
		}
	}
	if err != nil {
		err = &meta.Error{Op: KeyInterval, Err: err, Hint: "git meta config " + KeyInterval + " 1d"}
	}
	return DefaultInterval, err
}
