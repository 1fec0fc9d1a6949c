package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Two claims of one item by this library are nodes of the same path and
// version: the version of the entry tells them from each other.
func TestANackOfAnItemThatAnotherHasGivesNothingBack(t *testing.T) {
	for name, nack := range map[string]func(context.Context, *queue.Item) error{
		"at once":      func(ctx context.Context, i *queue.Item) error { return i.Nack(ctx, 0) },
		"with a delay": func(ctx context.Context, i *queue.Item) error { return i.Nack(ctx, time.Second) },
	} {
		inBubble(t, func(b bubble) {
			c, admin := b.Open(), b.Open()
			q, other := b.queue(c), b.queue(b.Open())
			put(b.T, q, "a")
			stale := receive(b.T, q)
			b.Server.Inject(zkembed.Match{Session: c.SessionID()}, zkembed.DelayEvents(10*time.Minute))
			require.NoError(b, inspect.Break(b.Context(), admin, "/q/taken/"+onlyName(b.T, admin, "/q/taken")))
			item := receive(b.T, other)
			require.NoError(b, stale.Err(), "it does not know")
			require.ErrorIs(b, nack(b.Context(), stale), queue.ErrStale, name)
			time.Sleep(T)
			require.NoError(b, item.Err(), "%s: the other's claim was removed", name)
			ack(b.T, item)
		})
	}
}

// between has one consumer receive the only item and give it back after another
// has read it and before it claims or removes it.
func (b bubble) between(slow *coord.Client, quick *queue.Queue) {
	late := b.Server.Inject(zkembed.Match{
		Session: slow.SessionID(), Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/q/taken/", Times: 1,
	}, zkembed.Delay(time.Second))
	go func() {
		<-late.Struck()
		item, err := quick.Receive(b.Context())
		if err == nil {
			err = item.Nack(b.Context(), 0)
		}
		if err != nil {
			b.Error(err)
		}
	}()
}

func TestADeliveryBetweenTheReadingAndTheClaimIsCounted(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		q, quick := b.queue(c), b.queue(b.Open())
		put(b.T, quick, "a")
		b.between(c, quick)
		item := receive(b.T, q)
		require.Equal(b, 2, item.Deliveries)
		ack(b.T, item)
		require.Zero(b, length(b.T, quick))
	})
}

func TestATakeDeliversNothingBeyondTheLimitOfDeliveries(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		q, quick := b.queue(c, queue.WithDeadLetters(1)), b.queue(b.Open(), queue.WithDeadLetters(1))
		put(b.T, quick, "poison")
		b.between(c, quick)
		ctx, cancel := context.WithTimeout(b.Context(), T)
		defer cancel()
		_, err := q.Take(ctx)
		require.ErrorIs(b, err, context.DeadlineExceeded)
		dead := newQueue(b.T, c, "/q/dead")
		data, err := dead.Take(b.Context())
		require.NoError(b, err)
		require.Equal(b, "poison", string(data))
	})
}

// What was put elsewhere before the call is found, though the news of it are
// still on their way.
func TestATryFindsWhatWasPutBeforeIt(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		q, producer := b.queue(c), b.queue(b.Open())
		_, err := q.TryTake(b.Context())
		require.ErrorIs(b, err, queue.ErrEmpty)
		b.Server.Inject(zkembed.Match{Session: c.SessionID()}, zkembed.DelayEvents(time.Second))
		put(b.T, producer, "a")
		data, err := q.TryTake(b.Context())
		require.NoError(b, err)
		require.Equal(b, "a", string(data))
	})
}
