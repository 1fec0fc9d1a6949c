package semaphore_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/zkembed"
)

// T is the session time-out in bubbles.
const T = 30 * time.Second

// bubble is a server in virtual time, where nothing that happens at all takes
// long.
type bubble struct {
	*testing.T
	srv *zkembed.Server
}

func inBubble(t *testing.T, f func(b bubble)) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := zkembed.Start(zkembed.WithAddr(""), zkembed.WithReaper(0))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, srv.Close()) })
		f(bubble{t, srv})
	})
}

// semaphore returns the one at /s for a client of its own.
func (b bubble) semaphore(limit int) *semaphore.Semaphore {
	b.Helper()
	c, err := coord.Open(b.Context(), b.srv.ConnectString(), coord.WithSessionTimeout(T),
		coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			deadline, _ := ctx.Deadline()
			return b.srv.Dial(network, addr, time.Until(deadline))
		}))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, c.Close(context.Background())) })
	s, err := semaphore.New(c, "/s", limit)
	require.NoError(b, err)
	return s
}

// wait acquires n leases in the background, and gives up after an hour.
func (b bubble) wait(s *semaphore.Semaphore, n int) <-chan grant {
	granted := make(chan grant, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(b.Context()), time.Hour)
		defer cancel()
		g, err := s.AcquireN(ctx, n)
		granted <- grant{g, err}
	}()
	time.Sleep(time.Second)
	return granted
}

func (b bubble) hold(s *semaphore.Semaphore, n int) *coord.Group {
	b.Helper()
	return b.granted(b.wait(s, n))
}

func (b bubble) granted(waiting <-chan grant) *coord.Group {
	b.Helper()
	g := <-waiting
	require.NoError(b, g.err)
	return g.group
}

func (b bubble) release(groups ...*coord.Group) {
	b.Helper()
	for _, g := range groups {
		require.NoError(b, g.Release(b.Context()))
	}
}

// children lists the nodes in a directory, the youngest first.
func (b bubble) children(dir string) (paths []string) {
	var newest int64
	for _, node := range b.srv.Nodes() {
		switch {
		case !strings.HasPrefix(node.Path, dir+"/"):
		case node.Stat.Czxid > newest:
			paths, newest = append([]string{node.Path}, paths...), node.Stat.Czxid
		default:
			paths = append(paths, node.Path)
		}
	}
	return paths
}

func TestALeaseThatIsReleasedGoesToTheOneThatWaits(t *testing.T) {
	inBubble(t, func(b bubble) {
		held := b.hold(b.semaphore(1), 1)
		waiting := b.wait(b.semaphore(1), 1)
		require.Empty(b, waiting)
		b.release(held)
		b.release(b.granted(waiting))
	})
}

func TestAWaiterHearsThatTheLimitIsRaised(t *testing.T) {
	inBubble(t, func(b bubble) {
		held := b.hold(b.semaphore(1), 1)
		waiting := b.wait(b.semaphore(semaphore.Stored), 1)
		require.Empty(b, waiting)
		require.NoError(b, b.semaphore(2).SetLimit(b.Context(), 2))
		b.release(b.granted(waiting), held)
	})
}

func TestWhoComesLaterAndWantsLessWaitsItsTurn(t *testing.T) {
	inBubble(t, func(b bubble) {
		one, two := b.hold(b.semaphore(4), 1), b.hold(b.semaphore(4), 2)
		many := b.wait(b.semaphore(4), 3)
		few := b.wait(b.semaphore(4), 1)
		require.Empty(b, many)
		require.Empty(b, few, "overtaken")
		b.release(two)
		three := b.granted(many)
		require.Empty(b, few, "more than the limit")
		b.release(one)
		b.release(b.granted(few), three)
	})
}

func TestAWaiterThatLosesItsPlaceInTheQueueTakesAnother(t *testing.T) {
	inBubble(t, func(b bubble) {
		held := b.hold(b.semaphore(1), 1)
		waiting := b.wait(b.semaphore(1), 1)
		before := b.children("/s/locks")
		require.Len(b, before, 1)
		b.delete(before[0])
		after := b.children("/s/locks")
		require.Len(b, after, 1, "it waits without a place")
		require.NotEqual(b, before, after)
		b.release(held)
		b.release(b.granted(waiting))
	})
}

func TestAWaiterThatLosesItsLeaseMakesAnother(t *testing.T) {
	inBubble(t, func(b bubble) {
		held := b.hold(b.semaphore(1), 1)
		waiting := b.wait(b.semaphore(1), 1)
		before := b.children("/s/leases")
		require.Len(b, before, 2)
		b.delete(before[0])
		after := b.children("/s/leases")
		require.Len(b, after, 2, "it waits without a lease")
		require.NotEqual(b, before, after)
		b.release(held)
		b.release(b.granted(waiting))
	})
}

// delete deletes a node by hand, and returns when everybody has heard of it.
func (b bubble) delete(node string) {
	b.Helper()
	c, err := coord.Open(b.Context(), b.srv.ConnectString(), coord.WithDialer(func(_ context.Context, network, addr string) (net.Conn, error) {
		return b.srv.Dial(network, addr, T)
	}))
	require.NoError(b, err)
	require.NoError(b, coord.Break(b.Context(), c, node))
	require.NoError(b, c.Close(context.Background()))
	time.Sleep(time.Second)
}
