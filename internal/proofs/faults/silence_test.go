package faults

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

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
