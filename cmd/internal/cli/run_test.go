//go:build linux || darwin || freebsd || openbsd

package cli

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

	"github.com/zkcoord/zkcoord/cmd/internal/guard"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestASessionThatEndedBeforeTheDeadlineWasEndedByForce(t *testing.T) {
	before, after := &run{deadline: guard.Now().Add(time.Hour)}, &run{deadline: guard.Now()}
	require.False(t, before.overSince(coord.ErrSessionExpired))
	require.True(t, after.overSince(coord.ErrSessionExpired), "nobody confirmed it any more")
	require.True(t, before.overSince(coord.ErrWindowOver))
	require.False(t, after.overSince(coord.ErrNodeDeleted))
}

func TestWhenTheServersGoTheCommandEndsBeforeTheLockIsLost(t *testing.T) {
	for name, outage := range map[string]struct{ begin, end func(*zktest.World) }{
		"crash": {(*zktest.World).Crash, (*zktest.World).Recover},
		"hang":  {(*zktest.World).Freeze, (*zktest.World).Thaw},
	} {
		t.Run(name, func(t *testing.T) {
			zktest.EachPrivate(t, func(t *testing.T, w *zktest.World) {
				// No server can have given up before that a session of which it
				// heard shortly before the outage.
				inTime(t, zktest.SessionTimeout, func() time.Duration {
					polite, rude := on(t, w, sh(w.Path("polite"), busy)...), on(t, w, sh(w.Path("rude"), stubborn)...)
					pids := []int{polite.number(), rude.number()}
					begin := time.Now()
					outage.begin(w)
					for _, pid := range pids {
						requireGone(t, pid)
					}
					took := time.Since(begin)
					require.Equal(t, exitLost, polite.exit())
					require.Equal(t, exitLost, rude.exit())
					outage.end(w)
					return took
				})
			})
		})
	}
}

func TestAShortOutageDoesNotEndTheCommand(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		args := []string{"--zk", w.ProxyConnectString(), "--session-timeout", zktest.SessionTimeout.String()}
		p := start(t, append(args, sh(w.Path("l"), untilEOF)...)...)
		p.line()
		cut := 0
		for _, proxy := range w.Proxies() {
			cut += proxy.CutAll()
		}
		require.Positive(t, cut, "nothing was cut, and this test proves nothing")
		require.NoError(t, p.in.Close())
		require.Equal(t, 5, p.exit())
	})
}

func TestKilledLockTakesItsCommandAlongAndTheNextOneGetsTheLock(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		p := on(t, w, sh(w.Path("l"), stubborn)...)
		pid := p.number()
		next := on(t, w, sh(w.Path("l"), fmt.Sprintf(`kill -0 %d 2>/dev/null && echo lives; exit 4`, pid))...)
		awaitContenders(t, w.Admin(), w.Path("l"), 2)
		p.signal(syscall.SIGKILL)
		requireGone(t, pid)
		require.Equal(t, 4, next.exit())
		require.Empty(t, next.output(), "the command lived on while the next one held the lock")
	})
}

func TestAFrozenLocksCommandIsDeadBeforeTheNextOneHolds(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		p := on(t, w, sh(w.Path("l"), stubborn)...)
		pid := p.number()
		next := on(t, w, sh(w.Path("l"), fmt.Sprintf(`kill -0 %d 2>/dev/null && echo lives; exit 4`, pid))...)
		awaitContenders(t, w.Admin(), w.Path("l"), 2)
		p.signal(syscall.SIGSTOP)
		require.Equal(t, 4, next.exit())
		require.Empty(t, next.output(), "the command lived on while the next one held the lock")
		p.signal(syscall.SIGCONT)
		require.Equal(t, exitLost, p.exit())
	})
}

func TestACommandThatEndedInTimeIsNotCalledLostAfterwards(t *testing.T) {
	zktest.EachPrivate(t, func(t *testing.T, w *zktest.World) {
		p := on(t, w, sh(w.Path("l"), untilEOF)...)
		pid := p.number()
		p.signal(syscall.SIGSTOP)
		w.Crash()
		require.NoError(t, p.in.Close())
		requireGone(t, pid)
		<-time.After(zktest.SessionTimeout) // so that the trust window is over when it wakes: that is the case here
		p.signal(syscall.SIGCONT)
		require.Equal(t, 5, p.exit())
		w.Recover()
	}, zktest.Embedded, zktest.Real)
}

func TestAShortFreezeDoesNotEndTheCommand(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, append([]string{"--session-timeout", "20s"}, sh(w.Path("l"), untilEOF)...)...)
	p.line()
	p.signal(syscall.SIGSTOP)
	p.signal(syscall.SIGCONT)
	require.NoError(t, p.in.Close())
	require.Equal(t, 5, p.exit())
}

func TestALockWhoseSessionExpiresIsLost(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		p := on(t, w, sh(w.Path("l"), `echo $COORD_NODE; `+stubborn)...)
		_, stat, err := w.Admin().Exists(p.line())
		require.NoError(t, err)
		pid := p.number()
		w.ExpireSession(stat.EphemeralOwner)
		require.Equal(t, exitLost, p.exit())
		requireGone(t, pid)
		require.Contains(t, p.stderr.String(), w.Path("l"))
	})
}

func TestSignalsAreForwardedToTheCommand(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	for s, want := range map[syscall.Signal]string{
		syscall.SIGTERM: "TERM", syscall.SIGINT: "INT", syscall.SIGHUP: "HUP", syscall.SIGQUIT: "QUIT", syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2",
	} {
		p := on(t, w, sh(w.Path("l"), `for s in TERM INT HUP QUIT USR1 USR2; do trap "echo $s; exit 9" $s; done; `+busy)...)
		p.line()
		p.signal(s)
		require.Equal(t, want, p.line())
		require.Equal(t, 9, p.exit(), "the command's status is what counts, not the signal")
		awaitContenders(t, w.Admin(), w.Path("l"), 0)
	}
}

func TestASignalEndsTheWaitAndLeavesTheLine(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		holder := on(t, w, sh(w.Path("l"), untilEOF)...)
		holder.line()
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			p := on(t, w, sh(w.Path("l"), "echo never")...)
			awaitContenders(t, w.Admin(), w.Path("l"), 2)
			p.signal(s)
			require.Equal(t, 128+int(s), p.exit())
			awaitContenders(t, w.Admin(), w.Path("l"), 1)
		}
		require.NoError(t, holder.in.Close())
		require.Equal(t, 5, holder.exit())
	})
}

func TestASignalEndsTheAttemptToConnect(t *testing.T) {
	p := start(t, "--zk", silentServer(t), "--connect-timeout", "1h", "lock", "/l", "--", "true")
	zktest.Eventually(t, soon, func() bool { return handles(p.pid(), syscall.SIGTERM) }, "coorddemo listens to signals")
	p.signal(syscall.SIGTERM)
	require.Equal(t, 128+15, p.exit())
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
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, sh(w.Path("l"), `echo $PPID; `+stubborn)...)
	guard := p.number()
	pid := p.number()
	require.NoError(t, unix.Kill(guard, unix.SIGKILL))
	require.Equal(t, exitLost, p.exit())
	requireGone(t, pid)
	awaitContenders(t, w.Admin(), w.Path("l"), 0)
}

func TestAFrozenGuardDoesNotSaveTheCommandOfALostLock(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, sh(w.Path("l"), `echo $PPID; `+stubborn)...)
	guard := p.number()
	pid := p.number()
	require.NoError(t, unix.Kill(guard, unix.SIGSTOP))
	for _, s := range w.Embedded().Sessions() {
		require.NoError(t, w.Embedded().ExpireSession(s.ID))
	}
	require.Equal(t, exitLost, p.exit())
	require.NotContains(t, p.stderr.String(), "may be running still")
	requireGone(t, pid)
}

func TestUnderNohupTheCommandIgnoresHangUps(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("left out: needs Linux's /proc")
	}
	w := zktest.New(t, zktest.Embedded)
	args := append([]string{"-c", `trap '' HUP; exec "$0" "$@"`, os.Args[0]}, target(w)...)
	p := startAs(t, exec.Command("sh", append(args, "lock", w.Path("l"), "--", "cat", "/proc/self/status")...))
	ignored := mask(p.output(), "SigIgn:") & (1<<31 - 1) // real-time signals are the caller's affair
	require.EqualValues(t, 1<<(syscall.SIGHUP-1), ignored)
}
