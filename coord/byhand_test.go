package coord_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestAHoldWhoseNodeIsDeletedByHandIsLost(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		h := b.acquire(c)
		time.Sleep(time.Second)
		require.NoError(t, inspect.Break(b.Context(), admin, h.Node()))
		synctest.Wait()
		require.True(t, ended(h))
		require.ErrorIs(t, h.Err(), coord.ErrNodeDeleted)
	})
}

// A waiter reads its own node soon, or later if it is far from its turn; from
// then on it learns of the deletion at once.
func TestAWaiterWhoseNodeIsDeletedByHandJoinsAgain(t *testing.T) {
	for _, c := range []struct {
		waits, noticed time.Duration
		before         int // others in the line
	}{
		{0, 20 * time.Millisecond, 1},
		{time.Second, 0, 1},
		{100 * time.Millisecond, 150 * time.Millisecond, 20},
		{time.Second, 0, 20},
	} {
		inBubble(t, func(b bubble) {
			h, admin, waiter := b.acquire(b.Open()), b.Open(), b.Open()
			for range c.before - 1 {
				require.NoError(t, coordtest.Err(admin.Join(b.Context(), mutex)))
			}
			waiting := b.acquireLater(waiter, mutex)
			synctest.Wait()
			time.Sleep(c.waits)
			before := b.nodesOf(waiter.SessionID())
			require.Len(t, before, 1)
			require.NoError(t, inspect.Break(b.Context(), admin, before[0]))
			time.Sleep(c.noticed)
			synctest.Wait()
			after := b.nodesOf(waiter.SessionID())
			require.Len(t, after, 1, "it stands in the line no more")
			require.NotEqual(t, before, after)
			require.NoError(t, h.Release(b.Context()))
			b.Close(admin) // and the others of the line
			next := <-waiting
			require.NoError(t, next.err)
			require.NoError(t, next.hold.Release(b.Context()))
		})
	}
}

// The news of the deletion does not come, since the waiter does not watch its
// node yet: what it is granted lasts no longer than until it reads it.
func TestAWaiterThatIsGrantedItsTurnOnADeletedNodeLosesItSoon(t *testing.T) {
	inBubble(t, func(b bubble) {
		h, waiter, admin := b.acquire(b.Open()), b.Open(), b.Open()
		waiting := b.acquireLater(waiter, mutex)
		synctest.Wait()
		require.NoError(t, inspect.Break(b.Context(), admin, b.nodesOf(waiter.SessionID())[0]))
		require.NoError(t, h.Release(b.Context()))
		next := <-waiting
		require.NoError(t, next.err)
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		require.ErrorIs(t, next.hold.Err(), coord.ErrNodeDeleted)
	})
}

func TestAHoldThatWasFarFromItsTurnIsLostWithItsNodeAsSoon(t *testing.T) {
	inBubble(t, func(b bubble) {
		h, others, admin := b.acquire(b.Open()), b.Open(), b.Open()
		for range 20 {
			require.NoError(t, coordtest.Err(others.Join(b.Context(), mutex)))
		}
		waiting := b.acquireLater(b.Open(), mutex)
		time.Sleep(10 * time.Millisecond)
		b.Close(others)
		require.NoError(t, h.Release(b.Context()))
		next := <-waiting
		require.NoError(t, next.err)
		require.NoError(t, inspect.Break(b.Context(), admin, next.hold.Node()))
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		require.ErrorIs(t, next.hold.Err(), coord.ErrNodeDeleted)
	})
}

func TestTheLastOfThreeWaitsOnWhenTheOneInTheMiddleGoes(t *testing.T) {
	inBubble(t, func(b bubble) {
		holder, middle, last := b.Open(), b.Open(), b.Open()
		h := b.acquire(holder)
		ctx, cancel := context.WithCancel(b.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := middle.Acquire(ctx, mutex, first)
			gone <- err
		}()
		synctest.Wait()
		waiting := b.acquireLater(last, mutex)
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-gone, context.Canceled)
		time.Sleep(time.Second)
		require.Empty(t, b.nodesOf(middle.SessionID()))
		require.Empty(t, waiting, "two holders")
		require.NoError(t, h.Release(b.Context()))
		next := <-waiting
		require.NoError(t, next.err)
		require.NoError(t, next.hold.Release(b.Context()))
	})
}

func TestAHoldIsLostWithItsSession(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(c)
		require.NoError(t, b.Server.ExpireSession(h.Session()))
		next := b.acquire(b.Open())
		synctest.Wait()
		require.True(t, ended(h), "two holders")
		require.ErrorIs(t, h.Err(), coord.ErrSessionExpired)
		require.NoError(t, next.Release(b.Context()))
	})
}

func TestAThrottledRevocationIsNotRepeatedWithoutAPause(t *testing.T) {
	for name, ask := range map[string]func(b bubble, c *coord.Client, node string) error{
		"revoke": func(b bubble, c *coord.Client, node string) error { return inspect.Revoke(b.Context(), c, node) },
		"break":  func(b bubble, c *coord.Client, node string) error { return inspect.Break(b.Context(), c, node) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				c, admin := b.Open(), b.Open()
				h := b.acquire(c)
				refused := b.Server.Inject(zkembed.Match{Session: admin.SessionID(), Times: 3}, zkembed.ReplyError(zkembed.CodeThrottledOp))
				begun := time.Now()
				require.NoError(t, ask(b, admin, h.Node()))
				require.Equal(t, 3, refused.Fired())
				require.GreaterOrEqual(t, time.Since(begun), 3*T/50)
				require.NoError(t, h.Release(b.Context()))
			})
		})
	}
}
