package run

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// ordinary has a program run as a user that is not root, and beside it one by
// which that user becomes root, as by su.
type ordinary struct{ program, su string }

func newOrdinary(t *testing.T) ordinary {
	t.Helper()
	setpriv, err := exec.LookPath("setpriv")
	if os.Geteuid() != 0 || err != nil {
		t.Skip("left out: needs root, to make a file set-user-ID, and setpriv")
	}
	dir, err := os.MkdirTemp("", "coorddemo-") // not t.TempDir, which only its user may enter
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	var fs unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &fs))
	if fs.Flags&unix.ST_NOSUID != 0 {
		t.Skip("left out: files here cannot be set-user-ID")
	}
	o := ordinary{program: filepath.Join(dir, "coorddemo"), su: filepath.Join(dir, "su")}
	copyFile(t, o.program, cmdtest.Coorddemo(t), 0o755)
	copyFile(t, o.su, setpriv, 0o755|os.ModeSetuid)
	return o
}

func copyFile(t *testing.T, to, from string, mode os.FileMode) {
	t.Helper()
	program, err := os.ReadFile(from)
	require.NoError(t, err)
	zktest.WriteProgram(t, to, program, mode)
}

// lock starts coorddemo as that user. The command finds su as $SU.
func (o ordinary) lock(t *testing.T, w *zktest.World, cmd ...string) *cmdtest.Process {
	t.Helper()
	p := exec.Command(o.program, append(append(cmdtest.Target(w), "--session-timeout", cmdtest.Short.String(), "--json", "lock", w.Path("l"), "--"), cmd...)...)
	p.Dir = filepath.Dir(o.program)
	p.Env = []string{"SU=" + o.su + " --reuid=0"}
	p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return cmdtest.StartAs(t, p)
}

func TestACommandThatChangesItsUserIsReportedAtOnceAndInJSON(t *testing.T) {
	t.Parallel()
	o, w := newOrdinary(t), zktest.New(t, zktest.Embedded)
	p := o.lock(t, w, "sh", "-c", `exec $SU sh -c 'echo $$; exec cat'`)
	pid := p.Number()
	zktest.Eventually(t, cmdtest.Soon, func() bool { return strings.Contains(p.Stderr.String(), "runs as another user") }, "the message")
	require.True(t, cmdtest.Alive(pid))
	p.LetGo(0)
	require.EqualValues(t, []any{float64(pid)}, storyOf(t, p)["unstoppable"])
}

// storyOf is the line of JSON on standard error, where there are notes as well.
func storyOf(t *testing.T, p *cmdtest.Process) map[string]any {
	t.Helper()
	for line := range strings.Lines(p.Stderr.String()) {
		if strings.HasPrefix(line, "{") {
			return cmdtest.Parse[map[string]any](t, line)
		}
	}
	require.FailNow(t, "no JSON", p.Stderr.String())
	panic("unreachable")
}

func TestACommandOfAnotherUserIsReportedBeforeTheWait(t *testing.T) {
	t.Parallel()
	o, w := newOrdinary(t), zktest.New(t, zktest.Embedded)
	cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Busy)...).Begun()
	p := o.lock(t, w, o.su, "--reuid=0", "echo", "never")
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 2)
	require.Contains(t, p.Stderr.String(), "runs as another user")
	p.Signal(syscall.SIGTERM)
	require.Empty(t, p.Gives(143))
}

func TestWhatCannotBeStoppedKeepsTheLockUntilTheSessionEnds(t *testing.T) {
	t.Parallel()
	o, w := newOrdinary(t), zktest.New(t, zktest.Embedded)
	p := o.lock(t, w, "sh", "-c", `$SU sh -c 'echo $$; exec sleep 1000' & wait`)
	pid := p.Number()
	t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) })
	require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("l")).Exit())
	require.Equal(t, term.ExitLost, p.Exit())
	names, _, err := w.Admin().Children(w.Path("l"))
	require.NoError(t, err)
	require.Len(t, names, 1, "it was released, though something is running still")
	require.True(t, cmdtest.Alive(pid))
	require.EqualValues(t, []any{float64(pid)}, storyOf(t, p)["unstoppable"])
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 0)
}

func TestTheProcessesThatGuardHaveNamesAndGroupsOfTheirOwn(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), `echo $PPID; read -r _ _ _ r _ </proc/$PPID/stat; echo $r; cat`)...)
	name := filepath.Base(cmdtest.Coorddemo(t))
	for range 2 {
		pid := p.Number()
		words, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		require.NoError(t, err)
		called, _, _ := strings.Cut(string(words), "\x00")
		require.NotEqual(t, name, filepath.Base(called), "pidof finds it")
		short, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		require.NoError(t, err)
		require.NotEqual(t, name, strings.TrimSpace(string(short)), "killall finds it")
		group, err := unix.Getpgid(pid)
		require.NoError(t, err)
		require.Equal(t, pid, group)
	}
	p.LetGo(0)
}
