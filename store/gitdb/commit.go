package gitdb

import (
	"bytes"
	"fmt"
	"strings"
)

// Header is an extra line of a commit (encoding, gpgsig, …). A Value of
// several lines is joined with line feeds, without the leading spaces.
type Header struct{ Key, Value string }

// Commit is a decoded commit object. Encode gives back the very bytes it was
// parsed from, as long as nothing is changed.
type Commit struct {
	Tree      Hash
	Parents   []Hash
	Author    Ident
	Committer Ident
	Headers   []Header // after committer, in order
	Message   string   // bytes as they are, in whatever encoding

	// HeadersOnly: the object ends without the blank line that precedes the
	// message. Git does not write such commits.
	HeadersOnly bool
}

// ParseCommit decodes a commit object. tree, author and committer must be
// there, in this order.
func ParseCommit(data []byte) (*Commit, error) {
	c := &Commit{HeadersOnly: true}
	bad := func(what string) (*Commit, error) {
		return nil, fmt.Errorf("commit: %w: %s", ErrCorrupt, what)
	}
	const (
		wantTree = iota
		wantParent
		wantCommitter
		wantHeader
	)
	state := wantTree
	for len(data) > 0 {
		if data[0] == '\n' {
			c.Message, c.HeadersOnly = string(data[1:]), false
			break
		}
		line, rest, ok := bytes.Cut(data, []byte{'\n'})
		if !ok {
			return bad("unterminated header")
		}
		data = rest
		key, value, ok := strings.Cut(string(line), " ")
		switch {
		case state == wantTree && key == "tree":
			if c.Tree, ok = ParseHash(value); !ok || c.Tree.String() != value {
				return bad("bad tree line")
			}
			state = wantParent
		case state == wantParent && key == "parent":
			p, ok := ParseHash(value)
			if !ok || p.String() != value {
				return bad("bad parent line")
			}
			c.Parents = append(c.Parents, p)
		case state == wantParent && key == "author" && ok:
			c.Author = parseIdent(value)
			state = wantCommitter
		case state == wantCommitter && key == "committer" && ok:
			c.Committer = parseIdent(value)
			state = wantHeader
		case state == wantHeader && key != "" && ok:
			buf := []byte(value)
			for len(data) > 0 && data[0] == ' ' { // continued
				if line, rest, ok = bytes.Cut(data[1:], []byte{'\n'}); !ok {
					return bad("unterminated header")
				}
				buf = append(append(buf, '\n'), line...)
				data = rest
			}
			c.Headers = append(c.Headers, Header{key, string(buf)})
		default:
			return bad(fmt.Sprintf("unexpected line %.40q", line))
		}
	}
	if state != wantHeader {
		return bad("no tree, author or committer")
	}
	return c, nil
}

// Encode returns the bytes of the commit object. Extra headers follow the
// committer line.
func (c *Commit) Encode() []byte {
	b := make([]byte, 0, 256+len(c.Message))
	b = append(b, "tree "...)
	b = append(b, c.Tree.String()...)
	for _, p := range c.Parents {
		b = append(b, "\nparent "...)
		b = append(b, p.String()...)
	}
	b = append(b, "\nauthor "...)
	b = c.Author.append(b)
	b = append(b, "\ncommitter "...)
	b = c.Committer.append(b)
	for _, h := range c.Headers {
		b = append(b, '\n')
		b = append(b, h.Key...)
		b = append(b, ' ')
		b = append(b, strings.ReplaceAll(h.Value, "\n", "\n ")...)
	}
	b = append(b, '\n')
	if !c.HeadersOnly || c.Message != "" {
		b = append(b, '\n')
		b = append(b, c.Message...)
	}
	return b
}

// Header returns the value of the first extra header with this key.
func (c *Commit) Header(key string) (string, bool) {
	for _, h := range c.Headers {
		if h.Key == key {
			return h.Value, true
		}
	}
	return "", false
}
