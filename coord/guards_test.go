package coord_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// granted is what a background acquire came to.
type granted struct {
	hold *coord.Hold
	err  error
}

// acquireLater acquires in the background.
func (b bubble) acquireLater(c *coord.Client, spec coord.Spec) <-chan granted {
	done := make(chan granted, 1)
	go func() {
		h, err := c.Acquire(context.WithoutCancel(b.Context()), spec, first)
		done <- granted{h, err}
	}()
	return done
}

// A server that lags does not show the node of a create whose reply was lost.
// Whoever believed it would make another.
func TestACreateWhoseReplyIsLostBeforeALaggingServerIsNotMadeAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.open()
		require.NoError(t, b.acquire(c).Release(b.Context()))
		b.srv.AddFollower(T/20, c.SessionID())
		time.Sleep(T)
		lost := b.srv.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}, PathPrefix: "/lock/", Times: 1}, zkembed.LoseReply())
		h := b.acquire(c)
		require.Equal(t, 1, lost.Fired())
		require.Equal(t, 1, b.owned(h.Session()))
		require.NoError(t, h.Release(b.Context()))
	})
}

func TestALostCreateIsNotMistakenForAnotherClaimOfTheSameClient(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.open()
		h := b.acquire(c)
		lost := b.srv.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}, PathPrefix: "/lock/", Times: 1}, zkembed.Drop())
		second := b.acquireLater(c, mutex)
		time.Sleep(T / 4)
		require.Equal(t, 1, lost.Fired())
		require.Empty(t, second, "two holders")
		require.Equal(t, 2, b.owned(h.Session()))
		require.NoError(t, h.Release(b.Context()))
		next := <-second
		require.NoError(t, next.err)
		require.NotEqual(t, h.Node(), next.hold.Node())
		require.NoError(t, next.hold.Release(b.Context()))
	})
}

// Two programs may claim one name with the same data, and a program that starts
// again may meet the node of the session it had before.
func TestALostCreateIsNotMistakenForTheSameNodeOfAnotherSession(t *testing.T) {
	inBubble(t, func(b bubble) {
		one, other := b.open(), b.open()
		spec := coord.Spec{Line: coord.Line{Dir: "/names"}, Name: "primary", Data: []byte("the same")}
		h, err := one.Acquire(b.Context(), spec, coord.Alone)
		require.NoError(t, err)
		lost := b.srv.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCreate}, PathPrefix: "/names/", Times: 1}, zkembed.LoseReply())
		_, err = other.Acquire(b.Context(), spec, coord.Alone)
		require.Equal(t, 1, lost.Fired())
		require.ErrorIs(t, err, coord.ErrNodeExists)
		require.NoError(t, h.Release(b.Context()))
	})
}

// A waiter comes back after so long that its window is closed, just before its
// session is over. It keeps its place, and is granted the turn when a write has
// opened the window again.
func TestAWaiterWhoseWindowIsClosedIsGrantedItsTurnWhenItIsOpen(t *testing.T) {
	inBubble(t, func(b bubble) {
		holder, waiter := b.open(), b.open()
		h := b.acquire(holder)
		waiting := b.acquireLater(waiter, mutex)
		synctest.Wait()
		place, session := b.nodesOf(waiter.SessionID()), waiter.SessionID()
		require.Len(t, place, 1)
		time.Sleep(T)
		b.srv.Stop()
		time.Sleep(T * 97 / 100)
		require.ErrorIs(t, h.Err(), coord.ErrWindowOver)
		refused := b.srv.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Session: session, Times: 3}, zkembed.ReplyError(zkembed.CodeThrottledOp))
		b.srv.Resume()
		next := <-waiting
		require.NoError(t, next.err)
		require.NoError(t, next.hold.Err())
		require.Equal(t, 3, refused.Fired())
		require.Equal(t, session, next.hold.Session(), "the session survived")
		require.Equal(t, place[0], next.hold.Node())
		require.NoError(t, next.hold.Release(b.Context()))
	})
}

// nodesOf lists the nodes that belong to a session.
func (b bubble) nodesOf(session int64) (paths []string) {
	for _, node := range b.srv.Nodes() {
		if node.Stat.EphemeralOwner == session {
			paths = append(paths, node.Path)
		}
	}
	return paths
}
