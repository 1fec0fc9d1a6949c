package guard

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

const headlessRole = "headless"

// It runs here since init has the first thread.
func init() {
	if os.Getenv(roleVariable) == headlessRole {
		runtime.LockOSThread()
		headlessMain()
	}
}

// headlessMain starts a process, prints its id, and ends its own first thread,
// while another waits.
func headlessMain() {
	job := exec.Command("sleep", "1000")
	if err := job.Start(); err != nil {
		panic(err)
	}
	fmt.Println(job.Process.Pid)
	go func() { _ = job.Wait() }()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
}

// A process whose first thread has ended looks like one that has ended, and is
// the parent of its children yet.
func TestTheChildrenOfAProcessWithoutItsFirstThreadAreReached(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+headlessRole)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	var child int
	_, err = fmt.Sscan(lines.Text(), &child)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = unix.Kill(child, unix.SIGKILL)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	session, err := unix.Getsid(0)
	require.NoError(t, err)
	zktest.Eventually(t, soon, func() bool {
		p, known := processOf(cmd.Process.Pid, session)
		return known && !p.lives
	}, "the first thread does not end")
	require.NoError(t, unix.Kill(child, 0), "the child lives")
	var reached []int
	eachDescendant(func(pid int) { reached = append(reached, pid) })
	require.Contains(t, reached, child)
	require.False(t, slices.Contains(reached, cmd.Process.Pid), "it does not live")
}
