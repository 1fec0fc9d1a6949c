//go:build linux || darwin || freebsd || openbsd

package see

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestBreakTakesTheLockFromItsHolder(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.Stubborn, "--kill-after", "100ms")...)
		pid := p.Number()
		next := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 4")...)
		cmdtest.AwaitContenders(t, w.Admin(), w.Path("l"), 2)
		b := cmdtest.On(t, w, "--json", "break", "--yes", w.Path("l"))
		require.Equal(t, 0, b.Exit())
		require.Len(t, cmdtest.Parse[map[string]any](t, b.Line())["broken"], 1)
		require.Equal(t, 4, next.Exit())
		require.Equal(t, term.ExitLost, p.Exit())
		cmdtest.RequireGone(t, pid)
	})
}

func TestBreakWithoutATerminalNeedsAYes(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...)
	p.Line()
	b := cmdtest.On(t, w, "break", w.Path("l"))
	require.Equal(t, term.ExitUsage, b.Exit())
	require.Contains(t, b.Stderr.String(), "--yes")
	require.NoError(t, p.In.Close())
	require.Equal(t, 5, p.Exit())
}

func TestBreakingAFreeLockIsNoError(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	p := cmdtest.On(t, w, "break", "--yes", w.Path("l"))
	require.Equal(t, 0, p.Exit())
	require.Contains(t, p.Output(), "nobody holds")
}

func TestBreakSaysWhenNoServerAnswers(t *testing.T) {
	t.Parallel()
	cmdtest.InTime(t, 1500*time.Millisecond, func() time.Duration {
		begin := time.Now()
		require.Equal(t, term.ExitUnavailable, cmdtest.Start(t, "--zk", cmdtest.SilentServer(t), "--connect-timeout", "0.5", "break", "--yes", "/l").Exit())
		return time.Since(begin)
	})
}
