//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestAWaitAtABarrierEndsWhenItIsRemoved(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("jobs/barrier")
		require.Equal(t, 0, on(t, w, "barrier", "wait", path).exit(), "it was never set")
		require.Equal(t, 0, on(t, w, "barrier", "set", path).exit())
		require.Equal(t, 0, on(t, w, "barrier", "set", path).exit(), "set twice")
		one, two := on(t, w, "barrier", "wait", path), on(t, w, "--json", "barrier", "wait", path)
		require.Equal(t, exitTimeout, on(t, w, "barrier", "wait", "--timeout", "2", path).exit())
		require.False(t, ended(one) || ended(two), "passed a closed barrier")
		p := on(t, w, "--json", "barrier", "remove", path)
		require.Equal(t, map[string]any{"path": path, "set": false}, parse[map[string]any](t, p.line()))
		require.Equal(t, 0, on(t, w, "barrier", "remove", path).exit(), "removed twice")
		require.Equal(t, 0, one.exit())
		require.Contains(t, parse[map[string]any](t, two.line()), "waited")
		require.Equal(t, 0, two.exit())
	})
}

func TestABarrierThatCannotBe(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	require.Equal(t, exitUsage, on(t, w, "barrier", "set", "nowhere").exit())
	require.Equal(t, exitUsage, on(t, w, "barrier", "wait", "--timeout", "-1s", w.Path("b")).exit())
	require.Equal(t, exitUsage, start(t, "barrier", "wait", "/b").exit(), "no servers are named")
	require.Equal(t, exitUnavailable, start(t, "--zk", closedPort(t), "--connect-timeout", "0.3", "barrier", "set", "/b").exit())
	require.Equal(t, exitUnavailable, start(t, "--zk", silentServer(t), "barrier", "wait", "--timeout", "0.3", "/b").exit())
}

func TestTheDirectoryOfAQueueIsNoBarrier(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		putItems(t, w, "item")
		p := on(t, w, "barrier", "set", w.Path("q"))
		require.Equal(t, exitUsage, p.exit())
		require.Contains(t, p.stderr.String(), "no barrier: it has children")
		require.Equal(t, 0, on(t, w, "barrier", "set", w.Path("q/entries/barrier")).exit())
	})
}

func ended(p *process) bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}
