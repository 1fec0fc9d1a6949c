package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// streams is where a verb reads and writes.
type streams struct {
	in   io.Reader
	out  io.Writer
	err  io.Writer
	json bool
}

// finish reports a verb's error and returns the status to exit with.
func (s *streams) finish(err error) int {
	if err == nil {
		return exitOK
	}
	status := &exitError{code: exitFailed, err: err}
	errors.As(err, &status)
	if status.err != nil {
		s.note("%v", status.err)
	}
	return status.code
}

// note tells something on standard error.
func (s *streams) note(format string, args ...any) {
	fmt.Fprintf(s.err, "coorddemo: "+format+"\n", args...)
}

// print writes v as a line of JSON if that is wanted, and otherwise the text.
func (s *streams) print(v any, format string, args ...any) {
	if s.json {
		writeJSON(s.out, v)
		return
	}
	fmt.Fprintf(s.out, format, args...)
}

func writeJSON(w io.Writer, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // what is written here is made of strings, numbers and lists of them
	}
	fmt.Fprintf(w, "%s\n", data)
}

// isTerminal tells whether a reader or writer is a person's.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
