package ui

// Style is how a piece of text is marked where colour is on.
type Style string

// The styles in use.
const (
	Bold    Style = "\x1b[1m"
	Dim     Style = "\x1b[2m"
	Heading Style = "\x1b[1m\x1b[33m"
	Name    Style = "\x1b[32m"
	Error   Style = "\x1b[1m\x1b[31m"
	Warn    Style = "\x1b[1m\x1b[33m"
	Hint    Style = "\x1b[1m\x1b[36m"
)

const reset = "\x1b[0m"

// Painter marks text for one stream. The zero Painter leaves it as it is.
type Painter struct{ on bool }

// OutPainter returns the painter of the output stream.
func (s *IO) OutPainter() Painter { return Painter{s.color(s.OutTTY)} }

// ErrPainter returns the painter of the error stream.
func (s *IO) ErrPainter() Painter { return Painter{s.color(s.ErrTTY)} }

// color decides for one stream: NO_COLOR (even empty) turns colour off, then
// CLICOLOR_FORCE turns it on, else only a terminal that is not dumb gets it.
func (s *IO) color(tty bool) bool {
	if _, ok := s.getenv("NO_COLOR"); ok {
		return false
	}
	if v, _ := s.getenv("CLICOLOR_FORCE"); v != "" && v != "0" {
		return true
	}
	if t, _ := s.getenv("TERM"); t == "dumb" {
		return false
	}
	return tty
}

// Paint returns text in style.
func (p Painter) Paint(style Style, text string) string {
	if !p.on || text == "" {
		return text
	}
	return string(style) + text + reset
}
