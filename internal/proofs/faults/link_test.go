package faults

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// A second connection takes the session over and leaves it again, as after a
// change of address, at one server or at all in turn.
func TestF34TheSessionMovesToAnotherConnectionAgainAndAgain(t *testing.T) {
	each(t, func(s scene) { s.moveSessions(func(id int64) error { return s.w.Real().DropConn(id) }) }, zktest.Real)
}

func TestF34TheSessionMovesToAnotherServerAgainAndAgain(t *testing.T) {
	onEnsemble(t, func(s scene) {
		servers, at := s.w.Ensemble().Servers(), 0
		s.moveSessions(func(id int64) error {
			at++
			return servers[at%len(servers)].DropConn(id)
		})
	})
}

func (s scene) moveSessions(move func(id int64) error) {
	clients := s.clients(2, s.lasting(2*T)) // the machine may stand still for a moment
	sessions := []int64{clients[0].Info().SessionID, clients[1].Info().SessionID}
	c := s.contest(clients, steady(5*time.Millisecond))
	random, moved := s.random(), 0
	for i := range 40 {
		// Its own client may take the session back before the other is served.
		if move(sessions[i%2]) == nil {
			moved++
		}
		s.wait(time.Duration(random.Int64N(int64(100*time.Millisecond))), time.Now())
	}
	require.Greater(s, moved, 20)
	c.progresses(progress)
	c.stop()
	require.Zero(s, c.lost)
	require.Equal(s, sessions, []int64{clients[0].Info().SessionID, clients[1].Info().SessionID})
}

// The hold ends before the server removes its node, whichever way is closed.
func TestF35TheConnectionIsCutOneWay(t *testing.T) {
	t.Parallel()
	ways := map[string]proxy.Direction{"to server": proxy.ToServer, "to client": proxy.ToClient, "both": proxy.Both}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			each(t, func(s scene) {
				h := s.acquire(s.behind())
				exists, _, removed, err := s.admin().ExistsW(h.Node())
				require.NoError(s, err)
				require.True(s, exists)
				ended, gone := s.endOf(h), make(chan time.Time, 1)
				go func() {
					if (<-removed).Type == zk.EventNodeDeleted {
						gone <- time.Now()
					}
				}()
				s.w.Proxy().Blackhole(way)
				end := s.ends(ended)
				margin := zktest.Receive(s, patience, gone, "the server does not remove the node").Sub(end)
				require.Positive(s, margin, "the hold outlived its node")
				require.ErrorIs(s, h.Err(), coord.ErrWindowOver)
				require.Positive(s, s.w.Proxy().Stats().Held)
				s.Logf("the hold ended %v before the node went", margin)
				s.w.Proxy().Heal()
			})
		})
	}
}

// A handshake over a slow connection takes longer than a server that hangs is
// given at first.
func TestF36AClientConnectsOverASlowConnection(t *testing.T) {
	each(t, func(s scene) {
		const timeout = 3 * T // the machine may stand still for a moment
		p := s.w.Proxy()
		p.Delay(proxy.Both, timeout/10, timeout/80)
		c := s.behind(coord.WithSessionTimeout(timeout))
		h := s.acquire(c)
		require.Equal(s, 1, p.CutAll())
		require.NoError(s, coordtest.Write(coordtest.Within(s, patience), c))
		require.Equal(s, h.Session(), c.Info().SessionID, "the session survived")
		p.Heal()
		s.release(h)
	})
}

func TestF36SlowConnectionsLoseNoHold(t *testing.T) {
	t.Parallel()
	const timeout = 2 * T                               // the machine may stand still for a moment
	const slow, jitter = 3 * timeout / 20, timeout / 20 // both ways together: T/5 at most
	type delay struct {
		way          proxy.Direction
		base, jitter time.Duration
	}
	delays := map[string]delay{
		"to server": {proxy.ToServer, slow, jitter},
		"to client": {proxy.ToClient, slow, jitter},
		"both":      {proxy.Both, slow / 2, jitter / 2},
	}
	for name, d := range delays {
		t.Run(name, func(t *testing.T) {
			each(t, func(s scene) {
				lost, count := counting(func(e event.Event) bool {
					return errors.Is(e.Err, coord.ErrLost) || e.Kind == event.SessionDown
				})
				c := s.behind(count, s.lasting(timeout))
				h := s.acquire(c)
				p := s.w.Proxy()
				p.Delay(d.way, d.base, d.jitter)
				nearest, begun := timeout, time.Now()
				for time.Since(begun) < 4*timeout {
					require.NoError(s, coordtest.Write(coordtest.Within(s, timeout), c))
					require.NoError(s, h.Err())
					nearest = min(nearest, time.Until(h.Deadline()))
				}
				s.Logf("the end of the window came as near as %v; timers were up to %v late", nearest, s.control.Worst(begun))
				require.Greater(s, p.Stats().Delayed, 10)
				require.Zero(s, p.Stats().Cut)
				require.Zero(s, lost.Load(), "a hold or a connection was lost")
				s.isSoleHolder(h)
				s.release(h)
			})
		})
	}
}

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
		lasts := s.lasting(2 * T) // the machine may stand still for a moment
		clients := []*coord.Client{s.behind(lasts), s.behind(lasts), s.behind(lasts)}
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
	waiter := s.waiter(s.behind(), n)
	zktest.Eventually(s, patience, func() bool { return watches.Fired() > 1 }, "the waiter only watches its own")
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
