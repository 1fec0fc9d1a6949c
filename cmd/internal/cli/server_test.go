//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheServerServesUntilItIsInterrupted(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		server := start(t, "server", "--addr", "127.0.0.1:0", "--tick", "100ms")
		address := server.line()
		require.Equal(t, 3, start(t, "--zk", address, "lock", "/l", "--", "sh", "-c", "exit 3").exit())
		server.signal(s)
		require.Equal(t, 0, server.exit())
		require.Empty(t, server.output())
	}
}

func TestTheServerTellsItsAddressInJSON(t *testing.T) {
	server := start(t, "--json", "server", "--addr", "127.0.0.1:0")
	address := parse[map[string]string](t, server.line())["connect"]
	require.Equal(t, 0, start(t, "--zk", address, "lock", "/l", "--", "true").exit())
	server.signal(syscall.SIGINT)
	require.Equal(t, 0, server.exit())
}

func TestTheServersTickBoundsItsSessions(t *testing.T) {
	server := start(t, "server", "--addr", "127.0.0.1:0", "--tick", "100ms")
	// 20 ticks at most, so that two seconds do not fit into a third of it.
	p := start(t, "--zk", server.line(), "--session-timeout", "1h", "lock", "--kill-after", "2s", "/l", "--", "true")
	require.Equal(t, exitUsage, p.exit())
	require.Contains(t, p.stderr.String(), (2 * time.Second).String())
	server.signal(syscall.SIGINT)
	require.Equal(t, 0, server.exit())
}

func TestAServerThatCannotListenSaysWhy(t *testing.T) {
	taken := silentServer(t)
	p := start(t, "server", "--addr", taken)
	require.Equal(t, exitFailed, p.exit())
	require.Contains(t, p.stderr.String(), taken)
	require.Equal(t, exitUsage, start(t, "server", "--tick", "0").exit())
}
