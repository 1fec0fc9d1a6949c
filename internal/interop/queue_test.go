package interop

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// startKazooQueue starts a Python program that uses a LockingQueue.
func startKazooQueue(t *testing.T, w *zktest.World) contender {
	t.Helper()
	k := contender{Python(t, "queue_worker.py").Start(t, w.ConnectString(), w.Path("queue"), "2"), "Kazoo"}
	k.wants(t, "ready")
	return k
}

// goQueue is this module's queue on the same path.
func goQueue(t *testing.T, w *zktest.World) *queue.Queue {
	t.Helper()
	q, err := queue.New(coordtest.Open(t, w.ConnectString()), w.Path("queue"))
	require.NoError(t, err)
	return q
}

func received(t *testing.T, q *queue.Queue) *queue.Item {
	t.Helper()
	item, err := q.Receive(patient(t))
	require.NoError(t, err)
	return item
}

func TestGoAndPythonShareAQueue(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		q, k := goQueue(t, w), startKazooQueue(t, w)
		for i := range 20 {
			require.NoError(t, q.Put(t.Context(), fmt.Appendf(nil, "go-%d", i)))
			k.must(t, fmt.Sprintf("put python-%d", i), "put")
		}
		k.must(t, "put urgent 5", "put")
		k.must(t, "len", "41")
		first := received(t, q)
		require.Equal(t, "urgent", string(first.Data))
		k.must(t, "get", "got go-0") // and not what Go has
		second := received(t, q)
		require.NotEqual(t, "go-0", string(second.Data), "Go does not get what Python has")
		k.must(t, "consume", "True")
		require.NoError(t, second.Ack(t.Context()))
		require.NoError(t, first.Ack(t.Context()))

		all := map[string]int{"urgent": 1, "go-0": 1, string(second.Data): 1}
		k.Send("drain 19")
		answered := coordtest.Go(func() string { return k.Line(answersWithin) })
		for range 19 {
			item := received(t, q)
			all[string(item.Data)]++
			require.NoError(t, item.Ack(t.Context()))
		}
		for _, text := range strings.Fields(zktest.Receive(t, answersWithin, answered, "Python does not answer"))[1:] {
			all[text]++
		}
		require.Len(t, all, 41)
		for item, times := range all {
			require.Equal(t, 1, times, item)
		}
		k.must(t, "len", "0")
		k.quit(t)
	})
}

func TestAnItemOfAPythonConsumerThatDiedComesToGoAndBack(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		q, k := goQueue(t, w), startKazooQueue(t, w)
		require.NoError(t, q.Put(t.Context(), []byte("item")))
		k.must(t, "get", "got item")
		require.ErrorIs(t, coordtest.Err(q.Receive(coordtest.Within(t, 100*time.Millisecond))), context.DeadlineExceeded)
		k.Kill()
		item := received(t, q)
		require.Equal(t, "item", string(item.Data))

		k = startKazooQueue(t, w)
		require.NoError(t, item.Nack(t.Context(), 0))
		k.must(t, "get", "got item")
		require.ErrorIs(t, item.Ack(t.Context()), queue.ErrStale)
		k.must(t, "release", "True")
		require.NoError(t, received(t, q).Ack(t.Context()))
		k.quit(t)
	})
}

func TestGoAndJavaStandForOneElection(t *testing.T) {
	curator := Java(t, "Peer")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		javas := contenders{contend(t, w, curator, path, "java-1", "latch"), contend(t, w, curator, path, "java-2", "latch")}
		standTogether(t, w, path, coord.Curator, javas)
	})
}

func TestGoAndPythonStandForOneElection(t *testing.T) {
	kazoo := Python(t, "peer.py")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		pythons := contenders{
			contend(t, w, kazoo, path, "python-1", "election"), contend(t, w, kazoo, path, "python-2", "election"),
		}
		standTogether(t, w, path, coord.Kazoo, pythons)
	})
}

// ballot is an election that Go and peers stand for.
type ballot struct {
	*election.Election
	client *coord.Client
	path   string
	w      *zktest.World
}

// lined waits until n candidates are in line, and gives them the time to watch
// those they wait for.
func (b ballot) lined(t *testing.T, n int) {
	t.Helper()
	zktest.Eventually(t, answersWithin, func() bool { return len(b.candidates(t)) == n }, "%d in line", n)
	pause(t)
}

// candidates are the nodes in line.
func (b ballot) candidates(t *testing.T) []string {
	t.Helper()
	names, _, _ := b.w.Admin().Children(b.path)
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "-") }) // a notice
}

// leads requires that Go, and each peer that can ask, sees this leader.
func (b ballot) leads(t *testing.T, who string, peers ...contender) {
	t.Helper()
	leader, err := b.Leader(patient(t))
	require.NoError(t, err)
	require.Equal(t, who, string(leader.Data))
	contenders(peers).must(t, "leader", who)
}

// tell has a leader in Go proclaim and be asked, with a peer right behind,
// whose watch a write into the node that it watches would use up. In Curator's
// dialect no waiting candidate can be asked, for there is a peer behind it,
// too.
func (b ballot) tell(t *testing.T, term *election.Term, news string, peers ...contender) {
	t.Helper()
	for _, said := range []string{news, news + ", again"} {
		require.NoError(t, term.Proclaim(patient(t), []byte(said)))
		b.leads(t, said, peers...)
	}
	if b.client.Info().Dialect == coord.Curator {
		for _, name := range b.candidates(t) {
			if name != path.Base(term.Node()) {
				require.ErrorIs(t, inspect.Revoke(patient(t), b.client, b.path+"/"+name), errors.ErrUnsupported)
			}
		}
	}
	require.NoError(t, inspect.Revoke(patient(t), b.client, term.Node()))
	zktest.Receive(t, answersWithin, term.Revoked(), "the request")
	require.NoError(t, term.Proclaim(patient(t), []byte(news)))
	b.leads(t, news, peers...)
}

// standTogether has Go, a peer, Go and a peer in line, in this order.
func standTogether(t *testing.T, w *zktest.World, path string, dialect coord.Dialect, peers contenders) {
	t.Helper()
	peers.want(t, "ready")
	client := openAs(t, w, dialect)
	e, err := election.New(client, path+"/shared")
	require.NoError(t, err)
	b := ballot{e, client, path + "/shared", w}
	first, err := e.Campaign(patient(t), []byte("go-1"))
	require.NoError(t, err)
	peers[0].must(t, "stand", "standing")
	b.lined(t, 2)
	second := coordtest.Go(func() *election.Term {
		term, err := e.Campaign(patient(t), []byte("go-2"))
		if err != nil {
			t.Error(err)
		}
		return term
	})
	b.lined(t, 3)
	peers[1].must(t, "stand", "standing")
	b.lined(t, 4)
	b.leads(t, "go-1", peers...)
	peers[0].must(t, "await 100", "busy")
	b.tell(t, first, "news", peers...)
	peers[0].must(t, "await 100", "busy")
	line, err := e.Contenders(patient(t))
	require.NoError(t, err)
	peer, next := line[1].Node, line[2].Node
	err = first.Transfer(patient(t), next)
	require.ErrorIs(t, err, errors.ErrUnsupported, "a peer does not step aside")
	require.ErrorContains(t, err, peer[strings.LastIndex(peer, "/")+1:])
	require.NoError(t, first.Err())
	require.NoError(t, first.Transfer(patient(t), peer))
	require.ErrorIs(t, e.Transfer(patient(t), next), errors.ErrUnsupported, "a peer cannot be asked")
	peers[0].must(t, "await 60000", "held")
	b.leads(t, peers[0].name, peers...)
	require.Empty(t, second, "two lead")
	peers[0].Kill()
	term := zktest.Receive(t, answersWithin, second, "the election of Go")
	b.leads(t, "go-2", peers[1])
	peers[1].must(t, "await 100", "busy")
	b.tell(t, term, "more", peers[1])
	require.NoError(t, term.Resign(patient(t)))
	peers[1].must(t, "await 60000", "held")
	b.leads(t, peers[1].name, peers[1])
	peers[1].must(t, "release", "released")
	b.lined(t, 0)
	names, _, err := w.Admin().Children(b.path)
	require.NoError(t, err)
	require.Empty(t, names)
	peers[1].quit(t)
}
