//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// mainVariable makes the test binary be the program, under the name that it
// says.
const mainVariable = "COORDDEMO_TEST_MAIN"

// soon bounds waits for what should happen at once. It is patience for a busy
// machine, not a promise.
const soon = 30 * time.Second

func TestMain(m *testing.M) {
	if name := os.Getenv(mainVariable); name != "" {
		os.Exit(Main(append([]string{name}, os.Args[1:]...)))
	}
	zktest.Main(m)
}

// environment is that of a coorddemo process under test.
func environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "ZK_SERVERS=") || strings.HasPrefix(v, "GORACE=") || strings.HasPrefix(v, "COLUMNS=")
	})
	// The race detector makes a process sleep for a second at its end, unless
	// told otherwise.
	return append(env, mainVariable+"=coorddemo", "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
}

// process is a running coorddemo.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string // of its standard output
	stderr buffer
	exited chan struct{}
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startAs(t, exec.Command(os.Args[0], args...))
}

func startAs(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, lines: make(chan string, 10_000), exited: make(chan struct{})}
	cmd.Env = append(environment(), cmd.Env...)
	var err error
	p.in, err = cmd.StdinPipe()
	require.NoError(t, err)
	// A pipe of our own, so that Wait does not wait for other processes that
	// have it.
	read, write, err := os.Pipe()
	require.NoError(t, err)
	readErr, writeErr, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = write, writeErr
	require.NoError(t, cmd.Start())
	_ = write.Close()
	var readers sync.WaitGroup
	readers.Go(func() {
		defer close(p.lines)
		for lines := bufio.NewScanner(read); lines.Scan(); {
			p.lines <- lines.Text()
		}
	})
	stderrEnded, words := make(chan struct{}), &lastWords{to: &p.stderr, heard: make(chan struct{})}
	readers.Go(func() {
		defer close(stderrEnded)
		_, _ = io.Copy(words, readErr)
	})
	go func() {
		_ = cmd.Wait()
		_, _ = writeErr.WriteString(endOfWords) // behind all that the process wrote
		_ = writeErr.Close()
		<-words.heard
		select { // those of the guard; unless a background process keeps the pipe
		case <-stderrEnded:
		case <-time.After(time.Second):
		}
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = p.in.Close()
		<-p.exited
		readers.Wait()
		_, _ = read.Close(), readErr.Close()
		if t.Failed() {
			t.Logf("coorddemo %q wrote to stderr:\n%s", cmd.Args[1:], p.stderr.String())
		}
	})
	return p
}

// endOfWords is written to a standard error behind a process's last words.
const endOfWords = "\x00"

// lastWords passes on what it is given, but for the mark behind the last words,
// of which it tells. However slow the reader is, it has read them by then.
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

// exit waits for the process's end and returns its status, 128+n for a signal.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(soon):
		require.FailNow(p.t, "coorddemo does not end", "%q", p.cmd.Args[1:])
	}
	state := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if state.Signaled() {
		return 128 + int(state.Signal())
	}
	return state.ExitStatus()
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

func (p *process) line() string {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			<-p.exited
			require.FailNow(p.t, "no more output", "%s", p.stderr.String())
		}
		return line
	case <-time.After(soon):
		require.FailNow(p.t, "no output", "%s", p.stderr.String())
	}
	panic("unreachable")
}

// output is what is left of the standard output at the process's end.
func (p *process) output() string {
	p.t.Helper()
	p.exit()
	var all []string
	for line := range p.lines {
		all = append(all, line)
	}
	return strings.Join(all, "\n")
}

// number reads one number from the output, such as a process id.
func (p *process) number() int {
	p.t.Helper()
	var n int
	line := p.line()
	_, err := fmt.Sscan(line, &n)
	require.NoError(p.t, err, line)
	return n
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// target names a world's servers, and the session time-out of the test servers.
func target(w *zktest.World) []string {
	return []string{"--zk", w.ConnectString(), "--session-timeout", zktest.SessionTimeout.String()}
}

// on starts coorddemo on a world's servers.
func on(t *testing.T, w *zktest.World, args ...string) *process {
	t.Helper()
	return start(t, append(target(w), args...)...)
}

// buffer may be written and read at once.
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

// alive reports whether a process lives; a zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		_, statErr := os.Stat("/proc/self/stat")
		return statErr != nil && unix.Kill(pid, 0) == nil
	}
	state := stat[bytes.LastIndexByte(stat, ')')+2]
	return state != 'Z' && state != 'X'
}

func requireGone(t *testing.T, pid int) {
	t.Helper()
	zktest.Eventually(t, soon, func() bool { return !alive(pid) }, "process %d ends", pid)
}

// awaitContenders waits until so many stand in the line at path.
func awaitContenders(t *testing.T, conn *zk.Conn, path string, n int) {
	t.Helper()
	zktest.Eventually(t, soon, func() bool {
		names, _, err := conn.Children(path)
		return len(contendersOf(names)) == n && (err == nil || n == 0)
	}, "%d contenders at %s", n, path)
}

// contendersOf leaves out a leader's notice, which has no number.
func contendersOf(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "-") })
}

// silentServer accepts connections and never answers.
func silentServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String() // the kernel accepts; no process takes the connections from it
}

// closedPort is an address that refuses connections.
func closedPort(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})) // taken, but not listening
	name, err := unix.Getsockname(fd)
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
}

func parse[T any](t testing.TB, line string) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal([]byte(line), &v), line)
	return v
}

// inTime checks that what f measures takes less than limit. There are three
// tries, as a busy machine is late now and then, and a mistake always.
func inTime(t *testing.T, limit time.Duration, f func() (took time.Duration)) {
	t.Helper()
	var all []time.Duration
	for len(all) < 3 {
		took := f()
		if took < limit {
			return
		}
		all = append(all, took)
	}
	t.Errorf("took %v, and never less than %v", all, limit)
}
