//go:build linux || darwin || freebsd || openbsd

package cmdtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
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

// Soon bounds waits for what should happen immediately. It is patience for a
// busy machine, not a promise.
const Soon = 30 * time.Second

// Main runs the tests of a package, or the program where the test binary
// was started as that.
func Main(m *testing.M, program func(args []string) int) {
	if name := os.Getenv(mainVariable); name != "" {
		os.Exit(program(append([]string{name}, os.Args[1:]...)))
	}
	// Programs wait more than they compute, so more tests run at a time than
	// there are processors.
	_ = flag.Set("test.parallel", "8")
	zktest.Main(m)
}

// Environment is the environment of a coorddemo process under test.
func Environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "ZK_SERVERS=") || strings.HasPrefix(v, "GORACE=") || strings.HasPrefix(v, "COLUMNS=")
	})
	// The race detector makes a process sleep for a second at its end, unless
	// configured otherwise.
	return append(env, mainVariable+"=coorddemo", "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
}

// Process is a running coorddemo.
type Process struct {
	t      *testing.T
	cmd    *exec.Cmd
	In     io.WriteCloser
	Lines  chan string // of its standard output
	Stderr buffer
	Exited chan struct{}
}

// programs builds the program as people have it, under both names, once for all
// the packages that one go command tests: in its folder, which it removes.
var programs = sync.OnceValues(func() (dir string, err error) {
	dir = filepath.Join(filepath.Dir(os.Args[0]), "..", "programs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", err
	}
	program := filepath.Join(dir, "zkcoord") // left alone if it is up to date
	build := exec.Command("go", "build", "-race=false", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program,
		"../../zkcoord")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as scripts/dist.sh has it: compiled once for both
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	if err := os.Symlink("zkcoord", filepath.Join(dir, "coorddemo")); !errors.Is(err, fs.ErrExist) {
		return dir, err
	}
	return dir, nil
})

func Built(t testing.TB) (dir string) {
	t.Helper()
	dir, err := programs()
	require.NoError(t, err)
	return dir
}

// Coorddemo is what the test starts as coorddemo: its own binary, that is, with
// the race detector if the test has it. As a process costs three times as much
// with it, five tests of six then start the program as people have it.
func Coorddemo(t testing.TB) string {
	t.Helper()
	if name := fnv.New32(); raced {
		_, _ = name.Write([]byte(t.Name()))
		if name.Sum32()%6 > 0 {
			return filepath.Join(Built(t), "coorddemo")
		}
	}
	return os.Args[0]
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

// Target names a world's servers, and a session timeout that is long enough
// for a process to keep its holds on a busy machine.
func Target(w *zktest.World) []string { return lasting(w, 20*time.Second) }

func lasting(w *zktest.World, session time.Duration) []string {
	w.SetTimeout(20 * time.Second)
	return []string{"--zk", w.ConnectString(), "--session-timeout", session.String()}
}

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

// AwaitContenders waits until so many stand in the line at path.
func AwaitContenders(t *testing.T, conn *zk.Conn, path string, n int) {
	t.Helper()
	zktest.Eventually(t, Soon, func() bool {
		names, _, err := conn.Children(path)
		return len(ContendersOf(names)) == n && (err == nil || n == 0)
	}, "%d contenders at %s", n, path)
}

// ContendersOf leaves out a leader's notice, which has no number.
func ContendersOf(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "-") })
}

// SilentServer accepts connections and never answers.
func SilentServer(t *testing.T) string {
	t.Helper()
	l := Must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String() // the kernel accepts; no process takes the connections from it
}

// ClosedPort is an address that refuses connections.
func ClosedPort(t *testing.T) string {
	t.Helper()
	fd := Must(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0))
	t.Cleanup(func() { _ = unix.Close(fd) })
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})) // taken, but not listening
	return fmt.Sprintf("127.0.0.1:%d", Must(unix.Getsockname(fd)).(*unix.SockaddrInet4).Port)
}

func Parse[T any](t testing.TB, line string) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal([]byte(line), &v), line)
	return v
}

// InTime checks that what f measures takes less than limit. There are three
// tries, as a busy machine is late now and then, and a mistake always.
func InTime(t *testing.T, limit time.Duration, f func() (took time.Duration)) {
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
