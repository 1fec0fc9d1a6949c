package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

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
				require.Empty(s, s.drained(prompt, func() []string { return goroutines(s.Name() + " closed") }), "goroutines are left")
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
		m := s.mutex(s.client())
		h, err := m.Acquire(s.Context())
		require.NoError(s, err)
		s.holds.add(h)
		waiter := s.start(context.Background(), s.client())
		s.awaitNodes(2)
		ended, killed := s.endOf(h), time.Now()
		s.w.ExpireSession(h.Session())
		s.ends(ended)
		require.ErrorIs(s, h.Err(), coord.ErrLost)
		// The news of the node's end may come before that of the session's.
		require.True(s, errors.Is(h.Err(), coord.ErrSessionExpired) || errors.Is(h.Err(), coord.ErrNodeDeleted), "%v", h.Err())
		next := s.grantedAfter(killed, waiter)
		require.Greater(s, next.Token(), h.Token())
		s.release(h)
		require.ErrorIs(s, h.Err(), coord.ErrLost, "a release does not hide the loss")
		s.release(next)
		again, err := m.Acquire(s.Context())
		require.NoError(s, err)
		require.Greater(s, again.Token(), next.Token())
		s.release(again)
	})
}

func TestF33TheSessionExpiresWhileWaiting(t *testing.T) {
	each(t, func(s scene) {
		a, b := s.client(), s.client()
		h := s.acquire(a)
		waiter := s.start(context.Background(), b)
		s.awaitNodes(2)
		old, before := b.SessionID(), s.nodes()
		s.w.ExpireSession(old)
		zktest.Eventually(s, patience, func() bool { return b.SessionID() != old && len(s.nodes()) == 2 }, "the waiter does not queue again")
		require.NotElementsMatch(s, before, s.nodes(), "the old node is gone")
		next := s.handOver(h, waiter)
		require.NotEqual(s, old, next.Session())
		s.isSoleHolder(next)
		for _, name := range before {
			require.NotEqual(s, s.dir()+"/"+name, next.Node())
		}
		s.release(next)
	})
}

func TestF37AnAdminDeletesTheHoldersNode(t *testing.T) {
	each(t, func(s scene) {
		c := s.behind()
		for _, watched := range []bool{true, false} { // a hold that is young has no watch yet
			h := s.acquire(c)
			if watched {
				zktest.Eventually(s, patience, func() bool { return slices.Contains(s.w.Watched(), h.Node()) }, "the own node is not watched")
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
			deleted := time.Now()
			end, news := s.ends(ended), zktest.Receive(s, patience, told, "the holder is not told")
			if s.w.Backend() == zktest.Real { // whose processor time is not this process's
				deleted = news
			}
			s.onTime("lost", deleted, 100*time.Millisecond, end)
			require.ErrorIs(s, h.Err(), coord.ErrLost)
			require.ErrorIs(s, h.Err(), coord.ErrNodeDeleted)
			s.release(h)
		}
		s.release(s.acquire(c))
	})
}

func TestF38AnAdminDeletesAWaitersNode(t *testing.T) {
	each(t, func(s scene) {
		h := s.acquire(s.client())
		var waiters []<-chan result
		for i := range 2 {
			waiters = append(waiters, s.start(context.Background(), s.client()))
			s.awaitNodes(i + 2)
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
	})
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

	s.afterAProbe(h)
	s.wait(time.Duration(r.Int64N(int64(tick))), time.Now()) // of the leader's pings
	early := time.Duration(r.IntN(2)) * timeout / 16
	link.Silence(proxy.ToClient)
	begun := time.Now()
	answered := s.readAllTheTime(holder, h.Node())
	s.wait(timeout/8, begun)
	written := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), silent)
		defer cancel()
		written <- coordtest.Write(ctx, holder)
	}()
	s.wait(silent-early, begun)
	require.Equal(s, 1, link.CutWay(proxy.ToServer))
	require.Empty(s, written, "acknowledged in the silence")
	s.wait(silent, begun)
	link.Heal()

	wrote := zktest.Receive(s, patience, written, "the write does not return")
	link.Cut()
	next, granted := s.granted(waiter)
	end := s.ends(ended)
	reads := answered()
	s.Logf("cut %v before the end of the silence, %d reads answered, write: %v; gave up %v before the second grant",
		early, reads, wrote, granted.Sub(end))
	require.True(s, end.Before(granted), "held %v too long", end.Sub(granted))
	require.Greater(s, next.Token(), h.Token())
	stats := link.Stats()
	require.Greater(s, stats.Held, before.Held)
	front.Heal()
	require.NoError(s, ens.AwaitReady())
	s.release(next)
	return reads > 0 && wrote == nil && stats.Lost > before.Lost
}

// afterAProbe returns when a probe has just moved the hold's window.
func (s scene) afterAProbe(h *coord.Hold) {
	s.Helper()
	window := h.Deadline()
	zktest.Eventually(s, patience, func() bool { return h.Deadline().After(window) }, "the window does not move")
}

// readAllTheTime has a client read every 10 ms until stop, which returns how
// many reads were answered.
func (s scene) readAllTheTime(c *coord.Client, path string) (stop func() int) {
	ctx, cancel := context.WithCancel(context.Background())
	answered := make(chan int, 1)
	go func() {
		n := 0
		for ctx.Err() == nil {
			one, end := context.WithTimeout(ctx, 10*time.Millisecond)
			if _, _, err := c.Get(one, path); err == nil {
				n++
			}
			<-one.Done()
			end()
		}
		answered <- n
	}()
	return func() int {
		cancel()
		return <-answered
	}
}
