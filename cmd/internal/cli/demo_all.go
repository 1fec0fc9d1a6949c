package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/zkcoord/zkcoord/cmd/internal/demo/crew"
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

// Run shows one demo after the other, each in a process of its own.
func (*allDemos) Run(s *streams, c *connection) error {
	ctx, calm := interruptible(context.Background())
	defer calm()
	all := allResult{Demo: "all", Demos: map[string]json.RawMessage{}, OK: true}
	for i, name := range demoNames {
		if ctx.Err() != nil {
			all.OK, all.Error = false, briefly(context.Cause(ctx)).Error()
			break
		}
		if !s.json {
			fmt.Fprintf(s.out, "%d of %d: %s\n\n", i+1, len(demoNames), name)
		}
		result, err := runDemo(ctx, s, c, name)
		if err != nil {
			return err
		}
		var outcome struct{ OK bool }
		_ = json.Unmarshal(result, &outcome) // it comes from a JSON decoder's hands
		all.Demos[name] = result
		all.OK = all.OK && outcome.OK
		if !s.json {
			fmt.Fprintln(s.out)
		}
	}
	return s.outcome(all, all.OK)
}

// runDemo runs a demo, shows what it writes but its last line, and returns
// that. A demo is asked to end when ctx ends, and clears up.
func runDemo(ctx context.Context, s *streams, c *connection, name string) (json.RawMessage, error) {
	cmd, err := c.child("demo " + name)
	if err != nil {
		return nil, exitWith(exitFailed, "%w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, exitWith(exitFailed, "%w", err)
	}
	cmd.Stderr = s.err
	crew.OwnGroup(cmd) // the signal comes from this process
	if err := cmd.Start(); err != nil {
		return nil, exitWith(exitFailed, "demo %s: %w", name, err)
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(os.Interrupt) })()
	last, err := passLines(s, out)
	failed := cmd.Wait()
	if err != nil {
		return nil, exitWith(exitFailed, "demo %s: %w", name, err)
	}
	if !json.Valid(last) { // it has said why
		var ended *exec.ExitError
		if errors.As(failed, &ended) && ended.ExitCode() > 0 {
			return nil, silently(ended.ExitCode())
		}
		return nil, exitWith(exitFailed, "demo %s did not tell how it went: %v", name, failed)
	}
	return last, nil
}

// passLines copies all lines but the last, which it returns.
func passLines(s *streams, from io.Reader) (last []byte, err error) {
	lines := bufio.NewScanner(from)
	for first := true; lines.Scan(); first = false {
		if !first && !s.json {
			fmt.Fprintf(s.out, "%s\n", last)
		}
		last = append([]byte(nil), lines.Bytes()...)
	}
	return last, lines.Err()
}
