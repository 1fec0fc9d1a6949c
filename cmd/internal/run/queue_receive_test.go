//go:build linux || darwin || freebsd || openbsd

package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestACommandWhoseItemIsLostIsKilled(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	put := cmdtest.On(t, w, "queue", "put", w.Path("q"), "item")
	require.Zero(t, put.Exit())
	p := cmdtest.On(t, w, "queue", "receive", w.Path("q"), "--", "sh", "-c", "echo $$; exec sleep 600")
	pid := p.Number()
	var claims []string
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		claims, _, _ = w.Admin().Children(w.Path("q/taken"))
		return len(claims) == 1
	}, "the item is not taken")
	require.NoError(t, w.Admin().Delete(w.Path("q/taken/"+claims[0]), -1))
	require.Equal(t, term.ExitLost, p.Exit())
	cmdtest.RequireGone(t, pid)
}

func TestAKilledReceiversCommandIsDeadBeforeAnotherHasTheItem(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.PutItems(t, w, "item")
		victim := cmdtest.Mortal(t, w, cmdtest.Receiving(w, cmdtest.Stubborn)...)
		pid := victim.Number()
		next := cmdtest.Receive(t, w, fmt.Sprintf(`kill -0 %d 2>/dev/null && echo lives; cat`, pid))
		victim.Signal(syscall.SIGKILL)
		require.Equal(t, 0, next.Exit())
		require.Equal(t, "item", next.Output())
		cmdtest.RequireGone(t, pid)
	})
}

func TestAFrozenReceiversCommandIsDeadBeforeAnotherHasTheItem(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.PutItems(t, w, "item")
		frozen := cmdtest.Mortal(t, w, cmdtest.Receiving(w, cmdtest.Stubborn)...)
		pid := frozen.Number()
		next := cmdtest.Receive(t, w, fmt.Sprintf(`kill -0 %d 2>/dev/null && echo lives; cat`, pid))
		frozen.Signal(syscall.SIGSTOP)
		require.Equal(t, 0, next.Exit())
		require.Equal(t, "item", next.Output())
		frozen.Signal(syscall.SIGCONT)
		require.Equal(t, term.ExitLost, frozen.Exit())
	})
}

func TestACommandGetsTheWholeItem(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	line := strings.Repeat("0123456789", 50_000) // more than a pipe holds
	p := cmdtest.On(t, w, "queue", "put", w.Path("q"))
	_, err := p.In.Write([]byte(line))
	require.NoError(t, err)
	require.NoError(t, p.In.Close())
	require.Equal(t, 0, p.Exit())
	require.Equal(t, "500000", strings.TrimSpace(cmdtest.Receive(t, w, "wc -c").Output()))
	require.Equal(t, 0, cmdtest.On(t, w, "queue", "len", w.Path("q")).Exit())
}

func TestASignalEndsTheWaitForAnItem(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		for _, args := range [][]string{{"take", w.Path("q")}, {"receive", w.Path("q"), "--", "true"}} {
			p := cmdtest.On(t, w, append([]string{"queue"}, args...)...)
			cmdtest.AwaitContenders(t, w.Admin(), w.Path("q/consumers"), 1)
			p.Signal(syscall.SIGINT)
			require.Equal(t, 128+int(syscall.SIGINT), p.Exit(), "%q", args)
			require.Empty(t, p.Stderr.String(), "%q", args)
		}
	})
}

func TestASignalEndsTheDelayOfAFailedItem(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.PutItems(t, w, "item")
		p := cmdtest.Receive(t, w, "echo failed; exit 3", "--delay", "10m")
		require.Equal(t, "failed", p.Line())
		cmdtest.GivesUp(t, func(timeout string) *cmdtest.Process {
			return cmdtest.Receive(t, w, "cat", "--timeout", timeout)
		})
		p.Signal(syscall.SIGTERM)
		require.Equal(t, 3, p.Exit())
		require.Equal(t, "item", cmdtest.Receive(t, w, "cat").Output())
	})
}

func TestReceiveTellsItsStoryInJSON(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	cmdtest.PutItems(t, w, "item")
	p := cmdtest.Receive(t, w, "exit 7", "--json")
	require.Equal(t, 7, p.Exit())
	story := cmdtest.Parse[map[string]any](t, strings.TrimSpace(p.Stderr.String()))
	require.Equal(t, w.Path("q"), story["path"])
	require.EqualValues(t, 7, story["status"])
	require.EqualValues(t, 1, story["deliveries"])
	require.Equal(t, false, story["lost"])
}

func TestACommandThatCannotBeRunIsNoDelivery(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	cmdtest.PutItems(t, w, "item")
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	for command, want := range map[string]int{"no-such-command": 127, "/no/such/file": 127, plain: 126} {
		for range 2 {
			p := cmdtest.On(t, w, "--json", "queue", "receive", "--dead", "1", w.Path("q"), "--", command)
			require.Equal(t, want, p.Exit())
			story := cmdtest.Parse[map[string]any](t, strings.SplitN(p.Stderr.String(), "\n", 2)[0])
			require.EqualValues(t, want, story["status"])
			require.Contains(t, story["error"], command)
		}
	}
	require.Equal(t, "item 1", cmdtest.Receive(t, w, "echo $(cat) $COORD_DELIVERIES", "--dead", "1").Output())
}
