//go:build linux || darwin || freebsd || openbsd

package see

import (
	"context"
	"sync"
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestInspectOfABusyLockFindsNoOtherNodes(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
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
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	p := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...)
	p.Line()
	_, err := w.Admin().Create(w.Path("l/by hand"), nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path("l")).Line())
	require.Len(t, r.Holders(), 1)
	require.Equal(t, 1, r.Others)
	require.Contains(t, cmdtest.On(t, w, "inspect", w.Path("l")).Output(), "lock, curator dialect; 1 other node is below it")
	require.NoError(t, p.In.Close())
	require.Equal(t, 5, p.Exit())
}

func TestPartsOfARecipeAreNoOtherNodes(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	leader := cmdtest.On(t, w, "elect", w.Path("e"), "--", "sh", "-c", cmdtest.UntilEOF)
	leader.Line()
	slot := cmdtest.On(t, w, cmdtest.Sh(w.Path("s"), cmdtest.UntilEOF, "--slots", "2")...)
	slot.Line()
	kazoo := cmdtest.On(t, w, append([]string{"--dialect", "kazoo"}, cmdtest.Sh(w.Path("k"), cmdtest.UntilEOF, "--slots", "2")...)...)
	kazoo.Line()
	cmdtest.PutItems(t, w, "item")
	require.Zero(t, cmdtest.Receive(t, w, "true").Exit())
	for path, kind := range map[string]string{"e": "latch", "s": look.SlotsKind, "k": look.SlotsKind, "q": look.QueueKind} {
		r := cmdtest.Parse[look.Report](t, cmdtest.On(t, w, "--json", "inspect", w.Path(path)).Line())
		require.Equal(t, kind, r.Kind, path)
		require.Zero(t, r.Others, path)
	}
	for _, p := range []*cmdtest.Process{leader, slot, kazoo} {
		require.NoError(t, p.In.Close())
		require.Equal(t, 5, p.Exit())
	}
}

func TestOnlyABarrierIsTakenForOne(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	slot := cmdtest.On(t, w, cmdtest.Sh(w.Path("s"), cmdtest.UntilEOF, "--slots", "2")...)
	slot.Line()
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
	require.NoError(t, slot.In.Close())
	require.Equal(t, 5, slot.Exit())
}

func TestARoundWhoseMembersAllDiedIsNotReportedAsOpen(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
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
