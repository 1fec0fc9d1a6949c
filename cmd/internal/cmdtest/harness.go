//go:build linux || darwin || freebsd || openbsd

package cmdtest

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

// Target names a world's servers, and a session timeout that is long enough
// for a process to keep its holds on a busy machine.
func Target(w *zktest.World) []string { return lasting(w, 20*time.Second) }

func lasting(w *zktest.World, session time.Duration) []string {
	w.SetTimeout(20 * time.Second)
	return []string{"--zk", w.ConnectString(), "--session-timeout", session.String()}
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
