package interop

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed/control"
)

// Tests as users of other clients would write them, against the command's
// server and its control. They show known faults of those clients: each passes
// with the fault, and fails without.

// command is the program, compiled once, in the folder of this binary.
var command = sync.OnceValues(func() (string, error) {
	program := filepath.Join(filepath.Dir(os.Args[0]), "zkcoord")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", program, "./cmd/zkcoord")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compiling the command: %w\n%s", err, out)
	}
	return program, nil
})

// startServer returns what the command's server writes.
func startServer(t *testing.T) (connect, url string) {
	t.Helper()
	program, err := command()
	require.NoError(t, err)
	server := Program{program}.Start(t, "server", "--addr", "127.0.0.1:0", "--control", "127.0.0.1:0")
	return server.Line(answersWithin), server.Line(answersWithin)
}

// showsFault runs a program with its fault, and without.
func showsFault(t *testing.T, p Program) {
	t.Helper()
	for status, args := range [][]string{nil, {"without"}} {
		t.Run(fmt.Sprint("status ", status), func(t *testing.T) {
			connect, url := startServer(t)
			require.Equal(t, status, p.Start(t, append([]string{connect, url}, args...)...).ExitCode(answersWithin))
		})
	}
}

func TestAKazooCreateWhoseReplyIsLostMakesTwoNodes(t *testing.T) {
	t.Parallel()
	showsFault(t, Python(t, "lost_reply.py"))
}

func TestACuratorMutexIsHeldOverTheEndOfItsSession(t *testing.T) {
	t.Parallel()
	showsFault(t, Java(t, "LostSession"))
}

func TestAZkLockThatFailsStaysInLineAndKeepsAllOthersOut(t *testing.T) {
	t.Parallel()
	for _, faulty := range []bool{true, false} {
		err := failedLockStaysInLine(t, faulty)
		require.Equal(t, faulty, err == nil, "%v", err)
	}
}

// failedLockStaysInLine drops a request of a waiter, whose Lock fails then. It
// returns nil if its node stays in line when the holder has gone.
func failedLockStaysInLine(t *testing.T, faulty bool) error {
	connect, url := startServer(t)
	holder, waiter := zktest.Connect(t, connect, 10*time.Second), zktest.Connect(t, connect, 10*time.Second)
	held := zk.NewLock(holder, "/lock", zk.WorldACL(zk.PermAll))
	waits := zk.NewLock(waiter, "/lock", zk.WorldACL(zk.PermAll))
	require.NoError(t, held.Lock())
	faults := control.NewClient(url)
	if faulty {
		_, err := faults.Inject(t.Context(), control.Fault{
			Do: control.Drop, Ops: []string{"getData"}, PathPrefix: "/lock/", Times: 1,
			Sessions: []control.Session{control.Session(waiter.SessionID())},
		})
		require.NoError(t, err)
	}
	begun, locked := inLine(t, faults), make(chan error, 1)
	go func() { locked <- waits.Lock() }()
	zktest.Eventually(t, answersWithin, func() bool { return inLine(t, faults) > begun }, "it is in line")
	var failed error
	if faulty {
		failed = zktest.Receive(t, answersWithin, locked, "it fails")
	}
	require.NoError(t, held.Unlock())
	if !faulty {
		failed = zktest.Receive(t, answersWithin, locked, "it has its turn")
	}
	if left := inLine(t, faults); failed == nil || left != 1 {
		return errors.Join(failed, fmt.Errorf("%d in line", left))
	}
	return nil
}

func inLine(t *testing.T, faults *control.Client) int {
	t.Helper()
	nodes, err := faults.Nodes(t.Context(), "/lock/")
	require.NoError(t, err)
	return len(nodes)
}
