//go:build linux || darwin || freebsd || openbsd

package demo

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestTheStockDemoSellsEveryUnitOnceThoughHoldersAreKilled(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "demo", "stock", "--workers", "4", "--stock", "60", "--kill", "3")
	require.Equal(t, 0, p.Exit())
	r := cmdtest.Parse[stockResult](t, p.Last())
	require.True(t, r.OK)
	require.Equal(t, "stock", r.Demo)
	require.Equal(t, 60, r.Stock)
	require.Equal(t, 4, r.Workers)
	require.Equal(t, 60, r.Sold)
	require.Zero(t, r.Left)
	require.Zero(t, r.Oversold)
	require.Equal(t, 3, r.Kills)
	require.True(t, r.Growing)
	// The killed holder's session lasted until its time-out: the kills did hit
	// holders.
	require.Greater(t, *r.MaxGap, embeddedSession.Milliseconds()/2)
}

func TestTheStockDemoRunsOnRealServers(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Real)
	p := cmdtest.On(t, w, "--json", "demo", "stock", "--workers", "4", "--stock", "60", "--kill", "2")
	require.Equal(t, 0, p.Exit())
	text := p.Output()
	require.NotContains(t, text, "\n", "nothing but the result")
	r := cmdtest.Parse[stockResult](t, text)
	require.True(t, r.OK)
	require.Equal(t, 60, r.Sold)
	require.Equal(t, 2, r.Kills)
}

func TestWithoutTheLockTheStockDemoTellsWhatWentWrong(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "demo", "stock", "--workers", "4", "--stock", "100", "--kill", "1", "--unsafe")
	require.Equal(t, term.ExitFailed, p.Exit())
	r := cmdtest.Parse[stockResult](t, p.Last())
	require.False(t, r.OK)
	require.Positive(t, r.Oversold)
	require.Equal(t, r.Sold+r.Left, r.Stock+r.Oversold)
}

func TestAnInterruptedDemoStillCountsAndFails(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "demo", "stock", "--workers", "2", "--stock", "100000", "--kill", "1")
	p.Line()
	for !strings.Contains(p.Line(), "Nothing but the lock") {
	}
	p.Signal(syscall.SIGINT)
	require.Equal(t, term.ExitFailed, p.Exit())
	r := cmdtest.Parse[stockResult](t, p.Last())
	require.False(t, r.OK)
	require.NotEmpty(t, r.Error)
	require.Zero(t, r.Oversold)
}

func TestDemosHaveShortSessions(t *testing.T) {
	t.Parallel()
	st := &stage{Connection: conn.Connection{ZK: "127.0.0.1:1", SessionTimeout: time.Hour}}
	_, err := st.servers()
	require.NoError(t, err)
	require.Equal(t, 4*time.Second, st.SessionTimeout)
}

func TestTheStockDemoRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--workers", "0"}, {"--stock", "0"}, {"--kill", "-1"}, {"--kill", "1000"}, {"--workers", "many"}} {
		require.Equal(t, term.ExitUsage, cmdtest.Start(t, append([]string{"demo", "stock"}, args...)...).Exit(), "%q", args)
	}
}

func TestTheStockDemoSaysWhenNoServerAnswers(t *testing.T) {
	t.Parallel()
	cmdtest.InTime(t, 1500*time.Millisecond, func() time.Duration {
		begin := time.Now()
		p := cmdtest.Start(t, "--zk", cmdtest.SilentServer(t), "--connect-timeout", "0.5", "demo", "stock")
		require.Equal(t, term.ExitUnavailable, p.Exit())
		return time.Since(begin)
	})
}
