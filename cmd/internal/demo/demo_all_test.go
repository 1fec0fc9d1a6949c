//go:build linux || darwin || freebsd || openbsd

package demo

import (
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestAllDemosRunInTurnAndTellTogether(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "demo", "all", "--json")
	zktest.Receive(t, 4*time.Minute, p.Exited, "the demos do not end")
	require.Zero(t, p.Exit())
	r := cmdtest.Parse[allResult](t, p.Output())
	require.True(t, r.OK)
	for _, name := range demoNames {
		var outcome struct {
			Demo string
			OK   bool
		}
		require.NoError(t, json.Unmarshal(r.Demos[name], &outcome), name)
		require.Equal(t, name, outcome.Demo)
		require.True(t, outcome.OK, name)
	}
}

func TestAllDemosEndWhenTheyAreInterrupted(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	p := cmdtest.On(t, w, "demo", "all")
	for !strings.Contains(p.Line(), "killed process") {
	}
	p.Signal(syscall.SIGTERM)
	require.Equal(t, term.ExitFailed, p.Exit())
	r := cmdtest.Parse[allResult](t, p.Last())
	require.False(t, r.OK)
	require.Contains(t, r.Error, "terminated")
	require.Len(t, r.Demos, 1, "it has gone on")
	requireNoDemo(t, w, "stock")
}

func TestADemoThatFailsDoesNotKeepTheOthersFromBeingShown(t *testing.T) {
	t.Parallel()
	// Three of them want a directory for a file, and there is none.
	w := zktest.New(t, zktest.Embedded)
	cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), "--session-timeout", "4s", "demo", "all")...)
	cmd.Dir, cmd.Env = t.TempDir(), []string{"TMPDIR=/no/such/directory"}
	p := cmdtest.StartAs(t, cmd)
	zktest.Receive(t, 4*time.Minute, p.Exited, "the demos do not end")
	require.Equal(t, term.ExitFailed, p.Exit())
	r := cmdtest.Parse[allResult](t, p.Last())
	require.False(t, r.OK)
	require.Len(t, r.Demos, len(demoNames))
	for name, wants := range map[string]string{"stock": `"ok":false`, "batch": `"ok":false`, "election": `"ok":false`, "queue": `"ok":true`} {
		require.Contains(t, string(r.Demos[name]), wants, name)
		require.Contains(t, string(r.Demos[name]), `"demo":"`+name+`"`, name)
	}
}

func TestAllDemosTellInJSONThatNoServerAnswers(t *testing.T) {
	t.Parallel()
	p := cmdtest.Start(t, "--zk", cmdtest.SilentServer(t), "--connect-timeout", "0.5", "demo", "all")
	require.Equal(t, term.ExitUnavailable, p.Exit())
	r := cmdtest.Parse[allResult](t, p.Last())
	require.False(t, r.OK)
	require.Len(t, r.Demos, 1, "the others would find no server either")
	require.Contains(t, string(r.Demos["stock"]), `"status":69`)
}
