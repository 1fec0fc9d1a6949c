//go:build linux || darwin || freebsd || openbsd

package run

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestAWaitInVainIsReportedInJSON(t *testing.T) {
	w := cmdtest.World(t)
	holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).Begun()
	require.Equal(t, 0, cmdtest.On(t, w, "barrier", "set", w.Path("b")).Exit())
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{term.ExitBusy, "try " + w.Path("l") + `: held by "sh `, cmdtest.Sh(w.Path("l"), "echo never", "--try")},
		{term.ExitTimeout, "no turn", cmdtest.Sh(w.Path("l"), "echo never", "--timeout", "0.3")},
		{127, "command not found", []string{"lock", w.Path("l"), "--", "no-such-command"}},
		{term.ExitTimeout, "no item", []string{"queue", "receive", "--timeout", "0.3", w.Path("q"), "--", "echo", "never"}},
		{term.ExitTimeout, "no item", []string{"queue", "take", "--timeout", "0.3", w.Path("q")}},
		{term.ExitFailed, "is empty", []string{"queue", "peek", w.Path("q")}},
		{term.ExitTimeout, "is closed", []string{"barrier", "wait", "--timeout", "0.3", w.Path("b")}},
		{term.ExitTimeout, "not all 2 came", []string{"doublebarrier", "-n", "2", "--timeout", "0.3", w.Path("d"), "--", "true"}},
	} {
		late := slices.Index(c.args, "0.3")
		cmdtest.AwaitOutcome(t, late >= 0, func(timeout string) *cmdtest.Process {
			args := append([]string{"--json"}, c.args...)
			if late >= 0 {
				args[late+1] = timeout
			}
			return cmdtest.On(t, w, args...)
		}, func(p *cmdtest.Process) bool {
			require.Equal(t, c.status, p.Exit(), "%q", c.args)
			objects := cmdtest.Told(t, p.Output()+"\n"+p.Stderr.String())
			require.Len(t, objects, 1, "%q", c.args)
			story := objects[0]
			require.Contains(t, w.Path("l")+w.Path("q")+w.Path("b")+w.Path("d"), story["path"])
			require.EqualValues(t, c.status, story["status"])
			require.Contains(t, story["error"], c.says)
			require.Contains(t, p.Stderr.String(), "coorddemo: ", "there is a message for people as well")
			return true
		})
	}
	holder.LetGo(5)
}

func TestAnInterruptedWaitIsReportedInJSON(t *testing.T) {
	w := cmdtest.World(t)
	for _, args := range [][]string{
		{"queue", "take", w.Path("q")},
		{"queue", "receive", w.Path("q"), "--", "true"},
	} {
		p := cmdtest.On(t, w, append([]string{"--json"}, args...)...).InLine(w, w.Path("q/consumers"), 1)
		requireInterruptTold(t, p)
	}
	p := cmdtest.On(t, w, "--json", "doublebarrier", "-n", "2", w.Path("b"), "--", "true")
	cmdtest.InBarrier(t, w, 1)
	requireInterruptTold(t, p)
	require.Equal(t, 0, cmdtest.On(t, w, "barrier", "set", w.Path("set")).Exit())
	p = cmdtest.On(t, w, "--json", "barrier", "wait", w.Path("set"))
	zktest.Eventually(t, cmdtest.Soon, func() bool { return slices.Contains(w.Watched(), w.Path("set")) }, "it waits")
	requireInterruptTold(t, p)
}

func requireInterruptTold(t *testing.T, p *cmdtest.Process) {
	t.Helper()
	p.EndsBy(syscall.SIGINT, 130)
	story := cmdtest.Parse[map[string]any](t, p.Output()+p.Stderr.String())
	require.EqualValues(t, 130, story["status"])
	require.Contains(t, story["error"], "interrupt")
	require.NotEmpty(t, story["path"])
}

// A daemon opens the null device once, for all three.
func TestAnOutputThatIsClosedIsClosedForTheCommand(t *testing.T) {
	w := cmdtest.World(t)
	lock := strings.Join(append([]string{cmdtest.Coorddemo(t)}, append(cmdtest.Target(w), "lock", w.Path("l"), "--", "sh", "-c")...), " ")
	for how, status := range map[string]int{
		">&-": 4, "2>&-": 5, ">&- 2>&-": 4, "<&- >&- 2>&-": 4,
		"": 6, ">/dev/null 2>/dev/null": 6, "<&-": 6, "<>/dev/null >&0 2>&0": 6,
	} {
		require.Equal(t, status, cmdtest.StartAs(t, exec.Command("sh", "-c", lock+` '(: 3>&1) || exit 4; (: 3>&2) || exit 5; exit 6' `+how)).Exit(), how)
	}
}

func TestTakeRemovesNothingWhereItsOutputIsClosed(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.PutItems(t, w, "item")
	take := strings.Join(append([]string{cmdtest.Coorddemo(t)}, append(cmdtest.Target(w), "queue", "take", "--timeout", "20", w.Path("q"))...), " ")
	closed := cmdtest.StartAs(t, exec.Command("sh", "-c", take+" >&-"))
	closed.Ends(term.ExitUsage, "standard output is closed")
	require.Equal(t, "1", cmdtest.On(t, w, "queue", "len", w.Path("q")).Output())
	require.Zero(t, cmdtest.StartAs(t, exec.Command("sh", "-c", take+" >/dev/null")).Exit(), "that is wanted")
	require.Equal(t, "0", cmdtest.On(t, w, "queue", "len", w.Path("q")).Output())
}

// withStderr runs a lock whose standard error is the given file, with a command
// that tells when it gets TERM.
func withStderr(t *testing.T, w *zktest.World, stderr *os.File, options ...string) *cmdtest.Process {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", `exec "$0" "$@" 2>&3`, cmdtest.Coorddemo(t)}, append(cmdtest.Target(w),
		cmdtest.Sh(w.Path("l"), `exec 2>/dev/null; trap 'echo term; exit 9' TERM; `+cmdtest.Busy, options...)...)...)...)
	cmd.ExtraFiles = []*os.File{stderr}
	p := cmdtest.StartAs(t, cmd)
	p.Number()
	return p
}

func TestANoteThatIsNotReadDoesNotEndTheProcess(t *testing.T) {
	w := cmdtest.World(t)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	p := withStderr(t, w, write)
	require.NoError(t, write.Close())
	require.NoError(t, read.Close())
	require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("l"), "--wait", "--timeout", "30s").Exit())
	require.Equal(t, "term", p.Line())
	require.Equal(t, 9, p.Exit())
}

func TestNothingWaitsForANoteThatIsStuck(t *testing.T) {
	w := cmdtest.World(t)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	full := make([]byte, 4096)
	fd := int(write.Fd())
	require.NoError(t, unix.SetNonblock(fd, true))
	for err == nil {
		_, err = unix.Write(fd, full)
	}
	require.NoError(t, unix.SetNonblock(fd, false))
	p := withStderr(t, w, write, "--verbose")
	require.NoError(t, write.Close())
	require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("l"), "--wait", "--timeout", "30s").Exit(), "it is released")
	require.Equal(t, "term", p.Line())
	require.NoError(t, read.Close())
	require.Equal(t, 9, p.Exit())
}

func TestAFullDiskIsNoDelivery(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.PutItems(t, w, "item")
	receiveIn := func(dir string) *cmdtest.Process {
		cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), "queue", "receive", "--dead", "1", "--timeout", "10s",
			w.Path("q"), "--", "sh", "-c", `cat; echo " $COORD_DELIVERIES"; exit 3`)...)
		cmd.Env = []string{"TMPDIR=" + dir}
		return cmdtest.StartAs(t, cmd)
	}
	p := receiveIn(filepath.Join(t.TempDir(), "missing"))
	if runtime.GOOS != "linux" { // where it needs a disk, nothing is received
		require.Equal(t, term.ExitOwnFault, p.Exit())
		p = receiveIn(t.TempDir())
	}
	require.Equal(t, "item 1", p.Gives(3))
}

func TestTheCommandsNameAndArgumentsAreBytes(t *testing.T) {
	w := cmdtest.World(t)
	name := filepath.Join(t.TempDir(), "caf\xe9")
	zktest.WriteProgram(t, name, []byte("#!/bin/sh\nprintf %s \"$1\" | od -An -tx1\n"), 0o700)
	require.Equal(t, " ff e9", cmdtest.On(t, w, "lock", w.Path("l"), "--", name, "\xff\xe9").Gives(0))
	require.Equal(t, 0, cmdtest.On(t, w, "queue", "put", w.Path("q"), "\xff\xe9").Exit())
	require.Equal(t, "\xff\xe9", cmdtest.On(t, w, "queue", "take", w.Path("q")).Output())
}

func TestWhenAllThatGuardsIsKilledNothingIsReleased(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("left out: needs Linux's process table")
	}
	w := zktest.New(t, zktest.Embedded)
	p := cmdtest.Mortal(t, w, append([]string{"--json"}, cmdtest.Sh(w.Path("l"), `echo $PPID; read -r _ _ _ r _ </proc/$PPID/stat; echo $r; exec sleep 1000`)...)...)
	guard, reaper := p.Number(), p.Number()
	require.NoError(t, unix.Kill(reaper, unix.SIGSTOP))
	require.NoError(t, unix.Kill(guard, unix.SIGKILL))
	require.NoError(t, unix.Kill(reaper, unix.SIGKILL))
	require.Equal(t, term.ExitLost, p.Exit())
	names, _, err := w.Admin().Children(w.Path("l"))
	require.NoError(t, err)
	require.Len(t, names, 1, "it was released, though something may be running still")
	require.Contains(t, p.Stderr.String(), "may be running still")
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 0)
}

func TestTheSecondTermsCommandHasTheSignalsOfTheFirst(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("left out: needs Linux's /proc")
	}
	w := zktest.New(t, zktest.Embedded)
	p := cmdtest.On(t, w, "elect", "--again", w.Path("e"), "--", "sh", "-c", `grep SigIgn /proc/self/status; echo $PPID; exec sleep 1000`)
	for range 2 {
		require.Zero(t, mask(p.Line(), "SigIgn:")&(1<<31-1))
		require.NoError(t, unix.Kill(p.Number(), unix.SIGKILL))
	}
	require.Zero(t, mask(p.Line(), "SigIgn:")&(1<<31-1))
	p.Number()
	p.EndsBy(syscall.SIGTERM, 143)
}

func TestTheObjectHasRoomBesideNotesThatAreNotRead(t *testing.T) {
	t.Parallel()
	for _, end := range []func(*term.Streams){
		func(s *term.Streams) { s.Tell(map[string]any{"status": 7}) },
		func(s *term.Streams) { s.Finish(term.Silently(7), func(error) string { return "" }) },
	} {
		read, write, err := os.Pipe()
		require.NoError(t, err)
		told := term.NewNotes(write)
		s := &term.Streams{Err: told, JSON: true, Account: term.Account{Runs: true}}
		n := newNarrator(s, &job{Verbose: true, Paths: conn.NodePaths{"/l"}})
		for range 2 * term.MostNotes / len(`{"event":"confirmed"}`) {
			n.tell("confirmed", nil, "confirmed")
		}
		end(s)
		text := make(chan string)
		go func() {
			all, _ := io.ReadAll(read)
			text <- string(all)
		}()
		told.Flush()
		require.NoError(t, write.Close())
		lines := strings.Split(strings.TrimSpace(<-text), "\n")
		require.NoError(t, read.Close())
		require.EqualValues(t, 7, cmdtest.Parse[map[string]any](t, lines[len(lines)-1])["status"])
		require.Greater(t, len(lines), 100)
	}
}
