//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

func TestTheServerServesUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		server := cmdtest.Start(t, "server", "--addr", "127.0.0.1:0", "--tick", "100ms")
		address := server.Line()
		require.Equal(t, 3, cmdtest.Start(t, "--zk", address, "lock", "/l", "--", "sh", "-c", "exit 3").Exit())
		server.Signal(s)
		require.Equal(t, 0, server.Exit())
		require.Empty(t, server.Output())
	}
}

func TestTheServerTellsItsAddressInJSON(t *testing.T) {
	t.Parallel()
	server := cmdtest.Start(t, "--json", "server", "--addr", "127.0.0.1:0")
	address := cmdtest.Parse[map[string]string](t, server.Line())["connect"]
	require.Equal(t, 0, cmdtest.Start(t, "--zk", address, "lock", "/l", "--", "true").Exit())
	server.Signal(syscall.SIGINT)
	require.Equal(t, 0, server.Exit())
}

func TestTheServersTickBoundsItsSessions(t *testing.T) {
	t.Parallel()
	server := cmdtest.Start(t, "server", "--addr", "127.0.0.1:0", "--tick", "100ms")
	// 20 ticks at most, so that two seconds do not fit into a third of it.
	p := cmdtest.Start(t, "--zk", server.Line(), "--session-timeout", "1h", "lock", "--kill-after", "2s", "/l", "--", "true")
	require.Equal(t, term.ExitUsage, p.Exit())
	require.Contains(t, p.Stderr.String(), (2 * time.Second).String())
	server.Signal(syscall.SIGINT)
	require.Equal(t, 0, server.Exit())
}

func TestAServerThatCannotListenSaysWhy(t *testing.T) {
	t.Parallel()
	taken := cmdtest.SilentServer(t)
	p := cmdtest.Start(t, "server", "--addr", taken)
	require.Equal(t, term.ExitFailed, p.Exit())
	require.Contains(t, p.Stderr.String(), taken)
	require.Equal(t, term.ExitUsage, cmdtest.Start(t, "server", "--tick", "0").Exit())
}
