package recipe_test

import (
	"context"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/barrier"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

// vain is a wait that ends in vain, at /r, where another client, called ID in
// the error, has done something before.
type vain struct {
	before func(b coordtest.Bubble, holder *coord.Client)
	wait   func(ctx context.Context, c *coord.Client) error
	says   string
}

// made is what a constructor returned.
func made[R any](b coordtest.Bubble) func(R, error) R {
	return func(r R, err error) R {
		require.NoError(b, err)
		return r
	}
}

func takesNumber(b coordtest.Bubble, c *coord.Client, opts ...slots.Option) *slots.Slot {
	return made[*slots.Slot](b)(made[*slots.Slots](b)(slots.New(c, "/r", 2, opts...)).Acquire(b.Context()))
}

func waitsForNumber(opts ...slots.Option) func(ctx context.Context, c *coord.Client) error {
	return func(ctx context.Context, c *coord.Client) error {
		s, err := slots.New(c, "/r", 2, opts...)
		if err == nil {
			_, err = s.Acquire(ctx)
		}
		return err
	}
}

func receives(ctx context.Context, c *coord.Client) error {
	q, err := queue.New(c, "/r")
	if err == nil {
		_, err = q.Receive(ctx)
	}
	return err
}

func enters(ctx context.Context, c *coord.Client) error {
	d, err := doublebarrier.New(c, "/r", 3)
	if err == nil {
		_, err = d.Enter(ctx)
	}
	return err
}

func acquiresLease(ctx context.Context, c *coord.Client) error {
	s, err := semaphore.New(c, "/r", 2)
	if err == nil {
		_, err = s.Acquire(ctx)
	}
	return err
}

func holdsLeases(n int) func(b coordtest.Bubble, holder *coord.Client) {
	return func(b coordtest.Bubble, holder *coord.Client) {
		for range n {
			require.NoError(b, acquiresLease(b.Context(), holder))
		}
	}
}

var vains = map[string]vain{
	"lock": {
		func(b coordtest.Bubble, holder *coord.Client) {
			_ = made[*coord.Hold](b)(made[*lock.Mutex](b)(lock.New(holder, "/r")).Acquire(b.Context()))
		},
		func(ctx context.Context, c *coord.Client) error {
			m, err := lock.New(c, "/r")
			if err == nil {
				_, err = m.Acquire(ctx)
			}
			return err
		},
		`acquire /r: context deadline exceeded; held by "ID"`,
	},
	"semaphore": {holdsLeases(2), acquiresLease, `acquire /r: context deadline exceeded; held by "ID", "ID"`},
	"semaphore, second in the queue": {
		func(b coordtest.Bubble, holder *coord.Client) {
			holdsLeases(2)(b, holder)
			other := b.Open()
			coordtest.Go(func() error { return acquiresLease(b.Context(), other) })
			time.Sleep(time.Second)
		},
		acquiresLease, `acquire /r: context deadline exceeded; held by "ID", "ID"`,
	},
	"slots": {
		func(b coordtest.Bubble, holder *coord.Client) {
			takesNumber(b, holder)
			takesNumber(b, holder)
		},
		waitsForNumber(), `acquire /r: context deadline exceeded; held by "ID", "ID"`,
	},
	"slots, one of them kept": {
		func(b coordtest.Bubble, holder *coord.Client) {
			takesNumber(b, holder)
			require.NoError(b, takesNumber(b, holder, slots.Durable("away", time.Hour)).Release(b.Context()))
		},
		waitsForNumber(),
		`acquire /r: context deadline exceeded; held by "ID"; 1 of 2 numbers, and the rest is kept for owners that are away`,
	},
	"slots, one's own": {
		func(b coordtest.Bubble, holder *coord.Client) { takesNumber(b, holder, slots.Durable("me", 0)) },
		waitsForNumber(slots.Durable("me", 0)),
		`acquire /r: context deadline exceeded; the number of "me", 0, is held by "ID"`,
	},
	"barrier": {
		func(b coordtest.Bubble, holder *coord.Client) {
			require.NoError(b, made[*barrier.Barrier](b)(barrier.New(holder, "/r")).Set(b.Context()))
		},
		func(ctx context.Context, c *coord.Client) error {
			gate, err := barrier.New(c, "/r")
			if err == nil {
				err = gate.Wait(ctx)
			}
			return err
		},
		`wait /r: context deadline exceeded; closed by "ID"`,
	},
	"double barrier": {
		func(b coordtest.Bubble, holder *coord.Client) {
			coordtest.Go(func() error { return enters(b.Context(), holder) })
			time.Sleep(time.Second)
		},
		enters, `enter /r: context deadline exceeded; 2 of 3 have come`,
	},
	"double barrier, to leave it": {
		func(b coordtest.Bubble, holder *coord.Client) {
			coordtest.Go(func() error { return enters(b.Context(), holder) })
			coordtest.Go(func() error { return enters(b.Context(), holder) })
			time.Sleep(time.Second)
		},
		func(ctx context.Context, c *coord.Client) error {
			d, err := doublebarrier.New(c, "/r", 3)
			if err != nil {
				return err
			}
			m, err := d.Enter(ctx)
			if err != nil {
				return err
			}
			return m.Leave(ctx)
		},
		`leave /r: context deadline exceeded; 2 of 3 have not finished: "ID", "ID"`,
	},
	"empty queue": {
		func(coordtest.Bubble, *coord.Client) {}, receives, `receive /r: context deadline exceeded; the queue was empty`,
	},
	"queue whose items are taken": {
		func(b coordtest.Bubble, holder *coord.Client) {
			require.NoError(b, made[*queue.Queue](b)(queue.New(holder, "/r")).Put(b.Context(), []byte("item")))
			require.NoError(b, receives(b.Context(), holder))
		},
		receives, `receive /r: context deadline exceeded; 1 in the queue, 1 of them held by "ID"`,
	},
}

func TestAWaitThatItsDeadlineEndsSaysWhatItWasFor(t *testing.T) {
	coordtest.Cases(t, vains, func(t *testing.T, v vain) {
		coordtest.InBubble(t, func(b coordtest.Bubble) {
			holder := b.Open()
			v.before(b, holder)
			waiter := b.Open()
			begun := time.Now()
			err := v.wait(b.Within(5*time.Second), waiter)
			require.ErrorIs(b, err, context.DeadlineExceeded)
			require.EqualError(b, err, strings.ReplaceAll(v.says, "ID", holder.Info().Identity))
			require.LessOrEqual(b, time.Since(begun), 5*time.Second+100*time.Millisecond)
		})
	})
}

func TestABarrierAtThePathOfALockIsRefused(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		h := made[*coord.Hold](b)(made[*lock.Mutex](b)(lock.New(c, "/r")).Acquire(b.Context()))
		err := made[*barrier.Barrier](b)(barrier.New(c, "/r")).Wait(b.Context())
		require.ErrorIs(b, err, barrier.ErrNoBarrier)
		require.ErrorContains(b, err, "wait /r: ")
		err = enters(b.Context(), c)
		require.ErrorIs(b, err, coord.ErrForeign)
		require.ErrorContains(b, err, "enter /r: ")
		require.ErrorContains(b, err, path.Base(h.Node()))
		names, err := c.Children(b.Context(), "/r")
		require.NoError(b, err)
		require.Len(b, names, 1, "nothing is left there")
	})
}
