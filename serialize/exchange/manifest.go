package exchange

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

// ManifestName is the file at the top of the work tree that says where a project keeps
// its metadata.
const ManifestName = ".git-meta"

// maxManifest is the size above which a manifest is refused.
const maxManifest = 1 << 20

// Manifest is what .git-meta says: a YAML mapping.
//
//	url: https://example.com/team/metadata.git   # or OWNER/REPO on GitHub
//	depth: 50                                    # commits to fetch; default: all
//	collections: …                               # retention; not read here
//
// Other keys are ignored. The zero value is an empty file.
type Manifest struct {
	Name        string // the file, for messages
	URL         string // as it stands there, without blanks around and one slash at the end
	URLLine     int
	Depth       int // 0: not limited
	Collections bool
	empty       bool
}

// ParseManifest reads a manifest. Errors name the file, the line where it is known, and
// the reason; they are [meta.ErrInvalid]. Aliases are not expanded, so that no short
// text becomes a long one.
func ParseManifest(name string, data []byte) (*Manifest, error) {
	m := &Manifest{Name: name}
	if len(data) > maxManifest {
		return nil, m.invalid(0, "larger than 1 MiB")
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && isNull(content(&doc)) {
		m.empty = true
		return m, nil
	}
	if err != nil {
		return nil, m.syntax(err)
	}
	root := content(&doc)
	if root.Kind != yaml.MappingNode {
		return nil, m.invalid(root.Line, "not a mapping of names to values like url: https://example.com/metadata.git")
	}
	if err := dec.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, m.syntax(err)
		}
		return nil, m.invalid(0, "more than one document")
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			continue
		}
		if first, twice := seen[key.Value]; twice {
			return nil, m.invalid(key.Line, fmt.Sprintf("duplicate field %q, which line %d has already", key.Value, first))
		}
		seen[key.Value] = key.Line
		if value.Kind == yaml.AliasNode && value.Alias != nil {
			value = value.Alias
		}
		switch key.Value {
		case "url":
			err = m.readURL(value, key.Line)
		case "depth":
			err = m.readDepth(value, key.Line)
		case "collections":
			m.Collections = !isNull(value)
		}
		if err != nil {
			return nil, err
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

func isNull(n *yaml.Node) bool {
	return n.Kind == 0 || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

func (m *Manifest) readURL(n *yaml.Node, line int) error {
	switch {
	case isNull(n):
		return m.invalid(line, "empty url value")
	case n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str":
		return m.invalid(n.Line, "url: not a text; put it in quotes")
	}
	m.URL, m.URLLine = strings.TrimSuffix(strings.TrimSpace(n.Value), "/"), n.Line
	if m.URL == "" {
		return m.invalid(n.Line, "empty url value")
	}
	return nil
}

func (m *Manifest) readDepth(n *yaml.Node, line int) error {
	if isNull(n) {
		return nil
	}
	var depth int64
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&depth) != nil || depth < 0 || depth > math.MaxInt32 {
		return m.invalid(line, fmt.Sprintf("depth: %q is not a whole number above 0", n.Value))
	}
	if depth == 0 {
		return m.invalid(line, "depth: 0; omit depth for the whole history")
	}
	m.Depth = int(depth)
	return nil
}

// RequireURL returns the error of a manifest that says no url.
func (m *Manifest) RequireURL() error {
	switch {
	case m.URL != "":
		return nil
	case m.empty:
		return m.invalid(0, "the file is empty or contains no metadata remote URL")
	}
	return m.invalid(0, `missing field "url"`)
}

func (m *Manifest) invalid(line int, why string) error {
	where := m.Name
	if line > 0 {
		where = fmt.Sprintf("%s:%d", m.Name, line)
	}
	return meta.Invalid(where, why, "")
}

// At returns err, which is about the url, with the line that the url stands in.
func (m *Manifest) At(err error) error {
	return &meta.Error{Op: fmt.Sprintf("%s:%d", m.Name, m.URLLine), Err: err, Hint: meta.HintOf(err)}
}

// yamlLine is how the parser names a line.
var yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)

// syntax words an error of the YAML parser.
func (m *Manifest) syntax(err error) error {
	text, line := strings.TrimPrefix(meta.OneLine(err.Error()), "yaml: "), 0
	if at := yamlLine.FindStringSubmatch(text); at != nil {
		_, _ = fmt.Sscan(at[1], &line)
		text = text[len(at[0]):]
	}
	return m.invalid(line, "not valid YAML: "+text)
}

// FormatManifest returns the text of a manifest that names only a URL.
func FormatManifest(url string) ([]byte, error) {
	return yaml.Marshal(struct {
		URL string `yaml:"url"`
	}{url})
}
