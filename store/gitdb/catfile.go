package gitdb

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
)

// CatFile implements [Objects] with git cat-file children, one for contents
// and one for headers, started when needed. It reads whatever git reads, and
// fetches in a partial clone. One request at a time, about 45 µs each.
type CatFile struct {
	repo   *Repo
	read   catChild
	header catChild
}

var _ Objects = (*CatFile)(nil)

// NewCatFile returns a reader that asks git for everything. Close it.
func (r *Repo) NewCatFile() *CatFile {
	return &CatFile{repo: r, read: catChild{repo: r, mode: "--batch"}, header: catChild{repo: r, mode: "--batch-check"}}
}

// Read returns an object.
func (c *CatFile) Read(ctx context.Context, id Hash) (t ObjectType, data []byte, err error) {
	err = c.read.request(ctx, id, func(typ ObjectType, size int64, out io.Reader) error {
		if size > maxObject {
			return &ObjectError{ID: id, Err: ErrTooLarge}
		}
		t, data = typ, make([]byte, size)
		if _, err := io.ReadFull(out, data); err != nil {
			return err
		}
		var lf [1]byte
		_, err := io.ReadFull(out, lf[:])
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	return t, data, nil
}

// Header returns type and size of an object.
func (c *CatFile) Header(ctx context.Context, id Hash) (t ObjectType, size int64, err error) {
	err = c.header.request(ctx, id, func(typ ObjectType, n int64, _ io.Reader) error {
		t, size = typ, n
		return nil
	})
	return t, size, err
}

// Has says whether git has the object; in a partial clone git may fetch it.
func (c *CatFile) Has(ctx context.Context, id Hash) bool {
	_, _, err := c.Header(ctx, id)
	return err == nil
}

// Close ends the children.
func (c *CatFile) Close() error {
	c.read.stop()
	c.header.stop()
	return nil
}

// catChild is one child process and the lock that keeps requests apart.
type catChild struct {
	repo *Repo
	mode string

	mu     sync.Mutex
	cancel context.CancelFunc
	cmd    *Command
	in     io.WriteCloser
	out    *bufio.Reader
}

func (c *catChild) start() error {
	if c.out != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := c.repo.Git(ctx, "cat-file", c.mode).Env("GIT_NO_REPLACE_OBJECTS=1")
	w, err := cmd.cmd.StdinPipe()
	var out io.ReadCloser
	if err == nil {
		out, err = cmd.Start()
	}
	if err != nil {
		cancel()
		return err
	}
	c.cancel, c.cmd, c.in, c.out = cancel, cmd, w, bufio.NewReaderSize(out, 64<<10)
	return nil
}

func (c *catChild) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end()
}

// end closes the input, kills the child if that does not end it at once, and
// returns how it ended.
func (c *catChild) end() error {
	if c.out == nil {
		return nil
	}
	c.in.Close()
	c.cancel()
	err := c.cmd.Wait()
	c.cmd, c.in, c.out, c.cancel = nil, nil, nil, nil
	return err
}

func (c *catChild) request(ctx context.Context, id Hash, body func(ObjectType, int64, io.Reader) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.start(); err != nil {
		return err
	}
	cancel := c.cancel
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	err := c.exchange(id, body)
	var oe *ObjectError
	if err == nil || errors.As(err, &oe) && errors.Is(err, ErrObjectMissing) {
		return err
	}
	// The stream is out of step: a new child next time.
	stderr := c.cmd
	c.end()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.As(err, &oe) {
		return err
	}
	if m := (&GitError{Stderr: stderr.stderr.String()}).Message(); m != "" {
		err = errors.New(m)
	}
	return &ObjectError{ID: id, Err: fmt.Errorf("git cat-file: %w", noEOF(err))}
}

func (c *catChild) exchange(id Hash, body func(ObjectType, int64, io.Reader) error) error {
	if _, err := io.WriteString(c.in, id.String()+"\n"); err != nil {
		return err
	}
	line, err := c.out.ReadSlice('\n')
	if err != nil {
		return err
	}
	f := bytes.Fields(line)
	if len(f) == 2 && string(f[1]) == "missing" {
		return &ObjectError{ID: id, Err: ErrObjectMissing}
	}
	if len(f) != 3 || string(f[0]) != id.String() {
		return fmt.Errorf("unexpected answer %.80q", line)
	}
	t, ok := parseObjectType(string(f[1]))
	size, err := strconv.ParseInt(string(f[2]), 10, 64)
	if !ok || err != nil || size < 0 {
		return fmt.Errorf("unexpected answer %.80q", line)
	}
	return body(t, size, c.out)
}
