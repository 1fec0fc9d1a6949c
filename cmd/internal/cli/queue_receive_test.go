//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestACommandWhoseItemIsLostIsKilled(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	put := on(t, w, "queue", "put", w.Path("q"), "item")
	require.Zero(t, put.exit())
	p := on(t, w, "queue", "receive", w.Path("q"), "--", "sh", "-c", "echo $$; exec sleep 600")
	pid := p.number()
	var claims []string
	zktest.Eventually(t, soon, func() bool {
		claims, _, _ = w.Admin().Children(w.Path("q/taken"))
		return len(claims) == 1
	}, "the item is not taken")
	require.NoError(t, w.Admin().Delete(w.Path("q/taken/"+claims[0]), -1))
	require.Equal(t, exitLost, p.exit())
	requireGone(t, pid)
}

// receive starts a process that has the first item processed by a script.
func receive(t *testing.T, w *zktest.World, script string, options ...string) *process {
	t.Helper()
	return on(t, w, append(append([]string{"queue", "receive"}, options...), w.Path("q"), "--", "sh", "-c", script)...)
}

func TestAKilledReceiversCommandIsDeadBeforeAnotherHasTheItem(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		putItems(t, w, "item")
		victim := receive(t, w, stubborn)
		pid := victim.number()
		next := receive(t, w, fmt.Sprintf(`kill -0 %d 2>/dev/null && echo lives; cat`, pid))
		victim.signal(syscall.SIGKILL)
		require.Equal(t, 0, next.exit())
		require.Equal(t, "item", next.output())
		requireGone(t, pid)
	})
}

func TestAFrozenReceiversCommandIsDeadBeforeAnotherHasTheItem(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		putItems(t, w, "item")
		frozen := receive(t, w, stubborn)
		pid := frozen.number()
		next := receive(t, w, fmt.Sprintf(`kill -0 %d 2>/dev/null && echo lives; cat`, pid))
		frozen.signal(syscall.SIGSTOP)
		require.Equal(t, 0, next.exit())
		require.Equal(t, "item", next.output())
		frozen.signal(syscall.SIGCONT)
		require.Equal(t, exitLost, frozen.exit())
	})
}

func TestACommandGetsTheWholeItem(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	line := strings.Repeat("0123456789", 50_000) // more than a pipe holds
	p := on(t, w, "queue", "put", w.Path("q"))
	_, err := p.in.Write([]byte(line))
	require.NoError(t, err)
	require.NoError(t, p.in.Close())
	require.Equal(t, 0, p.exit())
	require.Equal(t, "500000", strings.TrimSpace(receive(t, w, "wc -c").output()))
	require.Equal(t, 0, on(t, w, "queue", "len", w.Path("q")).exit())
}

func TestASignalEndsTheWaitForAnItem(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		for _, args := range [][]string{{"take", w.Path("q")}, {"receive", w.Path("q"), "--", "true"}} {
			p := on(t, w, append([]string{"queue"}, args...)...)
			awaitContenders(t, w.Admin(), w.Path("q/consumers"), 1)
			p.signal(syscall.SIGINT)
			require.Equal(t, 128+int(syscall.SIGINT), p.exit(), "%q", args)
			require.Empty(t, p.stderr.String(), "%q", args)
		}
	})
}

func TestASignalEndsTheDelayOfAFailedItem(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		putItems(t, w, "item")
		p := receive(t, w, "echo failed; exit 3", "--delay", "10m")
		require.Equal(t, "failed", p.line())
		require.Equal(t, exitTimeout, receive(t, w, "cat", "--timeout", "300ms").exit())
		p.signal(syscall.SIGTERM)
		require.Equal(t, 3, p.exit())
		require.Equal(t, "item", receive(t, w, "cat").output())
	})
}

func TestReceiveTellsItsStoryInJSON(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	putItems(t, w, "item")
	p := receive(t, w, "exit 7", "--json")
	require.Equal(t, 7, p.exit())
	story := parse[map[string]any](t, strings.TrimSpace(p.stderr.String()))
	require.Equal(t, w.Path("q"), story["path"])
	require.EqualValues(t, 7, story["status"])
	require.EqualValues(t, 1, story["deliveries"])
	require.Equal(t, false, story["lost"])
}

func TestACommandThatCannotBeRunIsNoDelivery(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	putItems(t, w, "item")
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	for command, want := range map[string]int{"no-such-command": 127, "/no/such/file": 127, plain: 126} {
		for range 2 {
			p := on(t, w, "--json", "queue", "receive", "--dead", "1", w.Path("q"), "--", command)
			require.Equal(t, want, p.exit())
			story := parse[map[string]any](t, strings.SplitN(p.stderr.String(), "\n", 2)[0])
			require.EqualValues(t, want, story["status"])
			require.Contains(t, story["error"], command)
		}
	}
	require.Equal(t, "item 1", receive(t, w, "echo $(cat) $COORD_DELIVERIES", "--dead", "1").output())
}
