package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func TestF31CloseIsPromptWhateverTheClientDoes(t *testing.T) {
	states := map[string]func(s scene, c *coord.Client){
		"held":    func(s scene, c *coord.Client) { s.acquire(c) },
		"waiting": waitBehindAnother,
		"disconnected": func(s scene, c *coord.Client) {
			s.acquire(c)
			s.w.Proxy().Refuse()
			s.w.Proxy().CutAll()
		},
		"handshake hung": func(s scene, c *coord.Client) {
			s.acquire(c)
			s.w.Proxy().Hang()
			s.w.Proxy().CutAll()
		},
		"server hung": func(s scene, c *coord.Client) {
			s.acquire(c)
			s.w.Proxy().Blackhole(proxy.Both)
		},
	}
	for name, prepare := range states {
		t.Run(name, func(t *testing.T) {
			each(t, func(s scene) {
				c := s.behind()
				prepare(s, c)
				defer s.w.Proxy().Heal()
				begun := time.Now()
				require.NoError(s, c.Close(context.Background()))
				require.Less(s, time.Since(begun), 2*time.Second+schedulingSlack)
				_, err := s.mutex(c).Acquire(context.Background())
				require.ErrorIs(s, err, coord.ErrClosed)
			})
		})
	}
}

func waitBehindAnother(s scene, c *coord.Client) {
	s.acquire(s.client())
	waiting := s.start(context.Background(), c)
	s.awaitNodes(2)
	s.Cleanup(func() {
		r := zktest.Receive(s, patience, waiting, "the acquire does not return")
		require.ErrorIs(s, r.err, coord.ErrClosed)
	})
}

func TestF32TheSessionExpiresWhileHolding(t *testing.T) {
	each(t, func(s scene) {
		a, b := s.client(), s.client()
		h := s.acquire(a)
		waiter := s.start(context.Background(), b)
		s.awaitNodes(2)
		s.w.ExpireSession(h.Session())
		err := s.lost(h, patience)
		require.ErrorIs(s, err, coord.ErrSessionExpired)
		next := s.granted(waiter)
		require.Greater(s, next.Token(), h.Token())
		s.release(h)
		require.ErrorIs(s, h.Err(), coord.ErrLost, "a release does not hide the loss")
		s.release(next)
		s.release(s.acquire(a))
	})
}

func TestF33TheSessionExpiresWhileWaiting(t *testing.T) {
	each(t, func(s scene) {
		a, b := s.client(), s.client()
		h := s.acquire(a)
		waiter := s.start(context.Background(), b)
		s.awaitNodes(2)
		old := b.SessionID()
		s.w.ExpireSession(old)
		zktest.Eventually(s, patience, func() bool { return b.SessionID() != old && len(s.nodes()) == 2 }, "the waiter does not queue again")
		s.release(h)
		next := s.granted(waiter)
		require.NotEqual(s, old, next.Session())
		s.isSoleHolder(next)
		s.release(next)
	})
}

func TestF37AnAdminDeletesTheHoldersNode(t *testing.T) {
	each(t, func(s scene) {
		c := s.client()
		h := s.acquire(c)
		require.NoError(s, s.w.Admin().Delete(h.Node(), -1))
		deleted := time.Now()
		err := s.lost(h, patience)
		require.Less(s, time.Since(deleted), 100*time.Millisecond+schedulingSlack)
		require.ErrorIs(s, err, coord.ErrNodeDeleted)
		s.release(h)
		s.release(s.acquire(c))
	})
}

func TestF38AnAdminDeletesAWaitersNode(t *testing.T) {
	each(t, func(s scene) {
		h := s.acquire(s.client())
		var waiters []<-chan result
		for i := range 2 {
			waiters = append(waiters, s.start(context.Background(), s.client()))
			s.awaitNodes(i + 2)
		}
		var middle string
		for _, name := range s.nodes() {
			if n := sequence(s, name); n == sequence(s, h.Node())+1 {
				middle = name
			}
		}
		require.NoError(s, s.w.Admin().Delete(s.dir()+"/"+middle, -1))
		s.awaitNodes(3) // it queues again
		require.NotContains(s, s.nodes(), middle)
		require.Empty(s, waiters[0], "two holders")
		require.Empty(s, waiters[1], "two holders")
		s.release(h)
		last := s.granted(waiters[1])
		require.Empty(s, waiters[0], "two holders")
		s.release(last)
		s.release(s.granted(waiters[0]))
	})
}

func sequence(s scene, node string) (n int) {
	s.Helper()
	_, err := fmt.Sscanf(node[len(node)-10:], "%d", &n)
	require.NoError(s, err)
	return n
}
