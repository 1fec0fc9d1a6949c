package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

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
	copyFile(t, o.program, os.Args[0], 0o755)
	copyFile(t, o.su, setpriv, 0o755|os.ModeSetuid)
	return o
}

func copyFile(t *testing.T, to, from string, mode os.FileMode) {
	t.Helper()
	source, err := os.Open(from)
	require.NoError(t, err)
	defer source.Close()
	copied, err := os.Create(to)
	require.NoError(t, err)
	_, err = io.Copy(copied, source)
	require.NoError(t, err)
	require.NoError(t, copied.Close())
	require.NoError(t, os.Chmod(to, mode))
}

// lock starts coorddemo as that user. The command finds su as $SU.
func (o ordinary) lock(t *testing.T, w *zktest.World, cmd ...string) *process {
	t.Helper()
	p := exec.Command(o.program, append(append(target(w), "--json", "lock", w.Path("l"), "--"), cmd...)...)
	p.Dir = filepath.Dir(o.program)
	p.Env = []string{"SU=" + o.su + " --reuid=0"}
	p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return startAs(t, p)
}

func TestACommandThatChangesItsUserIsReportedAtOnceAndInJSON(t *testing.T) {
	o, w := newOrdinary(t), zktest.New(t, zktest.Embedded)
	p := o.lock(t, w, "sh", "-c", `exec $SU sh -c 'echo $$; exec cat'`)
	pid := p.number()
	zktest.Eventually(t, soon, func() bool { return strings.Contains(p.stderr.String(), "runs as another user") }, "the message")
	require.True(t, alive(pid))
	require.NoError(t, p.in.Close())
	require.Equal(t, 0, p.exit())
	require.EqualValues(t, []any{float64(pid)}, storyOf(t, p)["unstoppable"])
}

// storyOf is the line of JSON on standard error, where there are notes as well.
func storyOf(t *testing.T, p *process) map[string]any {
	t.Helper()
	for line := range strings.Lines(p.stderr.String()) {
		if strings.HasPrefix(line, "{") {
			return parse[map[string]any](t, line)
		}
	}
	require.FailNow(t, "no JSON", p.stderr.String())
	panic("unreachable")
}

func TestACommandOfAnotherUserIsReportedBeforeTheWait(t *testing.T) {
	o, w := newOrdinary(t), zktest.New(t, zktest.Embedded)
	holder := on(t, w, sh(w.Path("l"), busy)...)
	holder.line()
	p := o.lock(t, w, o.su, "--reuid=0", "echo", "never")
	awaitContenders(t, w.Admin(), w.Path("l"), 2)
	require.Contains(t, p.stderr.String(), "runs as another user")
	p.signal(syscall.SIGTERM)
	require.Equal(t, 143, p.exit())
	require.Empty(t, p.output())
}

func TestWhatCannotBeStoppedKeepsTheLockUntilTheSessionEnds(t *testing.T) {
	o, w := newOrdinary(t), zktest.New(t, zktest.Embedded)
	p := o.lock(t, w, "sh", "-c", `$SU sh -c 'echo $$; exec sleep 1000' & wait`)
	pid := p.number()
	t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) })
	require.Equal(t, 0, on(t, w, "revoke", w.Path("l")).exit())
	require.Equal(t, exitLost, p.exit())
	names, _, err := w.Admin().Children(w.Path("l"))
	require.NoError(t, err)
	require.Len(t, names, 1, "it was released, though something is running still")
	require.True(t, alive(pid))
	require.EqualValues(t, []any{float64(pid)}, storyOf(t, p)["unstoppable"])
	awaitContenders(t, w.Admin(), w.Path("l"), 0)
}

func TestTheProcessesThatGuardHaveNamesAndGroupsOfTheirOwn(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, sh(w.Path("l"), `echo $PPID; read -r _ _ _ r _ </proc/$PPID/stat; echo $r; cat`)...)
	name := filepath.Base(os.Args[0])
	for range 2 {
		pid := p.number()
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
	require.NoError(t, p.in.Close())
	require.Equal(t, 0, p.exit())
}
