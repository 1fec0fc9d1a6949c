//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"context"
	"sync"
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestInspectOfABusyLockFindsNoOtherNodes(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		client := coordtest.Open(t, w.ConnectString())
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
			r, err := inspect(coordtest.Limited(t), client, nodePath(path))
			require.NoError(t, err)
			require.Zero(t, r.Others)
			if len(r.Contenders) > 0 {
				seen++
				require.Len(t, r.holders(), 1)
				require.True(t, r.Contenders[0].Holds)
			}
		}
		require.Positive(t, seen)
	})
}

func TestInspectCountsOtherNodesBesideAHolder(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, sh(w.Path("l"), untilEOF)...)
	p.line()
	_, err := w.Admin().Create(w.Path("l/by hand"), nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	r := parse[report](t, on(t, w, "--json", "inspect", w.Path("l")).line())
	require.Len(t, r.holders(), 1)
	require.Equal(t, 1, r.Others)
	require.Contains(t, on(t, w, "inspect", w.Path("l")).output(), "lock, curator dialect; 1 other node is below it")
	require.NoError(t, p.in.Close())
	require.Equal(t, 5, p.exit())
}

func TestPartsOfARecipeAreNoOtherNodes(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	leader := on(t, w, "elect", w.Path("e"), "--", "sh", "-c", untilEOF)
	leader.line()
	slot := on(t, w, sh(w.Path("s"), untilEOF, "--slots", "2")...)
	slot.line()
	kazoo := on(t, w, append([]string{"--dialect", "kazoo"}, sh(w.Path("k"), untilEOF, "--slots", "2")...)...)
	kazoo.line()
	putItems(t, w, "item")
	require.Zero(t, receive(t, w, "true").exit())
	for path, kind := range map[string]string{"e": "latch", "s": slotsKind, "k": slotsKind, "q": queueKind} {
		r := parse[report](t, on(t, w, "--json", "inspect", w.Path(path)).line())
		require.Equal(t, kind, r.Kind, path)
		require.Zero(t, r.Others, path)
	}
	for _, p := range []*process{leader, slot, kazoo} {
		require.NoError(t, p.in.Close())
		require.Equal(t, 5, p.exit())
	}
}

func TestANodeThatIsGoneBeforeItIsReadKeepsItsPlace(t *testing.T) {
	members := lineOf([]string{
		"_c_" + guid2 + "-lock-0000000002", "_c_" + guid1 + "-lock-0000000001", "_c_" + guid3 + "-lock-0000000003", "other",
	})
	require.Len(t, members, 3)
	line := complete("/l", members, []coord.ContenderInfo{{Contender: members[1], Owner: "b"}, {Contender: members[2], Owner: "c"}})
	require.Len(t, line, 3)
	require.Equal(t, "/l/_c_"+guid1+"-lock-0000000001", line[0].Node)
	require.Equal(t, []string{"", "b", "c"}, []string{line[0].Owner, line[1].Owner, line[2].Owner})
	require.Equal(t, []bool{true, false, false}, []bool{line[0].Holds, line[1].Holds, line[2].Holds})
}

func TestOnlyABarrierIsTakenForOne(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	slot := on(t, w, sh(w.Path("s"), untilEOF, "--slots", "2")...)
	slot.line()
	for name, data := range map[string]string{"text": "hello", "number": "3", "empty": "", "lines": "a b 1\nc"} {
		_, err := w.Admin().Create(w.Path(name), []byte(data), 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	for _, name := range []string{"s/limit", "text", "number", "empty", "lines"} {
		r := parse[report](t, on(t, w, "--json", "inspect", w.Path(name)).line())
		require.Empty(t, r.Kind, name)
		require.Nil(t, r.Closed, name)
		require.Contains(t, on(t, w, "inspect", w.Path(name)).output(), "nobody holds it, nobody waits", name)
	}
	_, err := w.Admin().Create(w.Path("curator"), []byte("10.1.2.3"), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	r := parse[report](t, on(t, w, "--json", "inspect", w.Path("curator")).line())
	require.Equal(t, "barrier", r.Kind)
	require.Equal(t, "10.1.2.3", r.Closed.By)
	require.NoError(t, slot.in.Close())
	require.Equal(t, 5, slot.exit())
}

func TestARoundWhoseMembersAllDiedIsNotReportedAsOpen(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	dying := func() *process {
		return memberFor(t, w, zktest.SessionTimeout, 2, "echo $$; exec sleep 600")
	}
	first, second := dying(), dying()
	first.line()
	second.line()
	first.signal(syscall.SIGKILL)
	second.signal(syscall.SIGKILL)
	inBarrier(t, w, 0)
	r := parse[report](t, on(t, w, "--json", "inspect", w.Path("b")).line())
	require.Equal(t, &roundReport{Number: 1, Members: 2}, r.Round)
	require.Contains(t, on(t, w, "inspect", w.Path("b")).output(), "round 1 broke off: all its members are gone; nobody waits")

	again := []*process{member(t, w, 2, "exit 0"), member(t, w, 2, "exit 0")}
	for _, p := range again {
		require.Zero(t, p.exit())
	}
	require.Contains(t, on(t, w, "inspect", w.Path("b")).output(), "round 2 is over")
}
