package queue_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/recipe"
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
		got := coordtest.Go(func() *queue.Item { return receive(t, q) })
		other := newQueue(t, coordtest.Open(t, w.ConnectString()), w.Path("q"))
		put(t, other, "late")
		item := zktest.Receive(t, secondWaits, got, "the consumer sleeps on")
		require.Equal(t, "late", string(item.Data))
		ack(t, item)
	})
}

func TestLowerPrioritiesComeFirstAndBatchesStayTogether(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		q := newQueue(t, coordtest.Open(t, w.ConnectString()), w.Path("q"))
		put(t, q, "ordinary")
		require.NoError(t, q.Put(t.Context(), []byte("idle"), queue.Priority(999)))
		require.NoError(t, q.PutBatch(t.Context(), [][]byte{[]byte("urgent 1"), []byte("urgent 2")}, queue.Priority(0)))
		seen, err := q.Peek(t.Context())
		require.NoError(t, err)
		require.Equal(t, "urgent 1", string(seen.Data))
		for _, want := range []string{"urgent 1", "urgent 2", "ordinary", "idle"} {
			require.Equal(t, want, take(t, q))
		}
		require.ErrorIs(t, coordtest.Err(q.Peek(t.Context())), queue.ErrEmpty)
	})
}

func TestAnItemThatIsTooLargeIsRefusedAndNothingElseIsHarmed(t *testing.T) {
	inBubble(t, func(b bubble) {
		q := b.queue(b.Open())
		require.ErrorIs(b, q.Put(b.Context(), make([]byte, 1<<20)), coord.ErrTooLarge)
		require.NoError(b, q.PutBatch(b.Context(), nil))
		put(b, q, "still works")
	})
}

func TestANackedItemComesBackInItsPlaceAndIsCounted(t *testing.T) {
	inBubble(t, func(b bubble) {
		q := b.queue(b.Open())
		put(b, q, "a", "b")
		item := receive(b, q)
		require.NoError(b, item.Nack(b.Context(), 0))
		require.ErrorIs(b, item.Ack(b.Context()), queue.ErrStale)
		<-item.Done()
		time.Sleep(queue.DefaultBackoff)
		again := b.queue(b.Open())
		item = receive(b, again)
		require.Equal(b, "a", string(item.Data))
		require.Equal(b, 2, item.Deliveries)
		ack(b, item)
		require.ErrorIs(b, item.Ack(b.Context()), queue.ErrStale, "once")
		require.Equal(b, 1, length(b, again))
	})
}

func TestAnItemNackedWithADelayComesBackAfterIt(t *testing.T) {
	inBubble(t, func(b bubble) {
		q := b.queue(b.Open())
		put(b, q, "a")
		begun := time.Now()
		require.NoError(b, receive(b, q).Nack(b.Context(), 10*time.Second))
		item := receive(b, b.queue(b.Open()))
		require.Equal(b, 10*time.Second, time.Since(begun))
		require.Equal(b, 2, item.Deliveries)
		ack(b, item)
	})
}

func TestAnItemOfAConsumerThatDiedComesBack(t *testing.T) {
	inBubble(t, func(b bubble) {
		dying := b.Open()
		q, other := b.queue(dying), b.queue(b.Open())
		put(b, q, "a")
		item := receive(b, q)
		got := coordtest.Go(func() *queue.Item { return receive(b, other) })
		synctest.Wait()
		require.Empty(b, got)
		require.NoError(b, b.Server.ExpireSession(dying.Info().SessionID))
		again := <-got
		require.Equal(b, "a", string(again.Data))
		require.Equal(b, 2, again.Deliveries)
		<-item.Done()
		require.ErrorIs(b, item.Err(), coord.ErrSessionExpired)
		require.ErrorIs(b, item.Ack(b.Context()), queue.ErrStale)
		require.ErrorIs(b, item.Nack(b.Context(), 0), queue.ErrStale)
		require.ErrorIs(b, item.Nack(b.Context(), time.Second), queue.ErrStale)
		require.NoError(b, again.Err())
		require.Equal(b, 1, length(b, other))
		ack(b, again)
	})
}

func TestLostRepliesNeitherLoseNorDoubleAnything(t *testing.T) {
	for _, fault := range []zkembed.Action{zkembed.LoseReply(), zkembed.Drop()} {
		inBubble(t, func(b bubble) {
			q := b.queue(b.Open())
			put(b, q, "first")
			strike := func() *zkembed.Fault {
				return b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1}, fault)
			}
			f := strike()
			put(b, q, "second")
			require.Equal(b, 1, f.Fired())
			require.Equal(b, 2, length(b, q))

			f = strike()
			item := receive(b, q)
			require.Equal(b, "first", string(item.Data))
			require.Equal(b, 1, f.Fired())

			f = strike()
			ack(b, item)
			require.Equal(b, 1, f.Fired())
			require.Equal(b, 1, length(b, q))

			f = strike()
			require.Equal(b, "second", take(b, q))
			require.Equal(b, 1, f.Fired())
			require.Zero(b, length(b, q))
			require.Empty(b, children(b, b.Open(), "/q/taken"))
		})
	}
}

func TestAReceiveThatIsGivenUpOnTheWayLeavesNoClaim(t *testing.T) {
	for _, n := range []int{1, 6} {
		inBubble(t, func(b bubble) {
			c, q := b.consumer()
			putBatch(b, b.queue(b.Open()), 6)
			slow := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}},
				zkembed.DelayReply(time.Second))
			require.ErrorIs(b, coordtest.Err(q.ReceiveBatch(b.Within(time.Second/2), n)), context.DeadlineExceeded)
			require.Equal(b, 1, slow.Fired())
			time.Sleep(10 * time.Second)
			require.Empty(b, children(b, c, "/q/taken"))
			serve(b, b.queue(b.Open()), "0")
		})
	}
}

func TestEntriesOfUnknownShapeAreIgnored(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, q := b.consumer()
		put(b, q, "a")
		for _, name := range []string{"garbage", "entry-", "entry-1-2", "entry-100-00000000xx"} {
			require.NoError(b, c.Create(b.Context(), "/q/entries/"+name, nil))
		}
		serve(b, q, "a")
		require.ErrorIs(b, coordtest.Err(q.Receive(b.Within(time.Second))), context.DeadlineExceeded)
	})
}

func TestCloseGivesItemsBackAndLeavesNothing(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, q := b.consumer()
		put(b, q, "a", "b", "c")
		held, parked := receive(b, q), receive(b, q)
		require.NoError(b, parked.Nack(b.Context(), time.Hour))
		require.NoError(b, q.Close(b.Context()))
		b.nothingOf(c)
		require.ErrorIs(b, held.Ack(b.Context()), queue.ErrStale)
		require.ErrorIs(b, q.Put(b.Context(), nil), queue.ErrClosed)
		require.ErrorIs(b, coordtest.Err(q.Receive(b.Context())), queue.ErrClosed)
		require.ErrorIs(b, coordtest.Err(q.Take(b.Context())), queue.ErrClosed)
		require.NoError(b, q.Close(b.Context()))
		require.Equal(b, 3, length(b, q))
	})
}

func TestRequestsPerItem(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, q := b.quiet()
		put(b, q, "first")
		ack(b, receive(b, q))
		count := func(f func()) zkembed.Counts {
			before := b.Server.SessionCounts(c.Info().SessionID)
			f()
			counts := b.Server.SessionCounts(c.Info().SessionID).Since(before)
			t.Log(counts)
			return counts
		}
		const n = 320
		counts := count(func() {
			for range n {
				put(b, q, "x")
			}
		})
		require.Equal(b, zkembed.Counts{zkembed.OpMulti: n}, counts)
		counts = count(func() {
			for range n {
				ack(b, receive(b, q))
			}
		})
		// Read, claim and ack, and a list for every eight items, after four in
		// quick succession.
		require.LessOrEqual(b, counts.Total(), 3*n+n/8+9)
		for range n {
			put(b, q, "x")
		}
		counts = count(func() {
			for range n {
				take(b, q)
			}
		})
		require.LessOrEqual(b, counts.Total(), 2*n+n/8+9)
	})
}

func TestMain(m *testing.M) { zktest.Main(m) }

const secondWaits = 30 * time.Second

func newQueue(t testing.TB, c *coord.Client, path string, opts ...queue.Option) *queue.Queue {
	t.Helper()
	q, err := queue.New(c, path, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	return q
}

func put(t testing.TB, q *queue.Queue, items ...string) {
	t.Helper()
	for _, item := range items {
		require.NoError(t, q.Put(t.Context(), []byte(item)))
	}
}

func receive(t testing.TB, q *queue.Queue) *queue.Item {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), secondWaits)
	defer cancel()
	item, err := q.Receive(ctx)
	require.NoError(t, err)
	return item
}

func ack(t testing.TB, item *queue.Item) {
	t.Helper()
	require.NoError(t, item.Ack(context.Background()))
}

// take is what Take returns next.
func take(t testing.TB, q *queue.Queue) string {
	t.Helper()
	data, err := q.Take(t.Context())
	require.NoError(t, err)
	return string(data)
}

// serve receives and acknowledges items, which come in this order.
func serve(t testing.TB, q *queue.Queue, want ...string) {
	t.Helper()
	for _, data := range want {
		item := receive(t, q)
		require.Equal(t, data, string(item.Data))
		ack(t, item)
	}
}

// children are the names of a node's children.
func children(t testing.TB, c *coord.Client, path string) []string {
	t.Helper()
	names, err := c.Children(t.Context(), path)
	require.NoError(t, err)
	return names
}

// only is the path of a node's only child.
func only(t testing.TB, c *coord.Client, path string) string {
	t.Helper()
	names := children(t, c, path)
	require.Len(t, names, 1)
	return path + "/" + names[0]
}

func length(t testing.TB, q *queue.Queue) int {
	t.Helper()
	n, err := q.Len(t.Context())
	require.NoError(t, err)
	return n
}

func (b bubble) queue(c *coord.Client, opts ...queue.Option) *queue.Queue {
	return newQueue(b, c, "/q", opts...)
}

// consumer is a queue object with a client of its own.
func (b bubble) consumer(opts ...queue.Option) (*coord.Client, *queue.Queue) {
	b.Helper()
	c := b.Open()
	return c, b.queue(c, opts...)
}

// quiet is a consumer whose requests can be counted: its client's probes do not
// count as long as less than an eighth of the session timeout passes.
func (b bubble) quiet(opts ...queue.Option) (*coord.Client, *queue.Queue) {
	b.Helper()
	c := b.Open(coord.WithSessionTimeout(40 * time.Second))
	return c, b.queue(c, opts...)
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

func inBubble(t *testing.T, f func(b bubble), opts ...zkembed.Option) {
	t.Helper()
	coordtest.InBubble(t, func(b coordtest.Bubble) { f(bubble{b}) }, opts...)
}

// claim is the node of the only claim.
func (b bubble) claim(c *coord.Client) string {
	b.Helper()
	return only(b, c, "/q/taken")
}

// nothingOf requires that no node of a client's session is left, once its
// witnesses have been idle for the session timeout.
func (b bubble) nothingOf(c *coord.Client) {
	b.Helper()
	time.Sleep(coordtest.T + time.Second)
	for _, node := range b.Server.Nodes() {
		require.NotEqual(b, c.Info().SessionID, node.Stat.EphemeralOwner, node.Path)
	}
}

// The session has ended at the same time: a request failed for that.
func TestACallWhoseContextHasEndedSaysSo(t *testing.T) {
	inBubble(t, func(b bubble) {
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		request := &coord.OpError{Op: "exists", Path: "/q/entries", Err: coord.ErrSessionExpired}
		err := b.queue(b.Open()).Explain("receive", recipe.Ended(ctx, request))
		require.ErrorIs(b, err, context.Canceled)
		require.NotErrorIs(b, err, coord.ErrUnconfirmed)
	})
}
