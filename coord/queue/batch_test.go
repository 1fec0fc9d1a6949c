package queue_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// numbered makes n items, with the numbers from first on.
func numbered(first, n int) (items [][]byte) {
	for i := range n {
		items = append(items, fmt.Append(nil, first+i))
	}
	return items
}

// putBatch puts n items, numbered from 0.
func putBatch(b bubble, q *queue.Queue, n int) {
	b.Helper()
	require.NoError(b, q.PutBatch(b.Context(), numbered(0, n)))
}

func receiveBatch(b bubble, q *queue.Queue, n int) []*queue.Item {
	b.Helper()
	items, err := q.ReceiveBatch(b.Context(), n)
	require.NoError(b, err)
	return items
}

func texts(items []*queue.Item) (all []string) {
	for _, i := range items {
		all = append(all, string(i.Data))
	}
	return all
}

func TestABatchIsReceivedInOrderAndCostsOneClaimAndOneAck(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, q := b.quiet()
		putBatch(b, b.queue(b.Open()), 10)
		before := b.Server.SessionCounts(c.Info().SessionID)
		items := receiveBatch(b, q, 8)
		require.Equal(b, []string{"0", "1", "2", "3", "4", "5", "6", "7"}, texts(items))
		require.NoError(b, q.AckBatch(b.Context(), items...))
		counts := b.Server.SessionCounts(c.Info().SessionID).Since(before)
		require.Equal(b, 10, counts[zkembed.OpGetData], "two of the next batch")
		require.Equal(b, 2, counts[zkembed.OpMulti], counts)
		require.Equal(b, 2, length(b, q))
		rest := receiveBatch(b, q, 8)
		require.Equal(b, []string{"8", "9"}, texts(rest), "no more are waited for")
		require.NoError(b, q.AckBatch(b.Context(), rest...))
		counts = b.Server.SessionCounts(c.Info().SessionID).Since(before)
		require.Equal(b, 10, counts[zkembed.OpGetData], "each is read once")
		require.Equal(b, 4, counts[zkembed.OpMulti], counts)
		require.ErrorIs(b, coordtest.Err(q.ReceiveBatch(b.Context(), 0)), coord.ErrInvalid)
	})
}

func TestABatchOfWhichAnotherHasAnItemLeavesThatToIt(t *testing.T) {
	inBubble(t, func(b bubble) {
		q, other := b.queue(b.Open()), b.queue(b.Open())
		putBatch(b, other, 4)
		ack(b, receive(b, q)) // which lists the others
		first, second := receive(b, other), receive(b, other)
		require.NoError(b, first.Nack(b.Context(), 0))
		var got []string
		for len(got) < 2 {
			items := receiveBatch(b, q, 3)
			got = append(got, texts(items)...)
			require.NoError(b, q.AckBatch(b.Context(), items...))
		}
		require.ElementsMatch(b, []string{"1", "3"}, got)
		require.Equal(b, "2", string(second.Data))
		ack(b, second)
		require.Zero(b, length(b, q))
	})
}

func TestWhenAnotherHasTheFirstOfABatchTheNextIsClaimed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(coord.WithSessionTimeout(40 * time.Second))
		q, other := b.queue(c), b.queue(b.Open())
		putBatch(b, other, 5)
		ack(b, receive(b, q)) // which lists the others
		first := receive(b, other)
		require.Equal(b, "1", string(first.Data))
		before := b.Server.SessionCounts(c.Info().SessionID)
		items := receiveBatch(b, q, 3)
		counts := b.Server.SessionCounts(c.Info().SessionID).Since(before)
		require.Equal(b, []string{"2"}, texts(items))
		require.Equal(b, 2, counts[zkembed.OpMulti], counts)
	})
}

func TestABatchIsAsLargeAsFitsIntoAPacket(t *testing.T) {
	const n, size, packet = 24, 100_000, 1 << 19
	for name, told := range map[string]int{
		"that the client was told": packet, "that servers accept": 2 * packet, "of the client library": 8 * packet,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				c := b.Open(coord.WithSessionTimeout(40*time.Second), coord.WithMaxPacket(told))
				q := b.queue(c)
				for range n {
					require.NoError(b, q.Put(b.Context(), make([]byte, size)))
				}
				before, sizes := b.Server.SessionCounts(c.Info().SessionID), []int{}
				for left := n; left > 0; left -= sizes[len(sizes)-1] {
					items := receiveBatch(b, q, n)
					sizes = append(sizes, len(items))
					for _, item := range items {
						require.Equal(b, 1, item.Deliveries)
						ack(b, item)
					}
				}
				counts := b.Server.SessionCounts(c.Info().SessionID).Since(before)
				b.Log(sizes, counts)
				if told == packet {
					require.Equal(b, []int{5, 5, 5, 5, 4}, sizes)
					require.Equal(b, n, counts[zkembed.OpGetData], "nothing is read in vain")
				} else {
					require.LessOrEqual(b, len(sizes), 12)
				}
			}, zkembed.WithMaxPacket(packet))
		})
	}
}

func TestWhatDoesNotFitIntoABatchIsInTheNext(t *testing.T) {
	inBubble(t, func(b bubble) {
		q := b.queue(b.Open())
		putBatch(b, q, 1)
		require.Equal(b, []string{"0"}, texts(receiveBatch(b, q, 1)), "a small one, of whose size many fit")
		for range 6 {
			require.NoError(b, q.Put(b.Context(), make([]byte, 400_000)))
		}
		ctx := b.Within(time.Minute)
		for range 3 {
			items, err := q.ReceiveBatch(ctx, 6)
			require.NoError(b, err)
			require.Len(b, items, 2)
			require.NoError(b, q.AckBatch(ctx, items...))
		}
	})
}

func TestWhenTheFirstOfABatchIsADeadLetterTheOthersAreReceived(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(), b.queue(b.Open())
		q := b.queue(c, queue.DeadLetters(1))
		putBatch(b, other, 4)
		require.NoError(b, receive(b, other).Nack(b.Context(), 0))
		require.NoError(b, q.Put(b.Context(), []byte("urgent"), queue.Priority(1)))
		ack(b, receive(b, q)) // which shows the size of an item
		require.Equal(b, []string{"1", "2", "3"}, texts(receiveBatch(b, q, 3)))
		require.Equal(b, "0", string(receive(b, newQueue(b, c, "/q/dead")).Data))
	})
}

func TestABatchMayBeAskedForOfAnySize(t *testing.T) {
	inBubble(t, func(b bubble) {
		q := b.queue(b.Open())
		putBatch(b, q, 3)
		require.Equal(b, []string{"0", "1", "2"}, texts(receiveBatch(b, q, math.MaxInt)))
	})
}

func TestConsumersBesideEachOtherShareTheItemsAfterALargeBatch(t *testing.T) {
	inBubble(t, func(b bubble) {
		q, other := b.queue(b.Open()), b.queue(b.Open())
		putBatch(b, other, 4000)
		receive(b, other)
		for range 2 { // the others' items are known from the first on
			receive(b, q)
			receive(b, other)
		}
		var shares []int
		for range 3 {
			for _, item := range receiveBatch(b, q, 64) {
				i, err := strconv.Atoi(string(item.Data))
				require.NoError(b, err)
				shares = append(shares, i%2)
			}
		}
		require.Len(b, slices.Compact(shares), 1, "only its share")
	})
}

func TestOfAnAckOfManyThatIsStaleForOneTheOthersAreDone(t *testing.T) {
	inBubble(t, func(b bubble) {
		q, other := b.queue(b.Open()), b.queue(b.Open())
		putBatch(b, q, 3)
		items := receiveBatch(b, q, 3)
		require.NoError(b, items[1].Nack(b.Context(), 0))
		again := receive(b, other)
		require.ErrorIs(b, q.AckBatch(b.Context(), items...), queue.ErrStale)
		require.NoError(b, again.Err())
		require.Equal(b, 1, length(b, q))
		ack(b, again)
		require.NoError(b, q.AckBatch(b.Context()))
		require.ErrorContains(b, q.AckBatch(b.Context(), items[0], nil), "item 1 is nil")
	})
}

// The first items of two queues have the same name and version.
func TestAnAckOfManyRemovesNothingThatAnotherQueueObjectReceived(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(coord.WithSessionTimeout(40 * time.Second))
		q, other := b.queue(c), newQueue(b, c, "/other")
		putBatch(b, q, 2)
		putBatch(b, other, 2)
		own, others := receiveBatch(b, q, 2), receiveBatch(b, other, 2)
		before := b.Server.SessionCounts(c.Info().SessionID)
		for _, items := range [][]*queue.Item{others, others[:1], {own[0], others[1]}} {
			require.ErrorIs(b, q.AckBatch(b.Context(), items...), coord.ErrInvalid)
		}
		require.Zero(b, b.Server.SessionCounts(c.Info().SessionID).Since(before).Total())
		require.NoError(b, q.AckBatch(b.Context(), own...))
		require.NoError(b, other.AckBatch(b.Context(), others...))
		require.Zero(b, length(b, q)+length(b, other))
	})
}

func TestLostRepliesNeitherLoseNorDoubleItemsOfABatch(t *testing.T) {
	for _, fault := range []zkembed.Action{zkembed.LoseReply(), zkembed.Drop()} {
		for skip := range 3 {
			inBubble(t, func(b bubble) {
				c, seen := b.Open(), 0
				q := b.queue(c)
				putBatch(b, b.queue(b.Open()), 6)
				f := b.Server.Inject(zkembed.Match{
					Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1,
					Func: func(r zkembed.Request) bool {
						if len(r.Parts) < 4 {
							return false // a probe
						}
						seen++
						return seen > skip
					},
				}, fault)
				for left := 6; left > 0; {
					items := receiveBatch(b, q, 3)
					for _, i := range items {
						require.Equal(b, 1, i.Deliveries)
					}
					require.NoError(b, q.AckBatch(b.Context(), items...))
					left -= len(items)
				}
				require.Equal(b, 1, f.Fired())
				require.Zero(b, length(b, q))
			})
		}
	}
}

// The session is lost when the first item of the batch was granted.
func TestABatchThatIsLostOnTheWayIsNotKept(t *testing.T) {
	inBubble(t, func(b bubble) {
		ctx, cancel := context.WithCancel(b.Context())
		granted := 0
		c := b.Open(coord.WithObserver(func(e event.Event) {
			if e.Kind != event.Granted || !strings.HasPrefix(e.Path, "/q/taken/") {
				return
			}
			granted++
			if granted == 2 {
				cancel()
				_ = b.Server.ExpireSession(e.Session)
				time.Sleep(time.Second)
			}
		}))
		q := b.queue(c)
		putBatch(b, b.queue(b.Open()), 3)
		require.ErrorIs(b, coordtest.Err(q.ReceiveBatch(ctx, 3)), coord.ErrLost)
		require.Equal(b, 2, granted)
		require.Zero(b, q.Remembered())
	})
}
