//go:build linux || darwin || freebsd || openbsd

package cmdtest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// Process is a running coorddemo.
type Process struct {
	t      *testing.T
	cmd    *exec.Cmd
	In     io.WriteCloser
	Lines  chan string // of its standard output
	Stderr buffer
	Exited chan struct{}
}

// raced reports whether this binary has the race detector.
var raced = func() bool {
	build, _ := debug.ReadBuildInfo()
	return slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}()

func Start(t *testing.T, args ...string) *Process {
	t.Helper()
	return StartAs(t, exec.Command(Coorddemo(t), args...))
}

func StartAs(t *testing.T, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{t: t, cmd: cmd, Lines: make(chan string, 10_000), Exited: make(chan struct{})}
	cmd.Env = append(Environment(), cmd.Env...)
	var err error
	p.In, err = cmd.StdinPipe()
	require.NoError(t, err)
	// With a pipe of our own Wait does not wait for other processes that have
	// it.
	read, write, err := os.Pipe()
	require.NoError(t, err)
	readErr, writeErr, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = write, writeErr
	require.NoError(t, cmd.Start())
	_ = write.Close()
	var readers sync.WaitGroup
	readers.Go(func() {
		defer close(p.Lines)
		for lines := bufio.NewScanner(read); lines.Scan(); {
			p.Lines <- lines.Text()
		}
	})
	stderrEnded, words := make(chan struct{}), &lastWords{to: &p.Stderr, heard: make(chan struct{})}
	readers.Go(func() {
		defer close(stderrEnded)
		_, _ = io.Copy(words, readErr)
	})
	go func() {
		_ = cmd.Wait()
		_, _ = writeErr.WriteString(endOfWords) // behind all that the process wrote
		_ = writeErr.Close()
		<-words.heard
		select { // the guard's last words; unless a background process keeps the pipe
		case <-stderrEnded:
		case <-time.After(time.Second):
		}
		close(p.Exited)
	}()
	t.Cleanup(func() {
		_ = p.In.Close()
		_ = cmd.Process.Signal(syscall.SIGTERM) // it releases what it holds
		select {
		case <-p.Exited:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-p.Exited
		}
		readers.Wait()
		_, _ = read.Close(), readErr.Close()
		if t.Failed() {
			t.Logf("coorddemo %q wrote to stderr:\n%s", cmd.Args[1:], p.Stderr.String())
		}
	})
	return p
}

// endOfWords is written to a standard error behind a process's last words.
const endOfWords = "\x00"

// lastWords passes on what it is given, and reports the mark behind the last
// words instead. However slow the reader is, it has read them by then.
type lastWords struct {
	to    io.Writer
	heard chan struct{}
	once  sync.Once
}

func (l *lastWords) Write(p []byte) (int, error) {
	words := bytes.ReplaceAll(p, []byte(endOfWords), nil)
	_, err := l.to.Write(words)
	if len(words) < len(p) {
		l.once.Do(func() { close(l.heard) })
	}
	return len(p), err
}

// Exit waits for the process's end and returns its status, 128+n for a signal.
func (p *Process) Exit() int {
	p.t.Helper()
	zktest.Receive(p.t, Soon, p.Exited, "the end of coorddemo %q", p.cmd.Args[1:])
	state := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if state.Signaled() {
		return 128 + int(state.Signal())
	}
	return state.ExitStatus()
}

// Ends waits for the process's end, with this status and such words on its
// standard error.
func (p *Process) Ends(status int, says ...string) {
	p.t.Helper()
	require.Equal(p.t, status, p.Exit(), "%q", p.cmd.Args[1:])
	for _, text := range says {
		require.Contains(p.t, p.Stderr.String(), text, "%q", p.cmd.Args[1:])
	}
}

// Gives is the output of a process that ends with this status.
func (p *Process) Gives(status int) string {
	p.t.Helper()
	p.Ends(status)
	return p.Output()
}

// Begun waits until the command writes a line.
func (p *Process) Begun() *Process {
	p.t.Helper()
	p.Line()
	return p
}

// EndsBy sends a signal, and waits for the end with this status.
func (p *Process) EndsBy(s syscall.Signal, status int) {
	p.t.Helper()
	p.Signal(s)
	p.Ends(status)
}

// InLine waits until so many stand in the line at path.
func (p *Process) InLine(w *zktest.World, path string, n int) *Process {
	p.t.Helper()
	AwaitContenders(p.t, w.Admin(), path, n)
	return p
}

// LetGo ends the input, and with it a command that reads until then.
func (p *Process) LetGo(status int) {
	p.t.Helper()
	require.NoError(p.t, p.In.Close())
	p.Ends(status)
}

func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

func (p *Process) Line() string {
	p.t.Helper()
	select {
	case line, ok := <-p.Lines:
		if !ok {
			<-p.Exited
			require.FailNow(p.t, "no more output", "%s", p.Stderr.String())
		}
		return line
	case <-time.After(Soon):
		require.FailNow(p.t, "no output", "%s", p.Stderr.String())
	}
	panic("unreachable")
}

// Output is what is left of the standard output at the process's end.
func (p *Process) Output() string {
	p.t.Helper()
	p.Exit()
	var all []string
	for line := range p.Lines {
		all = append(all, line)
	}
	return strings.Join(all, "\n")
}

// Number reads one number from the output, such as a process id.
func (p *Process) Number() int {
	p.t.Helper()
	var n int
	line := p.Line()
	_, err := fmt.Sscan(line, &n)
	require.NoError(p.t, err, line)
	return n
}

func (p *Process) Pid() int { return p.cmd.Process.Pid }

// On starts coorddemo on a world's servers.
func On(t *testing.T, w *zktest.World, args ...string) *Process {
	t.Helper()
	return Start(t, append(Target(w), args...)...)
}

// buffer may be written and read concurrently.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Alive reports whether a process lives; a zombie does not.
func Alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		_, statErr := os.Stat("/proc/self/stat")
		return statErr != nil && unix.Kill(pid, 0) == nil
	}
	state := stat[bytes.LastIndexByte(stat, ')')+2]
	return state != 'Z' && state != 'X'
}

func RequireGone(t *testing.T, pid int) {
	t.Helper()
	zktest.Eventually(t, Soon, func() bool { return !Alive(pid) }, "process %d ends", pid)
}

// Ask has the script ask and returns what held says, and the status.
func (p *Process) Ask() (says, status string) {
	p.t.Helper()
	_, err := p.In.Write([]byte("?\n"))
	require.NoError(p.t, err)
	return p.Line(), p.Line()
}

// Last is the demo's last line of output.
func (p *Process) Last() string {
	lines := strings.Split(p.Output(), "\n")
	return lines[len(lines)-1]
}
