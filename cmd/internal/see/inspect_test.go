//go:build linux || darwin || freebsd || openbsd

package see

import (
	"context"
	"encoding/binary"
	"math"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestInspectShowsWhoHoldsAndWhoWaits(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), `echo $COORD_NODE $COORD_TOKEN; `+cmdtest.UntilEOF)...)
		told := strings.Fields(holder.Line())
		waiter := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0")...).InLine(w, w.Path("l"), 2)

		r, text := cmdtest.Seen[look.Report](t, w, w.Path("l"))
		require.Equal(t, []string{w.Path("l"), "lock", "curator"}, []string{r.Path, r.Kind, r.Dialect})
		require.Len(t, r.Contenders, 2)
		first, second := r.Contenders[0], r.Contenders[1]
		require.Equal(t, []any{1, true, "lock", told[0]}, []any{first.Position, first.Holds, first.Kind, first.Node})
		require.Equal(t, []any{2, false}, []any{second.Position, second.Holds})
		require.Regexp(t, "^sh ", first.Owner)
		require.Regexp(t, "^0x[0-9a-f]+$", first.Session)
		require.GreaterOrEqual(t, *first.Age, *second.Age)
		require.Regexp(t, `(?m)^1 +holds +lock .* `+path.Base(told[0])+`$`, text)
		require.Regexp(t, `(?m)^2 +waits +lock `, text)

		holder.LetGo(5)
		require.Equal(t, 0, waiter.Exit())
	})
}

func TestAnEmptyLineIsNoError(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, "--json", "inspect", w.Path("none"))
	require.Equal(t, 0, p.Exit())
	require.JSONEq(t,
		`{"path":"`+w.Path("none")+
			`","kind":"","dialect":"","exists":false,"others":0,"sequence_left":2147483647,"odd":[],"contenders":[]}`, p.Line())
	require.Equal(t, w.Path("none")+": there is nothing", cmdtest.On(t, w, "inspect", w.Path("none")).Gives(0))
}

func TestInspectCountsNodesThatAreNoPartOfARecipe(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		kazoo := append([]string{"--dialect", "kazoo"}, cmdtest.Sh(w.Path("k"), cmdtest.UntilEOF, "--slots", "2")...)
		running := []*cmdtest.Process{
			cmdtest.On(t, w, cmdtest.Elect(w.Path("e"), cmdtest.UntilEOF)...).Begun(),
			cmdtest.On(t, w, cmdtest.Sh(w.Path("s"), cmdtest.UntilEOF, "--slots", "2")...).Begun(),
			cmdtest.On(t, w, kazoo...).Begun(),
			cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).Begun(),
		}
		cmdtest.PutItems(t, w, "item")
		require.Zero(t, cmdtest.Receive(t, w, "true").Exit())
		for _, name := range []string{"dir/a", "dir/b"} {
			require.Equal(t, 0, cmdtest.On(t, w, "barrier", "set", w.Path(name)).Exit())
		}
		cmdtest.ByHand(t, w, w.Path("empty"), "")
		cmdtest.ByHand(t, w, w.Path("l/by hand"), "")
		for path, want := range map[string]struct {
			kind            string
			others, holders int
			says            string
		}{
			"e":     {"election", 0, 1, "dialect\n"},
			"s":     {look.SlotsKind, 0, 1, "dialect\n"},
			"k":     {look.SlotsKind, 0, 1, "dialect\n"},
			"q":     {look.QueueKind, 0, 0, "queue of 0 items"},
			"l":     {"lock", 1, 1, "lock, curator dialect; 1 other node is below it"},
			"dir":   {"", 2, 0, "nobody waits; 2 other nodes are below it"},
			"empty": {"", 0, 0, w.Path("empty") + ": nobody holds it, nobody waits"},
		} {
			r, text := cmdtest.Seen[look.Report](t, w, w.Path(path))
			require.True(t, r.Exists, path)
			require.Equal(t, want.kind, r.Kind, path)
			require.Equal(t, want.others, r.Others, path)
			require.Len(t, r.Holders(), want.holders, path)
			require.Contains(t, text, want.says, path)
		}
		for _, p := range running {
			p.LetGo(5)
		}
	})
}

func TestInspectRecognisesKindsAndDialects(t *testing.T) {
	w := cmdtest.World(t)
	for _, c := range []struct {
		nodes         map[string]string
		kind, dialect string
		holders       int
	}{
		{map[string]string{"_c_" + cmdtest.Guid1 + "-lock-0000000001": "x"}, "lock", "curator", 1},
		{map[string]string{
			"_c_" + cmdtest.Guid1 + "-__READ__0000000001": "x", "_c_" + cmdtest.Guid2 + "-__READ__0000000002": "y",
			"_c_" + cmdtest.Guid3 + "-__WRIT__0000000003": "z",
		}, "rwlock", "curator", 2},
		{
			map[string]string{
				"_c_" + cmdtest.Guid1 + "-__WRIT__0000000001": "x", "_c_" + cmdtest.Guid2 + "-lock-0000000002": "y",
			}, "rwlock", "curator", 1,
		},
		{map[string]string{"_c_" + cmdtest.Guid1 + "-latch-0000000001": "x"}, "election", "curator", 1},
		{map[string]string{strings.ReplaceAll(cmdtest.Guid1, "-", "") + "__lock__0000000001": "x"}, "lock", "kazoo", 1},
		{map[string]string{
			"_c_" + cmdtest.Guid1 + "-lock-0000000001":                        "x",
			strings.ReplaceAll(cmdtest.Guid2, "-", "") + "__lock__0000000002": "x",
		}, "lock", "mixed", 2},
		{
			map[string]string{
				"_c_" + cmdtest.Guid1 + "-lock-0000000001": "x", "_c_" + cmdtest.Guid2 + "-latch-0000000002": "y",
			}, "mixed", "curator", 1,
		},
		{map[string]string{"something else": "x"}, "group", "curator", 1},
		{map[string]string{"something else": "x", "host_0000000001": "x"}, "group", "curator", 2},
		{map[string]string{"n_0000000001": "x"}, "unknown", "unknown", 0},
		{map[string]string{"n_0000000001": "x", "_c_" + cmdtest.Guid1 + "-lock-0000000002": "x"}, "mixed", "mixed", 1},
		{map[string]string{"_c_something else": "x"}, "", "", 0},
	} {
		t.Run(c.kind+" "+c.dialect, func(t *testing.T) {
			dir := w.Path("d")
			cmdtest.Contend(t, w, dir, c.nodes)
			r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", dir).Gives(0))
			require.Equal(t, c.kind, r.Kind)
			require.Equal(t, c.dialect, r.Dialect)
			require.Len(t, r.Holders(), c.holders)
		})
	}
}

func TestInspectShowsWhoIsInADoubleBarrier(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		first := cmdtest.Member(t, w, 2, "exit 0")
		cmdtest.InBarrier(t, w, 1)
		r, text := cmdtest.Seen[look.Report](t, w, w.Path("b"))
		require.Equal(t, "doublebarrier", r.Kind)
		require.Equal(t, &look.RoundReport{Members: 2, Waiting: 1}, r.Round)
		require.Equal(t, "waits", r.Contenders[0].State)
		require.Empty(t, r.Holders())
		require.Contains(t, text, "double barrier of 2, no round yet; 1 of 2 have come")

		second := cmdtest.Member(t, w, 2, `echo $$; cat >/dev/null`).Begun()
		zktest.Eventually(t, cmdtest.Soon, func() bool { return cmdtest.Marked(t, w) == 1 }, "the first has finished")
		late := cmdtest.Member(t, w, 2, "exit 0", "--next")
		cmdtest.InBarrier(t, w, 3)
		r, text = cmdtest.Seen[look.Report](t, w, w.Path("b"))
		require.Equal(t, &look.RoundReport{Number: 1, Open: true, Members: 2, Inside: 1, Finished: 1, Waiting: 1}, r.Round)
		states := []string{}
		for _, c := range r.Contenders {
			states = append(states, c.State)
			require.NotContains(t, c.Owner, "\n")
			require.Regexp(t, "^sh ", c.Owner)
		}
		require.Equal(t, []string{"finished", "inside", "waits"}, states)
		require.Len(t, r.Holders(), 2)
		require.Contains(t, text, "round 1 is open: 1 inside, 1 finished, 0 gone; 1 for the next round")
		require.Regexp(t, `(?m)^2 +inside +member +"sh `, text)

		require.NoError(t, second.In.Close())
		require.Equal(t, 0, first.Exit())
		require.Equal(t, 0, second.Exit())
		late.EndsBy(syscall.SIGTERM, 128+int(syscall.SIGTERM))
		r, text = cmdtest.Seen[look.Report](t, w, w.Path("b"))
		require.Equal(t, &look.RoundReport{Number: 1, Members: 2}, r.Round)
		require.Empty(t, r.Contenders)
		require.Contains(t, text, "round 1 is over; nobody waits")
	})
}

func TestInspectShowsWhatIsInAQueue(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.PutItems(t, w, "first", strings.Repeat("ü", 100), "third")
		consumer := cmdtest.Receive(t, w, `echo $$; sleep 600`).Begun()
		r, text := cmdtest.Seen[look.Report](t, w, w.Path("q"))
		require.Equal(t, "queue", r.Kind)
		require.Empty(t, r.Contenders, "it has never waited")
		require.Equal(t, 3, r.Queue.Items)
		require.Equal(t, 1, r.Queue.InHand)
		require.Len(t, r.Queue.First, 3)
		inHand, next := r.Queue.First[0], r.Queue.First[1]
		require.True(t, inHand.InHand)
		require.Equal(t, "first", inHand.Data)
		require.Equal(t, 1, inHand.Deliveries)
		require.Equal(t, 100, inHand.Priority)
		require.Regexp(t, "^0x[0-9a-f]+$", inHand.Session)
		require.Regexp(t, `^127\.0\.0\.1:\d+$`, inHand.Address)
		require.Contains(t, text, `" at `+inHand.Address)
		require.False(t, next.InHand)
		require.Empty(t, next.Address, "nobody has it")
		require.Equal(t, 200, next.Size)
		require.Equal(t, strings.Repeat("ü", 20)+"…", next.Data)

		require.Contains(t, text, "queue of 3 items, 1 in hand")
		require.Regexp(t,
			`(?m)^entry-100-0000000000 +"first" +100 +1 +\S+ +for \S+ +"sh \S+ `+strconv.Itoa(consumer.Pid())+`"`, text)
		consumer.EndsBy(syscall.SIGTERM, 143)
	})
}

func TestInspectShowsWhoConsumes(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.PutItems(t, w, "item")
	require.Equal(t, 0, cmdtest.Receive(t, w, "true").Exit())
	one, two := cmdtest.Receive(t, w, "echo works; exec sleep 600"), cmdtest.Receive(t, w, "echo works; exec sleep 600")
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("q/consumers"), 2)
	r, text := cmdtest.Seen[look.Report](t, w, w.Path("q"))
	require.Len(t, r.Contenders, 2)
	require.Equal(t, 2, r.Queue.Consumers)
	for _, c := range r.Contenders {
		require.Equal(t, "waits", c.State)
		require.Regexp(t, "^sh ", c.Owner)
	}
	require.Contains(t, text, "2 consumers")

	cmdtest.PutItems(t, w, "item")
	worker, idle := one, two
	select {
	case <-one.Lines:
	case <-two.Lines:
		worker, idle = two, one
	}
	r, _ = cmdtest.Seen[look.Report](t, w, w.Path("q"))
	require.Len(t, r.Queue.First, 1)
	require.Contains(t, r.Queue.First[0].Owner, strconv.Itoa(worker.Pid()))
	for _, c := range r.Contenders {
		want := "waits"
		if strings.HasSuffix(c.Owner, " "+strconv.Itoa(worker.Pid())) {
			want = "works"
		}
		require.Equal(t, want, c.State, c.Owner)
	}
	require.NoError(t, w.Admin().Delete(w.Path("q/taken/"+r.Queue.First[0].Name), -1))
	require.Equal(t, term.ExitLost, worker.Exit())
	idle.EndsBy(syscall.SIGTERM, 143)
}

func TestInspectShowsAClosedBarrier(t *testing.T) {
	w := cmdtest.World(t)
	require.Equal(t, 0, cmdtest.On(t, w, "barrier", "set", w.Path("b")).Exit())
	r, text := cmdtest.Seen[look.Report](t, w, w.Path("b"))
	require.Contains(t, text, "a closed barrier")
	require.Equal(t, "barrier", r.Kind)
	require.Equal(t, 0, cmdtest.On(t, w, "barrier", "open", w.Path("b")).Exit())
	require.Contains(t, cmdtest.On(t, w, "inspect", w.Path("b")).Output(), "there is nothing")
}

func TestVerbsThatAskSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"inspect", "revoke"} {
		cmdtest.Start(t, verb, "/l").Ends(term.ExitUsage, "ZK_SERVERS")
		require.Equal(t, term.ExitUsage, cmdtest.Start(t, verb).Exit(), "no path")
		require.Equal(t, term.ExitUsage, cmdtest.Start(t, "--zk", "127.0.0.1:1", verb, "relative").Exit())
		require.Equal(t, term.ExitUnavailable,
			cmdtest.Start(t, "--zk", cmdtest.ClosedPort(t), "--connect-timeout", "0.2", verb, "/l").Exit())
	}
}

func TestInspectOfABusyLockFindsNoOtherNodes(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		client := cmdtest.Open(t, w)
		path := w.Path("l")
		working, stop := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		defer workers.Wait()
		defer stop()
		for range 3 {
			m := cmdtest.Must(lock.New(client, path))
			workers.Go(func() {
				for working.Err() == nil {
					_ = m.Do(working, func(context.Context, *coord.Hold) error { return nil })
				}
			})
		}
		seen := 0
		for range 150 {
			r, err := look.Examine(coordtest.Limited(t), client, "", conn.NodePath(path))
			require.NoError(t, err)
			require.Zero(t, r.Others)
			if len(r.Contenders) > 0 {
				seen++
				require.Len(t, r.Holders(), 1)
				require.True(t, r.Contenders[0].Holds)
			}
		}
		require.Positive(t, seen)
	})
}

func TestOnlyABarrierIsTakenForOne(t *testing.T) {
	w := cmdtest.World(t)
	slot := cmdtest.On(t, w, cmdtest.Sh(w.Path("s"), cmdtest.UntilEOF, "--slots", "2")...).Begun()
	for name, data := range map[string]string{"text": "hello", "number": "3", "empty": "", "lines": "a b 1\nc"} {
		cmdtest.ByHand(t, w, w.Path(name), data)
	}
	for _, name := range []string{"s/limit", "text", "number", "empty", "lines"} {
		r, text := cmdtest.Seen[look.Report](t, w, w.Path(name))
		require.Empty(t, r.Kind, name)
		require.Nil(t, r.Closed, name)
		require.Contains(t, text, "nobody holds it, nobody waits", name)
	}
	cmdtest.ByHand(t, w, w.Path("curator"), "10.1.2.3")
	r, _ := cmdtest.Seen[look.Report](t, w, w.Path("curator"))
	require.Equal(t, "barrier", r.Kind)
	require.Equal(t, "10.1.2.3", r.Closed.By)
	slot.LetGo(5)
}

func TestARoundWhoseMembersAllDiedIsNotReportedAsOpen(t *testing.T) {
	w := cmdtest.World(t)
	dying := func() *cmdtest.Process {
		return cmdtest.Mortal(t, w, cmdtest.Round(w, 2, "echo $$; exec sleep 600")...)
	}
	first, second := dying(), dying()
	first.Line()
	second.Line()
	first.Signal(syscall.SIGKILL)
	second.Signal(syscall.SIGKILL)
	cmdtest.InBarrier(t, w, 0)
	r, text := cmdtest.Seen[look.Report](t, w, w.Path("b"))
	require.Equal(t, &look.RoundReport{Number: 1, Members: 2}, r.Round)
	require.Contains(t, text, "round 1 broke off: all its members are gone; nobody waits")

	again := []*cmdtest.Process{cmdtest.Member(t, w, 2, "exit 0"), cmdtest.Member(t, w, 2, "exit 0")}
	for _, p := range again {
		require.Zero(t, p.Exit())
	}
	require.Contains(t, cmdtest.On(t, w, "inspect", w.Path("b")).Output(), "round 2 is over")
}

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

// Curator's semaphore with a number of its own stores none: the leases show who
// holds, except the last one, which the first in the queue may be waiting for.
func TestLeasesWithoutALimitAreHeld(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.Contend(t, w, w.Path("s/leases"),
		map[string]string{"_c_" + cmdtest.Guid1 + "-lease-0000000001": "a", "_c_" + cmdtest.Guid2 + "-lease-0000000002": "b"})
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
	require.Equal(t, address,
		cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "top", w.Path("l")).Line()).Contenders[0].Address)
	holder.LetGo(5)
}

func TestInspectTellsWhatBelongsToNoSession(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.Contend(t, w, w.Path("l"), map[string]string{"_c_" + cmdtest.Guid1 + "-lock-0000000002": "waits"})
		cmdtest.ByHand(t, w, w.Path("l/_c_"+cmdtest.Guid2+"-lock-0000000001"), "by hand")
		r, text := cmdtest.Seen[look.Report](t, w, w.Path("l"))
		require.Equal(t, []bool{true, false}, []bool{r.Contenders[0].Orphan, r.Contenders[1].Orphan})
		require.Equal(t, []string{"1 contender belongs to no session, and will never go by itself"}, r.Odd)
		require.Regexp(t, `(?m)^1 +holds +lock +"by hand" .* none `, text)
		require.Regexp(t,
			`(?m)^! +1 contender belongs to no session, and will never go by itself\n +→ a program made the node persistent`,
			text)

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
		require.Equal(t,
			[]string{"2147399999 of 2147483647 sequence numbers are used up; use another path before the rest is"}, r.Odd, path)
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
		holder.Signal(syscall.SIGCONT)
		require.NoError(t, holder.In.Close())
		holder.Exit()
	})
}

func TestAnItemWhoseClaimMayNotBeReadIsNoOrphan(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.PutItems(t, w, "a", "b")
		require.Equal(t, 0, cmdtest.Receive(t, w, "true").Exit())
		p := cmdtest.Receive(t, w, `echo $$; sleep 600`, "--auth", "digest:someone:secret", "--acl", "auth::cdrwa").Begun()
		r, text := cmdtest.Seen[look.Report](t, w, w.Path("q"))
		item := r.Queue.First[0]
		require.True(t, item.InHand)
		require.False(t, item.Orphan)
		require.Zero(t, item.Held)
		require.Zero(t, item.Session)
		require.Regexp(t, `"b" .* yes +unknown`, text)
		p.EndsBy(syscall.SIGTERM, 143)
	})
}
