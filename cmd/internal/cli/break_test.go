//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestBreakTakesTheLockFromItsHolder(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		p := on(t, w, sh(w.Path("l"), stubborn)...)
		pid := p.number()
		next := on(t, w, sh(w.Path("l"), "exit 4")...)
		awaitContenders(t, w.Admin(), w.Path("l"), 2)
		b := on(t, w, "--json", "break", "--yes", w.Path("l"))
		require.Equal(t, 0, b.exit())
		require.Len(t, parse[map[string]any](t, b.line())["broken"], 1)
		require.Equal(t, 4, next.exit())
		require.Equal(t, exitLost, p.exit())
		requireGone(t, pid)
	})
}

func TestBreakWithoutATerminalNeedsAYes(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, sh(w.Path("l"), untilEOF)...)
	p.line()
	b := on(t, w, "break", w.Path("l"))
	require.Equal(t, exitUsage, b.exit())
	require.Contains(t, b.stderr.String(), "--yes")
	require.NoError(t, p.in.Close())
	require.Equal(t, 5, p.exit())
}

func TestBreakingAFreeLockIsNoError(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, "break", "--yes", w.Path("l"))
	require.Equal(t, 0, p.exit())
	require.Contains(t, p.output(), "nobody holds")
}

func TestBreakSaysWhenNoServerAnswers(t *testing.T) {
	inTime(t, 1500*time.Millisecond, func() time.Duration {
		begin := time.Now()
		require.Equal(t, exitUnavailable, start(t, "--zk", silentServer(t), "--connect-timeout", "0.5", "break", "--yes", "/l").exit())
		return time.Since(begin)
	})
}
