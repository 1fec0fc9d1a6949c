//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestTheElectionDemoNeverHasTwoLeadersThoughTheyAreKilled(t *testing.T) {
	p := start(t, "demo", "election", "--replicas", "3", "--kill", "3")
	require.Equal(t, 0, p.exit())
	r := parse[electionResult](t, p.last())
	require.True(t, r.OK)
	require.Equal(t, "election", r.Demo)
	require.Equal(t, 3, r.Replicas)
	require.Equal(t, 3, r.Kills)
	require.GreaterOrEqual(t, r.Terms, 4)
	require.Greater(t, r.Entries, r.Terms)
	require.Zero(t, r.Overlaps)
	// The killed leader's session lasted until its time-out: the kills did hit
	// leaders.
	require.Greater(t, *r.MaxGap, embeddedSession.Milliseconds()/2)
}

func TestTheElectionDemoRunsOnRealServers(t *testing.T) {
	for _, backend := range []zktest.Backend{zktest.Real, zktest.Ensemble} {
		t.Run(backend.String(), func(t *testing.T) {
			w := zktest.New(t, backend)
			p := on(t, w, "--json", "demo", "election", "--kill", "2")
			require.Equal(t, 0, p.exit())
			text := p.output()
			require.NotContains(t, text, "\n", "nothing but the result")
			r := parse[electionResult](t, text)
			require.True(t, r.OK)
			require.Equal(t, 2, r.Kills)
		})
	}
}

func TestAnInterruptedElectionDemoFails(t *testing.T) {
	p := start(t, "demo", "election")
	p.line()
	p.signal(syscall.SIGINT)
	require.Equal(t, exitFailed, p.exit())
	told := p.output()
	require.NotContains(t, told, "0s without a leader", "nothing was measured")
	r := parse[electionResult](t, told[strings.LastIndexByte(told, '\n')+1:])
	require.False(t, r.OK)
	require.NotEmpty(t, r.Error)
}

func TestTheElectionDemoRefusesWhatCannotBe(t *testing.T) {
	for _, args := range [][]string{{"--replicas", "0"}, {"--kill", "-1"}, {"--kill", "1000"}, {"--replicas", "many"}} {
		require.Equal(t, exitUsage, start(t, append([]string{"demo", "election"}, args...)...).exit(), "%q", args)
	}
}

func TestTheTerminalsInterruptEndsADemoInGoodOrder(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	cmd := exec.Command(os.Args[0], append(target(w), "demo", "election")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := startAs(t, cmd)
	for !strings.Contains(p.line(), "leads") {
	}
	require.NoError(t, syscall.Kill(-p.pid(), syscall.SIGINT)) // as the key does
	require.Equal(t, exitFailed, p.exit())
	r := parse[electionResult](t, p.last())
	require.Contains(t, r.Error, "interrupt")
	require.NotContains(t, r.Error, "process")
	require.Empty(t, p.stderr.String(), "the replicas were interrupted as well")
	requireNoDemo(t, w, "election")
}
