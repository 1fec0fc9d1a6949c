package coord_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
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
	})
}

// The credentials are presented again on every connection. Where that fails,
// the connection is given up.
func TestAnErrorInWritingTheCredentialsNeitherWedgesTheClientNorDropsThem(t *testing.T) {
	inBubble(t, func(b bubble) {
		var fail atomic.Bool
		c := b.Open(coord.WithAuth("digest", "somebody:secret"), coord.WithACL("auth::cdrwa"),
			b.meddling(func(packet []byte) error {
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
		require.Equal(t, h.Session(), c.Info().SessionID)
	})
}

func TestWhateverTheServerThrottlesIsAskedForAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		holder, c := b.Open(), b.Open()
		h := b.acquire(holder)
		var throttled []*zkembed.Fault
		for _, op := range []zkembed.Op{
			zkembed.OpCreate, zkembed.OpGetChildren2, zkembed.OpGetData, zkembed.OpDelete, zkembed.OpMulti,
		} {
			throttled = append(throttled, b.Server.Inject(
				zkembed.Match{Ops: []zkembed.Op{op}, Session: c.Info().SessionID, Times: 3},
				zkembed.ReplyError(zkembed.CodeThrottledOp)))
		}
		waiting := b.acquireLater(c)
		time.Sleep(T)
		require.Empty(t, waiting)
		require.NoError(t, h.Release(b.Context()))
		next := b.granted(waiting)
		require.NoError(t, next.Release(b.Context()))
		throttled = append(throttled, b.Server.Inject( // those before may have met probes
			zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Session: c.Info().SessionID, Times: 3},
			zkembed.ReplyError(zkembed.CodeThrottledOp)))
		require.NoError(t, coordtest.Write(b.Context(), c))
		for i, fault := range throttled {
			require.Equal(t, 3, fault.Fired(), "fault %d", i)
		}
		require.Zero(t, b.owned(c.Info().SessionID))
	})
}

func TestAContenderOfTheOtherDialectThatCameFirstIsNotPassed(t *testing.T) {
	inBubble(t, func(b bubble) {
		kazoo, curator := b.Open(coord.WithDialect(coord.Kazoo)), b.Open()
		b.acquire(kazoo)
		require.ErrorIs(t, coordtest.Err(recipe.Acquire(b.Context(), curator, &mutex, first)), coord.ErrForeign)
		require.ErrorIs(t, coordtest.Err(recipe.TryAcquire(b.Context(), curator, &mutex, first)), coord.ErrForeign)
		require.Zero(t, b.owned(curator.Info().SessionID))
	})
}

// The listing that came with the create shows a contender that has gone since.
func TestF56ATurnIsNotRefusedForAContenderThatIsGone(t *testing.T) {
	inBubble(t, func(b bubble) {
		kazoo, c := b.Open(coord.WithDialect(coord.Kazoo)), b.connected()
		h := b.acquire(kazoo)
		slow := b.Server.Inject(
			zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetChildren2}, Times: 1},
			zkembed.DelayReply(time.Second))
		over := b.later(acquirer(c, mutex, coord.First))
		<-slow.Struck()
		require.NoError(t, h.Release(b.Context()))
		require.Empty(t, over)
		b.granted(over)
	})
}

func TestF56ACallThatHasWaitedIsNotRefusedWhenItJoinsAgain(t *testing.T) {
	for name, lose := range map[string]func(b bubble, waiter *coord.Client){
		"its node is deleted": func(b bubble, waiter *coord.Client) {
			require.NoError(b, inspect.Break(b.Context(), b.Open(), b.nodesOf(waiter.Info().SessionID)[0]))
		},
		"its session expires": func(b bubble, waiter *coord.Client) {
			require.NoError(b, b.Server.ExpireSession(waiter.Info().SessionID))
		},
	} {
		runInBubble(t, name, func(b bubble) {
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
			b.granted(waiting)
		})
	}
}

func TestF56AClaimWhoseFirstListingIsLostIsNotRefusedByALaterOne(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.connected()
		remove := b.Foreign(mutex.Line.Dir)
		lost := b.Server.Inject(
			zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetChildren2}, Times: 1}, zkembed.LoseReply())
		waiting := b.wait(c, mutex)
		time.Sleep(T)
		require.Equal(b, 1, lost.Fired())
		require.Empty(b, waiting)
		remove()
		b.granted(waiting)
	})
}

// It waits for nobody.
func TestF56WhoJoinsAnUnlistedLineIsNeitherListedNorRefused(t *testing.T) {
	inBubble(t, func(b bubble) {
		kazoo, c := b.Open(coord.WithDialect(coord.Kazoo)), b.connected()
		b.acquire(kazoo)
		lists, unlisted := b.listings(c), mutex
		unlisted.Unlisted = true
		b.stand(c, unlisted)
		require.Zero(t, lists())
	})
}

// A server that says that the session is over ends it, even if it does not
// close the connection.
func TestAServerThatSaysThatTheSessionHasExpiredIsBelievedAtOnce(t *testing.T) {
	for _, code := range []zkembed.Code{zkembed.CodeSessionExpired, zkembed.CodeUnknownSession} {
		inBubble(t, func(b bubble) {
			c := b.Open()
			before := c.Info().SessionID
			expired := b.Server.Inject(
				zkembed.Match{Session: before, Ops: []zkembed.Op{zkembed.OpCreate}, Times: 100}, zkembed.ReplyError(code))
			require.NotEqual(t, before, b.acquire(c).Session())
			require.Equal(t, 1, expired.Fired())
		})
	}
}

// transcript may be written and read concurrently.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// journal returns a logger and what it has written, line by line.
func journal(level slog.Level) (*slog.Logger, func(holding string) []string) {
	var text transcript
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: level}))
	return log, func(holding string) (lines []string) {
		for line := range strings.Lines(text.String()) {
			if strings.Contains(line, holding) {
				lines = append(lines, line)
			}
		}
		return lines
	}
}

func TestWhatACloseEndsIsNoWarning(t *testing.T) {
	inBubble(t, func(b bubble) {
		log, written := journal(slog.LevelInfo)
		c := b.Open(coord.WithLogger(log))
		b.acquire(c)
		b.Close(c)
		require.Len(b, written(`msg="session over"`), 1)
		require.Len(b, written(`msg="hold lost"`), 1)
		require.Empty(b, written("level=WARN"))
	})
}

func TestALostSessionIsAWarning(t *testing.T) {
	inBubble(t, func(b bubble) {
		log, written := journal(slog.LevelWarn)
		c, h := b.holder(coord.WithLogger(log))
		require.NoError(b, b.Server.ExpireSession(c.Info().SessionID))
		<-h.Done()
		time.Sleep(time.Second)
		require.Len(b, written(`msg="session over"`), 1)
		require.Len(b, written(`msg="hold lost"`), 1)
	})
}

func TestServersThatCannotBeReachedAreWarnedOfWithTheReasonAfterSomeSecondsAndAgainAtIntervals(t *testing.T) {
	inBubble(t, func(b bubble) {
		log, written := journal(slog.LevelWarn)
		b.Open(coord.WithLogger(log))
		cut := b.Server.Partition(zkembed.Cut{NewConns: zkembed.RefuseDial})
		b.Server.DropConns()
		outage := func() []string { return written(`msg="no connection to any server"`) }
		time.Sleep(4 * time.Second)
		require.Empty(b, outage(), "a short outage is no news")
		time.Sleep(4*T - 10*time.Second) // beyond several sessions, and not when the next warning is due
		warned := len(outage())
		require.GreaterOrEqual(b, warned, 4)
		require.LessOrEqual(b, warned, 6)
		for _, line := range outage() {
			require.Contains(b, line, "refused")
		}
		require.Contains(b, outage()[warned-1], "for=1m", "the outage is one, over all sessions")
		cut.Heal()
		time.Sleep(T)
		require.Len(b, outage(), warned, "there is a connection")
	})
}

func TestAFirstConnectionThatTakesLongerThanASecondIsWarnedOfWithTheReasonForEachServer(t *testing.T) {
	wait := func(b bubble, opts ...coord.Option) {
		ctx := b.Within(20 * time.Second)
		_, err := coord.Open(ctx, "first:2181,second:2181",
			append(opts, coord.WithDialer(func(_ context.Context, _, addr string) (net.Conn, error) {
				return nil, map[string]error{
					"first:2181": errors.New("nobody home"), "second:2181": errors.New("gone for lunch"),
				}[addr]
			}))...)
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.ErrorContains(b, err, "nobody home")
		time.Sleep(T) // the client closes in the background
	}
	judge := func(b bubble, lines []string) {
		require.Len(b, lines, 1)
		require.Contains(b, lines[0], "for=1s")
		require.Contains(b, lines[0], "first:2181: nobody home")
		require.Contains(b, lines[0], "second:2181: gone for lunch")
	}
	inBubble(t, func(b bubble) {
		log, written := journal(slog.LevelWarn)
		wait(b, coord.WithLogger(log))
		judge(b, written("no connection to any server"))
	})
	inBubble(t, func(b bubble) { // the default logger, if there is no other
		log, written := journal(slog.LevelWarn)
		former := slog.Default()
		slog.SetDefault(log)
		defer slog.SetDefault(former)
		wait(b)
		judge(b, written("first:2181"))
		wait(b, coord.WithLogger(slog.New(slog.DiscardHandler)))
		judge(b, written("first:2181"))
	})
}

func TestAClientTellsWhetherItIsConnected(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.True(b, c.Info().Connected)
		cut := b.Server.Partition(zkembed.Cut{NewConns: zkembed.RefuseDial})
		b.Server.DropConns()
		time.Sleep(time.Second)
		require.False(b, c.Info().Connected)
		cut.Heal()
		time.Sleep(T)
		require.True(b, c.Info().Connected)
		b.Close(c)
		require.False(b, c.Info().Connected)
	})
}

func TestEveryObserverHearsOfEveryEvent(t *testing.T) {
	inBubble(t, func(b bubble) {
		var first, second []string
		note := func(kinds *[]string) coord.Option {
			var mu sync.Mutex
			return coord.WithObserver(func(e event.Event) {
				mu.Lock()
				defer mu.Unlock()
				*kinds = append(*kinds, e.Kind)
			})
		}
		c := b.Open(note(&first), note(&second))
		require.NoError(b, b.acquire(c).Release(b.Context()))
		b.Close(c)
		require.Contains(b, first, event.Granted)
		require.Equal(b, first, second)
	})
}

func TestEachFailedAttemptToConnectIsLoggedOnce(t *testing.T) {
	inBubble(t, func(b bubble) {
		log, written := journal(slog.LevelDebug)
		ctx := b.Within(4 * time.Second)
		attempts := 0
		refuse := func(context.Context, string, string) (net.Conn, error) {
			attempts++
			return nil, errors.New("nobody home")
		}
		require.Error(b, coordtest.Err(coord.Open(ctx, "zk:2181", coord.WithDialer(refuse), coord.WithLogger(log))))
		time.Sleep(T)
		require.Greater(b, attempts, 3)
		require.InDelta(b, attempts, len(written("nobody home")), 1, "the last one may be one of a session that is over")
	})
}

func TestAMissingChrootIsWarnedOf(t *testing.T) {
	inBubble(t, func(b bubble) {
		log, written := journal(slog.LevelWarn)
		open := func(chroot string, opts ...coord.Option) (*coord.Client, error) {
			opts = append(opts, coord.WithDialer(b.Server.DialContext), coord.WithLogger(log))
			c, err := coord.Open(b.Context(), b.Server.ConnectString()+chroot, opts...)
			if err == nil {
				b.Cleanup(func() { require.NoError(b, c.Close(context.Background())) })
			}
			return c, err
		}
		c, err := open("/app")
		require.NoError(b, err)
		require.Len(b, written("chroot=/app"), 1)
		_, err = open("/app", coord.RequireChroot())
		require.ErrorIs(b, err, coord.ErrNoNode)
		require.ErrorContains(b, err, "chroot /app")
		require.NotContains(b, err.Error(), "no session")

		require.NoError(b, c.EnsureDir(b.Context(), "/lock"))
		for _, opts := range [][]coord.Option{nil, {coord.RequireChroot()}} {
			require.NoError(b, coordtest.Err(open("/app", opts...)))
		}
		require.NoError(b, coordtest.Err(open("", coord.RequireChroot())), "there is none to look for")
		require.Len(b, written("chroot"), 1)
		time.Sleep(T) // for the client that could not be had
	})
}

func TestASequentialNodeBelowTheRootOfAChrootIsInIt(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, err := coord.Open(b.Context(), b.Server.ConnectString()+"/app", coord.WithSessionTimeout(T),
			coord.WithDialer(b.Server.DialContext))
		require.NoError(b, err)
		defer c.Close(context.Background())
		require.NoError(b, c.EnsureDir(b.Context(), "/"))
		results, err := c.Txn(b.Context(), coord.AppendOp("/", nil))
		require.NoError(b, err)
		require.Equal(b, "/0000000000", results[0].Path)
		require.True(b, b.exists("/app/0000000000"))
	})
}
