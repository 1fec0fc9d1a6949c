package queue_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// died ends the session of an item's consumer, who does not answer.
func (b bubble) died(item *queue.Item) {
	b.Helper()
	require.NoError(b, b.Server.ExpireSession(item.Session()))
	<-item.Done()
}

// The first item fails each time; five good ones stand behind it.
func TestF93WhatStandsBehindAnItemThatAlwaysFailsIsDone(t *testing.T) {
	nacked := func(b bubble, item *queue.Item) { require.NoError(b, item.Nack(b.Context(), 0)) }
	for name, end := range map[string]func(bubble, *queue.Item){
		"given back":           nacked,
		"its consumer dies":    bubble.died,
		"given back, too late": func(b bubble, item *queue.Item) { time.Sleep(time.Hour); nacked(b, item) },
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, each consumer handles one item: %v", name, restarts), func(t *testing.T) {
				inBubble(t, func(b bubble) {
					producer := b.queue(b.Open())
					put(b, producer, "poison", "1", "2", "3", "4", "5")
					q := b.queue(b.Open())
					poisoned := 0
					for length(b, producer) > 1 && poisoned < 10 {
						if restarts {
							q = b.queue(b.Open())
						}
						item := receive(b, q)
						if string(item.Data) != "poison" {
							ack(b, item)
							continue
						}
						poisoned++
						end(b, item)
					}
					require.LessOrEqual(b, poisoned, 2, "a new session takes a while")
				})
			})
		}
	}
}

func TestTheTimeToTheNextDeliveryDoublesTenTimesAtMost(t *testing.T) {
	inBubble(t, func(b bubble) {
		q, other := b.queue(b.Open()), b.queue(b.Open())
		put(b, q, "a")
		item := receive(b, q)
		for n := range 13 {
			time.Sleep(time.Hour) // the work
			require.NoError(b, item.Nack(b.Context(), 0))
			given := time.Now()
			_, err := other.TryReceive(b.Context())
			require.ErrorIs(b, err, queue.ErrEmpty)
			require.ErrorContains(b, err, "wait to be delivered again")
			item, err = other.Receive(b.Within(time.Hour))
			require.NoError(b, err)
			require.Equal(b, n+2, item.Deliveries)
			require.InDelta(b, time.Second<<min(n, 10), time.Since(given), float64(50*time.Millisecond))
			q, other = other, q
		}
	})
}

func TestAnItemWhoseConsumerEndedWaitsFromItsDeliveryOn(t *testing.T) {
	inBubble(t, func(b bubble) {
		q := b.queue(b.Open(), queue.Backoff(time.Minute))
		put(b, q, "a")
		delivered := time.Now()
		for n := range 3 {
			item, err := b.queue(b.Open(), queue.Backoff(time.Minute)).Receive(b.Within(time.Hour))
			require.NoError(b, err)
			require.Equal(b, n+1, item.Deliveries)
			require.InDelta(b, time.Duration(n)*time.Minute, time.Since(delivered), float64(time.Second)) // 0, 1, 2 minutes
			delivered = time.Now()
			time.Sleep(30 * time.Second) // the work
			b.died(item)
		}
	})
}

// The server's clock is two hours behind this process's, then jumps.
func TestABackoffIsMeasuredInTheEnsemblesTime(t *testing.T) {
	inBubble(t, func(b bubble) {
		const hour = time.Hour
		b.Server.ShiftClock(-2 * hour)
		q := b.queue(b.Open(), queue.Backoff(time.Minute))
		again := func(within time.Duration) {
			b.Helper()
			begun := time.Now()
			item, err := b.queue(b.Open(), queue.Backoff(time.Minute)).Receive(b.Within(2 * hour))
			require.NoError(b, err)
			require.InDelta(b, within, time.Since(begun), float64(2*time.Second))
			ack(b, item)
		}
		put(b, q, "a")
		require.NoError(b, receive(b, q).Nack(b.Context(), 0))
		again(time.Minute)

		b.Server.ShiftClock(10 * 365 * 24 * hour) // for a moment
		put(b, q, "b")
		require.NoError(b, receive(b, q).Nack(b.Context(), 0))
		b.Server.ShiftClock(0)
		again(0)
	})
}

func TestAConsumerThatMayNotAskForTheTimeDoesNotWait(t *testing.T) {
	inBubble(t, func(b bubble) {
		q := b.queue(b.Open())
		put(b, q, "a")
		require.NoError(b, receive(b, q).Nack(b.Context(), 0))
		c := b.Open()
		b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Func: func(r zkembed.Request) bool {
			return slices.Equal(r.Paths, []string{"/q/taken"})
		}}, zkembed.ReplyError(zkembed.CodeNoAuth))
		item, err := b.queue(c).TryReceive(b.Context())
		require.NoError(b, err)
		ack(b, item)
	})
}

func TestWithoutABackoffAnItemIsDeliveredAgainImmediately(t *testing.T) {
	inBubble(t, func(b bubble) {
		for _, d := range []time.Duration{-1, queue.MaxBackoff + 1} {
			require.ErrorIs(b, coordtest.Err(queue.New(b.Open(), "/q", queue.Backoff(d))), coord.ErrInvalid)
		}
		q := b.queue(b.Open(), queue.Backoff(0))
		put(b, q, "a", "b")
		for n := range 20 {
			item, err := q.TryReceive(b.Context())
			require.NoError(b, err)
			require.Equal(b, "a", string(item.Data))
			require.Equal(b, n+1, item.Deliveries)
			require.NoError(b, item.Nack(b.Context(), 0))
		}
	})
}

func TestAnItemThatWaitsIsNeitherTakenNorTheNext(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, q := b.consumer()
		put(b, q, "a", "b", "c")
		for range 2 {
			require.NoError(b, receive(b, q).Nack(b.Context(), 0))
		}
		fresh := b.queue(b.Open())
		next := func(q *queue.Queue) string {
			item, err := q.Peek(b.Context())
			require.NoError(b, err)
			return string(item.Data)
		}
		require.Equal(b, "c", next(fresh))
		require.Equal(b, "c", take(b, fresh))
		require.ErrorIs(b, coordtest.Err(q.TryTake(b.Context())), queue.ErrEmpty)
		require.Equal(b, "a", next(b.queue(c)), "the one that waits least")
		require.Contains(b, []string{"a", "b"}, take(b, q))
	})
}

// Every way to end a delivery, in any order, is one delivery, and changes no
// byte of the item, also when its receiver wrote into the data.
func TestDeliveriesAreCountedHoweverTheyEnd(t *testing.T) {
	inBubble(t, func(b bubble) {
		data := bytes.Repeat([]byte("x"), queue.MaxSize)
		require.NoError(b, b.queue(b.Open()).Put(b.Context(), data))
		ends := []func(*queue.Item){
			func(item *queue.Item) { require.NoError(b, item.Nack(b.Context(), 0)) },
			b.died,
			func(item *queue.Item) {
				require.NoError(b, item.Nack(b.Context(), time.Minute))
				time.Sleep(time.Hour)
			},
		}
		n := 0
		for _, first := range ends {
			for _, second := range ends {
				for _, end := range []func(*queue.Item){first, second} {
					q := b.queue(b.Open())
					seen, err := q.Peek(b.Context())
					require.NoError(b, err)
					require.Equal(b, n, seen.Deliveries)
					item, err := q.Receive(b.Within(24 * time.Hour))
					require.NoError(b, err)
					n++
					require.Equal(b, n, item.Deliveries)
					require.True(b, bytes.Equal(data, item.Data))
					clear(item.Data)
					end(item)
				}
			}
		}
	})
}

func TestABatchLeavesOutWhatWaits(t *testing.T) {
	inBubble(t, func(b bubble) {
		q := b.queue(b.Open())
		putBatch(b, q, 6)
		for range 3 {
			require.NoError(b, receive(b, q).Nack(b.Context(), 0))
		}
		items, err := b.queue(b.Open()).ReceiveBatch(b.Context(), 6)
		require.NoError(b, err)
		require.Equal(b, []string{"3", "4", "5"}, texts(items))
	})
}

// A consumer that has just been started reads as many items as wait, in few
// round trips.
func TestManyItemsThatWaitCostFewRoundTrips(t *testing.T) {
	inBubble(t, func(b bubble) {
		q := b.queue(b.Open(), queue.Backoff(time.Hour))
		putBatch(b, q, 101)
		for range 100 {
			require.NoError(b, receive(b, q).Nack(b.Context(), 0))
		}
		c := b.Open()
		b.Server.Inject(zkembed.Match{Session: c.Info().SessionID}, zkembed.DelayReply(T/100))
		begun := time.Now()
		item := receive(b, b.queue(c, queue.Backoff(time.Hour)))
		require.Equal(b, "100", string(item.Data))
		require.LessOrEqual(b, time.Since(begun), 20*T/100)
	})
}

// A consumer alone knows its own claims only: what another has in hand is no
// item that waits.
func TestAnItemInAnothersHandsIsASignOfAnotherConsumer(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, q := b.consumer()
		put(b, q, "a", "b")
		receive(b, b.queue(b.Open()))
		require.Equal(b, "b", string(receive(b, q).Data))
		require.Len(b, children(b, c, "/q/consumers"), 1)
	})
}

func TestF93WithARealServer(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		producer := newQueue(t, coordtest.Open(t, w.ConnectString()), w.Path("q"))
		put(t, producer, "poison", "1", "2", "3", "4", "5")
		poisoned := 0
		for length(t, producer) > 1 && poisoned < 10 {
			c := coordtest.Open(t, w.ConnectString())
			item := receive(t, newQueue(t, c, w.Path("q"), queue.Backoff(time.Minute)))
			if strings.HasPrefix(string(item.Data), "poison") {
				poisoned++
				require.NoError(t, item.Nack(t.Context(), 0))
			} else {
				ack(t, item)
			}
			require.NoError(t, c.Close(context.Background()))
		}
		require.Equal(t, 1, poisoned)
	})
}
