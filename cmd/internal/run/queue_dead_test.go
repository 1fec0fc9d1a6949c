//go:build linux || darwin || freebsd || openbsd

package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestOneItemIsBuriedOrDropped(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		q := w.Path("q")
		ask := func(status int, args ...string) *cmdtest.Process {
			t.Helper()
			p := cmdtest.On(t, w, append([]string{"--json", "queue"}, args...)...)
			require.NoError(t, p.In.Close())
			require.Equal(t, status, p.Exit(), "%q", args)
			return p
		}
		name := func() string {
			t.Helper()
			return cmdtest.Parse[queueItem](t, ask(0, "peek", q).Line()).Name
		}
		require.Equal(t, "no dead letters", cmdtest.On(t, w, "queue", "dead", q).Output())
		ask(0, "put", q, "poison", "useless", "good")
		ask(7, "receive", q, "--", "sh", "-c", "exit 7")
		poison := name()
		ask(0, "bury", q, poison, "--reason", "no such customer")
		ask(0, "drop", q, name())
		require.Equal(t, "good", cmdtest.On(t, w, "queue", "peek", q).Output())

		ask(term.ExitFailed, "bury", q, poison)
		ask(term.ExitUsage, "drop", q, "poison")
		item := cmdtest.Must(cmdtest.Must(queue.New(cmdtest.Open(t, w), q)).Receive(t.Context()))
		taken := item.Hold().Node()
		ask(term.ExitBusy, "drop", q, taken[len(q+"/taken/"):])

		letters := cmdtest.Parse[struct{ Dead []deadLetter }](t, ask(0, "dead", q).Line()).Dead
		require.Len(t, letters, 1)
		require.Equal(t, "poison", *letters[0].Data)
		require.Equal(t, []any{1, poison, "no such customer"}, []any{letters[0].Deliveries, letters[0].Item, letters[0].Reason})
		require.NotEmpty(t, letters[0].By)
		require.Regexp(t, `(?m)^LETTER .*REASON\n.*"poison" .*no such customer`, cmdtest.On(t, w, "queue", "dead", q).Output())
		r, _ := cmdtest.Seen[look.Report](t, w, q+"/dead")
		require.Zero(t, r.Others)
		require.NotContains(t, cmdtest.On(t, w, "ls", q).Output(), "records")
		ask(0, "receive", q+"/dead", "--", "true")
	})
}

func TestAnItemThatIsDeliveredAgainAndAgainIsOdd(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	q := cmdtest.Must(queue.New(cmdtest.Open(t, w), w.Path("q")))
	require.NoError(t, q.PutBatch(t.Context(), [][]byte{[]byte("poison"), []byte("good")}))
	deliver := func() {
		t.Helper()
		item := cmdtest.Must(q.Receive(t.Context()))
		require.Equal(t, "poison", string(item.Data))
		require.NoError(t, item.Nack(t.Context(), 0))
	}
	for range look.TooOften - 1 {
		deliver()
	}
	r, _ := cmdtest.Seen[look.Report](t, w, w.Path("q"))
	require.Empty(t, r.Odd)
	deliver()
	r, _ = cmdtest.Seen[look.Report](t, w, w.Path("q"))
	require.Equal(t, []string{"1 item was delivered 10 times or more"}, r.Odd)
	p := cmdtest.On(t, w, "doctor", cmdtest.Below(w))
	require.Contains(t, p.Output(), "1 item was delivered 10 times or more")
	require.Equal(t, term.ExitFailed, p.Exit())
}
