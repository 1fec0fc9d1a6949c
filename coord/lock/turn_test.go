package lock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// What the doc of lock.LocalQueue says that a turn of a local queue can and
// cannot do has a test here.

// inTurn takes a turn of a local queue and has another goroutine wait for the
// next.
func inTurn(b coordtest.Bubble, c *coord.Client) (turn *coord.Hold, next <-chan coordtest.Outcome[*coord.Hold]) {
	b.Helper()
	m := mutex(b.T, c, "/lock", lock.LocalQueue(10, time.Minute), lock.Reentrant())
	turn, next = coordtest.Acquire(b, m), coordtest.Begin(b.Context(), m.Acquire)
	synctest.Wait()
	return turn, next
}

func TestATurnLastsUntilItsTransactionIsAnswered(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		turn, next := inTurn(b, b.Open())
		b.Server.Inject(zkembed.Match{PathPrefix: "/written", Times: 1}, zkembed.Delay(time.Second))
		written := coordtest.Go(func() error { return coordtest.Err(turn.Txn(b.Context(), coord.CreateOp("/written", nil))) })
		synctest.Wait()
		require.NoError(b, turn.Release(b.Context()))
		synctest.Wait()
		require.Empty(b, next, "the next turn began before the transaction of this one was carried out")
		require.NoError(b, <-written)
		require.NoError(b, coordtest.Had(b, next).Release(b.Context()))
	})
}

// The servers carry the transaction out after the turn, and before the node is
// deleted: the next holder has another.
func TestANodeIsGivenUpAfterATransactionOfUnknownOutcome(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		turn, next := inTurn(b, b.Open())
		b.Server.Inject(zkembed.Match{PathPrefix: "/written", Times: 1}, zkembed.Delay(time.Second))
		short := b.Within(time.Millisecond)
		require.ErrorIs(b, coordtest.Err(turn.Txn(short, coord.CreateOp("/written", nil))), coord.ErrUnconfirmed)
		require.NoError(b, turn.Release(b.Context()))
		h := coordtest.Had(b, next)
		_, written, err := b.Open().Exists(b.Context(), "/written")
		require.NoError(b, err)
		require.True(b, written, "the next turn began before the transaction was carried out")
		require.Greater(b, h.Token(), turn.Token())
		require.NoError(b, h.Release(b.Context()))
	})
}

func TestF55ATurnLastsUntilTheLastHandleMadeInsideOfItIsReleased(t *testing.T) {
	type nested func(b coordtest.Bubble, c *coord.Client, turn *coord.Hold) (*coord.Hold, error)
	again := func(b coordtest.Bubble, c *coord.Client, turn *coord.Hold) (*coord.Hold, error) {
		return mutex(b.T, c, "/lock", lock.Reentrant()).Acquire(turn.Context(b.Context()))
	}
	side := func(which func(*rwlock.Lock) *rwlock.Side) nested {
		return func(b coordtest.Bubble, c *coord.Client, turn *coord.Hold) (*coord.Hold, error) {
			l, err := rwlock.New(c, "/lock", rwlock.Reentrant())
			require.NoError(b, err)
			return which(l).Acquire(turn.Context(b.Context()))
		}
	}
	coordtest.InBubbles(t, map[string]nested{
		"Nest": func(_ coordtest.Bubble, _ *coord.Client, turn *coord.Hold) (*coord.Hold, error) {
			return recipe.Dup(turn, nil)
		},
		"Nest, with a nest": func(_ coordtest.Bubble, _ *coord.Client, turn *coord.Hold) (*coord.Hold, error) {
			return recipe.Dup(turn, func() {})
		},
		"re-entrant mutex": again,
		"re-entrant local queue": func(b coordtest.Bubble, c *coord.Client, turn *coord.Hold) (*coord.Hold, error) {
			return mutex(b.T, c, "/lock", lock.Linger(time.Second), lock.Reentrant()).TryAcquire(turn.Context(b.Context()))
		},
		"read side of the lock":  side((*rwlock.Lock).ReadSide),
		"write side of the lock": side((*rwlock.Lock).WriteSide),
		"re-entrant, and so again": func(b coordtest.Bubble, c *coord.Client, turn *coord.Hold) (*coord.Hold, error) {
			h, err := again(b, c, turn)
			require.NoError(b, err)
			defer h.Abandon()
			return again(b, c, h)
		},
	}, func(b coordtest.Bubble, inside nested) {
		c := b.Open()
		turn, next := inTurn(b, c)
		h, err := inside(b, c, turn)
		require.NoError(b, err)
		require.Equal(b, turn.Node(), h.Node())
		require.NoError(b, turn.Release(b.Context()))
		time.Sleep(time.Minute)
		require.NoError(b, h.Err())
		require.Empty(b, next, "two hold")
		require.NoError(b, h.Release(b.Context()))
		synctest.Wait()
		require.Len(b, next, 1)
		require.NoError(b, coordtest.Had(b, next).Release(b.Context()))
	})
}

func TestAnAcquireInsideOfATurnThatWouldWaitForItIsRefused(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		turn, next := inTurn(b, c)
		for _, opts := range [][]lock.Option{nil, {lock.LocalQueue(10, time.Minute)}} {
			require.ErrorIs(b, coordtest.Err(mutex(b.T, c, "/lock", opts...).Acquire(turn.Context(b.Context()))),
				coord.ErrInvalid)
		}
		require.NoError(b, turn.Release(b.Context()))
		require.NoError(b, coordtest.Had(b, next).Release(b.Context()))
	})
}

// In Kazoo's dialect a mutex's node is a writer's by its name.
func TestF62ATurnDoesNotDecideAboutItsNode(t *testing.T) {
	for _, dialect := range []coord.Dialect{coord.Curator, coord.Kazoo} {
		t.Run(string(dialect), func(t *testing.T) {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				c := b.Open(coord.WithDialect(dialect))
				once, err := recipe.NewTransactor(c, "/once")
				require.NoError(b, err)
				turn, next := inTurn(b, c)
				inside, err := recipe.Dup(turn, nil)
				require.NoError(b, err)
				for _, h := range []*coord.Hold{turn, inside} {
					require.ErrorIs(b, recipe.Attach(b.Context(), h, "/part", nil), coord.ErrInvalid)
					require.ErrorIs(b, once.Release(b.Context(), []*coord.Hold{h}, coord.CreateOp("/done", nil)), coord.ErrInvalid)
					require.ErrorIs(b, coordtest.Err(rwlock.Downgrade(b.Context(), h)), coord.ErrInvalid)
					require.NoError(b, h.Release(b.Context()))
				}
				for _, n := range b.Server.Nodes() {
					require.NotContains(b, []string{"/part", "/done"}, n.Path)
				}
				require.NoError(b, coordtest.Had(b, next).Release(b.Context()))
			})
		})
	}
}

func TestTheTurnsOfANodeShareWhatIsTheNodes(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		turn, next := inTurn(b, b.Open())
		revoked := turn.Revoked()
		require.NoError(b, turn.Release(b.Context()))
		h := coordtest.Had(b, next)
		require.Equal(b, turn.Token(), h.Token())
		require.Equal(b, turn.Node(), h.Node())
		require.Equal(b, turn.Session(), h.Session())
		require.Equal(b, turn.Deadline(), h.Deadline())
		require.NoError(b, inspect.Revoke(b.Context(), b.Open(), turn.Node()))
		<-revoked
		<-h.Revoked()
		require.NoError(b, h.Release(b.Context()))
	})
}

func TestATurnEndsByItself(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		turn, next := inTurn(b, b.Open())
		ctx := turn.Context(b.Context())
		require.NoError(b, turn.Release(b.Context()))
		<-turn.Done()
		require.ErrorIs(b, turn.Err(), coord.ErrReleased)
		require.ErrorIs(b, context.Cause(ctx), coord.ErrReleased)
		h := coordtest.Had(b, next)
		require.NoError(b, h.Err())
		ctx = h.Context(b.Context())
		require.NoError(b, inspect.Break(b.Context(), b.Open(), h.Node()))
		<-h.Done()
		require.ErrorIs(b, h.Err(), coord.ErrLost)
		require.ErrorIs(b, context.Cause(ctx), coord.ErrLost)
		require.ErrorIs(b, turn.Err(), coord.ErrReleased)
		require.NoError(b, h.Release(b.Context()))
	})
}

func TestF56ACallThatHasWaitedIsNotRefusedWhenItsLocalQueueJoinsAgain(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := mutex(b.T, b.Open(), "/lock", lock.LocalQueue(2, time.Hour))
		h := coordtest.Acquire(b, m)
		granted := turns(b, m, "", 1, 0)
		remove := b.Foreign("/lock")
		require.NoError(b, inspect.Break(b.Context(), b.Open(), h.Node()))
		time.Sleep(time.Minute)
		require.Empty(b, granted)
		remove()
		time.Sleep(time.Second)
		require.Len(b, granted, 1)
		require.NoError(b, h.Release(b.Context()))
	})
}
