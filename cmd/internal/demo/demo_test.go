//go:build linux || darwin || freebsd || openbsd

package demo

import (
	"bufio"
	"os/exec"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestADemoWhoseOutputIsNotReadAnyMoreClearsUp(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), "demo", "queue")...)
	cmd.Env = cmdtest.Environment()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, out.Close())
	require.Error(t, cmd.Wait())
	require.Equal(t, term.ExitFailed, cmd.ProcessState.ExitCode())
	requireNoDemo(t, w, "queue")
}

// requireNoDemo looks whether the servers have anything of a demo's.
func requireNoDemo(t *testing.T, w *zktest.World, name string) {
	t.Helper()
	left, _, err := w.Admin().Children("/coorddemo")
	if err != nil {
		require.ErrorIs(t, err, zk.ErrNoNode)
	}
	for _, path := range left {
		require.NotContains(t, path, name)
	}
}
