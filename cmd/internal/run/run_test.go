//go:build linux || darwin || freebsd || openbsd

package run

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
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

func TestWhenTheServersGoTheCommandEndsBeforeTheLockIsLost(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct{ begin, end func(*zktest.World) }{
		"crash": {(*zktest.World).Crash, (*zktest.World).Recover},
		"hang":  {(*zktest.World).Freeze, (*zktest.World).Thaw},
	} {
		t.Run(name, func(t *testing.T) {
			zktest.EachPrivate(t, func(t *testing.T, w *zktest.World) {
				// No server can have given up before that a session of which it
				// heard shortly before the outage.
				cmdtest.InTime(t, cmdtest.Short, func() time.Duration {
					polite, rude := cmdtest.Mortal(t, w, cmdtest.Sh(w.Path("polite"), cmdtest.Busy)...), cmdtest.Mortal(t, w, cmdtest.Sh(w.Path("rude"), cmdtest.Stubborn)...)
					pids := []int{polite.Number(), rude.Number()}
					begin := time.Now()
					outage.begin(w)
					for _, pid := range pids {
						cmdtest.RequireGone(t, pid)
					}
					took := time.Since(begin)
					require.Equal(t, term.ExitLost, polite.Exit())
					require.Equal(t, term.ExitLost, rude.Exit())
					outage.end(w)
					return took
				})
			})
		})
	}
}

func TestAShortOutageDoesNotEndTheCommand(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.On(t, w, append([]string{"--zk", w.ProxyConnectString()}, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...)...).Begun()
		cut := 0
		for _, proxy := range w.Proxies() {
			cut += proxy.CutAll()
		}
		require.Positive(t, cut, "nothing was cut, and this test proves nothing")
		p.LetGo(5)
	})
}

func TestKilledLockTakesItsCommandAlongAndTheNextOneGetsTheLock(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.Mortal(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Stubborn)...)
		pid := p.Number()
		next := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), fmt.Sprintf(`kill -0 %d 2>/dev/null && echo lives; exit 4`, pid))...).InLine(w, w.Path("l"), 2)
		p.Signal(syscall.SIGKILL)
		cmdtest.RequireGone(t, pid)
		require.Equal(t, 4, next.Exit())
		require.Empty(t, next.Output(), "the command lived on while the next one held the lock")
	})
}

func TestAFrozenLocksCommandIsDeadBeforeTheNextOneHolds(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.Mortal(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Stubborn)...)
		pid := p.Number()
		next := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), fmt.Sprintf(`kill -0 %d 2>/dev/null && echo lives; exit 4`, pid))...).InLine(w, w.Path("l"), 2)
		p.Signal(syscall.SIGSTOP)
		require.Equal(t, 4, next.Exit())
		require.Empty(t, next.Output(), "the command lived on while the next one held the lock")
		p.EndsBy(syscall.SIGCONT, term.ExitLost)
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
		<-time.After(cmdtest.Short) // so that the trust window is over when it wakes: that is the case here
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

func TestALockWhoseSessionExpiresIsLost(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), `echo $COORD_NODE; `+cmdtest.Stubborn)...)
		_, stat, err := w.Admin().Exists(p.Line())
		require.NoError(t, err)
		pid := p.Number()
		w.ExpireSession(stat.EphemeralOwner)
		require.Equal(t, term.ExitLost, p.Exit())
		cmdtest.RequireGone(t, pid)
		require.Contains(t, p.Stderr.String(), w.Path("l"))
	})
}

func TestSignalsAreForwardedToTheCommand(t *testing.T) {
	w := cmdtest.World(t)
	for s, want := range map[syscall.Signal]string{
		syscall.SIGTERM: "TERM", syscall.SIGINT: "INT", syscall.SIGHUP: "HUP", syscall.SIGQUIT: "QUIT", syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2",
	} {
		p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), `for s in TERM INT HUP QUIT USR1 USR2; do trap "echo $s; exit 9" $s; done; `+cmdtest.Busy)...).Begun()
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

func TestASignalEndsTheAttemptToConnect(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "--zk", cmdtest.SilentServer(t), "--connect-timeout", "1h", "lock", "/l", "--", "true")
	zktest.Eventually(t, cmdtest.Soon, func() bool { return handles(p.Pid(), syscall.SIGTERM) }, "coorddemo listens to signals")
	p.EndsBy(syscall.SIGTERM, 128+15)
}

// handles reports whether a process has a handler for a signal. Where that
// cannot be known it says yes.
func handles(pid int, s syscall.Signal) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return true
	}
	return mask(string(status), "SigCgt:")&(1<<(s-1)) != 0
}

func mask(status, name string) uint64 {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			m, _ := strconv.ParseUint(strings.TrimSpace(rest), 16, 64)
			return m
		}
	}
	return 0
}

func TestTheCommandDoesNotOutliveItsGuard(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), `echo $PPID; `+cmdtest.Stubborn)...)
	guard := p.Number()
	pid := p.Number()
	require.NoError(t, unix.Kill(guard, unix.SIGKILL))
	require.Equal(t, term.ExitLost, p.Exit())
	cmdtest.RequireGone(t, pid)
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 0)
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

func TestUnderNohupTheCommandIgnoresHangUps(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("left out: needs Linux's /proc")
	}
	w := zktest.New(t, zktest.Embedded)
	args := append([]string{"-c", `trap '' HUP; exec "$0" "$@"`, cmdtest.Coorddemo(t)}, cmdtest.Target(w)...)
	p := cmdtest.StartAs(t, exec.Command("sh", append(args, "lock", w.Path("l"), "--", "cat", "/proc/self/status")...))
	ignored := mask(p.Output(), "SigIgn:") & (1<<31 - 1) // real-time signals are the caller's affair
	require.EqualValues(t, 1<<(syscall.SIGHUP-1), ignored)
}
