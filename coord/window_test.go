package coord_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestAHoldLastsForHoursWhileNothingFails(t *testing.T) {
	inBubble(t, func(b bubble) {
		_, h := b.holder()
		time.Sleep(11 * time.Hour)
		require.NoError(t, h.Err())
		require.Equal(t, 1, b.owned(h.Session()))
	})
}

// Whenever an outage begins, a hold survives one of T/3, also when the tick is
// not known, and of T/2 when it is known and at most T/5.
func TestAHoldSurvivesAnOutage(t *testing.T) {
	for _, timeout := range []time.Duration{5 * tick, T} {
		for _, known := range []bool{false, true} {
			outage := timeout / 3
			opts := []coord.Option{coord.WithSessionTimeout(timeout)}
			if known {
				opts = append(opts, coord.WithTick(tick))
				outage = timeout / 2
			}
			for after := time.Duration(0); after < timeout; after += timeout / 41 {
				runInBubble(t, fmt.Sprintf("T %v, tick known %v, outage after %v", timeout, known, after), func(b bubble) {
					_, h := b.holder(opts...)
					time.Sleep(timeout + after)
					cut := b.Server.Partition(zkembed.Cut{})
					time.Sleep(outage)
					cut.Heal()
					b.Server.DropConns()
					time.Sleep(T)
					require.NoError(b, h.Err())
				})
			}
		}
	}
}

// The hold ends before the server can have given the session up, whenever and
// however the connection fails.
func TestAHoldEndsBeforeTheServerGivesTheSessionUp(t *testing.T) {
	cuts := map[string]zkembed.Cut{
		"both ways": {},
		"to server": {Direction: zkembed.ToServer},
		"to client": {Direction: zkembed.ToClient},
		"refused":   {NewConns: zkembed.RefuseDial},
		"accepted":  {NewConns: zkembed.AcceptDial},
	}
	for name, cut := range cuts {
		for after := time.Duration(0); after < T/2; after += 3700 * time.Millisecond {
			runInBubble(t, fmt.Sprintf("%s after %v", name, after), func(b bubble) {
				_, h := b.holder(coord.WithTick(tick))
				time.Sleep(after)
				p := b.Server.Partition(cut)
				<-h.Done()
				require.ErrorIs(b, h.Err(), coord.ErrWindowOver)
				require.Equal(b, 1, b.owned(h.Session()), "the server was faster")
				p.Heal()
			})
		}
	}
}

// A follower cut off from its leader goes on answering reads and pings; the
// leader gives the session up. A hold that believed the pings would outlive it.
func TestAHoldBehindAnIsolatedFollowerEndsBeforeTheNextIsGranted(t *testing.T) {
	for after := time.Duration(0); after < T; after += 1700 * time.Millisecond {
		runInBubble(t, fmt.Sprint("isolated after ", after), func(b bubble) {
			_, h := b.holder()
			follower := b.Server.AddFollower(100*time.Millisecond, h.Session())
			time.Sleep(after)
			follower.Isolate()
			b.ends(h, coord.ErrWindowOver)
			follower.Rejoin()
		})
	}
}

// A connection that stalls delivers late what was sent early: the send time of
// a request does not show when the follower heard of the session.
func TestAHoldBehindAFollowerIsolatedAfterAStallEndsBeforeTheNextIsGranted(t *testing.T) {
	for after := time.Duration(0); after < tick/2; after += tick / 9 {
		runInBubble(t, fmt.Sprint("stalled after ", T+after), func(b bubble) {
			_, h := b.holder(coord.WithTick(tick))
			follower := b.Server.AddFollower(time.Millisecond, h.Session())
			time.Sleep(T + after)
			stall := b.Server.Partition(zkembed.Cut{Direction: zkembed.ToServer, Sessions: []int64{h.Session()}})
			time.Sleep(T * 45 / 100)
			require.NoError(b, h.Err())
			stall.Heal()
			time.Sleep(10 * time.Millisecond)
			follower.Isolate()
			b.ends(h, coord.ErrWindowOver)
			follower.Rejoin()
		})
	}
}

func TestWithLoseAtDisconnectAHoldEndsAtOnce(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder(coord.LoseAtDisconnect())
		require.NoError(t, b.Server.DropConn(h.Session()))
		synctest.Wait()
		require.True(t, ended(h))
		require.ErrorIs(t, h.Err(), coord.ErrDisconnected)
		// The node goes, too, although the session lives on.
		require.Equal(t, h.Session(), b.acquire(c).Session())
	})
}

// The connection breaks when all that a grant needs is known.
func TestWithLoseAtDisconnectNothingIsGrantedWithoutAConnection(t *testing.T) {
	inBubble(t, func(b bubble) {
		cut := make(chan *zkembed.Partition, 1)
		c := b.Open(coord.LoseAtDisconnect(), atTheFirst(event.Joined, func() {
			cut <- b.Server.Partition(zkembed.Cut{NewConns: zkembed.RefuseDial})
			b.Server.DropConns()
			time.Sleep(time.Millisecond)
		}))
		require.NoError(b, b.Open().EnsureDir(b.Context(), mutex.Line.Dir))
		acquired := b.later(acquirer(c, mutex, first))
		outage := <-cut
		time.Sleep(T / 10)
		require.Empty(b, acquired)
		outage.Heal()
		b.granted(acquired)
	})
}

func TestALostHoldsNodeIsDeletedWhenTheSessionSurvives(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder()
		time.Sleep(T)
		b.Server.Stop() // sessions survive that
		<-h.Done()
		b.Server.Resume()
		time.Sleep(T / 4)
		require.Equal(t, h.Session(), c.Info().SessionID, "the session survived")
		require.Zero(t, b.owned(h.Session()))
	})
}

func TestNoProbesAreSentWithoutClaims(t *testing.T) {
	for _, c := range []struct {
		writes float64 // in T, by the table in docs/design.md
		opts   []coord.Option
	}{
		{10.0, nil},
		{10.9, []coord.Option{coord.WithTick(T / 4)}},
		{8.0, []coord.Option{coord.WithTick(T / 10)}},
		{8.0, []coord.Option{coord.WithTick(T / 20)}},
	} {
		inBubble(t, func(b bubble) {
			client := b.Open(c.opts...)
			require.NoError(t, b.acquire(client).Release(b.Context()))
			inAnHour := func() zkembed.Counts { return b.asked(client, func() { time.Sleep(time.Hour) }) }
			require.Zero(t, inAnHour().Total())
			b.acquire(client)
			holding := inAnHour()
			require.InDelta(t, c.writes, float64(holding[zkembed.OpMulti])/float64(time.Hour/T), 0.02*c.writes)
			require.LessOrEqual(t, holding.Total(), holding[zkembed.OpMulti]+2, "and a watch on its node, and on its line")
		})
	}
}

// The goroutine that finds the window closed is stopped before it ends the
// holds.
func TestAHoldGrantedSinceTheWindowWasFoundClosedIsNotLost(t *testing.T) {
	inBubble(t, func(b bubble) {
		var stop atomic.Bool
		stopped, goOn := make(chan struct{}), make(chan struct{})
		c := b.Open(coord.WithSuspended(func() time.Duration {
			if stop.CompareAndSwap(true, false) {
				close(stopped)
				<-goOn
			}
			return 0
		}))
		require.NoError(b, b.acquire(c).Release(b.Context()))
		// The window closes after 0.96 T, and is looked at some seconds before
		// the next ping, at 3 T.
		time.Sleep(2*T + 9*T/10)
		stop.Store(true)
		<-stopped
		acquired := b.acquireLater(c)
		synctest.Wait() // until it is granted
		close(goOn)
		h := b.granted(acquired)
		time.Sleep(T)
		require.NoError(b, h.Err())
	})
}

// While replies take a good part of T, a window opens for a moment only, and
// not while the supervisor looks.
func TestAHoldEndsAtTheWindowsEndAlsoWhenTheWindowWasClosedBefore(t *testing.T) {
	for slow := T / 10; slow < T/2; slow += T / 50 {
		runInBubble(t, fmt.Sprint("replies take ", slow), func(b bubble) {
			c := b.Open()
			late := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID}, zkembed.DelayReply(slow))
			time.Sleep(2 * T)
			for range 5 {
				h, err := recipe.Acquire(b.Within(5*T), c, &mutex, first)
				if err != nil {
					continue
				}
				for end := time.Now().Add(2 * T); !ended(h) && time.Now().Before(end); {
					time.Sleep(max(time.Until(h.Deadline()), 0))
					synctest.Wait() // an answer may come at the same instant
					if time.Until(h.Deadline()) > 0 {
						continue
					}
					time.Sleep(T / 100)
					require.True(b, ended(h), "still held %v after the window's end", -time.Until(h.Deadline()))
				}
				h.Abandon()
			}
			late.Remove()
		})
	}
}

// asReads has syncs reach the server as reads, which a follower answers by
// itself. An isolated follower is then like a leader that has not heard of the
// next one: it answers pings and reads, and acknowledges syncs, but no write,
// for which it has no majority, nor what comes behind one.
func asReads(packet []byte) error {
	const op, body = 8, 12
	if len(packet) > body && zkembed.Op(binary.BigEndian.Uint32(packet[op:])) == zkembed.OpSync {
		binary.BigEndian.PutUint32(packet[op:], uint32(zkembed.OpGetACL)) // has a path, too
	}
	return nil
}

// A leader that stood still while another was elected acknowledges syncs as if
// nothing had happened, for as long as it takes it to find out. A hold that
// believed them would outlive its session.
func TestAHoldAtASupersededLeaderThatAcknowledgesSyncsEndsBeforeTheNextIsGranted(t *testing.T) {
	for after := 300 * time.Millisecond; after < T/2; after += 1700 * time.Millisecond {
		runInBubble(t, fmt.Sprint("superseded after ", after), func(b bubble) {
			_, h := b.holder(coord.WithTick(tick), b.meddling(asReads))
			old := b.Server.AddFollower(time.Millisecond, h.Session())
			time.Sleep(after)
			old.Isolate()
			b.ends(h, coord.ErrWindowOver)
			old.Rejoin()
		})
	}
}

// A follower reports to its leader every half tick the sessions it heard from,
// and nothing of the last of them if it is cut off just before. Requests that
// it acknowledged meanwhile, writes included, have not prolonged the session.
func TestAHoldBehindAFollowerIsolatedBeforeItsReportEndsBeforeTheNextIsGranted(t *testing.T) {
	const report = tick / 2
	// The phase is that of the reports against the leader's ticks.
	for phase := time.Duration(0); phase < tick; phase += 80 * time.Millisecond {
		runInBubble(t, fmt.Sprint("phase ", phase), func(b bubble) {
			holder, h := b.holder(coord.WithTick(tick))
			time.Sleep(phase)
			follower := b.Server.AddFollower(time.Millisecond, h.Session())
			time.Sleep(T)
			for isolated := time.Now().Add(report * 99 / 100); time.Now().Before(isolated); {
				require.NoError(b, coordtest.Write(b.Context(), holder))
				time.Sleep(report / 200)
			}
			follower.Isolate()
			b.ends(h, coord.ErrWindowOver)
			follower.Rejoin()
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
				runInBubble(t, fmt.Sprint(name, ", phase ", phase, ", cut ", early, " before"), func(b bubble) {
					holder, h := b.holder(c.opts...)
					follower := b.Server.AddFollower(time.Millisecond, h.Session())
					time.Sleep(2*T + phase)
					follower.Silence(zkembed.ToFollower)
					stop := b.readAllTheTime(holder, h.Node())
					time.Sleep(c.silent - early)
					follower.Cut(zkembed.ToLeader)
					time.Sleep(early)
					follower.Silence(0)
					b.ends(h, coord.ErrWindowOver)
					require.Positive(b, follower.Link().Unreported)
					follower.Rejoin()
					stop()
				})
			}
		}
	}
}

// readAllTheTime has a client read as often as its server answers, until stop.
func (b bubble) readAllTheTime(c *coord.Client, path string) (stop func() (answered int)) {
	ctx, cancel := context.WithCancel(b.Context())
	done := coordtest.Go(func() int {
		n := 0
		for ; ctx.Err() == nil; time.Sleep(T / 100) {
			if _, _, err := c.Get(ctx, path); err == nil {
				n++
			}
		}
		return n
	})
	return func() int {
		cancel()
		return <-done
	}
}
