package faults

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// A follower that is cut off holds a client's create. The client goes to the
// leader, finds no node, and makes another; then it tries to return to the
// follower. Once the follower is back, it passes on the create and the attempt
// to return. The leader is busy, and moves the session to the follower before
// it checks the create: so it accepts the create.
func TestF18ACreateThatTheCutOffFollowerHeldComesLate(t *testing.T) {
	onEnsemble(t, func(s scene) {
		const timeout, attempts = 4 * T, 10
		s.w.SetTimeout(timeout)
		s.release(s.acquire(s.client())) // the directory is there
		ens := s.w.Ensemble()
		for attempt := range attempts {
			removed := s.createComesLate(ens, ens.Followers()[0], timeout)
			if s.Failed() {
				return
			}
			if removed != "" {
				s.Logf("attempt %d: %s came late and was removed", attempt+1, removed)
				return
			}
		}
		s.Errorf("no create came late in %d attempts", attempts)
	}, zktest.WithQuorumLinks())
}

// createComesLate tries it once. It returns the node that came late and was
// removed, if one did.
func (s scene) createComesLate(ens *zktest.Ens, follower *zktest.Server, timeout time.Duration) (removed string) {
	s.Helper()
	front, leader := zktest.NewProxy(s, follower.Addr()), zktest.NewProxy(s, s.leader().Addr())
	var away, back atomic.Bool
	returned, strays := make(chan struct{}, 100), make(chan string, 10)
	c := s.open("follower-leader-follower", coord.WithSessionTimeout(timeout),
		coord.WithObserver(func(e coord.Event) {
			if e.Kind == coord.StrayRemoved {
				strays <- e.Path
			}
		}),
		coord.WithDialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
			addr := front.Addr()
			if away.Load() && !back.Load() {
				addr = leader.Addr()
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err == nil && back.Load() {
				returned <- struct{}{}
			}
			return conn, err
		}))
	busy := zktest.Connect(s, follower.Addr(), timeout)
	ens.Link(follower).Isolate()
	var writing sync.WaitGroup
	for i := range 2000 {
		writing.Go(func() { _, _ = busy.Create(s.w.Path(fmt.Sprint("busy-", i)), nil, 0, zk.WorldACL(zk.PermAll)) })
	}
	s.wait(tick, time.Now()) // so that the create is behind them
	acquired := s.start(context.Background(), c)
	s.wait(tick, time.Now()) // the create is with the follower, which forgets the requests of connections that end sooner
	away.Store(true)
	require.Equal(s, 1, front.CutAll())
	h, _ := s.granted(acquired)
	back.Store(true)
	leader.CutAll()
	zktest.Receive(s, patience, returned, "the client does not come back")
	s.wait(2*tick, time.Now()) // its attempt is with the follower
	ens.Link(follower).Heal()
	writing.Wait()
	require.NoError(s, ens.AwaitReady())
	require.NoError(s, coordtest.Write(s.Context(), c))
	zktest.Eventually(s, patience, func() bool { return len(s.nodes()) == 1 }, "a node without a claim stays")
	require.NoError(s, h.Err())
	s.isSoleHolder(h)
	s.release(h)
	s.release(s.acquire(s.client()))
	select {
	case removed = <-strays:
	default:
	}
	return removed
}
