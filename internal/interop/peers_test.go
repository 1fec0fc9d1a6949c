package interop

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/barrier"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// The peers of testdata/java/Peer.java and testdata/python/peer.py share one
// path with this process.

// openAs returns a client of this module, closed with the test.
func openAs(t *testing.T, w *zktest.World, dialect coord.Dialect) *coord.Client {
	t.Helper()
	return coordtest.Open(t, w.ConnectString(),
		coord.WithSessionTimeout(contenderSession*time.Second), coord.WithDialect(dialect))
}

// patient returns a context that bounds what must happen.
func patient(t *testing.T) context.Context {
	t.Helper()
	return coordtest.Within(t, answersWithin)
}

// withPeers runs f for a path of its own on both servers, beside other tests.
func withPeers(t *testing.T, f func(t *testing.T, w *zktest.World, path string)) {
	t.Helper()
	zktest.EachBeside(t, func(t *testing.T, w *zktest.World) {
		w.SetTimeout(contenderSession * time.Second)
		f(t, w, w.Path("peers"))
	})
}

const leases = 3

func slots(t *testing.T, c *coord.Client, path string, limit int) *semaphore.Semaphore {
	t.Helper()
	s, err := semaphore.New(c, path+"/shared", limit)
	require.NoError(t, err)
	return s
}

func TestGoAndJavaShareASemaphore(t *testing.T) {
	curator := Java(t, "Peer")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		c := openAs(t, w, coord.Curator)
		own := slots(t, c, path, leases)
		held, err := own.AcquireN(patient(t), 2) // stores the limit
		require.NoError(t, err)
		fixed := contend(t, w, curator, path, "fixed", "fixed", fmt.Sprint(leases))
		counted := contend(t, w, curator, path, "counted", "counted", "1")
		all := contenders{fixed, counted}
		all.want(t, "ready")
		counted.must(t, "limit", fmt.Sprint(leases))
		shareLeases(t, w, c, path, own, held, all)

		require.NoError(t, own.SetLimit(patient(t), leases+1))
		counted.says(t, "limit", fmt.Sprint(leases+1))
		counted.quit(t)
	})
}

func TestGoAndPythonShareASemaphore(t *testing.T) {
	kazoo := Python(t, "peer.py")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		all := contenders{
			contend(t, w, kazoo, path, "one", "semaphore", fmt.Sprint(leases)),
			contend(t, w, kazoo, path, "two", "semaphore", fmt.Sprint(leases)),
		}
		other := contend(t, w, kazoo, path, "three", "semaphore", fmt.Sprint(leases+2))
		append(all, other).want(t, "ready")
		all[0].must(t, "acquire 60000", "held") // makes the node, and leaves it empty
		all[0].must(t, "release", "released")
		c := openAs(t, w, coord.Kazoo)
		own := slots(t, c, path, leases)
		held, err := own.AcquireN(patient(t), 2)
		require.NoError(t, err)
		other.must(t, "acquire 1000", "disagree")
		shareLeases(t, w, c, path, own, held, all)
		all[1].quit(t)
		other.quit(t)
	})
}

// shareLeases begins with two leases held by Go. At the end the first peer is
// dead, and no lease is held.
func shareLeases(
	t *testing.T, w *zktest.World, c *coord.Client, path string, own *semaphore.Semaphore, held *hold.Set, all contenders,
) {
	t.Helper()
	one, two := all[0], all[1]
	one.must(t, "acquire 60000", "held")
	two.must(t, "acquire 300", "busy")
	require.ErrorIs(t, coordtest.Err(own.TryAcquire(patient(t))), coord.ErrBusy)
	_, err := own.Acquire(coordtest.Within(t, 300*time.Millisecond))
	require.ErrorIs(t, err, context.DeadlineExceeded)

	two.Send("acquire 60000") // the peer waits for Go
	pause(t)
	for _, h := range held.Holds() {
		require.NoError(t, inspect.Revoke(patient(t), c, h.Node()))
		zktest.Receive(t, answersWithin, h.Revoked(), "the request")
	}
	require.NoError(t, held.Holds()[1].Release(patient(t)))
	two.wants(t, "held")
	var again *coord.Hold // and Go for the peer
	granted := coordtest.Go(func() (err error) {
		again, err = own.Acquire(patient(t))
		return err
	})
	one.must(t, "release", "released")
	require.NoError(t, zktest.Receive(t, answersWithin, granted, "a lease"))
	two.must(t, "release", "released")
	require.NoError(t, again.Release(patient(t)))
	require.NoError(t, held.Release(patient(t)))

	var working sync.WaitGroup
	for i := range 2 {
		working.Go(func() { goRounds(t, w.Admin(), path, fmt.Sprintf("go-%d", i), own) })
	}
	all.send(fmt.Sprintf("rounds %d", rounds))
	all.want(t, fmt.Sprintf("done %d", rounds))
	working.Wait()

	one.must(t, "acquire 60000", "held")
	require.ErrorIs(t, coordtest.Err(own.TryAcquireN(patient(t), leases)), coord.ErrBusy)
	one.Kill()
	everything, err := own.AcquireN(patient(t), leases) // when its session has ended
	require.NoError(t, err)
	require.NoError(t, everything.Release(patient(t)))
}

// goRounds does what a peer does in its rounds.
func goRounds(t *testing.T, admin *zk.Conn, path, name string, own *semaphore.Semaphore) {
	for i := range rounds {
		err := own.Do(patient(t), func(context.Context, *coord.Hold) error {
			node := fmt.Sprintf("%s/inside/%s-%d", path, name, i)
			if _, err := admin.Create(node, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
				return err
			}
			inside, _, err := admin.Children(path + "/inside")
			if len(inside) > leases {
				t.Errorf("%d hold: %v", len(inside), inside)
			}
			if err != nil {
				return err
			}
			return admin.Delete(node, -1)
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestAllLanguagesMeetAtOneBarrier(t *testing.T) {
	curator, kazoo := Java(t, "Peer"), Python(t, "peer.py")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		b, err := barrier.New(openAs(t, w, coord.Curator), path+"/shared")
		require.NoError(t, err)
		others := contenders{contend(t, w, curator, path, "java", "barrier"), contend(t, w, kazoo, path, "python", "barrier")}
		others.want(t, "ready")
		for _, p := range others {
			p.must(t, "wait 60000", "open")
			p.must(t, "set", "set")
			require.NoError(t, b.Set(patient(t)), "it is set already")
			require.ErrorIs(t, b.Wait(coordtest.Within(t, 300*time.Millisecond)), context.DeadlineExceeded)
			passed := coordtest.Go(func() error { return b.Wait(patient(t)) })
			p.must(t, "remove", "removed")
			require.NoError(t, zktest.Receive(t, answersWithin, passed, "the way is open"))

			require.NoError(t, b.Set(patient(t)))
			p.must(t, "wait 300", "closed")
			p.Send("wait 60000")
			require.NoError(t, b.Open(patient(t)))
			p.wants(t, "open")
		}
		others.quit(t)
	})
}

func TestMain(m *testing.M) {
	Register()
	zktest.RegisterChild("hold", holdIn)
	// Programs spend most of their time waiting for one another, so more tests
	// run in parallel than there are processors, unless the command line says
	// otherwise.
	if err := flag.Lookup("test.parallel").Value.Set("8"); err != nil {
		panic(err)
	}
	zktest.Main(m)
}
