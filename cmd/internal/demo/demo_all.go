package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

type allDemos struct{}

// allResult is the last line of all demos.
type allResult struct {
	Demo  string                     `json:"demo"`
	Demos map[string]json.RawMessage `json:"demos"` // their own last lines
	Error string                     `json:"error,omitempty"`
	OK    bool                       `json:"ok"`
}

// Run shows one demo after the other, in the order of the README. One that
// fails does not keep the others from being shown, unless no server answers.
func (*allDemos) Run(s *term.Streams, c *conn.Connection, v *DemoVerbs) error {
	ctx, calm := term.Interruptible(context.Background())
	defer calm()
	demos := []struct {
		name string
		verb interface {
			Run(s *term.Streams, c *conn.Connection) error
		}
	}{{"stock", &v.Stock}, {"batch", &v.Batch}, {"election", &v.Election}, {"queue", &v.Queue}}
	all, status := allResult{Demo: "all", Demos: map[string]json.RawMessage{}, OK: true}, term.ExitOK
	for i, demo := range demos {
		if ctx.Err() != nil {
			all.OK, all.Error = false, term.Briefly(context.Cause(ctx)).Error()
			break
		}
		if !s.JSON {
			fmt.Fprintf(s.Out, "%d of %d: %s\n\n", i+1, len(demos), demo.name)
		}
		out := &allButLast{to: s.Out}
		own := &term.Streams{In: s.In, Out: out, Err: s.Err, JSON: s.JSON, Account: term.Account{Demo: demo.name}}
		err := demo.verb.Run(own, c)
		code := own.Finish(err, conn.Hint)
		if !own.Told {
			why := fmt.Sprint("it did not tell how it went: ", term.Briefly(err))
			object := map[string]any{"demo": demo.name, "ok": false, "status": code, "error": why}
			if err := term.WriteJSON(out, object); err != nil {
				return err
			}
		}
		all.Demos[demo.name] = out.last
		all.OK = all.OK && code == term.ExitOK
		if !s.JSON {
			fmt.Fprintln(s.Out)
		}
		if code == term.ExitUnavailable {
			status, all.Error = code, "no session with the servers"
			break
		}
	}
	if err := outcome(s, all, all.OK); err == nil || status == term.ExitOK {
		return err
	}
	return term.Silently(status)
}

// allButLast passes lines on, except the last one so far.
type allButLast struct {
	to   io.Writer
	last []byte
}

func (a *allButLast) Write(p []byte) (int, error) {
	a.last = append(a.last, p...)
	if at := bytes.LastIndexByte(bytes.TrimSuffix(a.last, []byte("\n")), '\n'); at >= 0 {
		if _, err := a.to.Write(a.last[:at+1]); err != nil {
			return 0, err
		}
		a.last = a.last[at+1:]
	}
	return len(p), nil
}
