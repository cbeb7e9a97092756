package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"modernc.org/sqlite"

	"github.com/git-meta/git-meta-go/meta"
)

// conn is one SQLite connection with its prepared statements. It talks to the driver
// itself: database/sql would add a pool, which must never have a second member here,
// and half again to the time of a row. Not safe for concurrent use.
type conn struct {
	dc   driver.Conn
	idle map[string][]*stmt // statements not in use, by text
	args []driver.NamedValue
	// rewrite changes a statement's text before it is prepared; nil: as it is.
	rewrite func(string) string
	// count is called with the text of every statement that runs; for tests.
	count func(string)
}

// stmt is what a prepared statement of the driver can do.
type stmt struct {
	text string
	driver.Stmt
	exec  driver.StmtExecContext
	query driver.StmtQueryContext
}

func dial(dsn string) (*conn, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	dc, err := c.Connect(context.Background())
	if err != nil {
		return nil, err
	}
	return &conn{dc: dc, idle: map[string][]*stmt{}}, nil
}

func (c *conn) close() error {
	for _, list := range c.idle {
		for _, s := range list {
			s.Close()
		}
	}
	c.idle = nil
	return c.dc.Close()
}

func (c *conn) prepare(text string) (*stmt, error) {
	if c.count != nil {
		c.count(text)
	}
	if list := c.idle[text]; len(list) > 0 {
		s := list[len(list)-1]
		c.idle[text] = list[:len(list)-1]
		return s, nil
	}
	full := text
	if c.rewrite != nil {
		full = c.rewrite(text)
	}
	ds, err := c.dc.Prepare(full)
	if err != nil {
		return nil, err
	}
	s := &stmt{text: text, Stmt: ds}
	var ok1, ok2 bool
	s.exec, ok1 = ds.(driver.StmtExecContext)
	s.query, ok2 = ds.(driver.StmtQueryContext)
	if !ok1 || !ok2 {
		ds.Close()
		return nil, errors.New("the SQLite driver lacks statements with a context")
	}
	return s, nil
}

func (c *conn) release(s *stmt) {
	if c.idle == nil {
		s.Close()
		return
	}
	c.idle[s.text] = append(c.idle[s.text], s)
}

// bind turns args into driver values. Only text and integers are ever bound: the peer
// refuses a store that holds anything else.
func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		var v driver.Value
		switch a := a.(type) {
		case nil:
		case string:
			v = a
		case int64:
			v = a
		case int:
			v = int64(a)
		case bool:
			v = int64(0)
			if a {
				v = int64(1)
			}
		case meta.TargetType:
			v = string(a)
		case meta.ValueType:
			v = string(a)
		case meta.TombstoneKind:
			v = string(a)
		case Why:
			v = string(a)
		default:
			panic(fmt.Sprintf("store: cannot bind a %T", a))
		}
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return c.args
}

// exec runs a statement that returns no rows.
func (c *conn) exec(ctx context.Context, text string, args ...any) (driver.Result, error) {
	s, err := c.prepare(text)
	if err != nil {
		return nil, err
	}
	defer c.release(s)
	return s.exec.ExecContext(ctx, c.bind(args))
}

// script runs several statements.
func (c *conn) script(text string) error {
	ds, err := c.dc.Prepare(text)
	if err != nil {
		return err
	}
	defer ds.Close()
	_, err = ds.(driver.StmtExecContext).ExecContext(context.Background(), nil)
	return err
}

// rows is a result being read. Close it.
type rows struct {
	c    *conn
	s    *stmt
	r    driver.Rows
	ctx  context.Context
	vals []driver.Value
	n    int
}

func (c *conn) query(ctx context.Context, text string, args ...any) (*rows, error) {
	s, err := c.prepare(text)
	if err != nil {
		return nil, err
	}
	r, err := s.query.QueryContext(ctx, c.bind(args))
	if err != nil {
		c.release(s)
		return nil, err
	}
	return &rows{c: c, s: s, r: r, ctx: ctx, vals: make([]driver.Value, len(r.Columns()))}, nil
}

// next reads one row; false at the end. A cancelled context ends it within 1000 rows.
func (r *rows) next() (bool, error) {
	if r.n++; r.n%1000 == 0 {
		if err := r.ctx.Err(); err != nil {
			return false, err
		}
	}
	switch err := r.r.Next(r.vals); err {
	case nil:
		return true, nil
	case io.EOF:
		return false, nil
	default:
		return false, err
	}
}

func (r *rows) close() error {
	if r.r == nil {
		return nil
	}
	err := r.r.Close()
	r.r = nil
	r.c.release(r.s)
	return err
}

// str returns column i as text; NULL is "".
func (r *rows) str(i int) string { return text(r.vals[i]) }

// num returns column i as an integer; NULL is 0.
func (r *rows) num(i int) int64 { return number(r.vals[i]) }

func (r *rows) null(i int) bool { return r.vals[i] == nil }

// key returns the KeyRef in columns i to i+2.
func (r *rows) key(i int) meta.KeyRef {
	return meta.KeyRef{Target: meta.Target{Type: targetType(r.str(i)), Value: r.str(i + 1)}, Key: r.str(i + 2)}
}

// targetType spares an allocation for each row.
func targetType(s string) meta.TargetType {
	for _, t := range meta.TargetTypes {
		if s == string(t) {
			return t
		}
	}
	return meta.TargetType(s)
}

func text(v driver.Value) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case int64:
		return fmt.Sprint(v)
	case float64:
		return fmt.Sprint(v)
	}
	return ""
}

func number(v driver.Value) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	case string:
		var n int64
		fmt.Sscan(v, &n)
		return n
	}
	return 0
}

// one runs a query for at most one row and hands it to f.
func (c *conn) one(ctx context.Context, text string, args []any, f func(*rows)) (found bool, err error) {
	r, err := c.query(ctx, text, args...)
	if err != nil {
		return false, err
	}
	defer r.close()
	found, err = r.next()
	if found && f != nil {
		f(r)
	}
	return found, err
}

// int64 runs a query for one integer; 0 where there is no row.
func (c *conn) int64(ctx context.Context, text string, args ...any) (n int64, err error) {
	_, err = c.one(ctx, text, args, func(r *rows) { n = r.num(0) })
	return n, err
}
