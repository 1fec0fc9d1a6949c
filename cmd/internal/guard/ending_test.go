//go:build linux || darwin || freebsd || openbsd

package guard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestACommandThatWasToldToEndIsInterruptedWhateverComesAfterwards(t *testing.T) {
	t.Parallel()
	r := guarded(t, 30*time.Second, 29*time.Second,
		`trap 'echo term; read x; echo tidied; exit 0' TERM; echo ready; while :; do sleep 0.01; done`)
	r.event(Started)
	for range 2 { // "ready" comes first, unless TERM does
		if r.line() == "term" {
			break
		}
	}
	r.Extend(Now().Add(time.Hour)) // the servers answer again
	require.Equal(t, "tidied", r.line())
	e := r.event(Exited)
	require.Equal(t, 0, e.ExitCode())
	require.Equal(t, ByDeadline, e.Cause)
}

func TestACommandThatDoesNotHeedTermIsKilledThoughTheDeadlineMoves(t *testing.T) {
	t.Parallel()
	r := guarded(t, 3*time.Second, 1500*time.Millisecond, `trap 'echo term' TERM; echo ready; while :; do sleep 0.01; done`)
	r.event(Started)
	for r.line() != "term" {
	}
	r.Extend(Now().Add(time.Hour))
	e := r.event(Exited)
	require.Equal(t, 137, e.ExitCode())
	require.Equal(t, ByDeadline, e.Cause)
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
