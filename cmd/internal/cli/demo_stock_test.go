//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// last is the demo's last line of output.
func (p *process) last() string {
	lines := strings.Split(p.output(), "\n")
	return lines[len(lines)-1]
}

func TestTheStockDemoSellsEveryUnitOnceThoughHoldersAreKilled(t *testing.T) {
	p := start(t, "demo", "stock", "--workers", "4", "--stock", "60", "--kill", "3")
	require.Equal(t, 0, p.exit())
	r := parse[stockResult](t, p.last())
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
	w := zktest.New(t, zktest.Real)
	p := on(t, w, "--json", "demo", "stock", "--workers", "4", "--stock", "60", "--kill", "2")
	require.Equal(t, 0, p.exit())
	text := p.output()
	require.NotContains(t, text, "\n", "nothing but the result")
	r := parse[stockResult](t, text)
	require.True(t, r.OK)
	require.Equal(t, 60, r.Sold)
	require.Equal(t, 2, r.Kills)
}

func TestWithoutTheLockTheStockDemoTellsWhatWentWrong(t *testing.T) {
	p := start(t, "demo", "stock", "--workers", "4", "--stock", "100", "--kill", "1", "--unsafe")
	require.Equal(t, exitFailed, p.exit())
	r := parse[stockResult](t, p.last())
	require.False(t, r.OK)
	require.Positive(t, r.Oversold)
	require.Equal(t, r.Sold+r.Left, r.Stock+r.Oversold)
}

func TestAnInterruptedDemoStillCountsAndFails(t *testing.T) {
	p := start(t, "demo", "stock", "--workers", "2", "--stock", "100000", "--kill", "1")
	p.line()
	for !strings.Contains(p.line(), "Nothing but the lock") {
	}
	p.signal(syscall.SIGINT)
	require.Equal(t, exitFailed, p.exit())
	r := parse[stockResult](t, p.last())
	require.False(t, r.OK)
	require.NotEmpty(t, r.Error)
	require.Zero(t, r.Oversold)
}

func TestDemosHaveShortSessions(t *testing.T) {
	st := &stage{connection: connection{ZK: "127.0.0.1:1", SessionTimeout: time.Hour}}
	_, err := st.servers()
	require.NoError(t, err)
	require.Equal(t, 4*time.Second, st.SessionTimeout)
}

func TestTheStockDemoRefusesWhatCannotBe(t *testing.T) {
	for _, args := range [][]string{{"--workers", "0"}, {"--stock", "0"}, {"--kill", "-1"}, {"--kill", "1000"}, {"--workers", "many"}} {
		require.Equal(t, exitUsage, start(t, append([]string{"demo", "stock"}, args...)...).exit(), "%q", args)
	}
}

func TestTheStockDemoSaysWhenNoServerAnswers(t *testing.T) {
	inTime(t, 1500*time.Millisecond, func() time.Duration {
		begin := time.Now()
		p := start(t, "--zk", silentServer(t), "--connect-timeout", "0.5", "demo", "stock")
		require.Equal(t, exitUnavailable, p.exit())
		return time.Since(begin)
	})
}
