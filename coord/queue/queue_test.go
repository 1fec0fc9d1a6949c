package queue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestAConsumerAloneReceivesInOrder(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		q := newQueue(t, coordtest.Open(t, w.ConnectString()), w.Path("q"))
		for i := range 100 {
			put(t, q, fmt.Sprint(i))
		}
		require.Equal(t, 100, length(t, q))
		for i := range 100 {
			item := receive(t, q)
			require.Equal(t, fmt.Sprint(i), string(item.Data))
			require.Equal(t, queue.DefaultPriority, item.Priority)
			require.Equal(t, 1, item.Deliveries)
			ack(t, item)
		}
		require.Zero(t, length(t, q))
	})
}

func TestAWaitingConsumerIsWokenByAPut(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		q := newQueue(t, coordtest.Open(t, w.ConnectString()), w.Path("q"))
		got := coordtest.Go(func() *queue.Item {
			item, err := q.Receive(context.Background())
			if err != nil {
				t.Error(err)
			}
			return item
		})
		other := newQueue(t, coordtest.Open(t, w.ConnectString()), w.Path("q"))
		put(t, other, "late")
		item := zktest.Receive(t, patience, got, "the consumer sleeps on")
		require.Equal(t, "late", string(item.Data))
		ack(t, item)
	})
}

func TestLowerPrioritiesComeFirstAndBatchesStayTogether(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		q := newQueue(t, coordtest.Open(t, w.ConnectString()), w.Path("q"))
		put(t, q, "ordinary")
		require.NoError(t, q.Put(t.Context(), []byte("idle"), queue.WithPriority(999)))
		require.NoError(t, q.PutBatch(t.Context(), [][]byte{[]byte("urgent 1"), []byte("urgent 2")}, queue.WithPriority(0)))
		seen, err := q.Peek(t.Context())
		require.NoError(t, err)
		require.Equal(t, "urgent 1", string(seen.Data))
		for _, want := range []string{"urgent 1", "urgent 2", "ordinary", "idle"} {
			data, err := q.Take(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, string(data))
		}
		require.ErrorIs(t, coordtest.Err(q.Peek(t.Context())), queue.ErrEmpty)
	})
}

func TestWhatCannotBeRightIsRefused(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.T
		c := b.Open()
		require.ErrorIs(t, coordtest.Err(queue.New(c, "relative")), coord.ErrInvalid)
		require.ErrorIs(t, coordtest.Err(queue.New(c, "/q", queue.WithDeadLetters(0))), coord.ErrInvalid)
		require.ErrorIs(t, coordtest.Err(queue.New(c, "/q", nil)), coord.ErrInvalid)
		require.ErrorIs(t, coordtest.Err(queue.New(nil, "/q")), coord.ErrInvalid)
		q := b.queue(c)
		require.ErrorIs(t, q.Put(b.Context(), nil, nil), coord.ErrInvalid)
		require.ErrorIs(t, q.Put(b.Context(), nil, queue.WithPriority(1000)), coord.ErrInvalid)
		require.ErrorIs(t, q.Put(b.Context(), nil, queue.WithPriority(-1)), coord.ErrInvalid)
		require.ErrorIs(t, q.Put(b.Context(), make([]byte, 1<<20)), coord.ErrTooLarge)
		require.NoError(t, q.PutBatch(b.Context(), nil))
		put(t, q, "still works")
	})
}

func TestReceiveAndTakeEndWithTheirContext(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.T
		q := b.queue(b.Open())
		for name, wait := range map[string]func(context.Context) error{
			"receive": func(ctx context.Context) error { _, err := q.Receive(ctx); return err },
			"take":    func(ctx context.Context) error { _, err := q.Take(ctx); return err },
		} {
			ctx, cancel := context.WithTimeout(b.Context(), time.Second)
			begun := time.Now()
			require.ErrorIs(t, wait(ctx), context.DeadlineExceeded, name)
			require.Equal(t, time.Second, time.Since(begun), name)
			cancel()
		}
		cut := b.Server.Partition(zkembed.Cut{})
		require.ErrorIs(t, q.Put(b.Within(time.Second), nil), context.DeadlineExceeded)
		cut.Heal()
	})
}

func TestANackedItemComesBackInItsPlaceAndIsCounted(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.T
		q := b.queue(b.Open())
		put(t, q, "a", "b")
		item := receive(t, q)
		require.NoError(t, item.Nack(b.Context(), 0))
		require.ErrorIs(t, item.Ack(b.Context()), queue.ErrStale)
		<-item.Done()
		again := b.queue(b.Open())
		item = receive(t, again)
		require.Equal(t, "a", string(item.Data))
		require.Equal(t, 2, item.Deliveries)
		ack(t, item)
		require.ErrorIs(t, item.Ack(b.Context()), queue.ErrStale, "once")
		require.Equal(t, 1, length(t, again))
	})
}

func TestAnItemNackedWithADelayComesBackAfterIt(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.T
		q := b.queue(b.Open())
		put(t, q, "a")
		begun := time.Now()
		require.NoError(t, receive(t, q).Nack(b.Context(), 10*time.Second))
		item := receive(t, b.queue(b.Open()))
		require.Equal(t, 10*time.Second, time.Since(begun))
		require.Equal(t, 2, item.Deliveries)
		ack(t, item)
	})
}

func TestAnItemOfAConsumerThatDiedComesBack(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.T
		dying := b.Open()
		q, other := b.queue(dying), b.queue(b.Open())
		put(t, q, "a")
		item := receive(t, q)
		got := coordtest.Go(func() *queue.Item { return receive(t, other) })
		synctest.Wait()
		require.Empty(t, got)
		require.NoError(t, b.Server.ExpireSession(dying.SessionID()))
		again := <-got
		require.Equal(t, "a", string(again.Data))
		require.Equal(t, 2, again.Deliveries)
		<-item.Done()
		require.ErrorIs(t, item.Err(), coord.ErrSessionExpired)
		require.ErrorIs(t, item.Ack(b.Context()), queue.ErrStale)
		require.ErrorIs(t, item.Nack(b.Context(), 0), queue.ErrStale)
		require.ErrorIs(t, item.Nack(b.Context(), time.Second), queue.ErrStale)
		require.NoError(t, again.Err())
		require.Equal(t, 1, length(t, other))
		ack(t, again)
	})
}

// The claim was broken, another consumer has the item, and the first does
// not know.
func TestAnAckOfAnItemThatAnotherHasRemovesNothing(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.T
		c := b.Open()
		q, other := b.queue(c), b.queue(b.Open())
		put(t, q, "a")
		stale := receive(t, q)
		late := b.Server.Inject(zkembed.Match{Session: c.SessionID()}, zkembed.DelayEvents(time.Minute))
		taken, err := c.Children(b.Context(), "/q/taken")
		require.NoError(t, err)
		require.Len(t, taken, 1)
		require.NoError(t, other.Put(b.Context(), []byte("b")))
		admin := b.Open()
		require.NoError(t, inspect.Break(b.Context(), admin, "/q/taken/"+taken[0]))
		item := receive(t, other)
		require.Equal(t, "a", string(item.Data))
		require.NoError(t, stale.Err(), "it does not know")
		require.ErrorIs(t, stale.Ack(b.Context()), queue.ErrStale)
		late.Remove()
		time.Sleep(2 * time.Minute)
		require.NoError(t, item.Err(), "the other's claim was removed")
		require.Equal(t, 2, length(t, other))
		ack(t, item)
	})
}

func TestLostRepliesNeitherLoseNorDoubleAnything(t *testing.T) {
	for _, fault := range []zkembed.Action{zkembed.LoseReply(), zkembed.Drop()} {
		inBubble(t, func(b bubble) {
			t := b.T
			q := b.queue(b.Open())
			put(t, q, "first")
			strike := func() *zkembed.Fault {
				return b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1}, fault)
			}
			f := strike()
			put(t, q, "second")
			require.Equal(t, 1, f.Fired())
			require.Equal(t, 2, length(t, q))

			f = strike()
			item := receive(t, q)
			require.Equal(t, 1, f.Fired())
			require.Equal(t, "first", string(item.Data))

			f = strike()
			ack(t, item)
			require.Equal(t, 1, f.Fired())
			require.Equal(t, 1, length(t, q))

			f = strike()
			data, err := q.Take(b.Context())
			require.NoError(t, err)
			require.Equal(t, 1, f.Fired())
			require.Equal(t, "second", string(data))
			require.Zero(t, length(t, q))
			taken, err := b.Open().Children(b.Context(), "/q/taken")
			require.NoError(t, err)
			require.Empty(t, taken)
		})
	}
}

func TestAReceiveThatIsCancelledMidWayLeavesNoClaim(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.T
		c := b.Open()
		q := b.queue(c)
		put(t, q, "a")
		slow := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1}, zkembed.DelayReply(time.Second))
		require.ErrorIs(t, coordtest.Err(q.Receive(b.Within(500*time.Millisecond))), context.DeadlineExceeded)
		require.Equal(t, 1, slow.Fired())
		time.Sleep(2 * time.Second)
		item := receive(t, b.queue(b.Open()))
		require.Equal(t, "a", string(item.Data))
		ack(t, item)
	})
}

func TestAnItemDeliveredTooOftenIsMovedToTheDeadLetters(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.T
		c := b.Open()
		q := b.queue(c, queue.WithDeadLetters(2))
		require.NoError(t, q.Put(b.Context(), []byte("poison"), queue.WithPriority(7)))
		put(t, q, "good")
		for range 2 {
			item := receive(t, q)
			require.Equal(t, "poison", string(item.Data))
			require.NoError(t, item.Nack(b.Context(), 0))
			q = b.queue(c, queue.WithDeadLetters(2))
		}
		item := receive(t, q)
		require.Equal(t, "good", string(item.Data))
		ack(t, item)
		require.Zero(t, length(t, q))
		dead := newQueue(t, c, "/q/dead")
		item = receive(t, dead)
		require.Equal(t, "poison", string(item.Data))
		require.Equal(t, 7, item.Priority)
		ack(t, item)
	})
}

func TestEntriesOfUnknownShapeAreIgnored(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.T
		c := b.Open()
		q := b.queue(c)
		put(t, q, "a")
		for _, name := range []string{"garbage", "entry-", "entry-1-2", "entry-100-00000000xx"} {
			require.NoError(t, c.Create(b.Context(), "/q/entries/"+name, nil))
		}
		item := receive(t, q)
		require.Equal(t, "a", string(item.Data))
		ack(t, item)
		require.ErrorIs(t, coordtest.Err(q.Receive(b.Within(time.Second))), context.DeadlineExceeded)
	})
}

func TestCloseGivesItemsBackAndLeavesNothing(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.T
		c := b.Open()
		q := b.queue(c)
		put(t, q, "a", "b", "c")
		held, parked := receive(t, q), receive(t, q)
		require.NoError(t, parked.Nack(b.Context(), time.Hour))
		require.NoError(t, q.Close(b.Context()))
		for _, node := range b.Server.Nodes() {
			require.NotEqual(t, c.SessionID(), node.Stat.EphemeralOwner, node.Path)
		}
		require.ErrorIs(t, held.Ack(b.Context()), queue.ErrStale)
		require.ErrorIs(t, q.Put(b.Context(), nil), queue.ErrClosed)
		require.ErrorIs(t, coordtest.Err(q.Receive(b.Context())), queue.ErrClosed)
		require.ErrorIs(t, coordtest.Err(q.Take(b.Context())), queue.ErrClosed)
		require.NoError(t, q.Close(b.Context()))
		require.Equal(t, 3, length(t, q))
	})
}

func TestRequestsPerItem(t *testing.T) {
	inBubble(t, func(b bubble) {
		t := b.T
		c := b.Open(coord.WithSessionTimeout(40 * time.Second))
		q := b.queue(c)
		put(t, q, "first")
		ack(t, receive(t, q))
		count := func(f func()) zkembed.Counts {
			before := b.Server.SessionCounts(c.SessionID())
			f()
			counts := b.Server.SessionCounts(c.SessionID()).Since(before)
			t.Log(counts)
			return counts
		}
		const n = 320
		counts := count(func() {
			for range n {
				put(t, q, "x")
			}
		})
		require.Equal(t, zkembed.Counts{zkembed.OpMulti: n}, counts)
		counts = count(func() {
			for range n {
				ack(t, receive(t, q))
			}
		})
		// Read, claim and ack, and a list for every eight items, after four in
		// quick succession.
		require.LessOrEqual(t, counts.Total(), 3*n+n/8+9)
		for range n {
			put(t, q, "x")
		}
		counts = count(func() {
			for range n {
				require.NoError(t, coordtest.Err(q.Take(b.Context())))
			}
		})
		require.LessOrEqual(t, counts.Total(), 2*n+n/8+9)
	})
}

func TestMain(m *testing.M) { zktest.Main(m) }

const patience = 30 * time.Second

func newQueue(t *testing.T, c *coord.Client, path string, opts ...queue.Option) *queue.Queue {
	t.Helper()
	q, err := queue.New(c, path, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	return q
}

func put(t *testing.T, q *queue.Queue, items ...string) {
	t.Helper()
	for _, item := range items {
		require.NoError(t, q.Put(t.Context(), []byte(item)))
	}
}

func receive(t *testing.T, q *queue.Queue) *queue.Item {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	item, err := q.Receive(ctx)
	require.NoError(t, err)
	return item
}

func ack(t *testing.T, item *queue.Item) {
	t.Helper()
	require.NoError(t, item.Ack(context.Background()))
}

func length(t *testing.T, q *queue.Queue) int {
	t.Helper()
	n, err := q.Len(t.Context())
	require.NoError(t, err)
	return n
}

func (b bubble) queue(c *coord.Client, opts ...queue.Option) *queue.Queue {
	return newQueue(b.T, c, "/q", opts...)
}

// receive hands the next item over, or nothing when the test ends.
func (b bubble) receive(q *queue.Queue, got chan<- *queue.Item) {
	if item, err := q.Receive(b.Context()); err == nil {
		got <- item
	}
}

const T = coordtest.T

// bubble is a test in virtual time, with what the tests of this package ask for
// there.
type bubble struct{ coordtest.Bubble }

func inBubble(t *testing.T, f func(b bubble)) {
	t.Helper()
	coordtest.InBubble(t, func(b coordtest.Bubble) { f(bubble{b}) })
}

func isUnconfirmed(err error) bool { return errors.Is(err, coord.ErrUnconfirmed) }
