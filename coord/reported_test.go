package coord_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// A follower reports to its leader every half tick the sessions it heard from,
// and nothing of the last of them if it is cut off just before. What it
// acknowledged meanwhile, writes included, has not prolonged the session.
func TestAHoldBehindAFollowerIsolatedBeforeItsReportEndsBeforeTheNextIsGranted(t *testing.T) {
	const report = tick / 2
	for phase := time.Duration(0); phase < tick; phase += 80 * time.Millisecond { // of the reports against the leader's ticks
		t.Run(fmt.Sprint("phase ", phase), func(t *testing.T) {
			inBubble(t, func(b bubble) {
				holder, other := b.Open(coord.WithTick(tick)), b.Open(coord.WithTick(tick))
				h := b.acquire(holder)
				time.Sleep(phase)
				follower := b.Server.AddFollower(time.Millisecond, h.Session())
				time.Sleep(T)
				for isolated := time.Now().Add(report * 99 / 100); time.Now().Before(isolated); {
					require.NoError(t, holder.Flush(b.Context()))
					time.Sleep(report / 200)
				}
				follower.Isolate()
				next, err := other.Acquire(b.Context(), mutex, first)
				require.NoError(t, err)
				require.True(t, ended(h), "two holders")
				follower.Rejoin()
				require.NoError(t, next.Release(b.Context()))
			})
		})
	}
}

// The leader's stream to the follower falls silent, the follower's stream to
// the leader is cut, and what the leader had sent arrives after that: it
// acknowledges a write of the holder, while the follower's report of the
// sessions it heard from is lost.
func TestAHoldWhoseLastReportIsLostEndsBeforeTheNextIsGranted(t *testing.T) {
	for name, c := range map[string]struct {
		silent time.Duration
		opts   []coord.Option
	}{
		"tick known":   {T / 4, []coord.Option{coord.WithTick(tick)}},
		"tick unknown": {T * 7 / 16, nil},
	} {
		for phase := time.Duration(0); phase < T/4; phase += T / 31 { // of the probes
			for _, early := range []time.Duration{0, T / 16} {
				t.Run(fmt.Sprint(name, ", phase ", phase, ", cut ", early, " before"), func(t *testing.T) {
					inBubble(t, func(b bubble) {
						holder, other := b.Open(c.opts...), b.Open(c.opts...)
						h := b.acquire(holder)
						follower := b.Server.AddFollower(time.Millisecond, h.Session())
						time.Sleep(2*T + phase)
						follower.Silence(zkembed.ToFollower)
						stop := b.readAllTheTime(holder, h.Node())
						time.Sleep(c.silent - early)
						follower.Cut(zkembed.ToLeader)
						time.Sleep(early)
						follower.Silence(0)
						next, err := other.Acquire(b.Context(), mutex, first)
						require.NoError(t, err)
						require.True(t, ended(h), "two holders")
						require.Positive(t, follower.Link().Unreported)
						follower.Rejoin()
						stop()
						require.NoError(t, next.Release(b.Context()))
					})
				})
			}
		}
	}
}

// readAllTheTime has a client read as often as its server answers, until stop.
func (b bubble) readAllTheTime(c *coord.Client, path string) (stop func() (answered int)) {
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan int, 1)
	go func() {
		n := 0
		for ; ctx.Err() == nil; time.Sleep(T / 100) {
			if _, _, err := c.Get(ctx, path); err == nil {
				n++
			}
		}
		done <- n
	}()
	return func() int {
		cancel()
		return <-done
	}
}
