// Package manifest reads .git-meta, the file in which a project says where its metadata
// is kept and how much of it. It comes with a clone and is not to be trusted.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/git-meta/git-meta-go/meta"
)

// FileName is the name of the file, at the top of the work tree.
const FileName = ".git-meta"

// maxBytes is the size above which a manifest is refused.
const maxBytes = 1 << 20

// File is what .git-meta says: a YAML mapping.
//
//	url: https://example.com/team/metadata.git   # or OWNER/REPO on GitHub
//	depth: 50                                    # commits to fetch; default: all
//	collections:                                 # retention: package prune/retention
//	  ci:
//	    retention: {maxRows: 500, maxAgeDays: 30}
//
// Other keys are ignored. The zero value is an empty file.
type File struct {
	Name        string // the file, for messages
	URL         string // as it stands there, without blanks around and one slash at the end
	URLLine     int
	Depth       int        // 0: not limited
	Collections *yaml.Node // as it stands there, aliases not followed; nil if there is none
	problem     error      // of url or depth, for [File.RequireURL]
	empty       bool
}

// Parse reads a manifest. Errors name the file, the line where it is known, and the
// reason; they are [meta.ErrInvalid]. Aliases are not expanded, so that no short text
// becomes a long one. What is wrong with url or depth is left to [File.RequireURL]:
// collections can be read all the same.
func Parse(name string, data []byte) (*File, error) {
	m := &File{Name: name}
	if len(data) > maxBytes {
		return nil, m.tooLarge()
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && IsNull(content(&doc)) {
		m.empty = true
		return m, nil
	}
	if err != nil {
		return nil, m.syntax(err)
	}
	root := content(&doc)
	if root.Kind != yaml.MappingNode {
		return nil, m.Invalid(root.Line, "not a mapping of names to values like url: https://example.com/metadata.git")
	}
	if err := dec.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, m.syntax(err)
		}
		return nil, m.Invalid(0, "more than one document")
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			continue
		}
		if first, twice := seen[key.Value]; twice {
			return nil, m.Invalid(key.Line, fmt.Sprintf("duplicate field %q, which line %d has already", key.Value, first))
		}
		seen[key.Value] = key.Line
		value = Deref(value)
		var err error
		switch key.Value {
		case "url":
			err = m.readURL(value, key.Line)
		case "depth":
			err = m.readDepth(value, key.Line)
		case "collections":
			if !IsNull(value) {
				m.Collections = value
			}
		}
		if m.problem == nil {
			m.problem = err
		}
	}
	m.empty = len(seen) == 0
	return m, nil
}

// content returns the node of a document.
func content(doc *yaml.Node) *yaml.Node {
	if doc.Kind == yaml.DocumentNode && len(doc.Content) > 0 {
		return doc.Content[0]
	}
	return doc
}

// Deref returns the node that an alias stands for, any other node itself.
func Deref(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// IsNull reports whether nothing is said: null, ~ or no value at all.
func IsNull(n *yaml.Node) bool {
	return n.Kind == 0 || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

func (m *File) readURL(n *yaml.Node, line int) error {
	switch {
	case IsNull(n):
		return m.Invalid(line, "empty url value")
	case n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str":
		return m.Invalid(n.Line, "url: not a text; put it in quotes")
	}
	m.URL, m.URLLine = strings.TrimSuffix(strings.TrimSpace(n.Value), "/"), n.Line
	if m.URL == "" {
		return m.Invalid(n.Line, "empty url value")
	}
	return nil
}

func (m *File) readDepth(n *yaml.Node, line int) error {
	if IsNull(n) {
		return nil
	}
	var depth int64
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&depth) != nil || depth < 0 || depth > math.MaxInt32 {
		return m.Invalid(line, fmt.Sprintf("depth: %q is not a whole number above 0", n.Value))
	}
	if depth == 0 {
		return m.Invalid(line, "depth: 0; omit depth for the whole history")
	}
	m.Depth = int(depth)
	return nil
}

// RequireURL returns the error of a manifest that says no url, or a wrong url or depth.
func (m *File) RequireURL() error {
	switch {
	case m.problem != nil:
		return m.problem
	case m.URL != "":
		return nil
	case m.empty:
		return m.Invalid(0, "the file is empty or contains no metadata remote URL")
	}
	return m.Invalid(0, `missing field "url"`)
}

// Invalid returns the [meta.ErrInvalid] error that why is wrong in a line; 0: in the file.
func (m *File) Invalid(line int, why string) error {
	return meta.Invalid(m.where(line), why, "")
}

// At returns err, which is about what stands in a line, with the line.
func (m *File) At(line int, err error) error {
	return &meta.Error{Op: m.where(line), Err: err, Hint: meta.HintOf(err)}
}

func (m *File) where(line int) string {
	if line > 0 {
		return fmt.Sprintf("%s:%d", m.Name, line)
	}
	return m.Name
}

// yamlLine is how the parser names a line.
var yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)

func (m *File) tooLarge() error { return m.Invalid(0, "larger than 1 MiB") }

// syntax words an error of the YAML parser.
func (m *File) syntax(err error) error {
	text, line := strings.TrimPrefix(meta.OneLine(err.Error()), "yaml: "), 0
	if at := yamlLine.FindStringSubmatch(text); at != nil {
		_, _ = fmt.Sscan(at[1], &line)
		text = text[len(at[0]):]
	}
	return m.Invalid(line, "not valid YAML: "+text)
}

// Format returns the text of a manifest that names only a URL.
func Format(url string) ([]byte, error) {
	return yaml.Marshal(struct {
		URL string `yaml:"url"`
	}{url})
}
