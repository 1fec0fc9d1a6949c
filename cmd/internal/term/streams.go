package term

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// Streams is where a verb reads and writes.
type Streams struct {
	In   io.Reader
	Out  io.Writer
	Err  io.Writer
	JSON bool
	Account
}

// Output is the standard output. It remembers that writing failed: a verb that
// was asked something must not succeed without an answer.
type Output struct {
	*os.File
	failed error
}

func (o *Output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if err != nil && o.failed == nil {
		o.failed = err
	}
	return n, err
}

// Finish reports a verb's error, with its hint on a line of its own, and
// returns the status to exit with.
func (s *Streams) Finish(err error, hint func(error) string) int {
	if o, ok := s.Out.(*Output); ok && err == nil && o.failed != nil && !errors.Is(o.failed, syscall.EPIPE) {
		err = ExitWith(ExitFailed, "the output could not be written: %w", o.failed)
	}
	if err == nil {
		return ExitOK
	}
	status := StatusOf(err)
	s.AccountFor(status)
	if status.Err != nil {
		s.Note("%v", status.Err)
	}
	if text := hint(err); text != "" {
		fmt.Fprintln(s.Err, text)
	}
	return status.Code
}

// Note writes a note to standard error.
func (s *Streams) Note(format string, args ...any) {
	fmt.Fprint(s.Err, Visible(fmt.Sprintf(Program+": "+format+"\n", args...)))
}

// Shown is a node's data as the output may show it. On a terminal it is quoted:
// it may have control sequences, or look like a line of ours.
func (s *Streams) Shown(data []byte) string {
	if IsTerminal(s.Out) {
		return strconv.Quote(string(data))
	}
	return string(data)
}

// Print writes a verb's result, as a line of JSON if that is wanted, and
// otherwise as the text.
func (s *Streams) Print(v any, format string, args ...any) error {
	if s.JSON {
		s.Told = true
		return WriteJSON(s.Out, v)
	}
	_, err := fmt.Fprintf(s.Out, format, args...)
	return err
}

func WriteJSON(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // what is written here is made of strings, numbers and lists of them
	}
	_, err = fmt.Fprintf(w, "%s\n", data)
	return err
}

// IsTerminal reports whether a reader or writer is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// Agrees reads the answer to a question, and reports whether it is yes.
func (s *Streams) Agrees() bool {
	answer, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil {
		fmt.Fprintln(s.Err) // the end of the input does not end the line
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// Size is the size of a terminal, 80 by 24 if it is not known.
func Size(stream any) (columns, rows int) {
	if f, ok := stream.(interface{ Fd() uintptr }); ok {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && rows > 0 {
			return columns, rows
		}
	}
	return 80, 24
}

func Width(stream any) int {
	columns, _ := Size(stream)
	return columns
}
