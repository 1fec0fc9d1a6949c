package lock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestAMultiLockThatWaitsAcquiresAgainWhatItLosesMeanwhile(t *testing.T) {
	coordtest.InBubble(t, func(bubble coordtest.Bubble) {
		t, srv := bubble.T, bubble.Server
		c, other := bubble.Open(), bubble.Open()
		first := func() (node string) {
			for _, n := range srv.Nodes() {
				if strings.HasPrefix(n.Path, "/a/") {
					node = n.Path
				}
			}
			return node
		}
		b, err := mutex(t, other, "/b").Acquire(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		done := acquireAll(ctx, multi(t, mutex(t, c, "/a"), mutex(t, c, "/b")))
		time.Sleep(time.Second)
		lost := first()
		require.NoError(t, inspect.Break(t.Context(), other, lost))
		time.Sleep(time.Second)
		again := first()
		require.NoError(t, b.Release(t.Context()))
		got := <-done
		require.NoError(t, got.err)
		require.NotEmpty(t, again, "not acquired again before it had the other")
		require.NotEqual(t, lost, again)
		require.NoError(t, got.group.Release(t.Context()))
	})
}

// Not as cancelled: the caller's context lives.
func TestATryOfAMultiLockThatLosesALockMeanwhileSaysSo(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c, other := b.Open(), b.Open()
		// A reply that is late would keep the news of the loss, which come
		// behind it.
		slow := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetChildren2}, PathPrefix: "/b"}, zkembed.ReplyError(zkembed.CodeThrottledOp))
		tried := make(chan error, 1)
		go func() {
			_, err := multi(b.T, mutex(b.T, c, "/a"), mutex(b.T, c, "/b")).TryAcquire(b.Context())
			tried <- err
		}()
		time.Sleep(time.Second)
		for _, n := range b.Server.Nodes() {
			if strings.HasPrefix(n.Path, "/a/") {
				require.NoError(b, inspect.Break(b.Context(), other, n.Path))
			}
		}
		err := <-tried
		require.NotZero(b, slow.Fired())
		require.ErrorIs(b, err, coord.ErrNodeDeleted)
		require.NotErrorIs(b, err, context.Canceled)
	})
}

// breaking is a lock whose acquire takes the one acquired before it away, and
// ends the caller's context, before it succeeds.
type breaking struct {
	*lock.Mutex
	breakIt func()
	end     context.CancelFunc
}

func (l breaking) Acquire(ctx context.Context) (*coord.Hold, error) {
	h, err := l.Mutex.Acquire(ctx)
	l.breakIt()
	<-ctx.Done() // with the hold before
	l.end()
	return h, err
}

func TestAMultiLockTellsItsContextsEndOnceAlongWithALoss(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c, other := b.Open(), b.Open()
		held, err := mutex(b.T, c, "/b").Acquire(b.Context())
		require.NoError(b, err)
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		_, err = multi(b.T, mutex(b.T, c, "/a"), mutex(b.T, c, "/b")).Acquire(ctx)
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.Equal(b, 1, strings.Count(err.Error(), context.DeadlineExceeded.Error()), err)
		require.NoError(b, held.Release(b.Context()))

		ctx, cancel = context.WithCancel(b.Context())
		breakIt := func() {
			for _, n := range b.Server.Nodes() {
				if strings.HasPrefix(n.Path, "/a/") {
					require.NoError(b, inspect.Break(b.Context(), other, n.Path))
				}
			}
		}
		_, err = multi(b.T, mutex(b.T, c, "/a"), breaking{mutex(b.T, c, "/b"), breakIt, cancel}).Acquire(ctx)
		require.ErrorIs(b, err, context.Canceled)
		require.ErrorIs(b, err, coord.ErrLost)
	})
}

func TestF56ACallThatHasWaitedIsNotRefusedWhenItsLocalQueueJoinsAgain(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := mutex(b.T, b.Open(), "/lock", lock.LocalQueue(2, time.Hour))
		h, err := m.Acquire(b.Context())
		require.NoError(b, err)
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

func TestF56AMultiLockThatHasWaitedIsNotRefused(t *testing.T) {
	for name, met := range map[string]struct{ held, foreign, lost string }{
		"by a lock that it asks for later": {held: "/a", foreign: "/b"},
		"when it begins again":             {held: "/b", foreign: "/a", lost: "/a/"},
	} {
		t.Run(name, func(t *testing.T) {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				c, other := b.Open(), b.Open()
				h, err := mutex(b.T, other, met.held).Acquire(b.Context())
				require.NoError(b, err)
				ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
				defer cancel()
				done := acquireAll(ctx, multi(b.T, mutex(b.T, c, "/a"), mutex(b.T, c, "/b")))
				time.Sleep(time.Second)
				own := b.Server.Nodes()
				remove := b.Foreign(met.foreign)
				for _, n := range own {
					if met.lost != "" && strings.HasPrefix(n.Path, met.lost) {
						require.NoError(b, inspect.Break(b.Context(), other, n.Path))
					}
				}
				require.NoError(b, h.Release(b.Context()))
				time.Sleep(time.Minute)
				require.Empty(b, done)
				remove()
				got := <-done
				require.NoError(b, got.err)
				require.NoError(b, got.group.Release(b.Context()))
			})
		})
	}
}
