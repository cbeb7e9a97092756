package retention

import (
	"context"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/git-meta/git-meta-go/meta"
	"github.com/git-meta/git-meta-go/prune"
	"github.com/git-meta/git-meta-go/serialize/manifest"
	"github.com/git-meta/git-meta-go/store/gitdb"
)

// entry is a collection as the manifest says it.
type entry struct {
	name  string
	line  int
	valid bool // the name can own keys
	body
	problem error // of the entry: nothing of the collection is enforced
	file    *manifest.File
}

// body is what stands below the name of a collection.
type body struct {
	bounds Bounds
	lines  Bounds // the lines in which the bounds stand
	fault  *fault
}

// fault is what is wrong in a line.
type fault struct {
	line int
	text string
}

// readEntries returns what the manifest says of collections, in its order, and the name
// of the file; nothing if there is none.
func readEntries(ctx context.Context, repo *gitdb.Repo) ([]entry, string, error) {
	f, err := manifest.Read(ctx, repo)
	if errors.Is(err, meta.ErrNotFound) {
		return nil, manifest.FileName, nil
	}
	if err != nil {
		return nil, manifest.FileName, err
	}
	entries, err := parseEntries(f)
	return entries, f.Name, err
}

// parseEntries reads collections.<name>.retention. Each of these says that an axis has no
// bound of its author's: it is not named, it is null, or retention or the whole collection
// is null or an empty mapping. The collection is declared all the same. Fields beside
// retention are ignored.
func parseEntries(f *manifest.File) ([]entry, error) {
	if f.Collections == nil {
		return nil, nil
	}
	if f.Collections.Kind != yaml.MappingNode {
		return nil, f.Invalid(f.Collections.Line, "collections: not a mapping of names to collections")
	}
	var out []entry
	at := map[string]int{}
	bodies := bodyReader{}
	for i := 0; i+1 < len(f.Collections.Content); i += 2 {
		key, value := f.Collections.Content[i], f.Collections.Content[i+1]
		if key = manifest.Deref(key); key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return nil, f.Invalid(f.Collections.Content[i].Line, "collections: the name of a collection is a text")
		}
		line := f.Collections.Content[i].Line
		if first, twice := at[key.Value]; twice {
			e := &out[first]
			if e.problem == nil || e.valid {
				e.body, e.problem = body{}, f.Invalid(line, fmt.Sprintf("collection %q: line %d has it already", key.Value, e.line))
			}
			continue
		}
		at[key.Value] = len(out)
		e := entry{name: key.Value, line: line, valid: true, file: f}
		if err := meta.CheckKey(e.name); err != nil {
			e.valid, e.problem = false, f.At(line, err)
		} else if e.body = bodies.read(value); e.fault != nil {
			e.problem = f.Invalid(e.fault.line, fmt.Sprintf("collection %q: %s", e.name, e.fault.text))
		}
		out = append(out, e)
	}
	return out, nil
}

// declare turns an entry into a collection without an override. A default above the cap
// is an error of that axis.
func (e entry) declare(limit int64) declared {
	d := declared{name: e.name, line: e.line, problem: e.problem}
	if e.problem != nil {
		return d
	}
	d.authorDefault, d.lines, d.enforced = e.bounds, e.lines, e.valid
	d.effective = d.authorDefault
	if n := d.authorDefault.MaxRows; limit > 0 && n > limit {
		d.effective.MaxRows = 0
		err := meta.Invalid(fmt.Sprintf("collection %q: retention.maxRows", d.name), fmt.Sprintf("%d is above %s, which is %d", n, prune.KeyMaxKeys, limit),
			fmt.Sprintf("lower it in %s, or: git meta config %s %d", e.file.Name, prune.KeyMaxKeys, n))
		d.problem = e.file.At(int(e.lines.MaxRows), err)
	}
	return d
}

// bodyReader remembers what it has read: many aliases can stand for one large node.
type bodyReader map[*yaml.Node]body

func (r bodyReader) read(n *yaml.Node) body {
	line := n.Line
	n = manifest.Deref(n)
	b, ok := r[n]
	if !ok {
		b = readBody(n, line)
		r[n] = b
	}
	return b
}

func readBody(n *yaml.Node, line int) (b body) {
	if manifest.IsNull(n) {
		return b
	}
	if n.Kind != yaml.MappingNode {
		return body{fault: &fault{line, "not a mapping like retention: {maxRows: 500}"}}
	}
	seen := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode:
		case key.ShortTag() == "!!merge":
			return body{fault: &fault{key.Line, "merge keys are not read; name it with retention: *anchor"}}
		case key.Value == "retention" && seen:
			return body{fault: &fault{key.Line, "retention stands here twice"}}
		case key.Value == "retention":
			seen = true
			b = readRetention(n.Content[i+1])
			if b.fault != nil {
				return b
			}
		}
	}
	return b
}

// readRetention reads the bounds. It stops at the first fault.
func readRetention(n *yaml.Node) (b body) {
	line := n.Line
	if n = manifest.Deref(n); manifest.IsNull(n) {
		return b
	}
	if n.Kind != yaml.MappingNode {
		return body{fault: &fault{line, "retention: not a mapping like {maxRows: 500, maxAgeDays: 30}"}}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		var x *axis
		for _, a := range axes {
			if key.Kind == yaml.ScalarNode && key.Value == a.field {
				x = a
			}
		}
		if x == nil {
			return body{fault: &fault{key.Line, fmt.Sprintf("retention: unknown field %q; there are maxRows and maxAgeDays", meta.OneLine(key.Value))}}
		}
		if *x.of(&b.lines) != 0 {
			return body{fault: &fault{key.Line, "retention." + x.field + " stands here twice"}}
		}
		*x.of(&b.lines) = int64(value.Line)
		bound, err := x.scalar(manifest.Deref(value))
		if err != nil {
			return body{fault: &fault{value.Line, "retention." + x.field + ": " + err.Error()}}
		}
		*x.of(&b.bounds) = bound
	}
	return b
}

// scalar reads the bound that stands in the manifest; null is none.
func (x *axis) scalar(n *yaml.Node) (int64, error) {
	switch {
	case n.Kind != yaml.ScalarNode:
		return 0, errors.New("not a number")
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return 0, fmt.Errorf("%q is a text; write a number, without quotes", n.Value)
	case n.Value == "":
		return 0, errors.New("empty; write a number, or null for no bound")
	case manifest.IsNull(n):
		return 0, nil
	case n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != "!!int":
		return 0, fmt.Errorf("%q is not a number", n.Value)
	}
	return x.parse(n.Value)
}
