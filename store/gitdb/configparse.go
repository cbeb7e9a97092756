package gitdb

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ConfigEntry is one assignment. Key has section and name in lower case, a
// subsection as written. NoValue marks a name without "=", which is true.
type ConfigEntry struct {
	Key, Value string
	NoValue    bool
}

// bool reads the value as git_config_bool does.
func (e ConfigEntry) bool() (v, ok bool) {
	if e.NoValue {
		return true, true
	}
	switch strings.ToLower(e.Value) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off", "":
		return false, true
	}
	n, ok := parseConfigInt(e.Value)
	return n != 0, ok
}

// parseConfigInt reads an integer with an optional k, m or g (base 1024).
func parseConfigInt(s string) (int64, bool) {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	mul := int64(1)
	if s != "" {
		switch s[len(s)-1] | 0x20 {
		case 'k':
			mul = 1 << 10
		case 'm':
			mul = 1 << 20
		case 'g':
			mul = 1 << 30
		}
		if mul > 1 {
			s = s[:len(s)-1]
		}
	}
	if strings.Contains(s, "_") {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil || n > (1<<63-1)/mul || n < -(1<<63-1)/mul {
		return 0, false
	}
	return n * mul, true
}

// errConfigSyntax: not what this parser reads; git may read it or refuse it.
var errConfigSyntax = errors.New("config syntax")

// readConfigFile parses a file; a missing one has no entries.
func readConfigFile(p string) ([]ConfigEntry, error) {
	b, err := os.ReadFile(p)
	if errors.Is(err, os.ErrNotExist) || isNotDir(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	es, err := parseConfig(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p, err)
	}
	return es, nil
}

// parseConfig is git_parse_source of git's config.c for everything about
// which all versions of git agree. For the rest (NUL bytes, tabs inside
// unquoted values, names outside of a section, errors) it returns
// errConfigSyntax.
func parseConfig(data []byte) ([]ConfigEntry, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	p := &configParser{src: data}
	for {
		c := p.next()
		switch {
		case c == '\n':
			if p.eof {
				return p.entries, nil
			}
		case isConfigSpace(c):
		case c == '#' || c == ';':
			p.skipLine()
		case c == '[':
			if !p.section() {
				return nil, errConfigSyntax
			}
		case isAlpha(c) && p.prefix != "":
			if !p.variable(c) {
				return nil, errConfigSyntax
			}
		default:
			return nil, errConfigSyntax
		}
	}
}

type configParser struct {
	src     []byte
	pos     int
	eof     bool
	prefix  string // "section." or "section.sub."
	entries []ConfigEntry
	buf     []byte
}

// next returns the next byte, a line feed for CR LF and at the end.
func (p *configParser) next() byte {
	if p.pos >= len(p.src) {
		p.eof = true
		return '\n'
	}
	c := p.src[p.pos]
	p.pos++
	if c == '\r' && p.pos < len(p.src) && p.src[p.pos] == '\n' {
		p.pos++
		return '\n'
	}
	return c
}

func (p *configParser) skipLine() {
	for p.next() != '\n' {
	}
}

func (p *configParser) section() bool {
	b := p.buf[:0]
	for {
		c := p.next()
		switch {
		case p.eof:
			return false
		case c == ']':
			if len(b) == 0 {
				return false
			}
			p.prefix = string(b) + "."
			return true
		case isConfigSpace(c):
			return p.subsection(b, c)
		case isKeyChar(c) || c == '.':
			b = append(b, lower(c))
		default:
			return false
		}
	}
}

func (p *configParser) subsection(b []byte, c byte) bool {
	for isConfigSpace(c) {
		if c == '\n' {
			return false
		}
		c = p.next()
	}
	if c != '"' || len(b) == 0 {
		return false
	}
	b = append(b, '.')
	for {
		switch c = p.next(); c {
		case '\n', 0:
			return false
		case '"':
			p.prefix = string(b) + "."
			return p.next() == ']'
		case '\\':
			if c = p.next(); c == '\n' || c == 0 {
				return false
			}
		}
		b = append(b, c)
	}
}

func (p *configParser) variable(c byte) bool {
	b := append(p.buf[:0], p.prefix...)
	for ; isKeyChar(c); c = p.next() {
		b = append(b, lower(c))
	}
	for c == ' ' || c == '\t' {
		c = p.next()
	}
	e := ConfigEntry{Key: string(b), NoValue: true}
	if c != '\n' {
		if c != '=' {
			return false
		}
		v, ok := p.value(b[:0])
		if !ok {
			return false
		}
		e.Value, e.NoValue = v, false
	}
	p.buf = b
	p.entries = append(p.entries, e)
	return true
}

// value is parse_value: the text up to the end of the line.
func (p *configParser) value(b []byte) (string, bool) {
	quoted, spaces, odd := false, 0, false
	for {
		c := p.next()
		if c == 0 {
			return "", false
		}
		if c == '\n' {
			return string(b), !quoted
		}
		if !quoted && isConfigSpace(c) {
			if len(b) > 0 {
				spaces++
				odd = odd || c != ' '
			}
			continue
		}
		if !quoted && (c == ';' || c == '#') {
			p.skipLine()
			return string(b), true
		}
		// Up to git 2.44 a tab inside became a space, later it stays.
		if spaces > 0 && odd {
			return "", false
		}
		for ; spaces > 0; spaces-- {
			b = append(b, ' ')
		}
		switch c {
		case '"':
			quoted = !quoted
			continue
		case '\\':
			switch c = p.next(); c {
			case '\n':
				continue
			case 't':
				c = '\t'
			case 'b':
				c = '\b'
			case 'n':
				c = '\n'
			case '\\', '"':
			default:
				return "", false
			}
		}
		b = append(b, c)
	}
}

func isConfigSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func isAlpha(c byte) bool       { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isKeyChar(c byte) bool     { return isAlpha(c) || c >= '0' && c <= '9' || c == '-' }
func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c |= 0x20
	}
	return c
}

// parseConfigList reads the output of git config --list -z.
func parseConfigList(out []byte) []ConfigEntry {
	var es []ConfigEntry
	for len(out) > 0 {
		item, rest, _ := bytes.Cut(out, []byte{0})
		k, v, ok := bytes.Cut(item, []byte{'\n'})
		es = append(es, ConfigEntry{Key: string(k), Value: string(v), NoValue: !ok})
		out = rest
	}
	return es
}
