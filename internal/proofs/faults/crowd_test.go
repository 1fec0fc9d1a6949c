package faults

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// crowdTimeout is the session time-out of the scenarios with a crowd: twice the
// usual one, for a crowd keeps the machine busy.
const crowdTimeout = 2 * T

// crowd is many waiters in one client, on one path that another client holds,
// and a hold beside them.
type crowd struct {
	s         scene
	n         int
	client    *coord.Client
	first     *coord.Hold // the others wait for it
	beside    *coord.Hold // in the same client
	connected atomic.Int32
	waiting   context.Context
	giveUp    context.CancelFunc
	returned  chan error
}

// assemble makes a crowd whose session lasts for timeout, and returns when
// all are in line.
func (s scene) assemble(n int, timeout time.Duration) *crowd {
	s.Helper()
	s.w.SetTimeout(timeout)
	c := &crowd{s: s, n: n, returned: make(chan error, n)}
	c.waiting, c.giveUp = context.WithCancel(context.Background())
	joined := make(chan struct{}, n+1)
	c.first = s.acquire(s.client(coord.WithSessionTimeout(3 * timeout)))
	c.client = s.behind(coord.WithSessionTimeout(timeout),
		coord.WithObserver(func(e coord.Event) {
			switch e.Kind {
			case coord.ClaimJoined:
				joined <- struct{}{}
			case coord.SessionUp:
				c.connected.Add(1)
			}
		}))
	beside, err := lock.New(c.client, s.w.Path("beside"))
	require.NoError(s, err)
	c.beside, err = beside.Acquire(s.Context())
	require.NoError(s, err)
	<-joined
	m := s.mutex(c.client)
	for begun := range n {
		if begun >= 200 { // so many at a time
			<-joined
		}
		go func() {
			_, err := m.Acquire(c.waiting)
			c.returned <- err
		}()
	}
	c.inLine(patience)
	return c
}

// inLine waits until every waiter watches its node, and returns how long that
// took.
func (c *crowd) inLine(within time.Duration) time.Duration {
	c.s.Helper()
	begun := time.Now()
	zktest.Eventually(c.s, within, func() bool { return c.watches() >= c.n }, "%d of %d are in line", c.watches(), c.n)
	return time.Since(begun)
}

// watches counts the nodes that are watched at the server.
func (c *crowd) watches() int {
	if c.s.w.Backend() == zktest.Embedded {
		return c.s.w.Embedded().WatchCount()
	}
	n, err := c.s.w.Real().Mntr("zk_watch_count")
	if err != nil {
		return 0
	}
	return int(n)
}

func (c *crowd) disperse() {
	c.giveUp()
	for range c.n {
		require.ErrorIs(c.s, zktest.Receive(c.s, patience, c.returned, "a waiter does not give up"), context.Canceled)
	}
	c.s.release(c.beside)
	c.s.release(c.first)
}

// comesBack breaks the connection by happens, and checks how the crowd returns.
func (c *crowd) comesBack(happens func()) {
	s := c.s
	s.Helper()
	p := s.w.Proxy()
	p.ResetRequests()
	before := c.connected.Load()
	happens()
	zktest.Eventually(s, patience, func() bool { return c.connected.Load() > before }, "the client does not connect again")
	took := c.inLine(patience)
	lists, reads := 0, p.Requests()[proxy.OpGetData]
	for _, op := range proxy.Lists {
		lists += p.Requests()[op]
	}
	s.Logf("%d waiters back after %v: %d connections, %d listings, %d reads", c.n, took, c.connected.Load()-before, lists, reads)
	require.Less(s, took, crowdTimeout)
	require.LessOrEqual(s, c.connected.Load()-before, int32(2), "connections")
	require.LessOrEqual(s, lists, 10, "listings")
	require.NoError(s, c.beside.Err())
	require.Empty(s, c.returned)
}

// crowdOf is how many wait: 5,000 at full length.
func crowdOf() int {
	if long(time.Second, 0) > 0 {
		return 5000
	}
	return 2000
}

func TestF48ACrowdInOneClientComesBackAfterACut(t *testing.T) {
	eachPrivateAlone(t, func(s scene) {
		c := s.assemble(crowdOf(), crowdTimeout)
		c.comesBack(func() { require.Equal(s, 1, s.w.Proxy().CutAll()) })
		c.disperse()
	})
}

// A hold outlives an outage of T/3, so that T is longer here: a real server
// takes a while to start.
func TestF48ACrowdInOneClientComesBackAfterARestart(t *testing.T) {
	eachPrivateAlone(t, func(s scene) {
		c := s.assemble(crowdOf(), 3*crowdTimeout)
		c.comesBack(func() {
			s.w.Crash()
			s.w.Recover()
		})
		c.disperse()
	})
}

// Each of 20,000 holds ends in time after a loss: within the part of the window
// that is left for acting on it. With the race detector there are 2,000.
func TestF49AllHoldsEndInTimeWhenASessionIsLost(t *testing.T) {
	eachPrivateAlone(t, func(s scene) {
		n := 4 * crowdOf()
		if raced {
			n = 2000
		}
		s.w.SetTimeout(crowdTimeout)
		c := s.behind(coord.WithSessionTimeout(crowdTimeout))
		spec := coord.Spec{Line: coord.Line{Dir: s.w.Path("held")}, Kind: "held"}
		holds, limit := make([]*coord.Hold, n), make(chan struct{}, 200)
		var acquiring sync.WaitGroup
		for i := range holds {
			limit <- struct{}{}
			acquiring.Go(func() {
				defer func() { <-limit }()
				var err error
				if holds[i], _, err = c.Stand(s.Context(), spec); err != nil {
					s.Error(err)
				}
			})
		}
		acquiring.Wait()
		require.False(s, s.Failed())
		s.w.Proxy().Blackhole(proxy.Both)
		zktest.Receive(s, patience, holds[0].Done(), "the hold does not end")
		look := time.NewTicker(time.Millisecond) // a wake-up for each would slow down what is measured
		defer look.Stop()
		for left := holds; len(left) > 0; {
			select {
			case <-left[0].Done():
				left = left[1:]
			default:
				<-look.C
			}
		}
		last := time.Now()
		window := holds[0].Deadline()
		for _, h := range holds {
			require.ErrorIs(s, h.Err(), coord.ErrLost)
		}
		s.Logf("%d holds: the last is told %v after the window's end", n, last.Sub(window))
		s.onTime("told", window, crowdTimeout/50, last)
		s.w.Proxy().Heal()
		require.NoError(s, c.Close(s.Context())) // or 20,000 deletions would follow
		require.Empty(s, s.drained(2*crowdTimeout, s.ephemerals), "the session's nodes, which may have to wait for its expiry")
	})
}
