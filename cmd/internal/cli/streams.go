package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/zkcoord/zkcoord/coord"
)

// streams is where a verb reads and writes.
type streams struct {
	in   io.Reader
	out  io.Writer
	err  io.Writer
	json bool
	account
}

// output is the standard output. It remembers that writing failed, so that a
// verb that was asked something does not succeed without an answer.
type output struct {
	*os.File
	failed error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if err != nil && o.failed == nil {
		o.failed = err
	}
	return n, err
}

// finish reports a verb's error and returns the status to exit with.
func (s *streams) finish(err error) int {
	if o, ok := s.out.(*output); ok && err == nil && o.failed != nil && !errors.Is(o.failed, syscall.EPIPE) {
		err = exitWith(exitFailed, "the output could not be written: %w", o.failed)
	}
	if err == nil {
		return exitOK
	}
	status := statusOf(err)
	s.accountFor(status)
	if status.err != nil {
		s.note("%v", status.err)
	}
	switch {
	case errors.Is(err, coord.ErrNoAuth):
		fmt.Fprintln(s.err, "(--auth or ZK_AUTH presents credentials)")
	case errors.Is(err, coord.ErrForeign) && strings.Contains(err.Error(), "("+string(coord.Kazoo)+" "):
		fmt.Fprintln(s.err, "(--dialect kazoo stands in line with Kazoo's)")
	case errors.Is(err, coord.ErrForeign) && strings.Contains(err.Error(), "("+string(coord.Curator)+" "):
		fmt.Fprintln(s.err, "(--dialect curator, the default, stands in line with Curator's)")
	}
	return status.code
}

// note tells something on standard error.
func (s *streams) note(format string, args ...any) {
	fmt.Fprintf(s.err, program+": "+format+"\n", args...)
}

// shown is what a node holds as the output may show it. On a terminal it is
// quoted: it may have anything in it, also what moves the cursor, or looks like
// a line of ours.
func (s *streams) shown(data []byte) string {
	if isTerminal(s.out) {
		return strconv.Quote(string(data))
	}
	return string(data)
}

// print writes a verb's result, as a line of JSON if that is wanted, and
// otherwise as the text.
func (s *streams) print(v any, format string, args ...any) error {
	if s.json {
		s.told = true
		return writeJSON(s.out, v)
	}
	_, err := fmt.Fprintf(s.out, format, args...)
	return err
}

func writeJSON(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // what is written here is made of strings, numbers and lists of them
	}
	_, err = fmt.Fprintf(w, "%s\n", data)
	return err
}

// isTerminal reports whether a reader or writer is a person's.
func isTerminal(stream any) bool {
	f, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// size is that of a terminal, 80 by 24 if it does not tell.
func size(stream any) (columns, rows int) {
	if f, ok := stream.(interface{ Fd() uintptr }); ok {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && rows > 0 {
			return columns, rows
		}
	}
	return 80, 24
}

func width(stream any) int {
	columns, _ := size(stream)
	return columns
}
