package interop

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestGoAndJavaStandForOneElection(t *testing.T) {
	t.Parallel()
	curator := java(t, "Peer")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		javas := []contender{contend(t, w, curator, path, "java-1", "latch"), contend(t, w, curator, path, "java-2", "latch")}
		standTogether(t, w, path, coord.Curator, javas)
	})
}

func TestGoAndPythonStandForOneElection(t *testing.T) {
	t.Parallel()
	kazoo := python(t, "peer.py")
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

// leads requires that Go, and each peer that can tell, sees this leader.
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
	second := make(chan *election.Term, 1)
	go func() {
		term, err := e.Campaign(patient(t), []byte("go-2"))
		if err != nil {
			t.Error(err)
		}
		second <- term
	}()
	b.lined(t, 3)
	peers[1].must(t, "stand", "standing")
	b.lined(t, 4)
	b.leads(t, "go-1", peers...)
	peers[0].must(t, "await 100", "busy")
	b.tell(t, first, "news", peers...)
	peers[0].must(t, "await 100", "busy")
	require.NoError(t, first.Resign(patient(t)))
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
