//go:build linux || darwin || freebsd || openbsd

package guard

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestACommandThatWasToldToEndIsInterruptedWhateverComesAfterwards(t *testing.T) {
	t.Parallel()
	r := guarded(t, time.Hour, time.Minute,
		`trap 'echo term' TERM; trap 'echo tidied; exit 0' USR1; echo ready; while :; do sleep 0.01; done`)
	r.event(Started)
	require.Equal(t, "ready", r.line())
	r.Extend(Now().Add(time.Minute))
	require.Equal(t, "term", r.line())
	r.Extend(Now().Add(time.Hour)) // the servers answer again
	r.Signal(syscall.SIGUSR1)
	require.Equal(t, "tidied", r.line())
	e := r.event(Exited)
	require.Equal(t, 0, e.ExitCode())
	require.Equal(t, ByDeadline, e.Cause)
}

func TestACommandThatDoesNotHeedTermIsKilledThoughTheDeadlineMoves(t *testing.T) {
	t.Parallel()
	withTime(t, func(killAfter time.Duration) bool {
		r := guarded(t, time.Hour, killAfter, deaf)
		r.event(Started)
		require.Equal(t, "ready", r.line())
		r.Extend(Now().Add(killAfter))
		_, heard := r.next()
		r.Extend(Now().Add(time.Hour))
		e := r.event(Exited)
		require.Equal(t, 137, e.ExitCode())
		require.Equal(t, ByDeadline, e.Cause)
		return heard
	})
}

func TestArgumentsAreBytes(t *testing.T) {
	t.Parallel()
	r := guardedCommand(t, time.Minute, 0, "sh", "-c", `printf %s "$1" | od -An -tx1`, "sh", "caf\xe9\xff\xc0\x80")
	r.event(Started)
	require.Equal(t, " 63 61 66 e9 ff c0 80", r.line())
	require.Equal(t, 0, r.event(Exited).ExitCode())
}

func TestTheNameOfACommandIsBytes(t *testing.T) {
	t.Parallel()
	require.Contains(t, string(guardedCommand(t, time.Minute, 0, "/no/such/caf\xe9").event(Failed).Message), "/no/such/caf\xe9")
}
