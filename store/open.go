package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/git-meta/git-meta-go/meta"
)

// FileName is the store's file in the repository's common git directory.
const FileName = "git-meta.sqlite"

// Options says how to open a store. The zero value is what commands use.
type Options struct {
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Blob reads a value that the peer has moved to a git blob (is_git_ref = 1). With
	// nil, reading such a value is an error that names the key.
	Blob func(oid string) ([]byte, error)
	// Bulk is for loads that can be repeated: synchronous NORMAL (a power cut may lose
	// the last transactions, never damage the file) and a cache of 16 MiB.
	Bulk bool
}

// DB is an open store. View and Update may be called from several goroutines; they run
// one after the other.
type DB struct {
	path     string
	o        Options
	mu       sync.Mutex
	c        *conn
	readOnly bool
	scratch  bool            // temporary copies of own tables are there: see UpdateOwn
	tables   map[string]bool // tables of our own known to exist, and tree_stats
}

// busyTimeout is how long a statement waits for another program's lock.
const busyTimeout = 5 * time.Second

// dsn returns the data source name for path. Pragmas run in the order given; the
// driver runs busy_timeout first in any case.
func dsn(path string, params ...string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	p := filepath.ToSlash(abs)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	q := append([]string{fmt.Sprintf("_pragma=busy_timeout(%d)", busyTimeout.Milliseconds())}, params...)
	return "file://" + (&url.URL{Path: p}).EscapedPath() + "?" + strings.Join(q, "&"), nil
}

func (o Options) pragmas() []string {
	cache, sync := "cache_size(-4096)", "synchronous(full)"
	if o.Bulk {
		cache, sync = "cache_size(-16384)", "synchronous(normal)"
	}
	p := []string{"_pragma=" + cache, "_pragma=" + sync}
	// a mapped file cannot be truncated or renamed on Windows; a bulk load reads little
	if runtime.GOOS != "windows" && !o.Bulk {
		p = append(p, "_pragma=mmap_size(67108864)")
	}
	return append(p, "_txlock=immediate")
}

// Open opens the store at path for reading and writing. A file that is missing or
// empty is created, an older schema is migrated, a half-made file is repaired; each
// inside one transaction, so that processes may race. Nothing is written to a healthy
// store. The error is a [FileError] where the file is the trouble.
func Open(ctx context.Context, path string, o Options) (*DB, error) {
	if err := checkFile(path); err != nil && !errors.Is(err, meta.ErrNotFound) {
		return nil, err
	}
	name, err := dsn(path, append([]string{"mode=rwc"}, o.pragmas()...)...)
	if err != nil {
		return nil, err
	}
	db, err := retryBusy(ctx, func() (*DB, error) { return openWrite(ctx, name, path, o) })
	if err != nil {
		return nil, openError(ctx, path, err)
	}
	return db, nil
}

func openWrite(ctx context.Context, name, path string, o Options) (db *DB, err error) {
	c, err := dial(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	v, err := c.userVersion()
	switch {
	case err != nil:
		return nil, err
	case v > schemaVersion:
		return nil, ErrSchemaTooNew
	case v == schemaVersion:
		healthy, err := c.complete()
		if err != nil {
			return nil, err
		}
		if !healthy {
			if err := c.migrate(ctx); err != nil {
				return nil, err
			}
		}
		c.backToLog()
	default:
		empty, err := c.int64(ctx, "SELECT count(*) = 0 FROM sqlite_master")
		if err != nil {
			return nil, err
		}
		if v == 0 && empty == 1 {
			// The mode is kept in the file. Where WAL is impossible (some network file
			// systems) the pragma changes nothing and the rollback journal stays.
			if _, err := c.exec(ctx, "PRAGMA journal_mode = WAL"); err != nil {
				return nil, err
			}
		}
		if err := c.migrate(ctx); err != nil {
			return nil, err
		}
	}
	db = &DB{path: path, o: o, c: c, tables: map[string]bool{"tree_stats": true}}
	for _, t := range ownTables {
		db.tables[t] = true
	}
	return db, nil
}

// backToLog sets the mode of the file to WAL where it is not: [DB.PutFill] leaves it for a
// while, and a process that dies then for good.
func (c *conn) backToLog() {
	mode := ""
	_, err := c.one(bg, "PRAGMA journal_mode", nil, func(r *rows) { mode = r.str(0) })
	if err == nil && mode == "delete" {
		c.journal("WAL")
	}
}

// OpenRead opens the store at path for reading. It creates nothing and works in a
// folder that cannot be written. An older schema is read as it is. Without a file, or
// with an empty one, the error is [meta.ErrNotFound].
func OpenRead(ctx context.Context, path string, o Options) (*DB, error) {
	if err := checkFile(path); err != nil {
		return nil, err
	}
	db, err := retryBusy(ctx, func() (*DB, error) { return openRead(ctx, path, o, "mode=rw") })
	if err == nil || errors.Is(err, meta.ErrNotFound) {
		return db, err
	}
	switch p := primary(err); {
	case p != codeReadOnly && p != codeCantOpen && !noSharedMemory(err):
		return nil, openError(ctx, path, err)
	case fileHasBytes(path + "-wal"):
		// Only with shared memory can a log be read, and without the log the file is
		// out of date.
		return nil, &FileError{
			Path: path, Err: fmt.Errorf("the last changes are in %s, which cannot be used in a folder that is read-only or full: %w", path+"-wal", ErrReadOnly),
			Hint: "run git meta get project once as a user who may write to " + filepath.Dir(path),
		}
	case fileHasBytes(path + "-journal"):
		// left by a killed [DB.PutFill]: the file is half changed
		return nil, &FileError{
			Path: path, Err: fmt.Errorf("a load was interrupted; what is in %s cannot be undone in a folder that is read-only or full: %w", path+"-journal", ErrReadOnly),
			Hint: "run git meta get project once as a user who may write to " + filepath.Dir(path),
		}
	}
	db, err = openRead(ctx, path, o, "mode=ro", "immutable=1")
	if err != nil && !errors.Is(err, meta.ErrNotFound) {
		err = openError(ctx, path, err)
	}
	return db, err
}

// noSharedMemory reports whether err says that the file which WAL needs for locks cannot
// be made or mapped: the disk is full, or the file system cannot do it.
func noSharedMemory(err error) bool {
	switch code(err) {
	case codeIOErrShmOpen, codeIOErrShmSize, codeIOErrShmMap:
		return true
	}
	return false
}

func openRead(ctx context.Context, path string, o Options, mode ...string) (db *DB, err error) {
	name, err := dsn(path, append(mode, "_pragma=cache_size(-16384)", "_pragma=mmap_size(67108864)")...)
	if err != nil {
		return nil, err
	}
	c, err := dial(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	v, err := c.userVersion()
	if err != nil {
		return nil, err
	}
	db = &DB{path: path, o: o, c: c, readOnly: true, tables: map[string]bool{"tree_stats": v >= schemaVersion}}
	switch {
	case v > schemaVersion:
		if err := c.superset(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSchemaTooNew, err)
		}
	case v < schemaVersion:
		have, err := c.columns("metadata")
		if err != nil {
			return nil, err
		}
		if len(have) == 0 {
			return nil, noStore(path)
		}
		c.rewrite = withoutColumns(have)
	}
	return db, nil
}

// withoutColumns returns a rewriter of statements that puts NULL for the columns of
// metadata that an older schema lacks. Statements write them as m.column.
func withoutColumns(have map[string]bool) func(string) string {
	var pairs []string
	for _, col := range addedColumns {
		if !have[col] {
			pairs = append(pairs, "m."+col, "NULL")
		}
	}
	if pairs == nil {
		return nil
	}
	return strings.NewReplacer(pairs...).Replace
}

// checkFile refuses what can't be a store before SQLite sees it. A missing or empty
// file is meta.ErrNotFound.
func checkFile(path string) error {
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return noStore(path)
	case err != nil:
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return &FileError{Path: path, Err: err, Hint: "check the permissions of the folder"}
	case fi.IsDir():
		return &FileError{Path: path, Err: errors.New("a directory, not a file"), Hint: hintDamaged}
	case !fi.Mode().IsRegular():
		return &FileError{Path: path, Err: errors.New("not a regular file"), Hint: hintDamaged}
	case fi.Size() == 0 && !fileHasBytes(path+"-wal"):
		return noStore(path)
	}
	return nil
}

func noStore(path string) error { return meta.NotFound("store "+path, "not found", "") }

func fileHasBytes(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Size() > 0
}

func openError(ctx context.Context, path string, err error) error {
	var fe *FileError
	switch {
	case errors.As(err, &fe):
		return err
	case errors.Is(err, ErrSchemaTooNew):
		return &FileError{Path: path, Err: err, Hint: "update git-meta"}
	case code(err) == 0:
		return err
	}
	return fileError(ctx, path, err)
}

// retryBusy repeats open while another process is creating or switching the file:
// changing the journal mode does not wait for locks as other statements do.
func retryBusy(ctx context.Context, open func() (*DB, error)) (*DB, error) {
	deadline := time.Now().Add(2 * busyTimeout)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		db, err := open()
		if err == nil || !isBusy(err) || time.Now().After(deadline) {
			return db, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// Close releases the store.
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.c == nil {
		return nil
	}
	err := db.c.close()
	db.c = nil
	if err != nil {
		return fileError(context.Background(), db.path, err)
	}
	return nil
}

// Path returns the file's path as it was given to Open.
func (db *DB) Path() string { return db.path }
