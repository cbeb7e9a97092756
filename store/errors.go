package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"

	"github.com/git-meta/git-meta-go/meta"
)

// Sentinels of this package; match with errors.Is.
var (
	// ErrSchemaTooNew: the file was written by a newer program. It is never written,
	// and read only where its tables hold every column this program knows.
	ErrSchemaTooNew = errors.New("written by a newer version of git-meta")
	// ErrReadOnly: the file or its folder cannot be written.
	ErrReadOnly = errors.New("read-only")
	// ErrFull: there is no room for what was to be written; nothing of it was.
	ErrFull = errors.New("disk full")
	// ErrType: the key holds another type of value than the operation needs.
	ErrType = errors.New("wrong type of value")
)

// FileError says that the store's file cannot be used as asked.
type FileError struct {
	Path string
	Err  error
	Hint string // what to do about it
}

func (e *FileError) Error() string { return fmt.Sprintf("store %s: %v", e.Path, e.Err) }

func (e *FileError) Unwrap() error { return e.Err }

// HintText returns the hint, for [meta.HintOf].
func (e *FileError) HintText() string { return e.Hint }

// SQLite result codes (primary, and the extended ones that matter here).
const (
	codeBusy         = 5
	codeReadOnly     = 8
	codeInterrupt    = 9
	codeIOErr        = 10
	codeCorrupt      = 11
	codeFull         = 13
	codeCantOpen     = 14
	codeNotADB       = 26
	codeIOErrWrite   = codeIOErr | 3<<8
	codeIOErrShmOpen = codeIOErr | 18<<8
	codeIOErrShmSize = codeIOErr | 19<<8
	codeIOErrShmMap  = codeIOErr | 21<<8
)

// code returns the SQLite result code in err's chain, 0 if there is none.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

func primary(err error) int { return code(err) & 0xff }

func isBusy(err error) bool { return primary(err) == codeBusy }

const (
	hintDamaged  = "move the file aside and run git meta serialize: it rebuilds the store from refs/meta/local/main"
	hintFull     = "free some space and repeat the command; what was stored before is still there"
	hintLocked   = "another program is writing; repeat the command when it has finished"
	hintReadOnly = "reading works; to write, get write permission for the file and its folder"
)

// wrap turns an error of SQLite into a [FileError] with a hint. Other errors, those of
// callers included, stay as they are; nil stays nil.
func (db *DB) wrap(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var fe *FileError
	var se *sqlite.Error
	if errors.As(err, &fe) || !errors.As(err, &se) {
		return err
	}
	return fileError(ctx, db.path, err)
}

func fileError(ctx context.Context, path string, err error) error {
	full := code(err)
	out := &FileError{Path: path, Err: err}
	switch primary(err) {
	case codeInterrupt:
		if ctx != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	case codeNotADB:
		out.Err, out.Hint = errors.New("not a git-meta store"), hintDamaged
	case codeCorrupt:
		out.Err, out.Hint = errors.New("damaged"), hintDamaged
	case codeFull:
		out.Err, out.Hint = ErrFull, hintFull
	case codeBusy:
		out.Err, out.Hint = fmt.Errorf("locked by another program: %w", meta.ErrConflict), hintLocked
	case codeReadOnly:
		out.Err, out.Hint = ErrReadOnly, hintReadOnly
	case codeCantOpen:
		out.Err, out.Hint = errors.New("cannot be opened or created"), "check the permissions of the file and its folder"
	case codeIOErr:
		switch full {
		case codeIOErrWrite, codeIOErrShmSize:
			out.Err, out.Hint = errors.New("cannot be written: disk full or failing"), hintFull
		default:
			out.Err = fmt.Errorf("disk error: %s", strings.TrimSpace(err.Error()))
			out.Hint = "check the disk; " + hintDamaged
		}
	}
	return out
}

// wrongType is an error that is [ErrType] to errors.Is.
type wrongType string

func (w wrongType) Error() string        { return string(w) }
func (w wrongType) Is(target error) bool { return target == ErrType }

func notA(k meta.KeyRef, want, have meta.ValueType) error {
	return &meta.Error{
		Op:   fmt.Sprintf("key %q", k.Key),
		Err:  wrongType("not a " + string(want)),
		Hint: fmt.Sprintf("%s holds a %s; git meta set replaces any type", k, have),
	}
}

func keyNotFound(k meta.KeyRef) error {
	return meta.NotFound(fmt.Sprintf("key %q", k.Key), "not found", "git meta get "+shellWord(k.Target.String())+" lists the keys")
}

// shellWord quotes s for a shell where that is needed.
func shellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@+,", r))
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
