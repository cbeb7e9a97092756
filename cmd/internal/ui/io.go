package ui

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// IO holds the streams of one run.
type IO struct {
	In  io.Reader
	Out *Output
	Err io.Writer

	// InTTY, OutTTY and ErrTTY say which streams are a terminal.
	InTTY, OutTTY, ErrTTY bool

	getenv  func(string) (string, bool)
	inFd    int
	outFile *os.File // nil: the output is no file
}

// New returns the streams of a run. Environment variables are read with getenv.
func New(in io.Reader, out, err io.Writer, getenv func(string) (string, bool)) *IO {
	s := &IO{In: in, Out: &Output{w: bufio.NewWriterSize(out, 16<<10)}, Err: err, getenv: getenv, inFd: -1}
	s.OutTTY, s.ErrTTY = isTerminal(out), isTerminal(err)
	s.outFile, _ = out.(*os.File)
	if f, ok := in.(*os.File); ok {
		s.inFd = int(f.Fd())
		s.InTTY = term.IsTerminal(s.inFd)
	}
	return s
}

// OutGone reports whether the output goes into a pipe that nobody reads any more: a
// command that waits for something to print can end. Where that cannot be told it is
// false, and the next write fails.
func (s *IO) OutGone() bool { return s.outFile != nil && nobodyReads(s.outFile) }

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Errf prints one line on the error stream.
func (s *IO) Errf(format string, a ...any) {
	_, _ = fmt.Fprintf(s.Err, format+"\n", a...)
}

// Output is the buffered output stream. Its methods do nothing after the first write
// error, which Flush returns.
type Output struct {
	w   *bufio.Writer
	err error
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}

// WriteString implements io.StringWriter.
func (o *Output) WriteString(s string) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.WriteString(s)
	o.err = err
	return n, err
}

// Printf formats to the output stream.
func (o *Output) Printf(format string, a ...any) {
	if o.err == nil {
		_, o.err = fmt.Fprintf(o.w, format, a...)
	}
}

// Println prints one line.
func (o *Output) Println(s string) {
	_, _ = o.WriteString(s)
	_, _ = o.WriteString("\n")
}

// Err returns the first write error: a loop over many values can stop early.
func (o *Output) Err() error { return o.err }

// Flush writes what is buffered and returns the first write error.
func (o *Output) Flush() error {
	if o.err == nil {
		o.err = o.w.Flush()
	}
	return o.err
}
