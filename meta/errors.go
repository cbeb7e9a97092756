package meta

import (
	"errors"
	"strings"
)

// Sentinels that callers decide on; match with errors.Is.
var (
	// ErrNotFound: the key, entry, member or store asked for does not exist.
	ErrNotFound = errors.New("not found")
	// ErrInvalid: the input cannot be accepted whatever the state of the store.
	ErrInvalid = errors.New("invalid")
	// ErrConflict: another process kept changing what this one wanted to change.
	ErrConflict = errors.New("conflict")
)

// Error is a failure with what a user needs to act on it. Its text is "Op: Err".
type Error struct {
	Op   string // what was being done, and to what: `key "a::b"`
	Err  error  // why it failed
	Hint string // a command or a sentence that helps; may be empty
}

func (e *Error) Error() string {
	if e.Op == "" {
		return e.Err.Error()
	}
	return e.Op + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// HintOf returns the first hint in err's chain, or "".
func HintOf(err error) string {
	for err != nil {
		if e, ok := err.(*Error); ok && e.Hint != "" {
			return e.Hint
		}
		if h, ok := err.(interface{ HintText() string }); ok && h.HintText() != "" {
			return h.HintText()
		}
		err = errors.Unwrap(err)
	}
	return ""
}

// reason is an error that is [ErrInvalid] to errors.Is and shows only its text.
type reason string

func (r reason) Error() string        { return string(r) }
func (r reason) Is(target error) bool { return target == ErrInvalid }

// Invalid returns an [Error] that is ErrInvalid: op names the input, why says what
// is wrong with it, hint (may be empty) how to do it right.
func Invalid(op, why, hint string) error {
	return &Error{Op: op, Err: reason(why), Hint: hint}
}

// missing is an error that is [ErrNotFound] to errors.Is.
type missing string

func (m missing) Error() string        { return string(m) }
func (m missing) Is(target error) bool { return target == ErrNotFound }

// NotFound returns an [Error] that is ErrNotFound, with the text "op: why".
func NotFound(op, why, hint string) error {
	return &Error{Op: op, Err: missing(why), Hint: hint}
}

// OneLine makes s safe to print in a one-line message: control characters are
// replaced by a blank.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// IsControl reports whether r is a C0 or C1 control character, DEL, or a line or
// paragraph separator: what must not stand in a name and not reach a terminal.
func IsControl(r rune) bool {
	return r < 0x20 || (r >= 0x7f && r < 0xa0) || r == 0x2028 || r == 0x2029
}
