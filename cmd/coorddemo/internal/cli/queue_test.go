//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestQueueVerbsPutTakeReceiveCountAndPeek(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		q := w.Path("q")
		ask := func(status int, args ...string) string {
			t.Helper()
			p := on(t, w, append([]string{"queue"}, args...)...)
			require.NoError(t, p.in.Close())
			require.Equal(t, status, p.exit(), "%q", args)
			return p.output()
		}
		ask(0, "put", q, "a", "b", "c")
		ask(0, "put", q, "urgent", "--priority", "5")
		require.Equal(t, "4", ask(0, "len", q))
		require.Equal(t, "urgent", ask(0, "peek", q))
		require.Equal(t, "urgent", ask(0, "take", q))
		require.Equal(t, "a 1", ask(0, "receive", q, "--", "sh", "-c", "echo $(cat) $COORD_DELIVERIES"))
		ask(3, "receive", q, "--", "sh", "-c", "exit 3")
		require.Equal(t, "b 2", ask(0, "receive", q, "--", "sh", "-c", "echo $(cat) $COORD_DELIVERIES"))
		ask(127, "receive", q, "--", "no-such-command")
		ask(143, "receive", q, "--", "sh", "-c", "kill $$")
		require.Equal(t, "c", ask(0, "take", q))
		require.Equal(t, "0", ask(0, "len", q))
		ask(1, "peek", q)
		ask(exitTimeout, "take", q, "--timeout", "200ms")
		ask(exitTimeout, "receive", q, "--timeout", "200ms", "--", "true")
		ask(exitUsage, "receive", q)
		ask(exitUsage, "put", q, "x", "--priority", "1000")
		ask(exitUsage, "take", "relative")
	})
}

func TestQueuePutReadsLines(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, "queue", "put", w.Path("q"))
	_, err := p.in.Write([]byte("first line\nsecond line\n"))
	require.NoError(t, err)
	require.NoError(t, p.in.Close())
	require.Zero(t, p.exit())
	require.Equal(t, "first line", on(t, w, "queue", "take", w.Path("q")).output())
}

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

func TestTheQueueDemoLosesNothingThoughConsumersAreKilled(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		p := on(t, w, "--json", "demo", "queue", "--items", "80")
		require.Zero(t, p.exit())
		r := parse[queueResult](t, p.output())
		require.True(t, r.OK)
		require.Equal(t, 80, r.Put)
		require.Equal(t, 80, r.Acked)
		require.Equal(t, 2, r.Kills)
		require.GreaterOrEqual(t, r.Redelivered, 2)
		require.Zero(t, r.Lost)
		require.Less(t, r.Seconds, time.Minute.Seconds())
	})
}
