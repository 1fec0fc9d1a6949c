package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
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
		for by, dialect := range recoveries {
			s.dialect = dialect
			removed := ""
			for attempt := 0; attempt < attempts && removed == "" && !s.Failed(); attempt++ {
				removed = s.createComesLate(ens, ens.Followers()[0], timeout)
			}
			require.NotEmpty(s, removed, "%s: no create came late in %d attempts", by, attempts)
		}
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
		coord.WithObserver(func(e event.Event) {
			if e.Kind == event.StrayRemoved {
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
	for range 4 {
		writing.Go(func() { _, _ = busy.Multi(s.work()...) })
	}
	s.wait(tick, time.Now()) // the create must be behind them
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

// work is a transaction that keeps a leader busy, however slowly requests come,
// and leaves nothing.
func (s scene) work() (ops []any) {
	at := s.w.Path("busy")
	for range 3000 {
		create := &zk.CreateRequest{Path: at, Acl: zk.WorldACL(zk.PermAll)}
		ops = append(ops, create, &zk.DeleteRequest{Path: at, Version: -1})
	}
	return ops
}

func TestF31CloseIsPromptWhateverTheClientDoes(t *testing.T) {
	t.Parallel()
	states := map[string]func(s scene, c *coord.Client){
		"held": func(s scene, c *coord.Client) { s.acquire(c) },
		"waiting": func(s scene, c *coord.Client) {
			s.waitToBeClosed(c)
			s.awaitNodes(2)
		},
		"disconnected": func(s scene, c *coord.Client) {
			s.acquire(c)
			s.w.Proxy().Refuse()
			require.Equal(s, 1, s.w.Proxy().CutAll())
			s.awaitStat("the client does not connect again", func(p proxy.Stats) int { return p.Refused })
		},
		"handshake hung": func(s scene, c *coord.Client) {
			s.acquire(c)
			s.w.Proxy().Hang()
			require.Equal(s, 1, s.w.Proxy().CutAll())
			for range 100 {
				s.waitToBeClosed(c)
			}
			s.awaitStat("the client does not connect again", func(p proxy.Stats) int { return p.Hung })
		},
		"server hung": func(s scene, c *coord.Client) {
			s.acquire(c)
			s.w.Proxy().Blackhole(proxy.Both)
			for range 100 { // more than the client library queues
				s.waitToBeClosed(c)
			}
			s.awaitStat("nothing is held back", func(p proxy.Stats) int { return p.Held })
		},
	}
	for name, prepare := range states {
		t.Run(name, func(t *testing.T) {
			each(t, func(s scene) {
				var other *coord.Hold
				if name == "waiting" {
					other = s.acquire(s.client())
				}
				s.label(s.Name() + " closed")
				c := s.behind()
				prepare(s, c)
				s.label(s.Name())
				closed := time.Now()
				require.NoError(s, c.Close(context.Background()))
				s.onTime("closed", closed, 2*time.Second, time.Now())
				require.Empty(s, s.drained(prompt, func() []string { return goroutines(s.Name() + " closed") }),
					"goroutines are left")
				require.ErrorIs(s, coordtest.Err(s.mutex(c).Acquire(context.Background())), coord.ErrClosed)
				if other != nil {
					s.release(other)
				}
				require.Empty(s, s.drained(expiry, s.ephemerals), "a node outlives its session")
				s.onTime("the node was gone", closed, expiry, time.Now())
				s.w.Proxy().Heal()
			})
		})
	}
}

// waitToBeClosed starts an acquire that does not return before c is closed.
func (s scene) waitToBeClosed(c *coord.Client) {
	s.Helper()
	waiting := s.start(context.Background(), c)
	s.Cleanup(func() {
		r := zktest.Receive(s, patience, waiting, "the acquire does not return")
		require.ErrorIs(s, r.err, coord.ErrClosed)
	})
}

// awaitStat waits until the proxy has counted one.
func (s scene) awaitStat(otherwise string, of func(proxy.Stats) int) {
	s.Helper()
	zktest.Eventually(s, patience, func() bool { return of(s.w.Proxy().Stats()) > 0 }, "%s", otherwise)
}

func TestF32TheSessionExpiresWhileHolding(t *testing.T) {
	each(t, func(s scene) {
		c := s.client()
		h := s.acquire(c)
		waiter := s.waiter(s.client(), 2)
		ended, killed := s.endOf(h), time.Now()
		s.w.ExpireSession(h.Session())
		s.ends(ended)
		require.ErrorIs(s, h.Err(), coord.ErrLost)
		// The news of the node's end may come before the news of the session's.
		require.True(s, errors.Is(h.Err(), coord.ErrSessionExpired) || errors.Is(h.Err(), coord.ErrNodeDeleted),
			"%v", h.Err())
		next := s.grantedAfter(killed, waiter)
		require.Greater(s, next.Token(), h.Token())
		s.release(h)
		require.ErrorIs(s, h.Err(), coord.ErrLost, "a release does not hide the loss")
		s.release(next)
		again := s.acquire(c)
		require.Greater(s, again.Token(), next.Token())
		s.release(again)
	}, zktest.Real)
}

func TestF33TheSessionExpiresWhileWaiting(t *testing.T) {
	each(t, func(s scene) {
		a, b := s.client(), s.client()
		h := s.acquire(a)
		waiter := s.waiter(b, 2)
		old, before := b.Info().SessionID, s.nodes()
		s.w.ExpireSession(old)
		zktest.Eventually(s, patience, func() bool { return b.Info().SessionID != old && len(s.nodes()) == 2 },
			"the waiter does not queue again")
		require.NotElementsMatch(s, before, s.nodes(), "the old node is gone")
		next := s.handOver(h, waiter)
		require.NotEqual(s, old, next.Session())
		s.isSoleHolder(next)
		for _, name := range before {
			require.NotEqual(s, s.dir()+"/"+name, next.Node())
		}
		s.release(next)
	}, zktest.Real)
}

func TestF37AnAdminDeletesTheHoldersNode(t *testing.T) {
	each(t, func(s scene) {
		c := s.behind()
		for _, watched := range []bool{true, false} { // a hold that is young has no watch yet
			h := s.acquire(c)
			if watched {
				zktest.Eventually(s, patience, func() bool { return slices.Contains(s.w.Watched(), h.Node()) },
					"our node is not watched")
			}
			ended, told := s.endOf(h), make(chan time.Time, 1)
			s.w.Proxy().Inject(proxy.Fault{
				On: []int32{proxy.OpNotification, proxy.OpGetData}, Path: h.Node(), Do: proxy.WatchReply,
				Where: func(f *proxy.Frame) bool {
					if f.Op == proxy.OpGetData && f.Err == 0 {
						return false
					}
					select {
					case told <- time.Now():
					default:
					}
					return true
				},
			})
			require.NoError(s, s.admin().Delete(h.Node(), -1))
			end, news := s.ends(ended), zktest.Receive(s, patience, told, "the holder is not told")
			s.onTime("lost", news, 100*time.Millisecond, end) // the server's processor time is not this process's
			require.ErrorIs(s, h.Err(), coord.ErrLost)
			require.ErrorIs(s, h.Err(), coord.ErrNodeDeleted)
			s.release(h)
		}
		s.release(s.acquire(c))
	}, zktest.Real)
}

func TestF38AnAdminDeletesAWaitersNode(t *testing.T) {
	each(t, func(s scene) {
		h := s.acquire(s.client())
		var waiters []<-chan result
		for i := range 2 {
			waiters = append(waiters, s.waiter(s.client(), i+2))
		}
		var middle string
		for _, name := range s.nodes() {
			if n := sequence(s, name); n == sequence(s, h.Node())+1 {
				middle = name
			}
		}
		require.NoError(s, s.admin().Delete(s.dir()+"/"+middle, -1))
		s.awaitNodes(3) // it queues again
		require.NotContains(s, s.nodes(), middle)
		// A grant that came too early would make two holders.
		last := s.handOver(h, waiters[1])
		s.release(s.handOver(last, waiters[0]))
	}, zktest.Real)
}

func sequence(s scene, node string) (n int) {
	s.Helper()
	require.NoError(s, coordtest.Err(fmt.Sscanf(node[len(node)-10:], "%d", &n)))
	return n
}

// The leader's stream to the holder's follower falls silent. The follower's
// stream to the leader is cut a little before the first goes on, or at that
// moment. The leader's stream then acknowledges a write of the holder, while
// the follower's report of the sessions it heard from is lost.
func TestF47TheAcknowledgementComesAndTheReportIsLost(t *testing.T) {
	t.Parallel()
	const timeout = 4 * T
	for name, c := range map[string]struct {
		silent time.Duration
		opts   []coord.Option
	}{
		"tick known":   {timeout / 4, []coord.Option{coord.WithTick(tick)}},
		"tick unknown": {timeout * 7 / 16, nil},
	} {
		t.Run(name, func(t *testing.T) {
			onEnsemble(t, func(s scene) {
				s.w.SetTimeout(timeout)
				r, phases, struck := s.random(), 2, 0
				if os.Getenv("FAULTS_LONG") != "" {
					phases = 20
				}
				opts := append([]coord.Option{coord.WithSessionTimeout(timeout)}, c.opts...)
				for tries := 0; struck < phases; tries++ {
					require.Less(s, tries, 2*phases, "the schedule struck %d times only", struck)
					if s.reportIsLost(r, timeout, c.silent, opts) {
						struck++
					}
				}
			}, zktest.WithQuorumLinks())
		})
	}
}

// reportIsLost plays the schedule once, and reports whether the fault happened:
// whether the follower answered reads during the silence, and acknowledged a
// write after it.
func (s scene) reportIsLost(r *rand.Rand, timeout, silent time.Duration, opts []coord.Option) bool {
	s.Helper()
	ens := s.w.Ensemble()
	follower, leader := ens.Followers()[0], s.leader()
	link, before := ens.Link(follower), ens.Link(follower).Stats()
	front := zktest.NewProxy(s, follower.Addr())
	holder := coordtest.Open(s, front.Addr(), opts...)
	h := s.acquire(holder)
	front.Refuse() // it cannot go elsewhere
	waiter := s.start(context.Background(), coordtest.Open(s, leader.Addr(), opts...))
	s.awaitWatchers(h.Node(), 2)
	ended := s.endOf(h)

	window := h.Deadline()
	zktest.Eventually(s, patience, func() bool { return h.Deadline().After(window) }, "no probe moves the window")
	s.wait(time.Duration(r.Int64N(int64(tick))), time.Now()) // of the leader's pings
	early := time.Duration(r.IntN(2)) * timeout / 16
	link.Silence(proxy.ToClient)
	begun := time.Now()
	answered := s.repeat(10*time.Millisecond, func(ctx context.Context) error {
		_, _, err := holder.Get(ctx, h.Node())
		return err
	})
	s.wait(timeout/8, begun)
	written := coordtest.Go(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), silent)
		defer cancel()
		return coordtest.Write(ctx, holder)
	})
	s.wait(silent-early, begun)
	require.Equal(s, 1, link.CutWay(proxy.ToServer))
	require.Empty(s, written, "acknowledged in the silence")
	s.wait(silent, begun)
	link.Heal()

	wrote := zktest.Receive(s, patience, written, "the write does not return")
	link.Cut()
	next := s.succeeds(h, ended, waiter)
	reads := answered()
	s.Logf("cut %v before the end of the silence, %d reads answered, write: %v", early, reads, wrote)
	stats := link.Stats()
	require.Greater(s, stats.Held, before.Held)
	front.Heal()
	require.NoError(s, ens.AwaitReady())
	s.release(next)
	return reads > 0 && wrote == nil && stats.Lost > before.Lost
}
