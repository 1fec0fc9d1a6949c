//go:build linux || darwin || freebsd || openbsd

package run

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/guard"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestASessionThatEndedBeforeTheDeadlineWasEndedByForce(t *testing.T) {
	t.Parallel()
	before, after := &run{deadline: guard.Now().Add(time.Hour)}, &run{deadline: guard.Now()}
	require.False(t, before.overSince(coord.ErrSessionExpired))
	require.True(t, after.overSince(coord.ErrSessionExpired), "nobody confirmed it any more")
	require.True(t, before.overSince(coord.ErrWindowOver))
	require.False(t, after.overSince(coord.ErrNodeDeleted))
}

// The session of the hold may be another than the one at the beginning.
func TestACommandThatNeedsLongerThanTheSessionAllowsIsNotBegun(t *testing.T) {
	client := cmdtest.Open(t, cmdtest.World(t))
	long := client.Info().SessionTimeout/4 + 1
	err := (&run{job: &job{KillAfter: &long}, client: client, signalCtx: t.Context()}).settle()
	require.Equal(t, term.ExitOwnFault, term.StatusOf(err).Code)
	require.ErrorContains(t, err, "does not fit")
}

func TestWhenTheServersGoTheCommandEndsBeforeTheLockIsLost(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct{ begin, end func(*zktest.World) }{
		"crash": {(*zktest.World).Crash, (*zktest.World).Recover},
		"hang":  {(*zktest.World).Freeze, (*zktest.World).Thaw},
	} {
		t.Run(name, func(t *testing.T) {
			zktest.EachPrivate(t, func(t *testing.T, w *zktest.World) {
				// Before that no server can have given up a session that it
				// heard of shortly before the outage.
				cmdtest.InTime(t, cmdtest.Short, func() time.Duration {
					var all []*cmdtest.Process
					var pids []int
					for _, args := range [][]string{
						cmdtest.Sh(w.Path("polite"), cmdtest.Busy), cmdtest.Sh(w.Path("rude"), cmdtest.Stubborn),
						several(w, "b a", cmdtest.Stubborn),
					} {
						all = append(all, cmdtest.Mortal(t, w, args...))
					}
					for _, p := range all {
						pids = append(pids, p.Number())
					}
					begin := time.Now()
					outage.begin(w)
					for _, pid := range pids {
						cmdtest.RequireGone(t, pid)
					}
					took := time.Since(begin)
					for _, p := range all {
						require.Equal(t, term.ExitLost, p.Exit())
					}
					outage.end(w)
					return took
				})
			})
		})
	}
}

func TestAShortOutageDoesNotEndTheCommand(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.On(t, w,
			append([]string{"--zk", w.ProxyConnectString()}, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...)...).Begun()
		cut := 0
		for _, proxy := range w.Proxies() {
			cut += proxy.CutAll()
		}
		require.Positive(t, cut, "nothing was cut, and this test proves nothing")
		p.LetGo(5)
	})
}

// kills are which of the processes around a command are killed, one after the
// other: a second may be dead by the death of the first.
var kills = map[string]func(owner, guard int) []int{
	"owner": func(owner, _ int) []int { return []int{owner} },
	"guard": func(_, guard int) []int { return []int{guard} },
	"both":  func(owner, guard int) []int { return []int{owner, guard} },
}

// deadBeforeTheNext has something happen to the processes around a command that
// ignores TERM, and holds a lock, several, or an item. Who holds them next
// looks whether the command lives: one for each lock, for none of them may go
// over earlier.
func deadBeforeTheNext(t *testing.T, happens func(owner *cmdtest.Process, guard int) (afterwards func())) {
	t.Helper()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.PutItems(t, w, "item")
		const script = "echo $PPID; " + cmdtest.Stubborn
		for _, c := range []struct{ holder, lines []string }{
			{cmdtest.Sh(w.Path("l"), script), []string{"l"}},
			{several(w, "c a b", script), []string{"a", "b", "c"}},
			{cmdtest.Receiving(w, script), nil},
		} {
			// Also on a busy machine, it holds until the others stand in line.
			owner := cmdtest.Mortal(t, w, append([]string{"--session-timeout", "6s"}, c.holder...)...)
			guard, pid := owner.Number(), owner.Number()
			look := fmt.Sprintf(`kill -0 %d 2>/dev/null && echo lives; exit 4`, pid)
			var next []*cmdtest.Process
			for _, line := range c.lines {
				next = append(next, cmdtest.On(t, w, cmdtest.Sh(w.Path(line), look)...).InLine(w, w.Path(line), 2))
			}
			if c.lines == nil {
				next = append(next, cmdtest.Receive(t, w, look))
			}
			afterwards := happens(owner, guard)
			cmdtest.RequireGone(t, pid)
			for _, n := range next {
				require.Empty(t, n.Gives(4), "the command lived on while another held what it had held")
			}
			afterwards()
		}
	})
}

func TestKilledLockTakesItsCommandAlongAndTheNextOneGetsTheLock(t *testing.T) {
	t.Parallel()
	for name, victims := range kills {
		t.Run(name, func(t *testing.T) {
			deadBeforeTheNext(t, func(owner *cmdtest.Process, guard int) func() {
				status := term.ExitLost
				for _, victim := range victims(owner.Pid(), guard) {
					_ = unix.Kill(victim, unix.SIGKILL)
					if victim == owner.Pid() {
						status = 137
					}
				}
				return func() { require.Equal(t, status, owner.Exit()) }
			})
		})
	}
}

func TestAFrozenLocksCommandIsDeadBeforeTheNextOneHolds(t *testing.T) {
	t.Parallel()
	deadBeforeTheNext(t, func(owner *cmdtest.Process, _ int) func() {
		owner.Signal(syscall.SIGSTOP)
		return func() { owner.EndsBy(syscall.SIGCONT, term.ExitLost) }
	})
}

func TestACommandThatEndedInTimeIsNotCalledLostAfterwards(t *testing.T) {
	cmdtest.EachPrivate(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.Mortal(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...)
		pid := p.Number()
		p.Signal(syscall.SIGSTOP)
		require.NoError(t, p.In.Close())
		cmdtest.RequireGone(t, pid)
		w.Crash()
		<-time.After(cmdtest.Short) // the trust window must be over when it wakes: the case under test
		p.EndsBy(syscall.SIGCONT, 5)
		w.Recover()
	}, zktest.Embedded, zktest.Real)
}

func TestAShortFreezeDoesNotEndTheCommand(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).Begun()
	p.Signal(syscall.SIGSTOP)
	p.Signal(syscall.SIGCONT)
	p.LetGo(5)
}

func TestACommandIsKilledWhenWhatItHoldsIsLost(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		expire := func(node string) {
			_, stat, err := w.Admin().Exists(node)
			require.NoError(t, err)
			w.ExpireSession(stat.EphemeralOwner)
		}
		remove := func(node string) { require.NoError(t, w.Admin().Delete(node, -1)) }
		cmdtest.PutItems(t, w, "item")
		other := cmdtest.Member(t, w, 2, "exit 0")
		const script = `echo $COORD_NODE; ` + cmdtest.Stubborn
		for what, c := range map[string]struct {
			args []string
			lose func(node string)
		}{
			w.Path("l"): {cmdtest.Sh(w.Path("l"), script), expire},
			"the place": {cmdtest.Round(w, 2, script), expire},
			"the item":  {cmdtest.Receiving(w, script), remove},
		} {
			p := cmdtest.On(t, w, c.args...)
			node, pid := p.Line(), p.Number()
			c.lose(node)
			p.Ends(term.ExitLost, "lost "+what)
			cmdtest.RequireGone(t, pid)
		}
		require.Equal(t, exitMissing, other.Exit())
	})
}

func TestSignalsAreForwardedToTheCommand(t *testing.T) {
	w := cmdtest.World(t)
	for s, want := range map[syscall.Signal]string{
		syscall.SIGTERM: "TERM", syscall.SIGINT: "INT", syscall.SIGHUP: "HUP", syscall.SIGQUIT: "QUIT",
		syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2",
	} {
		p := cmdtest.On(t, w,
			cmdtest.Sh(w.Path("l"),
				`for s in TERM INT HUP QUIT USR1 USR2; do trap "echo $s; exit 9" $s; done; `+cmdtest.Busy)...).Begun()
		p.Signal(s)
		require.Equal(t, want, p.Line())
		require.Equal(t, 9, p.Exit(), "the command's status is what counts, not the signal")
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 0)
	}
}

func TestASignalEndsTheWaitAndLeavesTheLine(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).Begun()
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo never")...).InLine(w, w.Path("l"), 2)
			p.EndsBy(s, 128+int(s))
			cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 1)
		}
		holder.LetGo(5)
	})
}

func TestAFrozenGuardDoesNotSaveTheCommandOfALostLock(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), `echo $PPID; `+cmdtest.Stubborn)...)
	guard := p.Number()
	pid := p.Number()
	require.NoError(t, unix.Kill(guard, unix.SIGSTOP))
	for _, s := range w.Embedded().Sessions() {
		require.NoError(t, w.Embedded().ExpireSession(s.ID))
	}
	require.Equal(t, term.ExitLost, p.Exit())
	require.NotContains(t, p.Stderr.String(), "may be running still")
	cmdtest.RequireGone(t, pid)
}

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
		{
			term.ExitTimeout, "not all 2 came", []string{
				"doublebarrier", "-n", "2", "--timeout", "0.3", w.Path("d"), "--", "true",
			},
		},
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
			summary := objects[0]
			require.Contains(t, w.Path("l")+w.Path("q")+w.Path("b")+w.Path("d"), summary["path"])
			require.EqualValues(t, c.status, summary["status"])
			require.Contains(t, summary["error"], c.says)
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

func TestAVerbTellsItsStoryInJSON(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.PutItems(t, w, "item")
	for verb, c := range map[string]struct {
		args    []string
		status  int
		summary map[string]any
	}{
		"lock": {cmdtest.Sh(w.Path("l"), "exit 3"), 3, map[string]any{"path": w.Path("l")}},
		"queue": {
			[]string{"queue", "receive", w.Path("q"), "--", "sh", "-c", "exit 7"},
			7,
			map[string]any{"path": w.Path("q"), "deliveries": 1.0},
		},
		"doublebarrier": {
			cmdtest.Round(w, 1, "true"), 0,
			map[string]any{"path": w.Path("b"), "round": 1.0, "index": 0.0, "members": 1.0, "missing": []any{}},
		},
	} {
		p := cmdtest.On(t, w, append([]string{"--json"}, c.args...)...)
		require.Empty(t, p.Gives(c.status), "standard output belongs to the command")
		summary := cmdtest.Parse[map[string]any](t, p.Stderr.String())
		require.Subset(t, summary, c.summary)
		require.EqualValues(t, c.status, summary["status"])
		require.Equal(t, false, summary["lost"])
		require.Equal(t, verb == "lock", summary["token"] != nil, verb)
	}
}

func requireInterruptTold(t *testing.T, p *cmdtest.Process) {
	t.Helper()
	p.EndsBy(syscall.SIGINT, 130)
	summary := cmdtest.Parse[map[string]any](t, p.Output()+p.Stderr.String())
	require.EqualValues(t, 130, summary["status"])
	require.Contains(t, summary["error"], "interrupt")
	require.NotEmpty(t, summary["path"])
}

// A daemon opens the null device once, for all three.
func TestAnOutputThatIsClosedIsClosedForTheCommand(t *testing.T) {
	w := cmdtest.World(t)
	lock := strings.Join(
		append([]string{cmdtest.Coorddemo(t)}, append(cmdtest.Target(w), "lock", w.Path("l"), "--", "sh", "-c")...), " ")
	for how, status := range map[string]int{
		">&-": 4, "2>&-": 5, ">&- 2>&-": 4, "<&- >&- 2>&-": 4,
		"": 6, ">/dev/null 2>/dev/null": 6, "<&-": 6, "<>/dev/null >&0 2>&0": 6,
	} {
		require.Equal(t, status,
			cmdtest.StartAs(t, exec.Command("sh", "-c", lock+` '(: 3>&1) || exit 4; (: 3>&2) || exit 5; exit 6' `+how)).Exit(),
			how)
	}
}

func TestTakeRemovesNothingWhereItsOutputIsClosed(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.PutItems(t, w, "item")
	take := strings.Join(
		append([]string{cmdtest.Coorddemo(t)},
			append(cmdtest.Target(w), "queue", "take", "--timeout", "20", w.Path("q"))...), " ")
	closed := cmdtest.StartAs(t, exec.Command("sh", "-c", take+" >&-"))
	closed.Ends(term.ExitUsage, "standard output is closed")
	require.Equal(t, "1", cmdtest.On(t, w, "queue", "len", w.Path("q")).Output())
	require.Zero(t, cmdtest.StartAs(t, exec.Command("sh", "-c", take+" >/dev/null")).Exit(), "that is wanted")
	require.Equal(t, "0", cmdtest.On(t, w, "queue", "len", w.Path("q")).Output())
}

// withStderr runs a lock whose standard error is the given file, asks for it,
// and sees it released; its command prints when it gets TERM.
func withStderr(t *testing.T, w *zktest.World, stderr *os.File, options ...string) *cmdtest.Process {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", `exec "$0" "$@" 2>&3`, cmdtest.Coorddemo(t)}, append(cmdtest.Target(w),
		cmdtest.Sh(w.Path("l"), `exec 2>/dev/null; trap 'echo term; exit 9' TERM; `+cmdtest.Busy, options...)...)...)...)
	cmd.ExtraFiles = []*os.File{stderr}
	p := cmdtest.StartAs(t, cmd).Begun()
	require.NoError(t, stderr.Close())
	require.Equal(t, 0, cmdtest.On(t, w, "revoke", w.Path("l"), "--wait", "--timeout", "30s").Exit())
	require.Equal(t, "term", p.Line())
	return p
}

func TestANoteThatIsNotReadDoesNotEndTheProcess(t *testing.T) {
	w := cmdtest.World(t)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, read.Close())
	require.Equal(t, 9, withStderr(t, w, write).Exit())
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
	require.NoError(t, read.Close())
	require.Equal(t, 9, p.Exit())
}

func TestAFullDiskIsNoDelivery(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.PutItems(t, w, "item")
	receiveIn := func(dir string) *cmdtest.Process {
		cmd := exec.Command(cmdtest.Coorddemo(t),
			append(cmdtest.Target(w), "queue", "receive", "--dead", "1", "--timeout", "10s",
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
		n := newNarrator(s, &job{verbosely: verbosely{Verbose: true}, Paths: conn.NodePaths{"/l"}})
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

// The command is ended up to T/4 before the end of the trust window, which a
// session that has only waited has to open first.
func TestACommandThatWasWaitedForForLongIsNotEnded(t *testing.T) {
	w := cmdtest.World(t)
	const session = 20 * time.Second
	var commands []*cmdtest.Process
	for _, wait := range []time.Duration{session / 2, session * 2 / 3, session * 68 / 100, session * 70 / 100} {
		path := w.Path(wait.String())
		lock := []string{
			"--zk", w.ConnectString(), "--session-timeout", session.String(), "lock", "--kill-after", (session / 4).String(),
			path, "--", "sh", "-c",
		}
		cmdtest.Start(t, append(lock, fmt.Sprintf("echo holds; sleep %f", wait.Seconds()))...).Line()
		commands = append(commands, cmdtest.Start(t, append(lock, fmt.Sprintf("sleep %f", session.Seconds()/2))...))
	}
	for _, p := range commands {
		require.Zero(t, p.Exit(), p.Stderr.String())
	}
}
