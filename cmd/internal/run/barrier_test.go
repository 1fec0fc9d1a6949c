//go:build linux || darwin || freebsd || openbsd

package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestAWaitAtABarrierEndsWhenItIsRemoved(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("jobs/barrier")
		require.Equal(t, 0, cmdtest.On(t, w, "barrier", "wait", path).Exit(), "it was never set")
		require.Equal(t, 0, cmdtest.On(t, w, "barrier", "set", path).Exit())
		require.Equal(t, 0, cmdtest.On(t, w, "barrier", "set", path).Exit(), "set twice")
		one, two := cmdtest.On(t, w, "barrier", "wait", path), cmdtest.On(t, w, "--json", "barrier", "wait", path)
		cmdtest.GivesUp(t, func(timeout string) *cmdtest.Process {
			return cmdtest.On(t, w, "barrier", "wait", "--timeout", timeout, path)
		})
		require.False(t, ended(one) || ended(two), "passed a closed barrier")
		p := cmdtest.On(t, w, "--json", "barrier", "remove", path)
		require.Equal(t, map[string]any{"path": path, "set": false}, cmdtest.Parse[map[string]any](t, p.Line()))
		require.Equal(t, 0, cmdtest.On(t, w, "barrier", "remove", path).Exit(), "removed twice")
		require.Equal(t, 0, one.Exit())
		require.Contains(t, cmdtest.Parse[map[string]any](t, two.Line()), "waited")
		require.Equal(t, 0, two.Exit())
	})
}

func TestABarrierThatCannotBe(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	require.Equal(t, term.ExitUsage, cmdtest.On(t, w, "barrier", "set", "nowhere").Exit())
	require.Equal(t, term.ExitUsage, cmdtest.On(t, w, "barrier", "wait", "--timeout", "-1s", w.Path("b")).Exit())
	require.Equal(t, term.ExitUsage, cmdtest.Start(t, "barrier", "wait", "/b").Exit(), "no servers are named")
	require.Equal(t, term.ExitUnavailable, cmdtest.Start(t, "--zk", cmdtest.ClosedPort(t), "--connect-timeout", "0.3", "barrier", "set", "/b").Exit())
	require.Equal(t, term.ExitUnavailable, cmdtest.Start(t, "--zk", cmdtest.SilentServer(t), "barrier", "wait", "--timeout", "0.3", "/b").Exit())
}

func TestTheDirectoryOfAQueueIsNoBarrier(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.PutItems(t, w, "item")
		p := cmdtest.On(t, w, "barrier", "set", w.Path("q"))
		require.Equal(t, term.ExitUsage, p.Exit())
		require.Contains(t, p.Stderr.String(), "no barrier: it has children")
		require.Equal(t, 0, cmdtest.On(t, w, "barrier", "set", w.Path("q/entries/barrier")).Exit())
	})
}

func ended(p *cmdtest.Process) bool {
	select {
	case <-p.Exited:
		return true
	default:
		return false
	}
}
