package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/demo/crew"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

type allDemos struct{}

// demoNames are the demos in the order of the README.
var demoNames = []string{"stock", "batch", "election", "queue"}

// allResult is the last line of all demos.
type allResult struct {
	Demo  string                     `json:"demo"`
	Demos map[string]json.RawMessage `json:"demos"` // their own last lines
	Error string                     `json:"error,omitempty"`
	OK    bool                       `json:"ok"`
}

// Run shows one demo after the other, each in a process of its own. One that
// fails does not keep the others from being shown, unless no server answers.
func (*allDemos) Run(s *term.Streams, c *conn.Connection) error {
	ctx, calm := term.Interruptible(context.Background())
	defer calm()
	all, status := allResult{Demo: "all", Demos: map[string]json.RawMessage{}, OK: true}, term.ExitOK
	for i, name := range demoNames {
		if ctx.Err() != nil {
			all.OK, all.Error = false, term.Briefly(context.Cause(ctx)).Error()
			break
		}
		if !s.JSON {
			fmt.Fprintf(s.Out, "%d of %d: %s\n\n", i+1, len(demoNames), name)
		}
		result, err := runDemo(ctx, s, c, name)
		if err != nil {
			return err
		}
		var outcome struct {
			OK     bool
			Status int
		}
		_ = json.Unmarshal(result, &outcome) // it comes from a JSON decoder's hands
		all.Demos[name] = result
		all.OK = all.OK && outcome.OK
		if !s.JSON {
			fmt.Fprintln(s.Out)
		}
		if outcome.Status == term.ExitUnavailable {
			status, all.Error = outcome.Status, "no session with the servers"
			break
		}
	}
	if err := outcome(s, all, all.OK); err == nil || status == term.ExitOK {
		return err
	}
	return term.Silently(status)
}

// runDemo runs a demo, shows all of its output but the last line, and returns
// the last line. A demo is asked to end when ctx ends, and clears up.
func runDemo(ctx context.Context, s *term.Streams, c *conn.Connection, name string) (json.RawMessage, error) {
	cmd, err := c.Child("demo " + name)
	if err != nil {
		return nil, term.ExitWith(term.ExitFailed, "%w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, term.ExitWith(term.ExitFailed, "%w", err)
	}
	cmd.Stderr = s.Err
	crew.OwnGroup(cmd) // the signal comes from this process
	if err := cmd.Start(); err != nil {
		return nil, term.ExitWith(term.ExitFailed, "demo %s: %w", name, err)
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(os.Interrupt) })()
	last, err := passLines(s, out)
	failed := cmd.Wait()
	if err != nil {
		return nil, term.ExitWith(term.ExitFailed, "demo %s: %w", name, err)
	}
	if !json.Valid(last) { // it has said why on standard error
		if !s.JSON && len(last) > 0 {
			fmt.Fprintf(s.Out, "%s\n", last)
		}
		last, _ = json.Marshal(map[string]any{
			"demo": name, "ok": false, "status": cmd.ProcessState.ExitCode(), "error": fmt.Sprint("it did not tell how it went: ", failed),
		})
	}
	return last, nil
}

// passLines copies all lines but the last, which it returns.
func passLines(s *term.Streams, from io.Reader) (last []byte, err error) {
	lines := bufio.NewScanner(from)
	for first := true; lines.Scan(); first = false {
		if !first && !s.JSON {
			fmt.Fprintf(s.Out, "%s\n", last)
		}
		last = append([]byte(nil), lines.Bytes()...)
	}
	return last, lines.Err()
}
