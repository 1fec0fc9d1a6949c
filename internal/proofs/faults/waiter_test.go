package faults

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func TestF08TheConnectionIsCutAtTheInstantThePredecessorGoes(t *testing.T) {
	each(t, func(s scene) {
		h := s.acquire(s.client())
		waiter := s.waitBehindProxy(2)
		event := s.w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpNotification}, Path: s.dir(), Do: proxy.CutOnReply})
		next := s.handOver(h, waiter)
		require.Equal(s, 1, event.Fired(), "the news of the release was lost")
		s.isSoleHolder(next)
		s.release(next)
	})
}

// After a reconnect the client does not send its watches again, but looks again
// itself. So there is no setWatches to lose, and a change during the outage is
// seen.
func TestF09AWaiterLooksAgainAfterAReconnectWithoutSetWatches(t *testing.T) {
	each(t, func(s scene) {
		h := s.acquire(s.client())
		waiter := s.waitBehindProxy(2)
		p := s.w.Proxy()
		p.Inject(proxy.Fault{On: []int32{proxy.OpSetWatches, proxy.OpSetWatches2}, Times: proxy.Always, Do: proxy.Drop})
		p.Refuse()
		require.Equal(s, 1, p.CutAll())
		s.release(h)
		zktest.Eventually(s, patience, func() bool { return p.Stats().Refused > 0 }, "the waiter does not try to connect")
		require.Empty(s, waiter)
		healed := time.Now()
		p.Heal()
		next := s.grantedWithin(progress, waiter, healed)
		requests := p.Requests()
		require.Zero(s, requests[proxy.OpSetWatches]+requests[proxy.OpSetWatches2])
		s.isSoleHolder(next)
		s.release(next)
	})
}

func TestF10TheConnectionFlaps(t *testing.T) {
	each(t, func(s scene) {
		const timeout = 2 * T // so that the machine may stand still for a moment
		s.w.SetTimeout(timeout)
		var clients []*coord.Client
		for range 3 {
			clients = append(clients, s.behind(coord.WithSessionTimeout(timeout)))
		}
		c, p := s.contest(clients, steady(10*time.Millisecond)), s.w.Proxy()
		before, end := p.Stats().Cut, time.Now().Add(long(60*time.Second, 6*time.Second))
		stop := p.Flap(50*time.Millisecond, 500*time.Millisecond, s.random().Uint64())
		for time.Now().Before(end) || p.Stats().Cut-before <= 20 {
			c.progresses(progress)
		}
		cut := stop()
		c.progresses(progress)
		c.stop()
		require.Zero(s, c.lost, "no hold is lost: the session lives on")
		s.Logf("%d connections cut", cut)
	})
}

// waitBehindProxy starts an acquire that has to wait, through the proxy, and
// returns when it is the line's n-th and watches those it waits for.
func (s scene) waitBehindProxy(n int) <-chan result {
	s.Helper()
	watches := s.w.Proxy().Inject(proxy.Fault{
		On: []int32{proxy.OpGetData}, Path: s.dir(), Times: proxy.Always, Do: proxy.WatchReply,
	})
	defer watches.Remove()
	waiter := s.start(context.Background(), s.behind())
	s.awaitNodes(n)
	own := 1
	zktest.Eventually(s, patience, func() bool { return watches.Fired() > own }, "the waiter does not watch")
	return waiter
}

// awaitWatchers waits until so many sessions watch a node of a real server.
func (s scene) awaitWatchers(node string, n int) {
	s.Helper()
	zktest.Eventually(s, patience, func() bool {
		watching := 0
		for _, path := range s.w.Watched() {
			if path == node {
				watching++
			}
		}
		return watching == n
	}, "%s is not watched by %d", node, n)
}
