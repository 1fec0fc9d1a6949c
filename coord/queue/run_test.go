package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// The context is a signal's, which comes while the item is under way.
func TestF97AnItemUnderWayWhenTheSignalComesIsDoneOnce(t *testing.T) {
	for name, consume := range map[string]func(ctx context.Context, q *queue.Queue, work func()) error{
		"receive and ack": func(ctx context.Context, q *queue.Queue, work func()) error {
			for {
				item, err := q.Receive(ctx)
				if err != nil {
					return err
				}
				work()
				if err := item.Ack(ctx); err != nil {
					return err
				}
			}
		},
		"batches": func(ctx context.Context, q *queue.Queue, work func()) error {
			for {
				items, err := q.ReceiveBatch(ctx, 2)
				if err != nil {
					return err
				}
				work()
				if err := q.AckBatch(ctx, items...); err != nil {
					return err
				}
			}
		},
		"run": func(ctx context.Context, q *queue.Queue, work func()) error {
			return q.Run(ctx, func(ctx context.Context, _ *queue.Item) error {
				work()
				return ctx.Err()
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, w *zktest.World) {
				q := newQueue(t, coordtest.Open(t, w.ConnectString()), w.Path("q"))
				require.NoError(t, q.PutBatch(t.Context(), [][]byte{[]byte("mail"), []byte("mail")}))
				ctx, stop := context.WithCancel(t.Context())
				sent := length(t, q)
				err := consume(ctx, q, stop)
				sent -= length(t, q)
				require.ErrorIs(t, err, context.Canceled)
				require.NotErrorIs(t, err, coord.ErrUnconfirmed)
				require.Equal(t, map[bool]int{true: 2, false: 1}[name == "batches"], sent)
			})
		})
	}
}

// ends are the ways to end a delivery, and how many items are left then.
var ends = map[string]struct {
	by   func(*queue.Item, context.Context) error
	left int
}{
	"ack":             {settlements["ack"], 0},
	"nack":            {settlements["nack"], 1},
	"nack with delay": {settlements["nack with delay"], 1},
	"bury":            {func(i *queue.Item, ctx context.Context) error { return i.Bury(ctx, "bad") }, 0},
}

func TestADeliveryIsEndedAlsoWithAContextThatHasEnded(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				_, q := b.consumer()
				put(b, q, "a")
				item := receive(b, q)
				ctx, cancel := context.WithCancel(b.Context())
				cancel()
				require.NoError(b, end.by(item, ctx))
				require.Equal(b, end.left, length(b, q))
			})
		})
	}
}

// The first request is on its way: it makes the node that shows the outcome, or
// reads the item.
func TestADeliveryIsEndedAlsoWhenItsContextEndsBeforeThatIsSent(t *testing.T) {
	for name, end := range ends {
		if name == "nack with delay" {
			continue // which has one request only
		}
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				c, q := b.consumer()
				put(b, b.queue(b.Open()), "a")
				item := receive(b, q)
				ctx, cancel := context.WithCancel(b.Context())
				slow := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Times: 1}, zkembed.Delay(10*time.Millisecond))
				done := coordtest.Go(func() error { return end.by(item, ctx) })
				<-slow.Struck()
				cancel()
				require.NoError(b, <-done)
				require.Equal(b, end.left, length(b, q))
			})
		})
	}
}

func TestTheEndOfADeliveryOutlastsItsContextNotForLong(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				c, q := b.consumer()
				put(b, q, "a")
				item := receive(b, q)
				b.Server.Inject(zkembed.Match{Session: c.Info().SessionID}, zkembed.Hang())
				ctx := b.Within(time.Second)
				begun := time.Now()
				require.ErrorIs(b, end.by(item, ctx), coord.ErrUnconfirmed)
				require.LessOrEqual(b, time.Since(begun), time.Second+100*time.Millisecond)
			})
		})
	}
}

// runOnce runs a queue for one item, and returns the report.
func (b bubble) runOnce(q *queue.Queue, reports <-chan error, f queue.Func) error {
	b.Helper()
	ctx, stop := context.WithCancel(b.Context())
	require.ErrorIs(b, q.Run(ctx, func(ctx context.Context, item *queue.Item) error {
		stop()
		return f(ctx, item)
	}), context.Canceled)
	return zktest.Receive(b, time.Hour, reports, "a report")
}

func TestRunAcknowledgesWhatItsFunctionHasDoneAndGivesBackWhatFailed(t *testing.T) {
	inBubble(t, func(b bubble) {
		reports := make(chan error, 1)
		c := b.Open()
		q := b.queue(c, queue.OnEnd(func(_ *queue.Item, err error) { reports <- err }), queue.DeadLetters(3))
		put(b, q, "a")
		failure := errors.New("no space left")
		given := time.Now()
		err := b.runOnce(q, reports, func(context.Context, *queue.Item) error { return failure })
		require.Equal(b, failure, err)
		err = b.runOnce(q, reports, func(_ context.Context, item *queue.Item) error {
			require.Equal(b, 2, item.Deliveries)
			require.InDelta(b, queue.DefaultBackoff, time.Since(given), float64(100*time.Millisecond))
			return nil
		})
		require.NoError(b, err)
		require.Zero(b, length(b, q))

		put(b, q, "b", "c", "d")
		require.NoError(b,
			b.runOnce(q, reports, func(ctx context.Context, item *queue.Item) error { return item.Bury(ctx, "bad") }))
		require.Equal(b, "bad", letters(b, q, 1)[0].Reason)
		require.NoError(b,
			b.runOnce(q, reports, func(ctx context.Context, item *queue.Item) error { return item.Nack(ctx, time.Hour) }))
		require.ErrorIs(b, b.runOnce(q, reports, func(ctx context.Context, item *queue.Item) error {
			require.NoError(b, b.Server.ExpireSession(item.Session()))
			<-ctx.Done()
			return context.Cause(ctx)
		}), queue.ErrStale)
	})
}

func TestRunRefusesWhatCannotBeRightAndEndsWithTheQueue(t *testing.T) {
	inBubble(t, func(b bubble) {
		q := b.queue(b.Open())
		require.ErrorIs(b, q.Run(b.Context(), nil), coord.ErrInvalid)
		require.ErrorIs(b, coordtest.Err(queue.New(b.Open(), "/q", queue.OnEnd(nil))), coord.ErrInvalid)
		err := q.Run(b.Within(time.Second), func(context.Context, *queue.Item) error { return nil })
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.ErrorContains(b, err, "run /q")
	})
}

// The panic goes through Run, to whoever called it, and the item goes back.
func TestAnItemWhoseFunctionPanicsGoesBack(t *testing.T) {
	inBubble(t, func(b bubble) {
		q := b.queue(b.Open())
		put(b, q, "a")
		require.PanicsWithValue(b, "bug", func() {
			_ = q.Run(b.Context(), func(context.Context, *queue.Item) error { panic("bug") })
		})
		item := receive(b, b.queue(b.Open()))
		require.Equal(b, 2, item.Deliveries)
	})
}
