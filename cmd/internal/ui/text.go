package ui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/git-meta/git-meta-go/meta"
)

// OneLine returns s as one printable line: line breaks and tabs as \n, \r and \t,
// other control characters and bytes that are not UTF-8 as \x1b and the like.
func OneLine(s string) string {
	return escape(s, func(r rune) bool { return meta.IsControl(r) })
}

// Printable returns s as it may go to a terminal: line breaks and tabs stay, other
// control characters and bytes that are not UTF-8 are written out.
func Printable(s string) string {
	return escape(s, func(r rune) bool { return r != '\n' && r != '\t' && meta.IsControl(r) })
}

func escape(s string, bad func(rune) bool) string {
	clean := true
	for i, r := range s {
		if bad(r) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !bad(r):
			b.WriteString(s[i : i+n])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

// Cut shortens s to at most limit characters, the last three of them "...".
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n, end := 0, 0
	for i := range s {
		if n == limit-3 {
			end = i
		}
		n++
		if n > limit {
			return s[:end] + "..."
		}
	}
	return s
}

// DisplayWidth returns how many columns s takes in a terminal.
func DisplayWidth(s string) int {
	w := 0
	for _, r := range s {
		w += runeWidth(r)
	}
	return w
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case r == 0x200b || r == 0x200d || r >= 0xfe00 && r <= 0xfe0f || unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case isWide(r):
		return 2
	}
	return 1
}

// isWide follows the East Asian wide and fullwidth blocks, and emoji.
func isWide(r rune) bool {
	switch {
	case r < 0x1100:
		return false
	case r <= 0x115f, r == 0x2329, r == 0x232a,
		r >= 0x2e80 && r <= 0x303e, r >= 0x3041 && r <= 0xa4cf,
		r >= 0xa960 && r <= 0xa97c, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f,
		r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1f64f, r >= 0x1f680 && r <= 0x1f6ff,
		r >= 0x1f900 && r <= 0x1f9ff, r >= 0x20000 && r <= 0x3fffd:
		return true
	}
	return false
}

// Pad appends blanks to s up to width columns.
func Pad(s string, width int) string {
	if n := width - DisplayWidth(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// Plural returns "1 key" or "2 keys".
func Plural[N int | int64](n N, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}
