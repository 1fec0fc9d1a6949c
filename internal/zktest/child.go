package zktest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"
)

// childVariable names the main function for a re-executed test binary to run.
const childVariable = "ZKTEST_CHILD"

var childMains = map[string]func(args []string){}

// RegisterChild makes main known as the main function of child processes of
// that name. Call it in an init function, or in TestMain before Main. main
// talks to the test line by line on stdin and stdout; its stderr goes to the
// test's log.
func RegisterChild(name string, main func(args []string)) {
	if childMains[name] != nil {
		panic("zktest: child " + name + " is registered twice")
	}
	childMains[name] = main
}

// runChild runs the child's main function and ends the process if this is a
// child process.
func runChild() {
	name, ok := os.LookupEnv(childVariable)
	if !ok {
		return
	}
	main := childMains[name]
	if main == nil {
		fmt.Fprintf(os.Stderr, "zktest: no child %q; there are %v\n", name, slices.Sorted(maps.Keys(childMains)))
		os.Exit(64)
	}
	main(os.Args[1:])
	os.Exit(0)
}

// ExitOn ends a child's process on an error.
func ExitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// ChildProcess is a process that runs a registered main function from the
// test's own binary. It ends with the test.
type ChildProcess struct {
	t     testing.TB
	name  string
	proc  *process
	in    io.WriteCloser
	lines chan string
	errs  lockedBuffer
}

// Child starts a child process. It needs Linux; elsewhere the test is skipped.
func Child(t testing.TB, name string, args ...string) *ChildProcess {
	t.Helper()
	if !canRunReal {
		t.Skip("left out: child processes need Linux")
	}
	c := &ChildProcess{t: t, name: name, lines: make(chan string, 1024)}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childVariable+"="+name)
	cmd.Stderr = &c.errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatalf("child %s: %v", name, err)
	}
	// A pipe of our own: one made by exec would be closed at the child's end,
	// with lines still in it.
	out, childOut, err := os.Pipe()
	if err != nil {
		t.Fatalf("child %s: %v", name, err)
	}
	cmd.Stdout = childOut
	c.in = in
	c.proc, err = start(cmd)
	_ = childOut.Close()
	if err != nil {
		_ = out.Close()
		t.Fatalf("child %s: %v", name, err)
	}
	go c.read(out)
	t.Cleanup(c.cleanUp)
	return c
}

func (c *ChildProcess) read(out *os.File) {
	defer close(c.lines)
	defer out.Close()
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		c.lines <- scanner.Text()
	}
}

func (c *ChildProcess) cleanUp() {
	c.proc.kill()
	_ = c.in.Close()
	for range c.lines { // lets the reader end
	}
	if text := c.errs.String(); text != "" && c.t.Failed() {
		c.t.Logf("child %s (process %d) wrote to stderr:\n%s", c.name, c.PID(), text)
	}
}

// Send writes one line to the child's stdin. It fails the test if the child is
// gone.
func (c *ChildProcess) Send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatalf("child %s: sending %q: %v", c.name, line, err)
	}
}

// CloseStdin signals to the child that no more lines will come.
func (c *ChildProcess) CloseStdin() { _ = c.in.Close() }

// Line returns the next line the child wrote to stdout. It fails the test if
// none comes in time, or at the child's end.
func (c *ChildProcess) Line(within time.Duration) string {
	c.t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case line, ok := <-c.lines:
		if ok {
			return line
		}
		Receive(c.t, within, c.proc.done, "child %s closed its output and goes on", c.name)
		c.t.Fatalf("child %s ended (%v) without another line; its stderr:\n%s", c.name, c.proc.cmd.ProcessState,
			c.errs.String())
	case <-timer.C:
		c.t.Fatalf("child %s: no line within %v; its stderr:\n%s", c.name, within, c.errs.String())
	}
	return ""
}

// Lines gives the child's further lines, and is closed after the last. Use
// either Lines or Line at a time.
func (c *ChildProcess) Lines() <-chan string { return c.lines }

// PID returns the process id.
func (c *ChildProcess) PID() int { return c.proc.pid() }

// Kill ends the child by SIGKILL and returns when it is gone.
func (c *ChildProcess) Kill() { c.proc.kill() }

// Stop halts the child by SIGSTOP and returns when it stands still.
func (c *ChildProcess) Stop() error { return c.proc.stop() }

// Continue ends a Stop.
func (c *ChildProcess) Continue() error { return c.proc.cont() }

// Exited is closed when the child has ended.
func (c *ChildProcess) Exited() <-chan struct{} { return c.proc.done }

// ExitCode waits for the child's end and returns its exit status, -1 if a
// signal ended it.
func (c *ChildProcess) ExitCode(within time.Duration) int {
	c.t.Helper()
	Receive(c.t, within, c.proc.done, "child %s ends", c.name)
	return c.proc.cmd.ProcessState.ExitCode()
}

// lockedBuffer is a buffer that exec may write to while the test reads it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
