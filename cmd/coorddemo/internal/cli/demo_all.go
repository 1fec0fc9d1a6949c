package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/zkcoord/zkcoord/cmd/coorddemo/internal/self"
)

type allDemos struct{}

// demoNames are the demos in the order of the README.
var demoNames = []string{"stock", "batch", "election", "queue"}

// allResult is the last line of all demos.
type allResult struct {
	Demo  string                     `json:"demo"`
	Demos map[string]json.RawMessage `json:"demos"` // their own last lines
	OK    bool                       `json:"ok"`
}

// Run shows one demo after the other, each in a process of its own.
func (*allDemos) Run(s *streams, c *connection) error {
	all := allResult{Demo: "all", Demos: map[string]json.RawMessage{}, OK: true}
	for i, name := range demoNames {
		if !s.json {
			fmt.Fprintf(s.out, "%d of %d: %s\n\n", i+1, len(demoNames), name)
		}
		result, err := runDemo(s, c, name)
		if err != nil {
			return exitWith(exitFailed, "demo %s: %w", name, err)
		}
		var outcome struct{ OK bool }
		if json.Unmarshal(result, &outcome) != nil {
			result = json.RawMessage("null")
		}
		all.Demos[name] = result
		all.OK = all.OK && outcome.OK
		if !s.json {
			fmt.Fprintln(s.out)
		}
	}
	return s.outcome(all, all.OK)
}

// runDemo runs a demo, shows what it writes but its last line, and returns that.
func runDemo(s *streams, c *connection, name string) (json.RawMessage, error) {
	args := []string{"demo", name, "--connect-timeout", c.ConnectTimeout.String(), "--dialect", c.Dialect}
	if c.ZK != "" {
		args = append(args, "--zk", c.ZK)
	}
	if c.SessionTimeout != 0 {
		args = append(args, "--session-timeout", c.SessionTimeout.String())
	}
	cmd, err := self.Command(args...)
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = s.err
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	last, err := passLines(s, out)
	_ = cmd.Wait() // its last line tells how it went
	return last, err
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
