package faults

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func TestF01TheReplyToACreateIsLost(t *testing.T) {
	each(t, func(s scene) {
		var recovered atomic.Int64
		c := s.behind(coord.WithObserver(func(e coord.Event) {
			if e.Kind == coord.ClaimRecovered {
				recovered.Add(1)
			}
		}))
		s.release(s.acquire(c)) // the directory is there
		lost := s.w.Proxy().Inject(proxy.Fault{On: proxy.Creates, Path: s.dir(), Where: isClaim, Do: proxy.CutOnReply})
		h := s.acquire(c)
		require.Equal(s, 1, lost.Fired())
		require.EqualValues(s, 1, recovered.Load(), "the node was made by the create whose reply was lost")
		s.isSoleHolder(h)
		s.release(h)
	})
}

// The client may be back before the server has carried the create out.
func TestF01TheConnectionIsCutWhenACreateWasForwarded(t *testing.T) {
	each(t, func(s scene) {
		c := s.behind()
		s.release(s.acquire(c))
		for range 20 {
			cut := s.w.Proxy().Inject(proxy.Fault{On: proxy.Creates, Path: s.dir(), Where: isClaim, Do: proxy.CutAfter})
			h := s.acquire(c)
			require.Equal(s, 1, cut.Fired())
			s.isSoleHolder(h)
			s.release(h)
		}
	})
}

func TestF02ACreateIsLost(t *testing.T) {
	each(t, func(s scene) {
		c := s.behind()
		s.release(s.acquire(c))
		lost := s.w.Proxy().Inject(proxy.Fault{On: proxy.Creates, Path: s.dir(), Where: isClaim, Do: proxy.DropAndCut})
		h := s.acquire(c)
		require.Equal(s, 1, lost.Fired())
		s.isSoleHolder(h)
		s.release(h)
	})
}

// The create waits for the acknowledgement of a follower that lags. So it is
// under way when the client is back, at that follower, which does not show it
// yet. A client that only lists the directory makes a second node.
func TestF03ACreateIsUnderWayAndTheNextServerLags(t *testing.T) {
	onEnsemble(t, func(s scene) {
		for range 3 { // on a busy machine the follower may have caught up before it is asked
			if s.createIsUnderWay() {
				return
			}
		}
		s.Error("the follower does not lag")
	}, zktest.WithQuorumLinks())
}

// createIsUnderWay reports whether the follower still lagged when the client
// was back.
func (s scene) createIsUnderWay() bool {
	// A write through a server that lags takes the way to and fro several
	// times.
	const timeout, behind = 10 * T, 500 * time.Millisecond
	s.w.SetTimeout(timeout)
	ens := s.w.Ensemble()
	leader := s.leader()
	lagging := ens.Followers()[0]
	front := zktest.NewProxy(s, leader.Addr())
	cut := front.Inject(proxy.Fault{On: proxy.Creates, Path: s.dir(), Where: isClaim, Do: proxy.CutAfter})
	back := make(chan struct{}, 10)
	// The client talks to the leader until it is cut off, and to the lagging
	// follower from then on.
	c := s.open("leader-then-follower", coord.WithSessionTimeout(timeout),
		coord.WithObserver(func(e coord.Event) {
			if e.Kind == coord.SessionUp && cut.Fired() > 0 {
				back <- struct{}{}
			}
		}),
		coord.WithDialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
			addr := front.Addr()
			if cut.Fired() > 0 {
				addr = lagging.Addr()
			}
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}))
	s.release(s.acquire(s.client()))
	atLeader, atFollower := zktest.Connect(s, leader.Addr(), timeout), zktest.Connect(s, lagging.Addr(), timeout)
	_, err := atFollower.Sync(s.dir())
	require.NoError(s, err)
	for _, follower := range ens.Followers() {
		ens.Link(follower).Delay(behind)
	}
	acquired := s.start(context.Background(), c)
	zktest.Receive(s, patience, back, "the client does not come back")
	names, _, err := atFollower.Children(s.dir())
	require.NoError(s, err)
	lags := len(names) == 0
	h, _ := s.granted(acquired)
	require.Equal(s, 1, cut.Fired())
	s.wait(2*time.Second, time.Now()) // a second create would have been carried out by now
	names, _, err = atLeader.Children(s.dir())
	require.NoError(s, err)
	require.Len(s, names, 1)
	require.Equal(s, s.dir()+"/"+names[0], h.Node())
	for _, follower := range ens.Followers() {
		ens.Link(follower).Heal()
	}
	s.isSoleHolder(h)
	s.release(h)
	return lags
}

// The listing that follows the create is lost, or its reply.
func TestF05TheListingAfterACreateIsLost(t *testing.T) {
	each(t, func(s scene) {
		for _, loss := range []proxy.Action{proxy.CutOnReply, proxy.DropAndCut} {
			c := s.behind()
			s.release(s.acquire(c))
			lost := s.w.Proxy().Inject(proxy.Fault{On: proxy.Lists, Path: s.dir(), Do: loss})
			begun := time.Now()
			h := s.grantedWithin(progress, s.start(context.Background(), c), begun)
			require.Equal(s, 1, lost.Fired())
			s.isSoleHolder(h)
			s.release(h)
		}
	})
}

func TestF04TheContextEndsWhileTheReplyToACreateIsLost(t *testing.T) {
	each(t, func(s scene) {
		p := s.w.Proxy()
		lost := p.Inject(proxy.Fault{On: proxy.Creates, Path: s.dir(), Where: isClaim, Do: proxy.CutOnReply})
		s.release(s.acquire(s.client()))
		back := make(chan struct{}) // until then no client connects again
		c := s.open(p.Addr(), coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			if lost.Fired() > 0 {
				select {
				case <-back:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}))
		ctx, cancel := context.WithCancel(context.Background())
		done := s.start(ctx, c)
		zktest.Receive(s, patience, lost.First(), "the create is not sent")
		cancel()
		s.fails(done, time.Now())
		require.Len(s, s.nodes(), 1, "the create took effect")
		close(back)
		require.Empty(s, s.drained(progress, s.nodes), "the node is left")
	})
}

// isClaim reports whether a create is that of a claim's node, not of its
// directory.
func isClaim(f *proxy.Frame) bool {
	return len(f.Paths) == 1 && f.Op == proxy.OpCreate
}

func TestF06TheReplyToADeleteIsLost(t *testing.T) {
	each(t, func(s scene) {
		m := s.mutex(s.behind())
		h, err := m.Acquire(s.Context())
		require.NoError(s, err)
		lost := s.w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpDelete}, Path: s.dir(), Do: proxy.CutOnReply})
		s.release(h)
		require.Equal(s, 1, lost.Fired())
		require.Empty(s, s.nodes())
		again, err := m.Acquire(s.Context())
		require.NoError(s, err)
		s.isSoleHolder(again)
		s.release(again)
	})
}

func TestF07ADeleteIsLost(t *testing.T) {
	each(t, func(s scene) {
		c := s.behind()
		h := s.acquire(c)
		waiter := s.start(context.Background(), s.client())
		s.awaitNodes(2)
		lost := s.w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpDelete}, Path: s.dir(), Do: proxy.DropAndCut})
		begun := time.Now()
		s.release(h)
		require.Equal(s, 1, lost.Fired())
		s.release(s.grantedWithin(2*time.Second, waiter, begun))
	})
}

// A release whose caller does not wait goes on by itself.
func TestF07AReleaseThatIsLeftGoesOn(t *testing.T) {
	each(t, func(s scene) {
		c := s.behind()
		h := s.acquire(c)
		p := s.w.Proxy()
		lost := p.Inject(proxy.Fault{On: []int32{proxy.OpDelete}, Path: s.dir(), Do: proxy.DropAndCut})
		p.Refuse()
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-lost.First()
			cancel()
		}()
		require.Error(s, h.Release(ctx))
		require.Len(s, s.nodes(), 1)
		p.Heal()
		s.release(h) // the same answer as the background's
		require.Empty(s, s.nodes())
	}, zktest.Embedded, zktest.Real)
}
