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

const queueWait = 30 * time.Second

// kazooQueue is a Python program that uses a LockingQueue.
type kazooQueue struct{ *zktest.ChildProcess }

func startKazooQueue(t *testing.T, w *zktest.World) kazooQueue {
	t.Helper()
	p := kazooQueue{Python(t, "queue_worker.py").Start(t, w.ConnectString(), w.Path("queue"), "2")}
	require.Equal(t, "ready", p.Line(queueWait))
	return p
}

func (k kazooQueue) ask(format string, args ...any) string {
	k.Send(fmt.Sprintf(format, args...))
	return k.Line(queueWait)
}

// goQueue is this module's queue on the same path.
func goQueue(t *testing.T, w *zktest.World) *queue.Queue {
	t.Helper()
	q, err := queue.New(coordtest.Open(t, w.ConnectString()), w.Path("queue"))
	require.NoError(t, err)
	return q
}

func receiveIn(t *testing.T, q *queue.Queue, limit time.Duration) (*queue.Item, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return q.Receive(ctx)
}

func TestGoAndPythonShareAQueue(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		q, k := goQueue(t, w), startKazooQueue(t, w)
		for i := range 20 {
			require.NoError(t, q.Put(t.Context(), fmt.Appendf(nil, "go-%d", i)))
			require.Equal(t, "put", k.ask("put python-%d", i))
		}
		require.Equal(t, "put", k.ask("put urgent 5"))
		require.Equal(t, "41", k.ask("len"))
		first, err := receiveIn(t, q, queueWait)
		require.NoError(t, err)
		require.Equal(t, "urgent", string(first.Data))
		require.Equal(t, "got go-0", k.ask("get"), "Python does not get what Go has")
		second, err := receiveIn(t, q, queueWait)
		require.NoError(t, err)
		require.NotEqual(t, "go-0", string(second.Data), "Go does not get what Python has")
		require.Equal(t, "True", k.ask("consume"))
		require.NoError(t, second.Ack(t.Context()))
		require.NoError(t, first.Ack(t.Context()))

		all := map[string]int{"urgent": 1, "go-0": 1, string(second.Data): 1}
		answered := make(chan string, 1)
		k.Send("drain 19")
		go func() { answered <- k.Line(queueWait) }()
		for range 19 {
			item, err := receiveIn(t, q, queueWait)
			require.NoError(t, err)
			all[string(item.Data)]++
			require.NoError(t, item.Ack(t.Context()))
		}
		for _, text := range strings.Fields(zktest.Receive(t, queueWait, answered, "Python does not answer"))[1:] {
			all[text]++
		}
		require.Len(t, all, 41)
		for item, times := range all {
			require.Equal(t, 1, times, item)
		}
		require.Equal(t, "0", k.ask("len"))
		k.Send("quit")
		require.Zero(t, k.ExitCode(queueWait))
	})
}

func TestAnItemOfAPythonConsumerThatDiedComesToGoAndBack(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		q, k := goQueue(t, w), startKazooQueue(t, w)
		require.NoError(t, q.Put(t.Context(), []byte("item")))
		require.Equal(t, "got item", k.ask("get"))
		require.ErrorIs(t, coordtest.Err(receiveIn(t, q, 100*time.Millisecond)), context.DeadlineExceeded)
		k.Kill()
		item, err := receiveIn(t, q, queueWait)
		require.NoError(t, err)
		require.Equal(t, "item", string(item.Data))

		k = startKazooQueue(t, w)
		require.NoError(t, item.Nack(t.Context(), 0))
		require.Equal(t, "got item", k.ask("get"))
		require.ErrorIs(t, item.Ack(t.Context()), queue.ErrStale)
		require.Equal(t, "True", k.ask("release"))
		item, err = receiveIn(t, q, queueWait)
		require.NoError(t, err)
		require.NoError(t, item.Ack(t.Context()))
		k.Send("quit")
		require.Zero(t, k.ExitCode(queueWait))
	})
}

func TestGoAndJavaStandForOneElection(t *testing.T) {
	t.Parallel()
	curator := Java(t, "Peer")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		javas := []contender{contend(t, w, curator, path, "java-1", "latch"), contend(t, w, curator, path, "java-2", "latch")}
		standTogether(t, w, path, coord.Curator, javas)
	})
}

func TestGoAndPythonStandForOneElection(t *testing.T) {
	t.Parallel()
	kazoo := Python(t, "peer.py")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		pythons := []contender{contend(t, w, kazoo, path, "python-1", "election"), contend(t, w, kazoo, path, "python-2", "election")}
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
	for _, p := range peers {
		p.must(t, "leader", who)
	}
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
	if b.client.Dialect() == coord.Curator {
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
func standTogether(t *testing.T, w *zktest.World, path string, dialect coord.Dialect, peers []contender) {
	t.Helper()
	for _, p := range peers {
		p.wants(t, "ready")
	}
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
	line, err := e.Candidates(patient(t))
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
