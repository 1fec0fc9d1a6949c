package coord_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func (b bubble) once(c *coord.Client) *recipe.Transactor {
	b.Helper()
	o, err := recipe.NewTransactor(c, "/once")
	require.NoError(b, err)
	return o
}

// release releases a hold by a transaction.
func (b bubble) release(ctx context.Context, c *coord.Client, h *coord.Hold, ops ...coord.Op) error {
	return b.once(c).Release(ctx, []*coord.Hold{h}, ops...)
}

// add is an operation that would be seen if it was carried out twice.
var add = coord.AppendOp("/count/n-", nil)

// adding returns a client that can add.
func (b bubble) adding() (*coord.Client, *recipe.Transactor) {
	b.Helper()
	c := b.Open()
	require.NoError(b, c.EnsureDir(b.Context(), "/count"))
	return c, b.once(c)
}

func (b bubble) children(path string) (n int) {
	for _, node := range b.Server.Nodes() {
		if strings.HasPrefix(node.Path, path+"/") {
			n++
		}
	}
	return n
}

// strike makes the server lose, or never see, the transactions of an
// Transactor with one operation.
func (b bubble) strike(a zkembed.Action, times int) *zkembed.Fault {
	return b.Server.Inject(zkembed.Match{
		Ops: []zkembed.Op{zkembed.OpMulti}, Times: times,
		Func: func(r zkembed.Request) bool {
			return len(r.Parts) == 2
		},
	}, a)
}

func TestARefusedTransactionNamesTheOperationThatFailed(t *testing.T) {
	inBubble(t, func(b bubble) {
		_, o := b.adding()
		for _, fault := range []int{0, 1} {
			f := b.strike(zkembed.Drop(), 1)
			if fault == 0 {
				f.Remove()
			}
			_, err := o.Txn(b.Context(), add, coord.DeleteOp("/missing", -1))
			var refused *coord.TxnError
			require.ErrorAs(b, err, &refused)
			require.Equal(b, 1, refused.Index)
			require.ErrorIs(b, err, coord.ErrNoNode)
			require.NotErrorIs(b, err, coord.ErrUnconfirmed)
		}
		require.NoError(b, coordtest.Err(o.Txn(b.Context(), add)), "the witness is still good")
		require.Equal(b, 1, b.children("/count"))
	})
}

// A client may use a directory once and never again.
func TestF77WhoUsesManyDirectoriesOnceKeepsNothingOfThem(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, c.EnsureDir(b.Context(), "/count"))
		use := func(n int) {
			for i := range n {
				o, err := recipe.NewTransactor(c, fmt.Sprint("/many/", i))
				require.NoError(b, err)
				require.NoError(b, coordtest.Err(o.Txn(b.Context(), coord.CheckOp("/count", -1))))
				require.Equal(b, 1, b.children(fmt.Sprint("/many/", i)), "one of its own")
			}
			synctest.Wait()
			require.LessOrEqual(b, b.owned(c.Info().SessionID), 128)
			time.Sleep(2 * T)
			require.Zero(b, b.owned(c.Info().SessionID))
			b.Server.Reap()
		}
		use(1000)
		before := inUse()
		use(1000)
		require.Less(b, inUse().heap, before.heap+100*1000)
	})
}

func TestATransactionThatWasNeverSentIsNotUnconfirmed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		o := b.once(c)
		b.Server.Stop()
		defer b.Server.Resume()
		synctest.Wait()
		_, err := o.Txn(b.Within(time.Second), add)
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.NotErrorIs(b, err, coord.ErrUnconfirmed)
		require.ErrorIs(b, coordtest.Err(recipe.NewTransactor(c, "relative")), coord.ErrInvalid)
		require.ErrorIs(b, coordtest.Err(o.Txn(b.Context())), coord.ErrInvalid)
	})
}

func TestAReleaseByTransactionOfAHoldThatWasBrokenUnawaresIsALoss(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder()
		b.breakUnawares(h)
		require.ErrorIs(t, b.release(b.Context(), c, h, coord.CreateOp("/done", nil)), coord.ErrLost)
		require.False(t, b.exists("/done"))
	})
}

// The claim is broken while the lost reply to its transaction is found out:
// what the transaction was to delete is still there.
func TestAReleaseByTransactionThatWasNeverCarriedOutIsALossThoughTheNodeIsGone(t *testing.T) {
	for name, op := range map[string]coord.Op{
		"delete": coord.DeleteOp("/item", 0), "set": coord.SetOp("/item", []byte("new"), 0),
	} {
		runInBubble(t, name, func(b bubble) {
			c, admin := b.Open(), b.Open()
			require.NoError(b, admin.Create(b.Context(), "/item", nil))
			h := b.acquire(c)
			b.Server.Inject(zkembed.Match{Session: h.Session()}, zkembed.DelayEvents(T))
			lost := b.Server.Inject(zkembed.Match{PathPrefix: "/item", Session: h.Session(), Times: 1}, zkembed.Drop())
			late := b.Server.Inject(zkembed.Match{PathPrefix: "/item", Session: h.Session(), Times: 1},
				zkembed.Delay(2*time.Second))
			released := coordtest.Go(func() error { return b.release(b.Context(), c, h, op) })
			time.Sleep(time.Second)
			require.Equal(b, [2]int{1, 1}, [2]int{lost.Fired(), late.Fired()})
			require.NoError(b, inspect.Break(b.Context(), admin, h.Node()))
			require.ErrorIs(b, <-released, coord.ErrLost)
			require.True(b, b.exists("/item"))
		})
	}
}

// The news of the deletion comes before the answer to the transaction.
func TestAReleaseByTransactionIsNoLossThoughTheNodeIsWatched(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder()
		time.Sleep(time.Second) // until our watch is set
		require.NoError(t, b.release(b.Context(), c, h, coord.CreateOp("/done", nil)))
		require.ErrorIs(t, h.Err(), coord.ErrReleased)
	})
}

// The hold is lost while its transaction is repeated, and the server throttles
// the repetition: the node must not be deleted in between, or the next one
// would take the deletion for its own.
func TestTheNodeOfALostHoldStaysUntilItsTransactionIsDecided(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder(coord.LoseAtDisconnect())
		lost := b.Server.Inject(zkembed.Match{PathPrefix: "/done", Times: 1}, zkembed.Drop())
		throttled := b.Server.Inject(zkembed.Match{PathPrefix: "/done", Times: 1},
			zkembed.ReplyError(zkembed.CodeThrottledOp))
		require.NoError(t, b.release(b.Context(), c, h, coord.CreateOp("/done", nil)))
		require.Equal(t, 1, lost.Fired())
		require.Equal(t, 1, throttled.Fired())
		require.True(t, b.exists("/done"), "not carried out")
	})
}

// The same with a release that is called meanwhile.
func TestAReleaseWaitsUntilTheTransactionThatReleasesIsDecided(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder()
		throttled := b.Server.Inject(zkembed.Match{PathPrefix: "/done", Times: 1},
			zkembed.ReplyError(zkembed.CodeThrottledOp))
		released := coordtest.Go(func() error { return b.release(b.Context(), c, h, coord.CreateOp("/done", nil)) })
		time.Sleep(time.Millisecond)
		require.Equal(t, 1, throttled.Fired())
		require.NoError(t, h.Release(b.Context()))
		require.NoError(t, <-released)
		require.True(t, b.exists("/done"), "not carried out")
	})
}

// The transaction was carried out, its reply was lost, and another's node has
// the name by the time it is repeated.
func TestAReleaseByTransactionWasCarriedOutThoughTheNameIsAnothersByNow(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		require.NoError(t, admin.Create(b.Context(), "/item", nil))
		h := b.named(c)
		match := zkembed.Match{PathPrefix: "/item", Session: h.Session(), Times: 1}
		lost, late := b.Server.Inject(match, zkembed.LoseReply()), b.Server.Inject(match, zkembed.Delay(2*time.Second))
		released := coordtest.Go(func() error { return b.release(b.Context(), c, h, coord.DeleteOp("/item", 0)) })
		time.Sleep(time.Second)
		require.Equal(t, [2]int{1, 1}, [2]int{lost.Fired(), late.Fired()})
		require.NoError(t, admin.Create(b.Context(), "/names/one", []byte("another's")))
		require.NoError(t, <-released)
		require.ErrorIs(t, h.Err(), coord.ErrReleased)
		require.True(t, b.exists("/names/one"))
	})
}

// The transaction was carried out, its reply was lost, and the hold ends in
// another way as well: the end of the hold must not delete the next owner's
// node, which has the same version.
func TestAReleaseByTransactionWhoseReplyIsLostSparesTheNextOwnerOfTheName(t *testing.T) {
	lose := zkembed.LoseReply()
	for name, c := range map[string]struct {
		opts   []coord.Option
		fault  zkembed.Action
		within time.Duration
		end    func(h *coord.Hold) // while the transaction is found out
		err    error
	}{
		"the hold is lost":      {[]coord.Option{coord.LoseAtDisconnect()}, lose, time.Minute, func(*coord.Hold) {}, nil},
		"the hold is forfeited": {nil, lose, time.Minute, func(h *coord.Hold) { recipe.Invalidate(h, nil) }, nil},
		"the hold is released":  {nil, lose, time.Minute, (*coord.Hold).Abandon, nil},
		"the context ends": {
			nil, zkembed.DelayReply(2 * time.Second), time.Second, func(*coord.Hold) {}, coord.ErrUnconfirmed,
		},
		"and so does the hold": {
			[]coord.Option{coord.LoseAtDisconnect()}, lose, time.Second, func(*coord.Hold) {}, coord.ErrUnconfirmed,
		},
	} {
		runInBubble(t, name, func(b bubble) {
			var away atomic.Bool
			client, other := b.Open(append(c.opts, b.leaving(&away))...), b.Open()
			h, o := b.taking(client, "the same"), b.once(client)
			lost := b.Server.Inject(zkembed.Match{PathPrefix: "/done", Times: 1}, c.fault)
			away.Store(true)
			released := coordtest.Go(func() error {
				return o.Release(b.Within(c.within), []*coord.Hold{h}, coord.CreateOp("/done", nil))
			})
			<-lost.Struck()
			synctest.Wait()
			c.end(h)
			next := b.taking(other, "the same")
			time.Sleep(1500 * time.Millisecond)
			away.Store(false)
			require.ErrorIs(b, <-released, c.err)
			time.Sleep(5 * time.Second)
			require.NoError(b, next.Err())
			require.True(b, b.exists("/names/one"))
		})
	}
}

// The transaction was never carried out: the node is not left behind.
func TestAReleaseByTransactionWhoseContextEndsDeletesTheNode(t *testing.T) {
	inBubble(t, func(b bubble) {
		var away atomic.Bool
		c := b.Open(b.leaving(&away))
		h, o := b.taking(c, "mine"), b.once(c)
		b.Server.Inject(zkembed.Match{PathPrefix: "/done", Times: 1}, zkembed.Drop())
		away.Store(true)
		require.ErrorIs(t, o.Release(b.Within(time.Second), []*coord.Hold{h}, coord.CreateOp("/done", nil)),
			coord.ErrUnconfirmed)
		away.Store(false)
		require.NoError(t, h.Release(b.Context()))
		require.False(t, b.exists("/names/one"))
		require.False(t, b.exists("/done"))
	})
}

// The transaction was not carried out, and another client writes into our
// node before it is repeated.
func TestAReleaseByTransactionIsCarriedOutThoughAnotherClientWritesIntoTheNode(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		h := b.named(c)
		match := zkembed.Match{PathPrefix: "/done", Session: h.Session(), Times: 1}
		lost, late := b.Server.Inject(match, zkembed.Drop()), b.Server.Inject(match, zkembed.Delay(2*time.Second))
		released := coordtest.Go(func() error { return b.release(b.Context(), c, h, coord.CreateOp("/done", nil)) })
		time.Sleep(time.Second)
		require.Equal(t, [2]int{1, 1}, [2]int{lost.Fired(), late.Fired()})
		require.NoError(t, coordtest.Err(admin.Set(b.Context(), "/names/one", []byte("by hand"), -1)))
		require.NoError(t, <-released)
		require.True(t, b.exists("/done"))
		require.False(t, b.exists("/names/one"))
	})
}

// It was refused, for another client has written into the node, and the context
// ends before that is found out: nothing was carried out, nor will be.
func TestAReleaseByTransactionThatIsRefusedKeepsTheHoldAlsoWhenItsContextEnds(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		h := b.named(c)
		require.NoError(t, coordtest.Err(admin.Set(b.Context(), "/names/one", []byte("by hand"), -1)))
		time.Sleep(time.Second) // our watch has looked
		read := b.Server.Inject(zkembed.Match{
			Session: h.Session(), Ops: []zkembed.Op{zkembed.OpExists}, PathPrefix: "/names/one", Times: 1,
		}, zkembed.Delay(time.Second))
		err := b.release(b.Within(time.Second/2), c, h, coord.CreateOp("/done", nil))
		require.Equal(t, 1, read.Fired())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, coord.ErrUnconfirmed)
		require.NoError(t, h.Err())
	})
}

// The hold is lost while the transaction is repeated, and its node deleted for
// that; the repetition must not take the deletion for its own.
func TestATransactionThatReleasesIsCarriedOutIfItSaysSoThoughTheHoldIsLostMeanwhile(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(coord.LoseAtDisconnect())
		for range 20 {
			h := b.acquire(c)
			f := b.Server.Inject(zkembed.Match{PathPrefix: "/done", Times: 1}, zkembed.Drop())
			err := b.release(b.Context(), c, h, coord.CreateOp("/done", nil))
			require.Equal(b, 1, f.Fired())
			made := slices.ContainsFunc(b.Server.Nodes(), func(n zkembed.Node) bool { return n.Path == "/done" })
			if err == nil {
				require.True(b, made, "not carried out")
			} else {
				require.ErrorIs(b, err, coord.ErrLost)
			}
			if made {
				require.NoError(b, c.Delete(b.Context(), "/done", -1))
			}
			require.ErrorIs(b, h.Err(), coord.ErrLost)
		}
	})
}

// The node goes with the transaction, and what a new handle stands for.
func TestAHoldThatATransactionIsReleasingCanBeNeitherNestedNorDowngraded(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		again := coord.Spec{Line: inspect.LockLine("/lock"), Kind: "write", Exclusive: true, Reentrant: true}
		h := b.acquire(c, again)
		b.Server.Inject(zkembed.Match{PathPrefix: "/done"}, zkembed.DelayReply(time.Second))
		released := coordtest.Go(func() error { return b.release(b.Context(), c, h, coord.CreateOp("/done", nil)) })
		synctest.Wait()
		require.ErrorIs(t, coordtest.Err(recipe.Acquire(h.Context(b.Context()), c, &again, first)), coord.ErrInvalid)
		require.ErrorIs(t, coordtest.Err(rwlock.Downgrade(b.Context(), h)), coord.ErrInvalid)
		require.NoError(t, <-released)
	})
}

// The first attempt was carried out and its reply lost; the client is closed
// before the second.
func TestATransactionThatReleasesIsUnconfirmedIfAnAttemptWas(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder()
		f := b.Server.Inject(zkembed.Match{PathPrefix: "/done"}, zkembed.LoseReply())
		failed := coordtest.Go(func() error { return b.release(b.Context(), c, h, coord.CreateOp("/done", nil)) })
		<-f.Struck()
		time.Sleep(time.Millisecond)
		b.Server.Stop()
		time.Sleep(time.Second)
		require.Empty(b, failed)
		b.Close(c)
		err := <-failed
		require.ErrorIs(b, err, coord.ErrUnconfirmed)
		require.ErrorIs(b, err, coord.ErrClosed)
		b.Server.Resume()
	})
}
