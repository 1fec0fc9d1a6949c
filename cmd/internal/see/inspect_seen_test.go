//go:build linux || darwin || freebsd || openbsd

package see

import (
	"encoding/binary"
	"math"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestInspectTellsTheLimitOfASemaphore(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		for _, dialect := range []coord.Dialect{coord.Curator, coord.Kazoo} {
			client := cmdtest.Open(t, w, coord.WithDialect(dialect))
			path := w.Path(string(dialect))
			h := cmdtest.Must(cmdtest.Must(semaphore.New(client, path, 3)).Acquire(t.Context()))
			for _, other := range []string{"curator", "kazoo"} {
				r, text := cmdtest.Seen[look.Report](t, w, path, "--dialect", other)
				require.Equal(t, 3, r.Limit)
				require.Len(t, r.Holders(), 1)
				require.Contains(t, text, "semaphore of 3, "+string(dialect)+" dialect")
			}
			require.NoError(t, h.Release(t.Context()))
		}
		r, text := cmdtest.Seen[look.Report](t, w, w.Path("curator"))
		require.Equal(t, 3, r.Limit)
		require.Equal(t, look.SlotsKind, r.Kind)
		require.Zero(t, r.Others)
		require.Equal(t, w.Path("curator")+": semaphore of 3; nobody holds it, nobody waits", text)
	})
}

// Curator's semaphore with a number of its own stores none: the leases tell who
// holds, but for the last where the first in the queue may wait for it.
func TestLeasesWithoutALimitAreHeld(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.Contend(t, w, w.Path("s/leases"), map[string]string{"_c_" + cmdtest.Guid1 + "-lease-0000000001": "a", "_c_" + cmdtest.Guid2 + "-lease-0000000002": "b"})
	r, text := cmdtest.Seen[look.Report](t, w, w.Path("s"))
	require.Len(t, r.Holders(), 2)
	require.Zero(t, r.Limit)
	require.Contains(t, text, ": semaphore, curator dialect")
	cmdtest.Contend(t, w, w.Path("s/locks"), map[string]string{"_c_" + cmdtest.Guid3 + "-lock-0000000001": "b"})
	r, _ = cmdtest.Seen[look.Report](t, w, w.Path("s"))
	require.Len(t, r.Holders(), 1)
	cmdtest.ByHand(t, w, w.Path("s/limit"), string(binary.BigEndian.AppendUint32(nil, 2)))
	r, _ = cmdtest.Seen[look.Report](t, w, w.Path("s"))
	require.Len(t, r.Holders(), 2)
}

func TestInspectTellsTheAddressesOfClients(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		tellsAddresses(t, w)
	})
}

func TestInspectTellsTheAddressesOfClientsByWhatTheServerAllows(t *testing.T) {
	t.Parallel()
	w := zktest.NewPrivate(t, zktest.Real, zktest.WithConfig("4lw.commands.whitelist", "srvr, dump"))
	tellsAddresses(t, w)
	w = zktest.NewPrivate(t, zktest.Real, zktest.WithConfig("4lw.commands.whitelist", "srvr"))
	cmdtest.Contend(t, w, w.Path("l"), map[string]string{"_c_" + cmdtest.Guid1 + "-lock-0000000001": "a"})
	r, text := cmdtest.Seen[look.Report](t, w, w.Path("l"))
	require.Empty(t, r.Contenders[0].Address)
	require.NotContains(t, text, "ADDRESS")
}

func tellsAddresses(t *testing.T, w *zktest.World) {
	t.Helper()
	holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF, "--on-revoke", "ignore")...).Begun()
	cmdtest.Contend(t, w, w.Path("l"), map[string]string{"_c_" + cmdtest.Guid1 + "-lock-0000000009": "other"})
	address := ""
	for range 2 { // the second time it has been asked to give up
		r, text := cmdtest.Seen[look.Report](t, w, w.Path("l"))
		require.Len(t, r.Contenders, 2)
		require.Regexp(t, `^127\.0\.0\.1:\d+$`, r.Contenders[0].Address)
		require.Regexp(t, `^127\.0\.0\.1:\d+$`, r.Contenders[1].Address)
		require.NotEqual(t, r.Contenders[0].Address, r.Contenders[1].Address)
		require.Regexp(t, "^sh ", r.Contenders[0].Owner)
		require.Regexp(t, `(?m)^ +STATE +KIND +OWNER +ADDRESS +AGE `, text)
		require.Regexp(t, `(?m)^1 +holds.* +`+r.Contenders[0].Address+` +\d`, text)
		if address != "" {
			require.Equal(t, address, r.Contenders[0].Address)
			require.True(t, r.Contenders[0].Revoked)
		}
		address = r.Contenders[0].Address
		require.Zero(t, cmdtest.On(t, w, "revoke", w.Path("l")).Exit())
	}
	require.Equal(t, address, cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "top", w.Path("l")).Line()).Contenders[0].Address)
	holder.LetGo(5)
}

func TestInspectTellsTheAddressOfAQueuesConsumer(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.PutItems(t, w, "item", "next")
	consumer := cmdtest.Receive(t, w, `echo $$; exec sleep 600`).Begun()
	r, text := cmdtest.Seen[look.Report](t, w, w.Path("q"))
	require.Regexp(t, `^127\.0\.0\.1:\d+$`, r.Queue.First[0].Address)
	require.Contains(t, text, `" at `+r.Queue.First[0].Address)
	require.Empty(t, r.Queue.First[1].Address, "nobody has it")
	consumer.EndsBy(syscall.SIGTERM, 143)
}

func TestInspectTellsWhatBelongsToNoSession(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.Contend(t, w, w.Path("l"), map[string]string{"_c_" + cmdtest.Guid1 + "-lock-0000000002": "waits"})
		cmdtest.ByHand(t, w, w.Path("l/_c_"+cmdtest.Guid2+"-lock-0000000001"), "by hand")
		r, text := cmdtest.Seen[look.Report](t, w, w.Path("l"))
		require.Equal(t, []bool{true, false}, []bool{r.Contenders[0].Orphan, r.Contenders[1].Orphan})
		require.Equal(t, []string{"1 contender belongs to no session, and will never go by itself"}, r.Odd)
		require.Regexp(t, `(?m)^1 +holds +lock +"by hand" .* none `, text)
		require.Regexp(t, `(?m)^! +1 contender belongs to no session, and will never go by itself\n +→ a program made the node persistent`, text)

		client := cmdtest.Open(t, w)
		cmdtest.Must(cmdtest.Must(semaphore.New(client, w.Path("s"), 2)).Acquire(t.Context()))
		cmdtest.ByHand(t, w, w.Path("s/leases/_c_"+cmdtest.Guid1+"-lease-0000000007"), "by hand")
		r, _ = cmdtest.Seen[look.Report](t, w, w.Path("s"))
		require.Len(t, r.Holders(), 2)
		require.True(t, r.Holders()[1].Orphan)
		require.Len(t, r.Odd, 1)

		q := cmdtest.Must(queue.New(client, w.Path("q")))
		require.NoError(t, q.Put(t.Context(), []byte("one")))
		cmdtest.ByHand(t, w, w.Path("q/taken/entry-100-0000000000"), "")
		r, text = cmdtest.Seen[look.Report](t, w, w.Path("q"))
		require.True(t, r.Queue.First[0].Orphan)
		require.Equal(t, []string{"1 item is in the hand of no session, and will never come back by itself"}, r.Odd)
		require.Regexp(t, `(?m)^entry-100-0000000000 .* no session$`, text)
		require.Zero(t, cmdtest.On(t, w, "break", "--yes", "--node", "entry-100-0000000000", w.Path("q")).Exit())
		r, _ = cmdtest.Seen[look.Report](t, w, w.Path("q"))
		require.Zero(t, r.Queue.InHand)
	})
}

func TestInspectTellsForeignContenders(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.Contend(t, w, w.Path("l"), map[string]string{
		"_c_" + cmdtest.Guid1 + "-lock-0000000001": "java", strings.ReplaceAll(cmdtest.Guid2, "-", "") + "__lock__0000000002": "python",
	})
	r, text := cmdtest.Seen[look.Report](t, w, w.Path("l"))
	require.Equal(t, []string{"curator", "kazoo"}, []string{r.Contenders[0].Dialect, r.Contenders[1].Dialect})
	require.Equal(t, []string{"two dialects, which do not see each other"}, r.Odd)
	require.Regexp(t, `(?m)^2 +holds +lock, kazoo +"python" `, text)
	require.Contains(t, text, "→ one path, one dialect")
}

func TestInspectTellsHowFarTheCounterIsFromItsEnd(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		for _, script := range []string{"true", "true", "true"} {
			require.Zero(t, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), script)...).Exit())
		}
		r, text := cmdtest.Seen[look.Report](t, w, w.Path("l"))
		require.Empty(t, r.Contenders)
		require.EqualValues(t, math.MaxInt32-2, r.Left, "of three numbers, the last is 2")
		require.NotContains(t, text, "sequence numbers")
		holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).Begun()
		r, _ = cmdtest.Seen[look.Report](t, w, w.Path("l"))
		require.EqualValues(t, math.MaxInt32-3, r.Left)
		holder.LetGo(5)
	})
}

func TestInspectTellsThatACounterIsNearItsEnd(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.PutItems(t, w, "item")
	for _, path := range []string{"q2", "q2/entries", "q2/taken", "q2/waiting"} {
		cmdtest.ByHand(t, w, w.Path(path), "")
	}
	require.Zero(t, cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "true")...).Exit())
	require.Zero(t, cmdtest.On(t, w, cmdtest.Sh(w.Path("s"), "true", "--slots", "2")...).Exit())
	for path, dir := range map[string]string{"l": "l", "s": "s/leases", "q": "q/entries", "q2": "q2/waiting"} {
		require.NoError(t, w.Embedded().SetSequence(w.Path(dir), 2147400000))
		r, text := cmdtest.Seen[look.Report](t, w, w.Path(path))
		require.EqualValues(t, 83648, r.Left, path)
		require.Equal(t, []string{"2147399999 of 2147483647 sequence numbers are used up; use another path before the rest is"}, r.Odd, path)
		require.Contains(t, text, "→ move to a fresh path before the counter is full", path)
	}
}

// A process that is stopped keeps its connection, and its lock, until the
// session ends.
func TestAHolderThatIsSilentIsTold(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		holder := cmdtest.Mortal(t, w, cmdtest.Sh(w.Path("l"), "echo holds; "+cmdtest.UntilEOF)...)
		require.Equal(t, "holds", holder.Line())
		_, text := cmdtest.Seen[look.Report](t, w, w.Path("l"))
		require.NotContains(t, text, "silent")
		holder.Signal(syscall.SIGSTOP)
		zktest.Eventually(t, cmdtest.Soon, func() bool {
			text := cmdtest.On(t, w, "inspect", w.Path("l")).Output()
			return strings.Contains(text, "holds, silent for ") && strings.Contains(text, " of "+cmdtest.Short.String())
		}, "inspect does not tell that the holder is silent")
		require.Contains(t, strings.Join(strings.Fields(cmdtest.On(t, w, "doctor", cmdtest.Below(w)).Gives(0)), " "), "holds, and its session is silent for ")
		holder.Signal(syscall.SIGCONT)
		require.NoError(t, holder.In.Close())
		holder.Exit()
	})
}
