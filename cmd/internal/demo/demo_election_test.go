//go:build linux || darwin || freebsd || openbsd

package demo

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestTheElectionDemoNeverHasTwoLeadersThoughTheyAreKilled(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "demo", "election", "--replicas", "3", "--kill", "3")
	require.Equal(t, 0, p.Exit())
	r := cmdtest.Parse[electionResult](t, p.Last())
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
	t.Parallel()
	for _, backend := range []zktest.Backend{zktest.Real, zktest.Ensemble} {
		t.Run(backend.String(), func(t *testing.T) {
			w := zktest.New(t, backend)
			p := cmdtest.On(t, w, "--json", "demo", "election", "--kill", "2")
			require.Equal(t, 0, p.Exit())
			text := p.Output()
			require.NotContains(t, text, "\n", "nothing but the result")
			r := cmdtest.Parse[electionResult](t, text)
			require.True(t, r.OK)
			require.Equal(t, 2, r.Kills)
		})
	}
}

func TestAnInterruptedElectionDemoFails(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "demo", "election")
	p.Line()
	p.Signal(syscall.SIGINT)
	require.Equal(t, term.ExitFailed, p.Exit())
	told := p.Output()
	require.NotContains(t, told, "0s without a leader", "nothing was measured")
	r := cmdtest.Parse[electionResult](t, told[strings.LastIndexByte(told, '\n')+1:])
	require.False(t, r.OK)
	require.NotEmpty(t, r.Error)
}

func TestTheElectionDemoRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--replicas", "0"}, {"--kill", "-1"}, {"--kill", "1000"}, {"--replicas", "many"}} {
		require.Equal(t, term.ExitUsage, cmdtest.Start(t, append([]string{"demo", "election"}, args...)...).Exit(), "%q", args)
	}
}

func TestTheTerminalsInterruptEndsADemoInGoodOrder(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), "demo", "election")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := cmdtest.StartAs(t, cmd)
	for !strings.Contains(p.Line(), "leads") {
	}
	require.NoError(t, syscall.Kill(-p.Pid(), syscall.SIGINT)) // as the key does
	require.Equal(t, term.ExitFailed, p.Exit())
	r := cmdtest.Parse[electionResult](t, p.Last())
	require.Contains(t, r.Error, "interrupt")
	require.NotContains(t, r.Error, "process")
	require.Empty(t, p.Stderr.String(), "the replicas were interrupted as well")
	requireNoDemo(t, w, "election")
}
