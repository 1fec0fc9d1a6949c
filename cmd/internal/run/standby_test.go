//go:build linux || darwin || freebsd || openbsd

package run

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// A start that takes as long as the wait is no reason for systemd to kill it.
func TestAStandbyTellsItsServiceManagerThatItWaits(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	dir, err := os.MkdirTemp("", "") // the name of a socket is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = manager.Close() })
	told := make(chan string, 16)
	go func() {
		defer close(told)
		for packet := make([]byte, 4096); ; {
			n, err := manager.Read(packet)
			if err != nil {
				return
			}
			told <- string(packet[:n])
		}
	}()
	holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "echo holds; "+cmdtest.UntilEOF)...)
	holder.Line()

	cmd := exec.Command(cmdtest.Coorddemo(t), append(cmdtest.Target(w), cmdtest.Sh(w.Path("l"), "echo ready; "+cmdtest.UntilEOF)...)...)
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+manager.LocalAddr().String(), "WATCHDOG_USEC=200000")
	standby := cmdtest.StartAs(t, cmd)
	for range 3 { // also again and again
		select {
		case packet := <-told:
			require.Equal(t, "EXTEND_TIMEOUT_USEC=60000000\nWATCHDOG=1\n", packet)
		case <-time.After(cmdtest.Soon):
			require.FailNow(t, "the service manager is told nothing")
		}
	}
	require.NoError(t, holder.In.Close())
	require.Equal(t, "ready", standby.Line())
	require.NoError(t, standby.In.Close())
	require.Equal(t, 5, standby.Exit())
}
