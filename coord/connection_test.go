package coord_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// meddled is a connection whose outgoing packets are seen, and may be changed
// or refused, before they are sent.
type meddled struct {
	net.Conn
	meddle func(packet []byte) error
}

func (m meddled) Write(packet []byte) (int, error) {
	if err := m.meddle(packet); err != nil {
		return 0, err
	}
	return m.Conn.Write(packet)
}

func (b bubble) meddling(meddle func(packet []byte) error) coord.Option {
	return coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := b.Server.DialContext(ctx, network, addr)
		return meddled{conn, meddle}, err
	})
}

// Some servers begin another session where they should say that the old one has
// expired.
func TestAHoldIsLostWhenItsServerBeginsAnotherSessionInPlaceOfItsOwn(t *testing.T) {
	inBubble(t, func(b bubble) {
		const session, end = 20, 28 // of a connect request
		var forget atomic.Bool
		c := b.Open(b.meddling(func(packet []byte) error {
			if forget.CompareAndSwap(true, false) {
				clear(packet[session:end])
			}
			return nil
		}))
		h := b.acquire(c)
		forget.Store(true)
		require.NoError(t, b.Server.DropConn(h.Session()))
		time.Sleep(time.Second)
		require.False(t, forget.Load(), "it has not connected again")
		require.True(t, ended(h))
		require.ErrorIs(t, h.Err(), coord.ErrSessionExpired)
		next := b.acquire(c)
		require.NotEqual(t, h.Session(), next.Session())
		require.NoError(t, next.Release(b.Context()))
	})
}

// A server that lags behind it refuses the session.
func TestASessionTellsTheNextServerTheNewestChangeThatItKnowsOf(t *testing.T) {
	inBubble(t, func(b bubble) {
		const seen, end = 8, 16 // of a connect request
		var next atomic.Bool
		told := make(chan int64, 1)
		c := b.Open(b.meddling(func(packet []byte) error {
			if next.CompareAndSwap(true, false) {
				told <- int64(binary.BigEndian.Uint64(packet[seen:end]))
			}
			return nil
		}))
		h := b.acquire(c)
		other := b.Open()
		require.NoError(t, other.Create(b.Context(), "/newer", nil))
		_, stat, err := c.Get(b.Context(), "/newer")
		require.NoError(t, err)
		next.Store(true)
		require.NoError(t, b.Server.DropConn(h.Session()))
		require.GreaterOrEqual(t, <-told, stat.Czxid)
		require.NoError(t, h.Release(b.Context()))
	})
}

// The credentials are presented again on every connection. Where that fails,
// the connection is given up.
func TestAnErrorInWritingTheCredentialsNeitherWedgesTheClientNorDropsThem(t *testing.T) {
	inBubble(t, func(b bubble) {
		var fail atomic.Bool
		c := b.Open(coord.WithAuth("digest", "somebody:secret"), coord.WithACL("auth::cdrwa"), b.meddling(func(packet []byte) error {
			if zkembed.Op(binary.BigEndian.Uint32(packet[8:])) == zkembed.OpAuth && fail.CompareAndSwap(true, false) {
				return syscall.EPIPE
			}
			return nil
		}))
		h := b.acquire(c)
		_, _, err := b.Open().Get(b.Context(), h.Node())
		require.ErrorIs(t, err, coord.ErrNoAuth, "others may not read it")
		fail.Store(true)
		require.NoError(t, b.Server.DropConn(h.Session()))
		_, _, err = c.Get(b.Within(T), h.Node())
		require.NoError(t, err)
		require.False(t, fail.Load(), "no write failed")
		require.NoError(t, h.Release(b.Context()))
	})
}

func TestAServerThatDoesNotAnswerTheHandshakeIsLeftForAnother(t *testing.T) {
	inBubble(t, func(b bubble) {
		var silent atomic.Bool
		c := b.Open(coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			if !silent.CompareAndSwap(true, false) {
				return b.Server.DialContext(ctx, network, addr)
			}
			near, far := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, far) }()
			return near, nil
		}))
		h := b.acquire(c)
		silent.Store(true)
		require.NoError(t, b.Server.DropConn(h.Session()))
		require.NoError(t, coordtest.Write(b.Within(T/2), c))
		require.False(t, silent.Load(), "it was not called")
		require.NoError(t, h.Err())
		require.Equal(t, h.Session(), c.SessionID())
		require.NoError(t, h.Release(b.Context()))
	})
}

func TestWhateverTheServerThrottlesIsAskedForAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		holder, c := b.Open(), b.Open()
		h := b.acquire(holder)
		var throttled []*zkembed.Fault
		for _, op := range []zkembed.Op{zkembed.OpCreate, zkembed.OpGetChildren2, zkembed.OpGetData, zkembed.OpDelete, zkembed.OpMulti} {
			throttled = append(throttled, b.Server.Inject(
				zkembed.Match{Ops: []zkembed.Op{op}, Session: c.SessionID(), Times: 3}, zkembed.ReplyError(zkembed.CodeThrottledOp)))
		}
		waiting := b.acquireLater(c, mutex)
		time.Sleep(T)
		require.Empty(t, waiting)
		require.NoError(t, h.Release(b.Context()))
		next := <-waiting
		require.NoError(t, next.err)
		require.NoError(t, next.hold.Release(b.Context()))
		throttled = append(throttled, b.Server.Inject( // those before may have met probes
			zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Session: c.SessionID(), Times: 3}, zkembed.ReplyError(zkembed.CodeThrottledOp)))
		require.NoError(t, coordtest.Write(b.Context(), c))
		for i, fault := range throttled {
			require.Equal(t, 3, fault.Fired(), "fault %d", i)
		}
		require.Zero(t, b.owned(c.SessionID()))
	})
}

func TestADirectoryThatTheServerHasReapedIsMadeAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(c)
		require.NoError(t, h.Release(b.Context()))
		require.Positive(t, b.Server.Reap())
		again := b.acquire(c)
		require.Greater(t, again.Token(), h.Token())
		require.NoError(t, again.Release(b.Context()))
	})
}

func TestAContenderOfTheOtherDialectThatCameFirstIsNotPassed(t *testing.T) {
	inBubble(t, func(b bubble) {
		kazoo, curator := b.Open(coord.WithDialect(coord.Kazoo)), b.Open()
		h := b.acquire(kazoo)
		require.ErrorIs(t, coordtest.Err(curator.Acquire(b.Context(), mutex, first)), coord.ErrForeign)
		require.ErrorIs(t, coordtest.Err(curator.TryAcquire(b.Context(), mutex, first)), coord.ErrForeign)
		require.Zero(t, b.owned(curator.SessionID()))
		require.NoError(t, h.Release(b.Context()))
	})
}

// The listing of the join shows a contender that has gone since.
func TestF56ATurnIsNotRefusedForAContenderThatIsGone(t *testing.T) {
	inBubble(t, func(b bubble) {
		kazoo, c := b.Open(coord.WithDialect(coord.Kazoo)), b.Open()
		h := b.acquire(kazoo)
		claim := b.join(c, mutex)
		require.ErrorIs(t, coordtest.Err(claim.Turn(b.Context(), coord.First)), coord.ErrForeign)
		require.NoError(t, claim.Leave(b.Context()))
		claim = b.join(c, mutex)
		time.Sleep(time.Hour)
		require.NoError(t, h.Release(b.Context()))
		h, err := claim.Turn(b.Context(), coord.First)
		require.NoError(t, err)
		require.NoError(t, h.Release(b.Context()))
	})
}

func TestF56ACallThatHasWaitedIsNotRefusedWhenItJoinsAgain(t *testing.T) {
	for name, lose := range map[string]func(b bubble, waiter *coord.Client){
		"its node is deleted": func(b bubble, waiter *coord.Client) {
			require.NoError(b, inspect.Break(b.Context(), b.Open(), b.nodesOf(waiter.SessionID())[0]))
		},
		"its session expires": func(b bubble, waiter *coord.Client) {
			require.NoError(b, b.Server.ExpireSession(waiter.SessionID()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				waiter := b.connected()
				h := b.acquire(b.Open())
				waiting := b.wait(waiter, mutex)
				remove := b.Foreign(mutex.Line.Dir)
				lose(b, waiter)
				time.Sleep(T)
				require.NoError(b, h.Release(b.Context()))
				time.Sleep(T)
				require.Empty(b, waiting)
				remove()
				next := <-waiting
				require.NoError(b, next.err)
				require.NoError(b, next.hold.Release(b.Context()))
			})
		})
	}
}

func TestF56AClaimWhoseFirstListingIsLostIsNotRefusedByALaterOne(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.connected()
		remove := b.Foreign(mutex.Line.Dir)
		lost := b.Server.Inject(
			zkembed.Match{Session: c.SessionID(), Ops: []zkembed.Op{zkembed.OpGetChildren2}, Times: 1}, zkembed.LoseReply())
		waiting := b.wait(c, mutex)
		time.Sleep(T)
		require.Equal(b, 1, lost.Fired())
		require.Empty(b, waiting)
		remove()
		next := <-waiting
		require.NoError(b, next.err)
		require.NoError(b, next.hold.Release(b.Context()))
	})
}

// A nil rule judges nobody.
func TestF56AClaimWithoutARuleIsNeitherListedNorRefused(t *testing.T) {
	inBubble(t, func(b bubble) {
		kazoo, c := b.Open(coord.WithDialect(coord.Kazoo)), b.Open()
		other := b.acquire(kazoo)
		claim := b.join(c, mutex)
		lists := b.listings(c.SessionID())
		h, err := claim.Turn(b.Context(), nil)
		require.NoError(t, err)
		require.Zero(t, lists.Load())
		require.NoError(t, h.Release(b.Context()))
		require.NoError(t, other.Release(b.Context()))
	})
}

func TestAServerThatSaysThatTheSessionHasExpiredIsBelievedAtOnce(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		expired := b.Server.Inject(
			zkembed.Match{Session: c.SessionID(), Ops: []zkembed.Op{zkembed.OpCreate}, Times: 100},
			zkembed.ReplyError(zkembed.CodeSessionExpired))
		h := b.acquire(c)
		require.Equal(t, 1, expired.Fired())
		require.NoError(t, h.Release(b.Context()))
	})
}

// A server closes the connection of a client that sends too much.
func TestAClaimWithTooMuchDataIsRefusedBeforeItIsSent(t *testing.T) {
	inBubble(t, func(b bubble) {
		var dials atomic.Int32
		c := b.Open(coord.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return b.Server.DialContext(ctx, network, addr)
		}))
		ctx := b.Within(time.Second)
		large := mutex
		large.Data = make([]byte, 1<<20)
		require.ErrorIs(t, coordtest.Err(c.Acquire(ctx, large, first)), coord.ErrTooLarge)
		require.EqualValues(t, 1, dials.Load())
	})
}
