package coord_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestAHoldsContextEndsWithItAndSaysWhy(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder()
		ctx := h.Context(b.Context())
		require.NoError(t, ctx.Err())
		require.NoError(t, b.Server.ExpireSession(h.Session()))
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), coord.ErrLost)
		require.ErrorIs(t, context.Cause(ctx), coord.ErrSessionExpired)
		require.Error(t, h.Context(b.Context()).Err(), "of a hold that has ended")

		h = b.acquire(c)
		ctx = h.Context(b.Context())
		require.NoError(t, h.Release(b.Context()))
		require.ErrorIs(t, context.Cause(ctx), coord.ErrReleased)
	})
}

func TestAHoldsContextEndsWithItsParent(t *testing.T) {
	inBubble(t, func(b bubble) {
		_, h := b.holder()
		parent, cancel := context.WithCancel(b.Context())
		ctx := h.Context(parent)
		cancel()
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		require.NoError(t, h.Err(), "the hold does not depend on it")
		require.NoError(t, h.Release(parent), "a dead context is no reason to strand the node")
		require.Zero(t, b.owned(h.Session()))
	})
}

func TestTheContextOfTheAcquireDoesNotEndTheHold(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		h := b.Hold(recipe.Acquire(ctx, c, &mutex, first))
		time.Sleep(time.Minute)
		cancel()
		require.NoError(t, h.Err())
	})
}

func TestATokenIsTheNodesCzxidAndGrows(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		last := int64(0)
		for range 5 {
			h := b.acquire(c)
			require.Equal(t, b.node(h.Node()).Stat.Czxid, h.Token())
			require.Greater(t, h.Token(), last)
			last = h.Token()
			require.NoError(t, h.Release(b.Context()))
			require.Equal(t, 1, b.Server.Reap(), "the sequence starts anew, the token does not")
		}
	})
}

func TestATxnOfALostHoldWritesNothing(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder()
		require.NoError(t, c.Create(b.Context(), "/report", nil))
		require.NoError(t, coordtest.Err(h.Txn(b.Context(), coord.SetOp("/report", []byte("mine"), -1))))
		b.breakUnawares(h)
		_, err := h.Txn(b.Context(), coord.SetOp("/report", []byte("too late"), -1))
		require.ErrorIs(t, err, coord.ErrLost)
		require.ErrorIs(t, err, coord.ErrNodeDeleted)
		require.ErrorIs(t, h.Err(), coord.ErrLost)
		require.Equal(t, "mine", b.data("/report"))
	})
}

// The next owner's node of a name would pass the check of the one before. What
// delays the transaction is that servers may refuse its size.
func TestATxnOfANameWritesNothingOnceTheNextOwnerHasIt(t *testing.T) {
	coordtest.InBubbles(t, map[string]func(ctx context.Context, o *recipe.Transactor, h *coord.Hold) error{
		"release": func(ctx context.Context, _ *recipe.Transactor, h *coord.Hold) error { return h.Release(ctx) },
		"exactly once": func(ctx context.Context, o *recipe.Transactor, h *coord.Hold) error {
			return o.Release(ctx, []*coord.Hold{h})
		},
		"loss": func(ctx context.Context, _ *recipe.Transactor, h *coord.Hold) error {
			recipe.Invalidate(h, nil)
			return h.Release(ctx)
		},
	}, func(all coordtest.Bubble, end func(context.Context, *recipe.Transactor, *coord.Hold) error) {
		b := bubble{all}
		c, other := b.Open(), b.Open()
		spec := coord.NameSpec{Path: "/lock/one", Exclusive: true}
		require.NoError(b, c.Create(b.Context(), "/lock/report", nil))
		h := b.Hold(recipe.AcquireName(b.Context(), c, spec))
		write := func() error {
			return coordtest.Err(h.Txn(b.Context(), coord.SetOp("/lock/report", make([]byte, 8<<10), -1)))
		}
		lost := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1},
			zkembed.Drop())
		require.ErrorIs(b, write(), coord.ErrUnconfirmed)
		require.Equal(b, 1, lost.Fired())
		wrote := make(chan error, 1)
		go func() { wrote <- write() }()
		synctest.Wait()
		require.Empty(b, wrote, "it waits for a trial")
		once, err := recipe.NewTransactor(c, "/lock")
		require.NoError(b, err)
		require.NoError(b, end(b.Context(), once, h))
		next := b.Hold(recipe.AcquireName(b.Context(), other, spec))
		require.NoError(b, <-wrote)
		require.Less(b, b.node("/lock/report").Stat.Mzxid, next.Token())
	})
}

func TestNoTxnOfANameFollowsItsExactlyOnceRelease(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.Hold(recipe.AcquireName(b.Context(), c, coord.NameSpec{Path: "/one"}))
		once, err := recipe.NewTransactor(c, "/")
		require.NoError(b, err)
		late := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1},
			zkembed.DelayReply(tick))
		released := make(chan error, 1)
		go func() { released <- once.Release(b.Context(), []*coord.Hold{h}) }()
		<-late.Struck()
		require.ErrorIs(b, coordtest.Err(h.Txn(b.Context(), coord.CreateOp("/two", nil))), coord.ErrInvalid)
		require.NoError(b, <-released)
		require.ErrorIs(b, coordtest.Err(h.Txn(b.Context(), coord.CreateOp("/two", nil))), coord.ErrReleased)
	})
}

func TestATxnNamesTheOperationThatFailed(t *testing.T) {
	inBubble(t, func(b bubble) {
		_, h := b.holder()
		_, err := h.Txn(b.Context(), coord.CreateOp("/a", nil), coord.SetOp("/missing", nil, -1))
		var failed *coord.TxnError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 1, failed.Index)
		require.Equal(t, "/missing", failed.Path)
		require.ErrorIs(t, err, coord.ErrNoNode)
		require.NoError(t, h.Err())
		require.False(t, b.exists("/a"))
	})
}

func TestATxnWithALostReplyIsUnconfirmed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1}, zkembed.LoseReply())
		err := c.Create(b.Context(), "/a", nil)
		require.Equal(t, 1, lost.Fired())
		require.ErrorIs(t, err, coord.ErrUnconfirmed)
		require.True(t, b.exists("/a"))
	})
}

func TestRevocationReachesAHolderAndAWaiter(t *testing.T) {
	for _, dialect := range []coord.Dialect{coord.Curator, coord.Kazoo} {
		inBubble(t, func(b bubble) {
			c, admin := b.Open(coord.WithDialect(dialect)), b.Open(coord.WithDialect(dialect))
			h := b.acquire(c)
			waiting := b.acquireLater(c)
			all := b.contenders(admin, "/lock")
			require.Len(t, all, 2)
			require.True(t, all[0].Holds)
			require.False(t, all[1].Holds)
			require.Equal(t, h.Session(), all[0].Session)
			require.Equal(t, c.Info().Identity, all[0].Owner)

			require.NoError(t, inspect.Revoke(b.Context(), admin, all[1].Node))
			require.NoError(t, inspect.Revoke(b.Context(), admin, all[0].Node))
			<-h.Revoked()
			require.NoError(t, h.Err(), "it is a request")
			require.NoError(t, h.Release(b.Context()))
			<-b.granted(waiting).Revoked() // asked while it waited
		})
	}
}

func TestRevokeAndWaitDeletesByForceAfterTheAgreedTime(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		h := b.acquire(c)
		begun := time.Now()
		revoke := func(forced bool) {
			t.Helper()
			was, err := inspect.RevokeAndWait(b.Context(), admin, h.Node(), time.Minute)
			require.NoError(t, err)
			require.Equal(t, forced, was)
		}
		revoke(true)
		require.Equal(t, time.Minute, time.Since(begun).Round(time.Second))
		<-h.Done()
		require.ErrorIs(t, h.Err(), coord.ErrNodeDeleted)
		revoke(false) // it is gone already

		h = b.acquire(c)
		go func() {
			<-h.Revoked()
			time.Sleep(time.Second)
			if err := h.Release(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		begun = time.Now()
		revoke(false)
		require.Equal(t, time.Second, time.Since(begun).Round(time.Second))
		require.ErrorIs(t, h.Err(), coord.ErrReleased)

		h = b.acquire(c)
		require.ErrorIs(t, coordtest.Err(inspect.RevokeAndWait(b.Within(time.Second), admin, h.Node(), 0)),
			context.DeadlineExceeded)
		require.NoError(t, h.Err())
	})
}

func TestNestedHandlesShareTheNode(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		again := mutex
		again.Reentrant = true
		h := b.acquire(c, again)
		ctx := h.Context(b.Context())
		inner := b.Hold(recipe.Acquire(ctx, c, &again, first))
		require.NoError(t, h.Release(b.Context()))
		require.NoError(t, inner.Err())
		require.Equal(t, 1, b.owned(h.Session()))
		require.NoError(t, inner.Release(b.Context()))
		require.NoError(t, inner.Release(b.Context()))
		require.Zero(t, b.owned(h.Session()))
		require.ErrorIs(t, coordtest.Err(recipe.Acquire(ctx, c, &again, first)), coord.ErrReleased)
	})
}

func TestANodeThatMayNotBeDeletedIsReported(t *testing.T) {
	inBubble(t, func(b bubble) {
		admin := b.Open(coord.WithAuth("digest", "admin:secret"), coord.WithACL("world:anyone:rc", "auth::cdrwa"))
		require.NoError(t, admin.Create(b.Context(), "/lock", nil))
		c, stranded := b.hearing(event.NodeStranded)
		h := b.acquire(c)
		err := h.Release(b.Context())
		require.ErrorIs(t, err, coord.ErrNoAuth)
		require.ErrorContains(t, err, h.Node())
		require.Equal(t, h.Node(), (<-stranded).Path)
	})
}

func TestAChrootIsPrefixedToEverythingAndNeverShown(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, err := coord.Open(b.Context(), b.Server.ConnectString()+"/apps/one", coord.WithSessionTimeout(T),
			coord.WithDialer(b.Server.DialContext))
		require.NoError(t, err)
		h := b.acquire(c)
		require.Regexp(t, `^/lock/_c_`, h.Node())
		require.True(t, b.exists("/apps/one"+h.Node()))
		_, _, err = c.Get(b.Context(), "/missing")
		require.ErrorContains(t, err, "get /missing:")
		b.Close(c)
	})
}

func TestObserversHearOfAClaimsLife(t *testing.T) {
	inBubble(t, func(b bubble) {
		heard := make(chan string, 100)
		c := b.Open(coord.WithObserver(func(e event.Event) {
			kind := e.Kind
			if e.Err != nil {
				kind += ": " + e.Err.Error()
			}
			heard <- kind
		}))
		h := b.acquire(c)
		require.NoError(t, h.Release(b.Context()))
		h = b.acquire(c)
		require.NoError(t, b.Server.ExpireSession(h.Session()))
		<-h.Done()
		time.Sleep(2 * time.Second)
		const over = "session is over: the server has expired it"
		for _, want := range []string{
			"session up", "joined", "granted", "ended: hold released", "joined", "granted",
			"session down", "session over: " + over, "ended: hold lost: " + over, "session up",
		} {
			require.Equal(t, want, <-heard)
		}
		require.Empty(t, heard)
	})
}

func TestCallsOfAClosedClientFailAtOnce(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder()
		b.Close(c)
		require.ErrorIs(t, h.Err(), coord.ErrLost)
		require.ErrorIs(t, h.Err(), coord.ErrClosed)
		require.NoError(t, h.Release(b.Context()))
		_, _, err := c.Get(b.Context(), "/")
		require.ErrorIs(t, err, coord.ErrClosed)
		require.NotErrorIs(t, err, context.Canceled)
		require.NoError(t, c.Close(b.Context()))
	})
}

func TestAnExclusiveClaimMadeByATransactionHasAToken(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(t, c.EnsureDir(b.Context(), "/names"))
		require.NoError(t, c.Create(b.Context(), "/count", nil))
		h := b.Hold(recipe.AcquireName(b.Context(), c, coord.NameSpec{
			Path: "/names/one", Exclusive: true, With: []coord.Op{coord.SetOp("/count", nil, -1)},
		}))
		require.Equal(t, b.node(h.Node()).Stat.Czxid, h.Token())
	})
}

func TestATransactionThatMayNotCheckTheOwnNodeIsRefusedAndTheHoldGoesOn(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(coord.WithACL("world:anyone:cdwa"))
		h := b.stand(c, coord.Spec{Line: coord.Line{Dir: "/group"}, Kind: "member", Unlisted: true})
		_, err := h.Txn(b.Context(), coord.CreateOp("/made", nil))
		require.ErrorIs(t, err, coord.ErrNoAuth)
		require.NotErrorIs(t, err, coord.ErrLost)
		require.NoError(t, h.Err())
	})
}

// A transaction that was refused because the node had been written to is not
// carried out. If the session has ended when the hold looks at the node, the
// error reports the loss.
func TestARefusedTransactionWhoseSessionEndsMeanwhileReportsTheLoss(t *testing.T) {
	for name, do := range map[string]func(b bubble, c *coord.Client, h *coord.Hold) error{
		"release": func(b bubble, c *coord.Client, h *coord.Hold) error { return b.release(b.Context(), c, h) },
		"write": func(b bubble, _ *coord.Client, h *coord.Hold) error {
			return coordtest.Err(h.Txn(b.Context(), coord.CheckOp("/", -1)))
		},
	} {
		runInBubble(t, name, func(b bubble) {
			c, other := b.Open(), b.Open()
			require.NoError(b, c.EnsureDir(b.Context(), "/d"))
			spec := coord.NameSpec{Path: "/d/n", With: []coord.Op{coord.CheckOp("/", -1)}}
			h := b.Hold(recipe.AcquireName(b.Context(), c, spec))
			require.NoError(b, coordtest.Err(other.Set(b.Context(), h.Node(), nil, -1)))
			ended := b.Server.Inject(zkembed.Match{
				Session: h.Session(), Ops: []zkembed.Op{zkembed.OpExists, zkembed.OpGetData}, Times: 1,
			},
				zkembed.ReplyError(zkembed.CodeSessionExpired))
			err := do(b, c, h)
			require.Equal(b, 1, ended.Fired())
			require.ErrorIs(b, err, coord.ErrLost)
			require.ErrorIs(b, err, coord.ErrSessionExpired)
		})
	}
}

// A nested handle is not granted when the window is over, though nothing has
// told so yet, and its end is told of, however it comes.
func TestANestedHoldIsTrustedAndEndsAsItsHold(t *testing.T) {
	inBubble(t, func(b bubble) {
		var slept atomic.Int64
		c := b.Open(coord.WithSuspended(func() time.Duration { return time.Duration(slept.Load()) }))
		h, ends := b.acquire(c), 0
		released := b.Hold(recipe.Dup(h, func() { ends++ }))
		require.NoError(t, released.Release(b.Context()))
		require.NoError(t, released.Release(b.Context()))
		require.Equal(t, 1, ends)
		require.NoError(t, h.Err())

		told := make(chan struct{})
		lost := b.Hold(recipe.Dup(h, func() { close(told) }))
		slept.Store(int64(2 * T))
		require.ErrorIs(t, coordtest.Err(recipe.Dup(h, nil)), coord.ErrWindowOver)
		<-told
		require.ErrorIs(t, lost.Err(), coord.ErrLost)
	})
}

// A nest that its maker has given up may still be handed to someone who does
// not know the node.
func TestANestThatIsTheLastOfItsHoldEndsItByReleaseOnly(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder()
		nested := b.Hold(recipe.Dup(h, func() {}))
		require.NoError(t, h.Release(b.Context()))
		require.ErrorIs(t, b.release(b.Context(), c, nested, coord.CreateOp("/done", nil)), coord.ErrInvalid)
		require.NoError(t, nested.Err())
		require.Equal(t, 1, b.owned(nested.Session()))
		require.NoError(t, nested.Release(b.Context()))
		require.Zero(t, b.owned(nested.Session()))
	})
}
