package store

import (
	"errors"
	"fmt"

	"github.com/git-meta/git-meta-go/meta"
)

func projectKey(key string) meta.KeyRef {
	return meta.KeyRef{Target: meta.ProjectTarget, Key: key}
}

// ProjectString returns a string of the project. A key that is not there or only
// promised: ok is false. A list or set: ok is false and the error is [ErrType].
func (tx *Tx) ProjectString(key string) (value string, ok bool, err error) {
	rec, err := tx.Get(projectKey(key))
	switch {
	case errors.Is(err, meta.ErrNotFound):
		return "", false, nil
	case err != nil:
		return "", false, err
	case rec.Type != meta.String:
		return "", false, notA(rec.KeyRef, meta.String, rec.Type)
	}
	return rec.Value.String, true, nil
}

// ProjectStrings returns the project's strings in a namespace, by key. Lists and sets
// are left out.
func (tx *Tx) ProjectStrings(namespace string) (map[string]string, error) {
	out := map[string]string{}
	for rec, err := range tx.Records(Query{Target: &meta.Target{Type: meta.Project}, Namespace: namespace}) {
		if err != nil {
			return nil, err
		}
		if rec.Type == meta.String {
			out[rec.Key] = rec.Value.String
		}
	}
	return out, nil
}

// filterKeys hold the filter rules, in the order in which they are read.
var filterKeys = []string{"local:meta:filter", "meta:filter"}

// FilterTexts returns the filter rules: the members of local:meta:filter, then those of
// meta:filter, each ascending. One that is not a set is ignored; [Tx.FilterProblems]
// names it.
func (tx *Tx) FilterTexts() ([]string, error) {
	var out []string
	for _, key := range filterKeys {
		row, ok, err := tx.Row(projectKey(key))
		if err != nil {
			return nil, err
		}
		if !ok || row.Promised || row.Type != meta.Set {
			continue
		}
		members, err := tx.members(row.ID)
		if err != nil {
			return nil, err
		}
		out = append(out, members...)
	}
	return out, nil
}

// FilterProblems returns an error for each key of filter rules that is not a set and
// therefore has no effect.
func (tx *Tx) FilterProblems() ([]error, error) {
	var out []error
	for _, key := range filterKeys {
		row, ok, err := tx.Row(projectKey(key))
		if err != nil {
			return nil, err
		}
		if ok && !row.Promised && row.Type != meta.Set {
			out = append(out, &meta.Error{
				Op:   fmt.Sprintf("key %q", key),
				Err:  wrongType(fmt.Sprintf("a %s, not a set of filter rules; it is ignored", row.Type)),
				Hint: "git meta rm project " + key,
			})
		}
	}
	return out, nil
}
