//go:build linux || darwin || freebsd || openbsd

package demo

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestAnInterruptedQueueDemoLeavesNothing(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.On(t, w, "demo", "queue", "--items", "5000")
		for !strings.Contains(p.Line(), "killed process") {
		}
		p.Signal(syscall.SIGTERM)
		require.Equal(t, term.ExitFailed, p.Exit())
		r := cmdtest.Parse[queueResult](t, p.Last())
		require.False(t, r.OK)
		require.Zero(t, r.Lost, "%+v", r)
		require.Positive(t, r.Left)
		require.Contains(t, r.Error, "terminated")
		requireNoDemo(t, w, "queue")
	})
}

func TestTheQueueDemoLosesNothingThoughConsumersAreKilled(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.On(t, w, "--json", "demo", "queue", "--items", "80")
		require.Zero(t, p.Exit())
		r := cmdtest.Parse[queueResult](t, p.Output())
		require.True(t, r.OK)
		require.Equal(t, 80, r.Put)
		require.Equal(t, 80, r.Acked)
		require.Equal(t, 2, r.Kills)
		require.GreaterOrEqual(t, r.Redelivered, 2)
		require.Zero(t, r.Lost)
		require.Less(t, r.Seconds, time.Minute.Seconds())
	})
}
