package coord_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// The transaction was carried out, its reply was lost, and nobody can tell any
// more: a caller that took the missing witness for a failure would carry it out
// again.
func TestATransactionWhoseWitnessIsDeletedBeforeItsRepeatIsUnconfirmed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		require.NoError(t, c.EnsureDir(b.Context(), "/count"))
		o := b.once(c)
		lost := b.strike(zkembed.LoseReply(), 1)
		repeat := b.strike(zkembed.Delay(tick), 1)
		done := make(chan error, 1)
		go func() {
			_, err := o.Txn(b.Context(), add)
			done <- err
		}()
		<-repeat.Struck()
		require.Equal(t, 1, lost.Fired())
		names, err := admin.Children(b.Context(), "/once")
		require.NoError(t, err)
		require.Len(t, names, 1)
		require.NoError(t, admin.Delete(b.Context(), "/once/"+names[0], -1))
		require.ErrorIs(t, <-done, coord.ErrUnconfirmed)
		require.Equal(t, 1, b.children("/count"))
	})
}

func TestAReleaseByTransactionOfAHoldThatWasBrokenUnawaresIsALoss(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		h := b.acquire(c)
		b.Server.Inject(zkembed.Match{Session: h.Session()}, zkembed.DelayEvents(T))
		require.NoError(t, inspect.Break(b.Context(), admin, h.Node()))
		require.NoError(t, h.Err(), "it does not know")
		require.ErrorIs(t, b.release(b.Context(), c, h, coord.CreateOp("/done", nil)), coord.ErrLost)
		_, made, err := admin.Exists(b.Context(), "/done")
		require.NoError(t, err)
		require.False(t, made)
	})
}

// The claim is broken while the lost reply to its transaction is found out:
// what the transaction was to delete is still there.
func TestAReleaseByTransactionThatWasNeverCarriedOutIsALossThoughTheNodeIsGone(t *testing.T) {
	for name, op := range map[string]coord.Op{"delete": coord.DeleteOp("/item", 0), "set": coord.SetOp("/item", []byte("new"), 0)} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				c, admin := b.Open(), b.Open()
				require.NoError(b, admin.Create(b.Context(), "/item", nil))
				h := b.acquire(c)
				b.Server.Inject(zkembed.Match{Session: h.Session()}, zkembed.DelayEvents(T))
				lost := b.Server.Inject(zkembed.Match{PathPrefix: "/item", Session: h.Session(), Times: 1}, zkembed.Drop())
				late := b.Server.Inject(zkembed.Match{PathPrefix: "/item", Session: h.Session(), Times: 1}, zkembed.Delay(2*time.Second))
				released := make(chan error, 1)
				go func() { released <- b.release(b.Context(), c, h, op) }()
				time.Sleep(time.Second)
				require.Equal(b, [2]int{1, 1}, [2]int{lost.Fired(), late.Fired()})
				require.NoError(b, inspect.Break(b.Context(), admin, h.Node()))
				require.ErrorIs(b, <-released, coord.ErrLost)
				_, there, err := admin.Exists(b.Context(), "/item")
				require.NoError(b, err)
				require.True(b, there)
			})
		})
	}
}

// The news of the deletion comes before the answer to the transaction.
func TestAReleaseByTransactionIsNoLossThoughTheNodeIsWatched(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(c)
		time.Sleep(time.Second) // until the own watch is set
		require.NoError(t, b.release(b.Context(), c, h, coord.CreateOp("/done", nil)))
		require.ErrorIs(t, h.Err(), coord.ErrReleased)
	})
}

// The hold is lost while its transaction is repeated, and the server throttles
// the repetition: the node must not be deleted in between, or the next one
// would take the deletion for its own.
func TestTheNodeOfALostHoldStaysUntilItsTransactionIsDecided(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(coord.LoseAtDisconnect())
		h := b.acquire(c)
		lost := b.Server.Inject(zkembed.Match{PathPrefix: "/done", Times: 1}, zkembed.Drop())
		throttled := b.Server.Inject(zkembed.Match{PathPrefix: "/done", Times: 1}, zkembed.ReplyError(zkembed.CodeThrottledOp))
		require.NoError(t, b.release(b.Context(), c, h, coord.CreateOp("/done", nil)))
		require.Equal(t, 1, lost.Fired())
		require.Equal(t, 1, throttled.Fired())
		_, made, err := c.Exists(b.Context(), "/done")
		require.NoError(t, err)
		require.True(t, made, "not carried out")
	})
}

// The same with a release that is called meanwhile.
func TestAReleaseWaitsUntilTheTransactionThatReleasesIsDecided(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(c)
		throttled := b.Server.Inject(zkembed.Match{PathPrefix: "/done", Times: 1}, zkembed.ReplyError(zkembed.CodeThrottledOp))
		released := make(chan error, 1)
		go func() { released <- b.release(b.Context(), c, h, coord.CreateOp("/done", nil)) }()
		time.Sleep(time.Millisecond)
		require.Equal(t, 1, throttled.Fired())
		require.NoError(t, h.Release(b.Context()))
		require.NoError(t, <-released)
		_, made, err := c.Exists(b.Context(), "/done")
		require.NoError(t, err)
		require.True(t, made, "not carried out")
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
		released := make(chan error, 1)
		go func() { released <- b.release(b.Context(), c, h, coord.DeleteOp("/item", 0)) }()
		time.Sleep(time.Second)
		require.Equal(t, [2]int{1, 1}, [2]int{lost.Fired(), late.Fired()})
		require.NoError(t, admin.Create(b.Context(), "/names/one", []byte("another's")))
		require.NoError(t, <-released)
		require.ErrorIs(t, h.Err(), coord.ErrReleased)
		_, there, err := admin.Exists(b.Context(), "/names/one")
		require.NoError(t, err)
		require.True(t, there)
	})
}

// The transaction was not carried out, and another client writes into the own
// node before it is repeated.
func TestAReleaseByTransactionIsCarriedOutThoughAnotherClientWritesIntoTheNode(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		h := b.named(c)
		match := zkembed.Match{PathPrefix: "/done", Session: h.Session(), Times: 1}
		lost, late := b.Server.Inject(match, zkembed.Drop()), b.Server.Inject(match, zkembed.Delay(2*time.Second))
		released := make(chan error, 1)
		go func() { released <- b.release(b.Context(), c, h, coord.CreateOp("/done", nil)) }()
		time.Sleep(time.Second)
		require.Equal(t, [2]int{1, 1}, [2]int{lost.Fired(), late.Fired()})
		require.NoError(t, coordtest.Err(admin.Set(b.Context(), "/names/one", []byte("by hand"), -1)))
		require.NoError(t, <-released)
		_, made, err := admin.Exists(b.Context(), "/done")
		require.NoError(t, err)
		require.True(t, made)
		require.Zero(t, b.owned(c.SessionID()))
	})
}

// It was refused, for another client has written into the node, and the context
// ends before that is found out: nothing was carried out, nor will be.
func TestAReleaseByTransactionThatIsRefusedKeepsTheHoldAlsoWhenItsContextEnds(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		h := b.named(c)
		require.NoError(t, coordtest.Err(admin.Set(b.Context(), "/names/one", []byte("by hand"), -1)))
		time.Sleep(time.Second) // the own watch has looked
		read := b.Server.Inject(zkembed.Match{Session: h.Session(), Ops: []zkembed.Op{zkembed.OpGetData}, Times: 1}, zkembed.Delay(time.Second))
		err := b.release(b.Within(time.Second/2), c, h, coord.CreateOp("/done", nil))
		require.Equal(t, 1, read.Fired())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, coord.ErrUnconfirmed)
		require.NoError(t, h.Err())
		require.NoError(t, h.Release(b.Context()))
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
		released := make(chan error, 1)
		go func() { released <- b.release(b.Context(), c, h, coord.CreateOp("/done", nil)) }()
		synctest.Wait()
		require.ErrorIs(t, coordtest.Err(c.Acquire(h.Context(b.Context()), again, first)), coord.ErrInvalid)
		require.ErrorIs(t, coordtest.Err(h.Downgrade(b.Context())), coord.ErrInvalid)
		require.NoError(t, <-released)
	})
}

// The first attempt was carried out and its reply lost; the client is closed
// before the second.
func TestATransactionThatReleasesIsUnconfirmedIfAnAttemptWas(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(c)
		f := b.Server.Inject(zkembed.Match{PathPrefix: "/done"}, zkembed.LoseReply())
		failed := make(chan error, 1)
		go func() { failed <- b.release(b.Context(), c, h, coord.CreateOp("/done", nil)) }()
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
