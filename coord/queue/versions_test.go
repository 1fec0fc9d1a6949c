package queue_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
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
		require.ErrorIs(b, coordtest.Err(q.Take(b.Within(T))), context.DeadlineExceeded)
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
		require.ErrorIs(b, coordtest.Err(q.TryTake(b.Context())), queue.ErrEmpty)
		b.Server.Inject(zkembed.Match{Session: c.SessionID()}, zkembed.DelayEvents(time.Second))
		put(b.T, producer, "a")
		data, err := q.TryTake(b.Context())
		require.NoError(b, err)
		require.Equal(b, "a", string(data))
	})
}

// restricted puts an item for which others have but these permissions.
func (b bubble) restricted(perms string) {
	b.Helper()
	c := b.Open(coord.WithACL("world:anyone:" + perms))
	require.NoError(b, coordtest.Err(c.Txn(b.Context(), coord.CreateOp("/q/entries/entry-100-", []byte("secret"), coord.Sequential))))
}

func TestItemsThatMayNotBeHadDoNotKeepThoseBehindThemWaiting(t *testing.T) {
	for name, perms := range map[string]string{
		"not to be read":    "wd",
		"not to be written": "r",
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				c := b.Open()
				q := b.queue(c)
				put(b.T, q, "first")
				ack(b.T, receive(b.T, q)) // the directories
				for range 5 {
					b.restricted(perms)
				}
				_, err := q.TryReceive(b.Context())
				require.ErrorIs(b, err, queue.ErrEmpty)
				require.ErrorIs(b, err, coord.ErrNoAuth)
				put(b.T, q, "a", "b")
				for _, want := range []string{"a", "b"} {
					item := receive(b.T, q)
					require.Equal(b, want, string(item.Data))
					ack(b.T, item)
				}
				require.Equal(b, 5, length(b.T, q))
			})
		})
	}
}

// What others may not have costs little, and is tried again.
func TestAnItemThatMayNotBeHadIsTriedAgainLater(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		q := b.queue(c)
		put(b.T, q, "first")
		ack(b.T, receive(b.T, q))
		put(b.T, q, "a")
		refused := b.Server.Inject(zkembed.Match{
			Session: c.SessionID(), Ops: []zkembed.Op{zkembed.OpGetData}, PathPrefix: "/q/entries/",
		}, zkembed.ReplyError(zkembed.CodeNoAuth))
		received := make(chan *queue.Item, 1)
		go func() {
			item, err := q.Receive(b.Context())
			if err != nil {
				b.Error(err)
			}
			received <- item
		}()
		time.Sleep(time.Minute)
		require.Empty(b, received)
		require.LessOrEqual(b, refused.Fired(), 7)
		refused.Remove()
		time.Sleep(time.Minute)
		require.Len(b, received, 1)
		ack(b.T, <-received)
	})
}

// The servers keep the former session's nodes for a while: the claims, and the
// node that counts the consumer.
func TestAConsumerAloneReceivesInOrderAlsoJustAfterItsSessionWasLost(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, former := b.Open(), b.Open()
		q, p := b.queue(c), b.queue(former)
		require.ErrorIs(b, coordtest.Err(q.Receive(b.Within(time.Second))), context.DeadlineExceeded) // has waited, and so has a node
		own := "/q/consumers/" + onlyName(b.T, c, "/q/consumers")
		put(b.T, p, "claimed in the former session", "a", "b", "c", "d", "e", "f", "g", "h")
		entries, err := c.Children(b.Context(), "/q/entries")
		require.NoError(b, err)
		_, err = former.Txn(b.Context(),
			coord.CreateOp(own+"-former", nil, coord.Ephemeral),
			coord.CreateOp("/q/taken/"+slices.Min(entries), nil, coord.Ephemeral))
		require.NoError(b, err)
		got := ""
		for range 8 {
			item := receive(b.T, q)
			got += string(item.Data)
			ack(b.T, item)
		}
		require.Equal(b, "abcdefgh", got)
		b.Close(c, former)
	})
}

// The first attempt is lost, and the repeat refused, since the claim was broken
// and another has the item: the first cannot be carried out any more.
func TestANackThatIsStaleIsNotUnconfirmed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		q := b.queue(c)
		put(b.T, q, "a")
		item := receive(b.T, q)
		lost := b.Server.Inject(zkembed.Match{
			Session: c.SessionID(), Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/q/entries/", Times: 1,
		}, zkembed.Drop())
		done := make(chan error, 1)
		go func(item *queue.Item) { done <- item.Nack(b.Context(), 0) }(item)
		<-lost.Struck()
		hung := b.Server.Inject(zkembed.Match{
			Session: c.SessionID(), Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/q/entries/", Times: 1,
		}, zkembed.Delay(time.Second))
		<-hung.Struck()
		require.NoError(b, inspect.Break(b.Context(), admin, "/q/taken/"+onlyName(b.T, admin, "/q/taken")))
		item = receive(b.T, b.queue(admin))
		err := <-done
		require.ErrorIs(b, err, queue.ErrStale)
		require.NotErrorIs(b, err, coord.ErrUnconfirmed)
		ack(b.T, item)
	})
}
