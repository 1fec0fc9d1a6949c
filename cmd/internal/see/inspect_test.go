//go:build linux || darwin || freebsd || openbsd

package see

import (
	"context"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestInspectShowsWhoHoldsAndWhoWaits(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), `echo $COORD_NODE $COORD_TOKEN; `+cmdtest.UntilEOF)...)
		told := strings.Fields(holder.Line())
		waiter := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), "exit 0")...).InLine(w, w.Path("l"), 2)

		r := cmdtest.Parse[map[string]any](t, cmdtest.On(t, w, "inspect", w.Path("l"), "--json").Gives(0))
		require.Equal(t, w.Path("l"), r["path"])
		require.Equal(t, "lock", r["kind"])
		require.Equal(t, "curator", r["dialect"])
		line := r["contenders"].([]any)
		require.Len(t, line, 2)
		first, second := line[0].(map[string]any), line[1].(map[string]any)
		require.Equal(t, true, first["holds"])
		require.EqualValues(t, 1, first["position"])
		require.Equal(t, "lock", first["kind"])
		require.Equal(t, told[0], first["node"])
		require.Regexp(t, "^sh ", first["owner"])
		require.Regexp(t, "^0x[0-9a-f]+$", first["session"])
		require.GreaterOrEqual(t, first["age"], second["age"])
		require.Equal(t, false, second["holds"])
		require.EqualValues(t, 2, second["position"])

		text := cmdtest.On(t, w, "inspect", w.Path("l")).Gives(0)
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
	require.JSONEq(t, `{"path":"`+w.Path("none")+`","kind":"","dialect":"","exists":false,"others":0,"sequence_left":2147483647,"odd":[],"contenders":[]}`, p.Line())
	require.Equal(t, w.Path("none")+": there is nothing", cmdtest.On(t, w, "inspect", w.Path("none")).Gives(0))
}

func TestInspectReportsOtherNodesWhereNoContenderIs(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		for _, name := range []string{"dir/a", "dir/b"} {
			require.Equal(t, 0, cmdtest.On(t, w, "barrier", "set", w.Path(name)).Exit())
		}
		_, err := w.Admin().Create(w.Path("empty"), nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		require.Contains(t, cmdtest.On(t, w, "inspect", w.Path("dir")).Gives(0), "nobody waits; 2 other nodes are below it")
		r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("dir")).Line())
		require.True(t, r.Exists)
		require.Equal(t, 2, r.Others)
		require.Equal(t, w.Path("empty")+": nobody holds it, nobody waits", cmdtest.On(t, w, "inspect", w.Path("empty")).Output())
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
			"_c_" + cmdtest.Guid1 + "-__READ__0000000001": "x", "_c_" + cmdtest.Guid2 + "-__READ__0000000002": "y", "_c_" + cmdtest.Guid3 + "-__WRIT__0000000003": "z",
		}, "rwlock", "curator", 2},
		{map[string]string{"_c_" + cmdtest.Guid1 + "-__WRIT__0000000001": "x", "_c_" + cmdtest.Guid2 + "-lock-0000000002": "y"}, "rwlock", "curator", 1},
		{map[string]string{"_c_" + cmdtest.Guid1 + "-latch-0000000001": "x"}, "latch", "curator", 1},
		{map[string]string{strings.ReplaceAll(cmdtest.Guid1, "-", "") + "__lock__0000000001": "x"}, "lock", "kazoo", 1},
		{map[string]string{
			"_c_" + cmdtest.Guid1 + "-lock-0000000001": "x", strings.ReplaceAll(cmdtest.Guid2, "-", "") + "__lock__0000000002": "x",
		}, "lock", "mixed", 2},
		{map[string]string{"_c_" + cmdtest.Guid1 + "-lock-0000000001": "x", "_c_" + cmdtest.Guid2 + "-latch-0000000002": "y"}, "mixed", "curator", 1},
		{map[string]string{"something else": "x"}, "", "", 0},
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
		glance := func() (r look.Report, text string) {
			text = cmdtest.On(t, w, "inspect", w.Path("b")).Output()
			r = cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("b")).Line())
			return r, text
		}
		first := cmdtest.Member(t, w, 2, "exit 0")
		cmdtest.InBarrier(t, w, 1)
		r, text := glance()
		require.Equal(t, "doublebarrier", r.Kind)
		require.Equal(t, &look.RoundReport{Members: 2, Waiting: 1}, r.Round)
		require.Equal(t, "waits", r.Contenders[0].State)
		require.Empty(t, r.Holders())
		require.Contains(t, text, "double barrier of 2, no round yet; 1 of 2 have come")

		second := cmdtest.Member(t, w, 2, `echo $$; cat >/dev/null`).Begun()
		zktest.Eventually(t, cmdtest.Soon, func() bool { return cmdtest.Marked(t, w) == 1 }, "the first has finished")
		late := cmdtest.Member(t, w, 2, "exit 0", "--next")
		cmdtest.InBarrier(t, w, 3)
		r, text = glance()
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
		r, text = glance()
		require.Equal(t, &look.RoundReport{Number: 1, Members: 2}, r.Round)
		require.Empty(t, r.Contenders)
		require.Contains(t, text, "round 1 is over; nobody waits")
	})
}

func TestInspectShowsWhatIsInAQueue(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.PutItems(t, w, "first", strings.Repeat("ü", 100), "third")
		consumer := cmdtest.Receive(t, w, `echo $$; sleep 600`).Begun()
		r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("q")).Line())
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
		require.False(t, next.InHand)
		require.Equal(t, 200, next.Size)
		require.Equal(t, strings.Repeat("ü", 20)+"…", next.Data)

		text := cmdtest.On(t, w, "inspect", w.Path("q")).Output()
		require.Contains(t, text, "queue of 3 items, 1 in hand")
		require.Regexp(t, `(?m)^entry-100-0000000000 +"first" +100 +1 +\S+ +for \S+ +"sh \S+ `+strconv.Itoa(consumer.Pid())+`"`, text)
		consumer.EndsBy(syscall.SIGTERM, 143)
	})
}

func TestInspectShowsWhoConsumes(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.PutItems(t, w, "item")
	require.Equal(t, 0, cmdtest.Receive(t, w, "true").Exit())
	one, two := cmdtest.Receive(t, w, "echo works; exec sleep 600"), cmdtest.Receive(t, w, "echo works; exec sleep 600")
	cmdtest.AwaitContenders(t, w.Admin(), w.Path("q/consumers"), 2)
	r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("q")).Line())
	require.Len(t, r.Contenders, 2)
	require.Equal(t, 2, r.Queue.Consumers)
	for _, c := range r.Contenders {
		require.Equal(t, "waits", c.State)
		require.Regexp(t, "^sh ", c.Owner)
	}
	require.Contains(t, cmdtest.On(t, w, "inspect", w.Path("q")).Output(), "2 consumers")

	cmdtest.PutItems(t, w, "item")
	worker, idle := one, two
	select {
	case <-one.Lines:
	case <-two.Lines:
		worker, idle = two, one
	}
	r = cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("q")).Line())
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
	require.Contains(t, cmdtest.On(t, w, "inspect", w.Path("b")).Output(), "a closed barrier")
	require.Equal(t, "barrier", cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("b")).Line()).Kind)
	require.Equal(t, 0, cmdtest.On(t, w, "barrier", "remove", w.Path("b")).Exit())
	require.Contains(t, cmdtest.On(t, w, "inspect", w.Path("b")).Output(), "there is nothing")
}

func TestVerbsThatAskSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"inspect", "revoke"} {
		cmdtest.Start(t, verb, "/l").Ends(term.ExitUsage, "ZK_SERVERS")
		require.Equal(t, term.ExitUsage, cmdtest.Start(t, verb).Exit(), "no path")
		require.Equal(t, term.ExitUsage, cmdtest.Start(t, "--zk", "127.0.0.1:1", verb, "relative").Exit())
		require.Equal(t, term.ExitUnavailable, cmdtest.Start(t, "--zk", cmdtest.ClosedPort(t), "--connect-timeout", "0.2", verb, "/l").Exit())
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
			m, err := lock.New(client, path)
			require.NoError(t, err)
			workers.Go(func() {
				for working.Err() == nil {
					_ = m.Do(working, func(context.Context, *coord.Hold) error { return nil })
				}
			})
		}
		seen := 0
		for range 150 {
			r, err := look.Examine(coordtest.Limited(t), client, conn.NodePath(path))
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

func TestInspectCountsOtherNodesBesideAHolder(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).Begun()
	_, err := w.Admin().Create(w.Path("l/by hand"), nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("l")).Line())
	require.Len(t, r.Holders(), 1)
	require.Equal(t, 1, r.Others)
	require.Contains(t, cmdtest.On(t, w, "inspect", w.Path("l")).Output(), "lock, curator dialect; 1 other node is below it")
	p.LetGo(5)
}

func TestPartsOfARecipeAreNoOtherNodes(t *testing.T) {
	w := cmdtest.World(t)
	leader := cmdtest.On(t, w, "elect", w.Path("e"), "--", "sh", "-c", cmdtest.UntilEOF).Begun()
	slot := cmdtest.On(t, w, cmdtest.Sh(w.Path("s"), cmdtest.UntilEOF, "--slots", "2")...)
	slot.Line()
	kazoo := cmdtest.On(t, w, append([]string{"--dialect", "kazoo"}, cmdtest.Sh(w.Path("k"), cmdtest.UntilEOF, "--slots", "2")...)...).Begun()
	cmdtest.PutItems(t, w, "item")
	require.Zero(t, cmdtest.Receive(t, w, "true").Exit())
	for path, kind := range map[string]string{"e": "latch", "s": look.SlotsKind, "k": look.SlotsKind, "q": look.QueueKind} {
		r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path(path)).Line())
		require.Equal(t, kind, r.Kind, path)
		require.Zero(t, r.Others, path)
	}
	for _, p := range []*cmdtest.Process{leader, slot, kazoo} {
		p.LetGo(5)
	}
}

func TestOnlyABarrierIsTakenForOne(t *testing.T) {
	w := cmdtest.World(t)
	slot := cmdtest.On(t, w, cmdtest.Sh(w.Path("s"), cmdtest.UntilEOF, "--slots", "2")...).Begun()
	for name, data := range map[string]string{"text": "hello", "number": "3", "empty": "", "lines": "a b 1\nc"} {
		_, err := w.Admin().Create(w.Path(name), []byte(data), 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	for _, name := range []string{"s/limit", "text", "number", "empty", "lines"} {
		r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path(name)).Line())
		require.Empty(t, r.Kind, name)
		require.Nil(t, r.Closed, name)
		require.Contains(t, cmdtest.On(t, w, "inspect", w.Path(name)).Output(), "nobody holds it, nobody waits", name)
	}
	_, err := w.Admin().Create(w.Path("curator"), []byte("10.1.2.3"), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("curator")).Line())
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
	r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("b")).Line())
	require.Equal(t, &look.RoundReport{Number: 1, Members: 2}, r.Round)
	require.Contains(t, cmdtest.On(t, w, "inspect", w.Path("b")).Output(), "round 1 broke off: all its members are gone; nobody waits")

	again := []*cmdtest.Process{cmdtest.Member(t, w, 2, "exit 0"), cmdtest.Member(t, w, 2, "exit 0")}
	for _, p := range again {
		require.Zero(t, p.Exit())
	}
	require.Contains(t, cmdtest.On(t, w, "inspect", w.Path("b")).Output(), "round 2 is over")
}
