package crew

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

const (
	// mostFailures is how many processes may end by themselves, with an error,
	// before the demonstration gives up.
	mostFailures = 5
	// leaveWithin is how long processes have to end when asked to.
	leaveWithin = 5 * time.Second
)

// Crew is the processes of a demonstration, which send messages of type M. One
// goroutine calls its methods.
type Crew[M any] struct {
	members  map[*Member]bool
	events   chan Event[M]
	started  int
	failures int
}

// Member is one process.
type Member struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	killed bool
}

// Event is a message from a member or, if Message is nil, the member's end.
type Event[M any] struct {
	From    *Member
	Message *M
	Err     error // of the end
}

// Audience sees what happens. One goroutine calls its methods.
type Audience interface {
	Tell(format string, args ...any)
	Show(done, all int) // how far it has come
	Mark(done int)      // that something happened there
}

// New returns a crew without members.
func New[M any]() *Crew[M] {
	return &Crew[M]{members: map[*Member]bool{}, events: make(chan Event[M])}
}

// Start runs a further process. command gets its number, from 1; standard input
// and output are set here.
func (c *Crew[M]) Start(command func(number int) (*exec.Cmd, error)) (*Member, error) {
	c.started++
	cmd, err := command(c.started)
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// A pipe of our own: Wait would close the command's pipe before it is read
	// to its end.
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = theirs
	OwnGroup(cmd)
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		_, _ = out.Close(), in.Close()
		return nil, fmt.Errorf("starting a process: %w", err)
	}
	m := &Member{cmd: cmd, in: in}
	c.members[m] = true
	go c.listen(m, out)
	return m, nil
}

// listen passes on a member's messages, and its end after the last of them.
func (c *Crew[M]) listen(from *Member, out io.ReadCloser) {
	defer out.Close()
	for values := json.NewDecoder(bufio.NewReader(out)); ; {
		message := new(M)
		if values.Decode(message) != nil {
			break
		}
		c.events <- Event[M]{From: from, Message: message}
	}
	_, _ = io.Copy(io.Discard, out) // of a member whose messages cannot be read
	c.events <- Event[M]{From: from, Err: from.cmd.Wait()}
}

// Events passes on the members' messages and ends. The receiver of an end calls
// Ended.
func (c *Crew[M]) Events() <-chan Event[M] { return c.events }

// Until passes the members' events to hear, until over reports true, hear
// fails, or ctx ends, which is an error.
func (c *Crew[M]) Until(ctx context.Context, over func() bool, hear func(Event[M]) error) error {
	for !over() {
		select {
		case e := <-c.events:
			if err := hear(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Ended removes a member whose end was received. It fails when too many have
// ended by themselves.
func (c *Crew[M]) Ended(e Event[M]) error {
	delete(c.members, e.From)
	if e.From.killed {
		return nil
	}
	c.failures++
	if c.failures > mostFailures {
		return fmt.Errorf("too many processes failed; the last one: %w", e.Failure())
	}
	return nil
}

// Failure returns why a member ended by itself.
func (e Event[M]) Failure() error {
	if e.Err == nil {
		return fmt.Errorf("process %d ended before it was told to", e.From.PID())
	}
	return fmt.Errorf("process %d: %w", e.From.PID(), e.Err)
}

// Members are the processes that were started and not removed since.
func (c *Crew[M]) Members() map[*Member]bool { return c.members }

// Close asks all members to end, kills the ones that have not after
// leaveWithin, and returns when all have ended. Their last messages go to hear.
func (c *Crew[M]) Close(hear func(*M)) {
	for m := range c.members {
		_ = m.in.Close()
	}
	for late := time.After(leaveWithin); len(c.members) > 0; {
		select {
		case e := <-c.events:
			if e.Message == nil {
				delete(c.members, e.From)
			} else {
				hear(e.Message)
			}
		case <-late:
			for m := range c.members {
				m.Kill()
			}
		}
	}
}

// PID is the process's number.
func (m *Member) PID() int { return m.cmd.Process.Pid }

// Killed reports whether Kill was called.
func (m *Member) Killed() bool { return m.killed }

// Kill kills the process with SIGKILL.
func (m *Member) Kill() {
	m.killed = true
	_ = m.cmd.Process.Kill() // it has ended already, or does so now
}

// Say writes a line to the process. If it has ended, that shows in the events.
func (m *Member) Say(line any) { fmt.Fprintln(m.in, line) }

// Tell writes a message to the parent, in one write: it arrives whole or not at
// all.
func Tell(out io.Writer, message any) {
	data, err := json.Marshal(message)
	if err != nil {
		panic(err) // messages are made of numbers and strings
	}
	_, _ = out.Write(append(data, '\n')) // if the parent is gone, so is this process soon
}

// Orders returns a context that ends when in does, since the parent has closed
// it or is gone, and the lines that the parent writes.
func Orders(
	parent context.Context, in io.Reader,
) (ctx context.Context, orders <-chan string, cancel context.CancelFunc) {
	ctx, cancel = context.WithCancel(parent)
	lines := make(chan string)
	go func() {
		defer cancel()
		for from := bufio.NewScanner(in); from.Scan(); {
			select {
			case lines <- from.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, lines, cancel
}
