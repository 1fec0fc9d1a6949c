package coord_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// A server that lags does not show the node of a create whose reply was lost.
// A client that believed it would make another. An answer to the write that
// decides it settles nothing unless it is the ensemble's.
func TestACreateWhoseReplyIsLostBeforeALaggingServerIsNotMadeAgain(t *testing.T) {
	for _, code := range []zkembed.Code{zkembed.CodeOK, zkembed.CodeSystemError, zkembed.CodeThrottledOp} {
		eachRecovery(t, func(b bubble, spec coord.Spec) {
			c := b.Open()
			require.NoError(b, b.acquire(c, spec).Release(b.Context()))
			session := c.Info().SessionID
			b.Server.AddFollower(T/20, session)
			time.Sleep(T)
			// After a write no probe is due, which would let the server
			// catch up.
			require.NoError(b, coordtest.Write(b.Context(), c))
			asked := b.asked(c, func() {
				acquired := b.wait(c, spec)
				for b.owned(session) == 0 { // the ensemble has the node before that server
					time.Sleep(T / 1000)
				}
				refusals := 3
				refused := b.Server.Inject(
					zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Session: session, Times: refusals}, zkembed.ReplyError(code))
				if code == zkembed.CodeOK { // none is refused
					refused.Remove()
					refusals = 0
				}
				require.NoError(b, b.Server.DropConn(session))
				b.granted(acquired)
				require.Equal(b, refusals, refused.Fired())
			})
			require.Equal(b, 1, asked[zkembed.OpCreate])
			require.Equal(b, 1, b.owned(session))
		})
	}
}

// Answers to reads keep nothing alive: a follower that is cut off from its
// leader goes on giving them.
func TestAHoldWhoseClientReadsFromAnIsolatedFollowerEndsBeforeTheNextIsGranted(t *testing.T) {
	answered := 0 // none when a write was under way: the reads wait behind it
	defer func() { require.Positive(t, answered, "no read was answered by an isolated follower") }()
	for after := time.Duration(0); after < T/4; after += 700 * time.Millisecond {
		runInBubble(t, fmt.Sprint("isolated after ", after), func(b bubble) {
			holder, h := b.holder(coord.WithTick(tick))
			follower := b.Server.AddFollower(100*time.Millisecond, h.Session())
			time.Sleep(after)
			follower.Isolate()
			stop := b.readAllTheTime(holder, h.Node())
			b.ends(h, coord.ErrWindowOver)
			answered += stop()
			follower.Rejoin()
		})
	}
}

// Err compares the clock with the window, so its answer is right even before
// the goroutines that notice the loss have run: some of many callers in that
// instant run earlier.
func TestErrIsRightBeforeTheLossIsNoticed(t *testing.T) {
	inBubble(t, func(b bubble) {
		h := b.acquire(b.Open())
		cut := b.Server.Partition(zkembed.Cut{})
		defer cut.Heal()
		time.Sleep(time.Second) // what was under way has arrived
		const looks = 100
		errs := make(chan error, looks)
		for range looks {
			time.AfterFunc(time.Until(h.Deadline()), func() { errs <- h.Err() })
		}
		for range looks {
			require.ErrorIs(b, <-errs, coord.ErrWindowOver)
		}
	})
}

// The observer may take its time, and so may the log.
func TestAllHoldsEndBeforeTheObserverHearsOfALoss(t *testing.T) {
	inBubble(t, func(b bubble) {
		stuck := make(chan struct{})
		c := b.Open(coord.WithObserver(func(e event.Event) {
			if e.Kind == event.Ended || e.Kind == event.SessionOver || e.Kind == event.SessionDown {
				<-stuck
			}
		}))
		defer close(stuck)
		var holds []*coord.Hold
		for _, dir := range []string{"/one", "/two"} {
			holds = append(holds, b.acquire(c, coord.Spec{Line: coord.Line{Dir: dir}, Kind: "lock"}))
		}
		require.NoError(b, b.Server.ExpireSession(holds[0].Session()))
		time.Sleep(2 * T)
		for _, h := range holds {
			require.True(b, ended(h))
			require.ErrorIs(b, h.Context(b.Context()).Err(), context.Canceled)
		}
	})
}

func TestALostCreateIsNotMistakenForAnotherClaimOfTheSameClient(t *testing.T) {
	eachRecovery(t, func(b bubble, spec coord.Spec) {
		c := b.Open()
		h := b.acquire(c, spec)
		lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}, PathPrefix: "/lock/", Times: 1},
			zkembed.Drop())
		second := b.wait(c, spec)
		time.Sleep(T / 4)
		require.Equal(t, 1, lost.Fired())
		require.Empty(t, second, "two holders")
		require.Equal(t, 2, b.owned(h.Session()))
		require.NoError(t, h.Release(b.Context()))
		next := b.granted(second)
		require.NotEqual(t, h.Node(), next.Node())
	})
}

// A waiter comes back after so long that its window is closed, just before its
// session is over. It keeps its place, and is granted the turn when a write has
// opened the window again.
func TestAWaiterWhoseWindowIsClosedIsGrantedItsTurnWhenItIsOpen(t *testing.T) {
	inBubble(t, func(b bubble) {
		holder, waiter := b.Open(), b.Open()
		h := b.acquire(holder)
		waiting := b.acquireLater(waiter)
		place, session := b.nodesOf(waiter.Info().SessionID), waiter.Info().SessionID
		require.Len(t, place, 1)
		time.Sleep(T)
		b.Server.Stop()
		time.Sleep(T * 95 / 100) // over, and 1.5 s are left: by then a client is back
		require.ErrorIs(t, h.Err(), coord.ErrWindowOver)
		refused := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Session: session, Times: 3},
			zkembed.ReplyError(zkembed.CodeThrottledOp))
		b.Server.Resume()
		next := b.granted(waiting)
		require.NoError(t, next.Err())
		require.Equal(t, 3, refused.Fired())
		require.Equal(t, session, next.Session(), "the session survived")
		require.Equal(t, place[0], next.Node())
	})
}

func TestWritesThatAreThrottledOpenNoWindow(t *testing.T) {
	inBubble(t, func(b bubble) {
		h, waiter := b.acquire(b.Open()), b.Open()
		waiting := b.acquireLater(waiter)
		time.Sleep(T * 85 / 100) // a tenth of its window is left
		throttled := b.Server.Inject(zkembed.Match{
			Ops: []zkembed.Op{zkembed.OpMulti}, Session: waiter.Info().SessionID, Times: 2,
		}, zkembed.ReplyError(zkembed.CodeThrottledOp))
		require.NoError(b, h.Release(b.Context()))
		next := b.granted(waiting)
		require.Equal(b, 2, throttled.Fired())
		require.Greater(b, time.Until(next.Deadline()), T/5)
	})
}

// The server removes empty containers at any time, also while a child is on its
// way.
func TestADirectoryWhoseParentIsRemovedMeanwhileIsMadeFromTheBeginning(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		reaped := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreateContainer}, PathPrefix: "/lock", Times: 3},
			zkembed.ReplyError(zkembed.CodeNoNode))
		b.acquire(c)
		require.Equal(t, 3, reaped.Fired())
	})
}

func TestOpenRefusesWhatCannotBeRight(t *testing.T) {
	for servers, hint := range map[string]string{
		"":                   "a server is empty",
		",host:2181":         "a server is empty",
		"host:2181,":         "a server is empty",
		"host:port":          "port must be a number",
		"host:0":             "port must be a number",
		"host:65536":         "port must be a number",
		"::1:2181":           "brackets",
		"a b:2181":           "separated by commas",
		"a:1 b:2":            "separated by commas",
		"a:1;b:2":            "separated by commas",
		":2181":              "no usable host name",
		"http://host:2181/a": "no scheme: host:port",
		"host:2181//a":       "a name is empty",
		"host:2181/a/":       "must not end with /",
		"host:2181/a/../b":   `".." is not allowed`,
		"host:2181/a\x01b":   "U+0001",
	} {
		_, err := coord.Open(context.Background(), servers)
		require.ErrorIs(t, err, coord.ErrInvalid, "%q", servers)
		require.ErrorContains(t, err, hint, "%q", servers)
	}
}

func TestOpenRefusesOptionsThatCannotBeRight(t *testing.T) {
	for hint, option := range map[string]coord.Option{
		"session timeout 0s":  coord.WithSessionTimeout(0),
		"session timeout -1s": coord.WithSessionTimeout(-time.Second),
		"tick -1ns":           coord.WithTick(-1),
		"empty ACL":           coord.WithACL(),
		"scheme is empty":     coord.WithAuth("", "x"),
		"dialer is nil":       coord.WithDialer(nil),
		"TLS":                 coord.WithTLS(nil),
		"logger is nil":       coord.WithLogger(nil),
		"observer is nil":     coord.WithObserver(nil),
		"one line":            coord.WithIdentity("two\nlines"),
		"write scheme:id":     coord.WithACL("world:anyone"),
		"ACL \":anyone:r\"":   coord.WithACL(":anyone:r"),
		"out of cdrwa":        coord.WithACL("world:anyone:r", "world:anyone:rx"),
		"dialect":             coord.WithDialect("other"),
		"option is nil":       nil,
	} {
		_, err := coord.Open(context.Background(), "localhost:2181", option)
		require.ErrorIs(t, err, coord.ErrInvalid, hint)
		require.ErrorContains(t, err, hint)
	}
}

func TestOpenEndsByItsContextWhenNoServerAnswers(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := coord.Open(ctx, "127.0.0.1:1")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "127.0.0.1:1")
	require.ErrorContains(t, err, "refused")
}

func TestPathsThatCannotBeRightAreRefusedBeforeAnythingIsSent(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		for path, hint := range map[string]string{
			"": "empty", "/": "root", "relative": "start with /", "/a/": "end with /", "/a//b": "name is empty",
			"/a/./b": "not allowed", "/nul\x00": "U+0000", "/\xff": "UTF-8", "/private\ue000": "U+E000",
			"/special\ufff5": "U+FFF5", "/emoji\U0001f512": "U+1F512", "/last\U0010ffff": "U+10FFFF",
		} {
			_, err := lock.New(c, path)
			require.ErrorIs(t, err, coord.ErrInvalid, "%q", path)
			require.ErrorContains(t, err, hint, "%q", path)
			if path != "/" {
				_, _, err = c.Get(b.Context(), path)
				require.ErrorIs(t, err, coord.ErrInvalid, "%q", path)
			}
		}
	})
}

func TestDataThatAServerWouldNotAcceptIsRefusedAndNothingElseIsHarmed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, lost := b.hearing(event.SessionDown)
		h, claim := b.acquire(c), mutex
		claim.Data = make([]byte, 1<<20)
		require.ErrorIs(t, c.Create(b.Context(), "/large", claim.Data), coord.ErrTooLarge)
		require.ErrorIs(t, coordtest.Err(recipe.Acquire(b.Context(), c, &claim, first)), coord.ErrTooLarge)
		require.Empty(t, lost, "a server closes the connection of a client that sends too much")
		require.NoError(t, h.Err())
	})
}

func TestASequenceNearItsEndIsRefused(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(t, c.EnsureDir(b.Context(), "/lock"))
		require.NoError(t, b.Server.SetSequence("/lock", 1<<31-1-1<<16))
		h := b.acquire(c)
		require.NoError(t, h.Release(b.Context()))
		require.ErrorIs(t, coordtest.Err(recipe.Acquire(b.Context(), c, &mutex, first)), coord.ErrSequenceExhausted)
		require.NoError(t, b.Server.SetSequence("/lock", 1<<31-1))
		require.ErrorIs(t, coordtest.Err(recipe.Acquire(b.Context(), c, &mutex, first)), coord.ErrSequenceExhausted)
		require.Zero(t, b.owned(c.Info().SessionID))
	})
}

func TestASequenceNearItsEndIsRefusedBehindManyOfTheSameClient(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.acquire(b.Open())
		c := b.connected()
		b.queueUp(c, 20)
		require.NoError(t, b.Server.SetSequence("/lock", 1<<31-1))
		require.ErrorIs(t, coordtest.Err(recipe.Acquire(b.Within(time.Second), c, &mutex, coord.First)),
			coord.ErrSequenceExhausted)
	})
}

func TestErrorsNameTheOperationAndThePath(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		_, _, err := c.Get(b.Context(), "/missing")
		var op *coord.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "get", op.Op)
		require.Equal(t, "/missing", op.Path)
		require.ErrorIs(t, err, coord.ErrNoNode)
		require.EqualError(t, err, "get /missing: zk: node does not exist")
	})
}

func TestOpenReportsThatTheServerRefusesTheCredentials(t *testing.T) {
	inBubble(t, func(b bubble) {
		_, err := coord.Open(b.Context(), b.Server.ConnectString(), coord.WithDialer(b.Server.DialContext),
			coord.WithAuth("no-such-scheme", "x"))
		require.ErrorIs(t, err, coord.ErrAuthFailed)
		time.Sleep(10 * time.Second) // the client closes in the background
	})
}

// A server may grant less than was asked for; the limits follow what it
// granted.
func TestTheGrantedTimeoutCounts(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(coord.WithSessionTimeout(time.Hour))
		require.Equal(t, 20*tick, c.Info().SessionTimeout)
		h := b.acquire(c)
		require.LessOrEqual(t, time.Until(h.Deadline()), 20*tick)
	})
}

func TestTheRootIsNoNameToClaim(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.ErrorIs(t, coordtest.Err(recipe.AcquireName(b.Context(), c, coord.NameSpec{Path: "/"})), coord.ErrInvalid)
	})
}

func TestAnOperationWithoutAParentSaysThatTheParentIsMissing(t *testing.T) {
	inBubble(t, func(b bubble) {
		_, err := b.Open().Txn(b.Context(), coord.CheckOp("/", -1), coord.CreateOp("/missing/n", nil))
		require.ErrorIs(b, err, coord.ErrNoNode)
		require.EqualError(b, err, "transaction: operation 1 (create /missing/n): parent /missing: zk: node does not exist")
	})
}

func TestAWaitThatItsDeadlineEndsNamesWhoHoldsOrIsAhead(t *testing.T) {
	inBubble(t, func(b bubble) {
		holder, second, last := b.Open(), b.Open(), b.Open()
		b.acquire(holder)
		waits := func(c *coord.Client, most time.Duration) error {
			_, err := recipe.Acquire(b.Within(most), c, &mutex, first)
			return err
		}
		over := coordtest.Go(func() error { return waits(second, time.Minute) })
		time.Sleep(time.Second)
		err := waits(last, time.Second)
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.EqualError(b, err, `acquire /lock: context deadline exceeded; behind "`+second.Info().Identity+`"`)
		require.EqualError(b, <-over, `acquire /lock: context deadline exceeded; held by "`+holder.Info().Identity+`"`)
	})
}

// Another program's node may have anything for data.
func TestAWaitBehindANodeThatDoesNotSayWhoItIsNamesTheNode(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		node := "/lock/_c_4f1d5b2c-0000-4000-8000-000000000000-lock-0000000000"
		require.NoError(b, c.Create(b.Context(), node, nil))
		require.ErrorContains(b, coordtest.Err(recipe.Acquire(b.Within(time.Second), b.Open(), &mutex, first)),
			"; held by "+node)
	})
}

// While it waits, a client hears of its server by the library's pings only.
func TestAHoldThatWasWaitedForKeepsAFifthOfItsWindow(t *testing.T) {
	for name, opts := range map[string][]coord.Option{"tick unknown": nil, "tick known": {coord.WithTick(T / 15)}} {
		for wait := T / 10; wait < 2*T; wait += T / 10 {
			t.Run(fmt.Sprintf("%s, after %v", name, wait), func(t *testing.T) {
				inBubble(t, func(b bubble) {
					h := b.acquire(b.Open())
					waiting := b.acquireLater(b.Open(opts...))
					time.Sleep(wait)
					require.NoError(b, h.Release(b.Context()))
					next, least := b.granted(waiting), T
					for begun := time.Now(); time.Since(begun) < 2*T; time.Sleep(T / 1000) {
						least = min(least, time.Until(next.Deadline()))
					}
					require.NoError(b, next.Err())
					require.Greater(b, least, T/5)
				})
			})
		}
	}
}
