//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestAllDemosRunInTurnAndTellTogether(t *testing.T) {
	p := start(t, "demo", "all", "--json")
	zktest.Receive(t, 4*time.Minute, p.exited, "the demos do not end")
	require.Zero(t, p.exit())
	r := parse[allResult](t, p.output())
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
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, "demo", "all")
	for !strings.Contains(p.line(), "killed process") {
	}
	p.signal(syscall.SIGTERM)
	require.Equal(t, exitFailed, p.exit())
	r := parse[allResult](t, p.last())
	require.False(t, r.OK)
	require.Contains(t, r.Error, "terminated")
	require.Len(t, r.Demos, 1, "it has gone on")
	requireNoDemo(t, w, "stock")
}

func TestADemoThatFailsDoesNotKeepTheOthersFromBeingShown(t *testing.T) {
	// Three of them want a directory for a file, and there is none.
	w := zktest.New(t, zktest.Embedded)
	cmd := exec.Command(os.Args[0], append(target(w), "--session-timeout", "4s", "demo", "all")...)
	cmd.Dir, cmd.Env = t.TempDir(), []string{"TMPDIR=/no/such/directory"}
	p := startAs(t, cmd)
	zktest.Receive(t, 4*time.Minute, p.exited, "the demos do not end")
	require.Equal(t, exitFailed, p.exit())
	r := parse[allResult](t, p.last())
	require.False(t, r.OK)
	require.Len(t, r.Demos, len(demoNames))
	for name, wants := range map[string]string{"stock": `"ok":false`, "batch": `"ok":false`, "election": `"ok":false`, "queue": `"ok":true`} {
		require.Contains(t, string(r.Demos[name]), wants, name)
		require.Contains(t, string(r.Demos[name]), `"demo":"`+name+`"`, name)
	}
}

func TestAllDemosTellInJSONThatNoServerAnswers(t *testing.T) {
	p := start(t, "--zk", silentServer(t), "--connect-timeout", "0.5", "demo", "all")
	require.Equal(t, exitUnavailable, p.exit())
	r := parse[allResult](t, p.last())
	require.False(t, r.OK)
	require.Len(t, r.Demos, 1, "the others would find no server either")
	require.Contains(t, string(r.Demos["stock"]), `"status":69`)
}
