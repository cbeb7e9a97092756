package cmd

import (
	"strings"

	"github.com/git-meta/git-meta-go/cmd/internal/ui"
	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/store"
)

func (g *getter) showJSON(q store.Query) (found bool, err error) {
	j := jsonTree{}
	for rec, err := range g.tx.Records(q) {
		if err != nil {
			return false, err
		}
		if skip, err := g.skips(rec.Row); err != nil {
			return false, err
		} else if skip {
			continue
		}
		found = true
		v := jsonValue(rec.Value)
		if g.o.withAuthorship {
			email, ms, err := g.tx.Author(rec.KeyRef)
			if err != nil {
				return false, err
			}
			v = authored(email, ms, v)
		}
		j.add(rec.KeyRef, v)
	}
	if len(g.promised) > 0 {
		return false, nil
	}
	if found {
		g.Out.Println(ui.PrettyJSON(j.object()))
	}
	return found, nil
}

// jsonValue returns a string, or the items of a list or set as an array.
func jsonValue(v meta.Value) any {
	if v.Type == meta.String {
		return v.String
	}
	if items := v.Items(); items != nil {
		return items
	}
	return []string{}
}

func authored(email string, ms int64, v any) any {
	return (&ui.Object{}).Add("author", email).Add("timestamp", ms).Add("value", v)
}

// jsonTree is an object under construction: key segments are nested, and a value whose
// key has keys below it goes to "__value", a segment that no key can have. For paths the
// outer names are paths and the inner ones whole keys.
type jsonTree struct {
	value    any // nil: no value here
	children map[string]*jsonTree
}

func (j *jsonTree) add(k meta.KeyRef, v any) {
	if k.Target.Type == meta.Path {
		j.child(k.Target.Value).child(k.Key).value = v
		return
	}
	at := j
	for seg := range strings.SplitSeq(k.Key, ":") {
		at = at.child(seg)
	}
	at.value = v
}

func (j *jsonTree) child(name string) *jsonTree {
	if j.children == nil {
		j.children = map[string]*jsonTree{}
	}
	c := j.children[name]
	if c == nil {
		c = &jsonTree{}
		j.children[name] = c
	}
	return c
}

// object returns the JSON value of j.
func (j *jsonTree) object() any {
	if len(j.children) == 0 && j.value != nil {
		return j.value
	}
	o := &ui.Object{}
	for name, c := range j.children {
		o.Add(name, c.object())
	}
	if j.value != nil {
		o.Add("__value", j.value)
	}
	o.Sort()
	return o
}
