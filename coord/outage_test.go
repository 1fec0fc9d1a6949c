package coord_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
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

// leaving is for a client that reaches no server while it is away.
func (b bubble) leaving(away *atomic.Bool) coord.Option {
	return coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		if away.Load() {
			return nil, syscall.ECONNREFUSED
		}
		return b.Server.DialContext(ctx, network, addr)
	})
}

// A server that has lost its data turns away every client that has seen more
// than it has, and never says that the session is over.
func TestASessionThatNoServerConfirmsAnyMoreIsReplacedByAnother(t *testing.T) {
	inBubble(t, func(b bubble) {
		wiped, err := zkembed.Start(zkembed.WithAddr(""), zkembed.WithTick(tick))
		require.NoError(t, err)
		b.Cleanup(func() { require.NoError(b, wiped.Close()) })
		var server atomic.Pointer[zkembed.Server]
		server.Store(b.Server)
		c := b.Open(coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			return server.Load().DialContext(ctx, network, addr)
		}))
		h := b.acquire(c)
		require.Greater(t, b.Server.Zxid(), wiped.Zxid())
		b.Server.Stop()
		server.Store(wiped)
		<-h.Done()
		next := b.Hold(recipe.Acquire(b.Within(T), c, &mutex, first))
		require.NoError(t, next.Err())
		require.NoError(t, next.Release(b.Context()))
		b.Close(c)
		b.Server.Resume() // the first session's node goes
	})
}

// The window leaves two hundredths of the session timeout for clocks that run
// at different speeds, and for acting on its end.
func TestAHoldEndsSomeTimeBeforeTheServerMayEndTheSession(t *testing.T) {
	inBubble(t, func(b bubble) {
		h := b.acquire(b.Open())
		cut := b.Server.Partition(zkembed.Cut{})
		begun := time.Now() // the session is not younger
		<-h.Done()
		require.LessOrEqual(t, time.Since(begun), T*98/100)
		cut.Heal()
	})
}

// A turn that came while the connection was lost is found by looking: the
// client library is not to set the old watches again, and this server would not
// let it.
func TestAWaiterThatWasCutOffAtItsTurnLooksAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		var away atomic.Bool
		holder, waiter := b.Open(), b.Open(b.leaving(&away))
		h := b.acquire(holder)
		waiting := b.acquireLater(waiter)
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpSetWatches, zkembed.OpSetWatches2}},
			zkembed.ReplyError(zkembed.CodeUnimplemented))
		away.Store(true)
		require.NoError(t, b.Server.DropConn(waiter.Info().SessionID))
		require.NoError(t, h.Release(b.Context()))
		time.Sleep(time.Second)
		require.Empty(t, waiting)
		away.Store(false)
		b.granted(waiting)
	})
}

func TestAnAcquireThatIsGivenUpBeforeTheReplyToItsCreateLeavesNoNode(t *testing.T) {
	eachRecovery(t, func(b bubble, spec coord.Spec) {
		c := b.Open()
		require.NoError(t, b.acquire(c, spec).Release(b.Context()))
		slow := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}, PathPrefix: "/lock/", Times: 1},
			zkembed.DelayReply(time.Second))
		require.ErrorIs(t, coordtest.Err(recipe.Acquire(b.Within(time.Second/2), c, &spec, first)), context.DeadlineExceeded)
		require.Equal(t, 1, slow.Fired())
		require.Equal(t, 1, b.owned(c.Info().SessionID))
		time.Sleep(time.Second)
		require.Zero(t, b.owned(c.Info().SessionID))
	})
}

func TestADeleteThatIsLostIsMadeAgain(t *testing.T) {
	eachRecovery(t, func(b bubble, spec coord.Spec) {
		h := b.acquire(b.Open(), spec)
		lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpDelete}, Times: 2}, zkembed.Drop())
		require.NoError(t, h.Release(b.Context()))
		require.Equal(t, 2, lost.Fired())
		require.Zero(t, b.owned(h.Session()))
	})
}

// A transaction that waits for a connection can come after the deletion of the
// lost hold's node.
func TestATransactionOverAnOutageReportsThatTheHoldWasLost(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, c.Create(b.Context(), "/fence", nil))
		late := 0
		for range 30 {
			h := b.acquire(c)
			cut := b.Server.Partition(zkembed.Cut{NewConns: zkembed.RefuseDial})
			require.NoError(b, b.Server.DropConn(h.Session()))
			synctest.Wait()
			failed := coordtest.Go(func() error { return coordtest.Err(h.Txn(b.Context(), coord.SetOp("/fence", nil, -1))) })
			synctest.Wait()
			time.Sleep(time.Until(h.Deadline()))
			<-h.Done()
			cut.Heal()
			err := <-failed
			require.NotErrorIs(b, err, coord.ErrReleased)
			if errors.Is(err, coord.ErrLost) {
				late++
			}
		}
		require.Positive(b, late)
	})
}

// The limits of session timeouts are each server's own.
func TestAHoldEndsWhenAnotherServerGivesItsSessionLessTime(t *testing.T) {
	inBubble(t, func(b bubble) {
		var handshakes atomic.Int32
		var away atomic.Bool
		holder, h := b.holder(coord.WithTick(tick), b.meddling(func(packet []byte) error {
			switch connects := len(packet) > 40 && binary.BigEndian.Uint32(packet[4:]) == 0; {
			case away.Load():
				return net.ErrClosed
			case connects && handshakes.Add(1) > 1:
				binary.BigEndian.PutUint32(packet[16:], uint32(2*tick/time.Millisecond))
			}
			return nil
		}))
		require.NoError(t, b.Server.DropConn(h.Session()))
		time.Sleep(time.Second)
		require.Greater(t, handshakes.Load(), int32(1), "connected again")
		away.Store(true)
		_ = b.Server.DropConn(h.Session())
		require.NoError(t, b.ends(h, coord.ErrSessionExpired).Release(b.Context()))
		away.Store(false)
		b.acquire(holder)
		require.Equal(t, 2*tick, holder.Info().SessionTimeout)
	})
}

// The credentials are presented again on every connection.
func TestAReleaseIsDoneWhenTheServerRefusesTheCredentialsMeanwhile(t *testing.T) {
	inBubble(t, func(b bubble) {
		var refusing atomic.Bool
		c, stranded := b.hearing(event.NodeStranded, coord.WithAuth("digest", "user:password"),
			b.meddling(func(p []byte) error {
				if len(p) > 12 && zkembed.Op(binary.BigEndian.Uint32(p[8:])) == zkembed.OpAuth && refusing.Load() {
					p[20] = 'x' // of the scheme
				}
				return nil
			}))
		h := b.acquire(c)
		lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpDelete}, Times: 1}, zkembed.Drop())
		refusing.Store(true)
		require.NoError(t, h.Release(b.Context()))
		require.Equal(t, 1, lost.Fired())
		require.Empty(t, stranded)
		refusing.Store(false)
	})
}

// Simulation and soak look at the other calls.
func TestACallWhoseContextEndsAsTheConnectionIsLostTellsBoth(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		for _, lost := range []error{coord.ErrDisconnected, coord.ErrSessionExpired} {
			ctx, cancel := context.WithCancel(b.Context())
			err := recipe.Retry(ctx, c, func(context.Context) error {
				cancel()
				return lost
			})
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, lost)
		}
	})
}

// The slower the replies are, the more often they are asked for: otherwise
// hardly anything of the window would be left when the next one comes: three
// round trips are in it.
func TestAHoldOverASlowConnectionHasTimeForAnOutageLeft(t *testing.T) {
	t.Run("tick known", func(t *testing.T) { holdSlowly(t, T/5, T/8, coord.WithTick(tick)) })
	t.Run("tick unknown", func(t *testing.T) { holdSlowly(t, T/8, T/16) })
}

func holdSlowly(t *testing.T, roundTrip, left time.Duration, opts ...coord.Option) {
	inBubble(t, func(b bubble) {
		h := b.acquire(b.Open(opts...))
		b.Server.Inject(zkembed.Match{Session: h.Session(), Ops: []zkembed.Op{zkembed.OpMulti, zkembed.OpPing}},
			zkembed.DelayReply(roundTrip))
		least := T
		for begun := time.Now(); time.Since(begun) < 20*T; time.Sleep(T / 100) {
			require.NoError(t, h.Err())
			least = min(least, time.Until(h.Deadline()))
		}
		require.Greater(t, least, left)
	})
}

// A server that has hung answers nothing, and its connection stays open. Half
// of the session timeout is left for the way to another.
func TestACallEndsWithItsContextWhenItsServerHangs(t *testing.T) {
	for name, call := range map[string]func(context.Context, *coord.Client) error{
		"read": func(ctx context.Context, c *coord.Client) error { return coordtest.Err(c.Children(ctx, "/")) },
		"transaction": func(ctx context.Context, c *coord.Client) error {
			return coordtest.Err(c.Txn(ctx, coord.CheckOp("/", -1)))
		},
	} {
		runInBubble(t, name, func(b bubble) {
			c := b.Open()
			b.Server.Inject(zkembed.Match{Session: c.Info().SessionID}, zkembed.Hang())
			for range 3 { // the first hangs
				begun := time.Now()
				require.ErrorIs(b, call(b.Within(T/10), c), context.DeadlineExceeded)
				require.Equal(b, T/10, time.Since(begun))
			}
		})
	}
}

func TestAServerThatHangsIsLeftAfterHalfOfTheSessionTimeout(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder()
		hung := b.Server.Inject(zkembed.Match{Session: h.Session(), Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1},
			zkembed.Hang())
		require.NoError(t, coordtest.Write(b.Within(T*6/10), c))
		require.Equal(t, 1, hung.Fired())
		require.NoError(t, h.Err())
		require.Equal(t, h.Session(), c.Info().SessionID)
	})
}

func TestAConnectionThatTakesLongIsMade(t *testing.T) {
	for _, d := range []time.Duration{1100 * time.Millisecond, 3 * time.Second, 6 * time.Second} {
		runInBubble(t, d.String(), func(b bubble) {
			begun := time.Now()
			c := b.Open(coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
				select {
				case <-time.After(d):
					return b.Server.DialContext(ctx, network, addr)
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}))
			require.Less(b, time.Since(begun), d+time.Second)
			require.NoError(b, b.Server.DropConn(c.Info().SessionID))
			id := c.Info().SessionID
			require.NoError(b, coordtest.Write(b.Context(), c))
			require.Equal(b, id, c.Info().SessionID)
		})
	}
}

func TestAServerThatDoesNotAcceptKeepsTheOthersWaitingForASecondOnly(t *testing.T) {
	inBubble(t, func(b bubble) {
		hung := func(ctx context.Context, network, addr string) (net.Conn, error) {
			if strings.HasPrefix(addr, "hung") {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return b.Server.DialContext(ctx, network, addr)
		}
		begun := time.Now()
		c, err := coord.Open(b.Context(), "hung1:1,hung2:1,good:1", coord.WithSessionTimeout(T), coord.WithDialer(hung))
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(begun), 2100*time.Millisecond)
		b.Close(c)
	})
}

// Connections that do not come up must not pile up.
func TestFewAttemptsToConnectAreUnderWayAtATime(t *testing.T) {
	inBubble(t, func(b bubble) {
		var running, most atomic.Int32
		ctx := b.Within(time.Minute)
		_, err := coord.Open(ctx, "a:1,b:1", coord.WithSessionTimeout(T), coord.WithDialer(
			func(ctx context.Context, _, _ string) (net.Conn, error) {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				<-ctx.Done()
				return nil, ctx.Err()
			}))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, coord.ErrDisconnected)
		require.LessOrEqual(t, most.Load(), int32(8))
		require.Greater(t, most.Load(), int32(2))
	})
}
