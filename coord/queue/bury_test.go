package queue_test

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// letter is the only dead letter.
func letter(b bubble, q *queue.Queue) queue.DeadLetter {
	b.Helper()
	letters, err := q.DeadLetters(b.Context())
	require.NoError(b, err)
	require.Len(b, letters, 1)
	return letters[0]
}

func TestADeadLetterTellsItsStory(t *testing.T) {
	for name, end := range map[string]func(b bubble, admin *queue.Queue, item *queue.Item) (by bool, reason string){
		"given back too often": func(b bubble, _ *queue.Queue, item *queue.Item) (bool, string) {
			require.NoError(b, item.Nack(b.Context(), time.Minute))
			return true, "given back after 2 deliveries"
		},
		"never answered": func(b bubble, admin *queue.Queue, item *queue.Item) (bool, string) {
			require.NoError(b, b.Server.ExpireSession(item.Hold().Session()))
			require.ErrorIs(b, coordtest.Err(admin.TryReceive(b.Context())), queue.ErrEmpty)
			return false, "delivered 2 times, and its last consumer ended without an answer"
		},
		"buried by its consumer": func(b bubble, _ *queue.Queue, item *queue.Item) (bool, string) {
			require.NoError(b, item.Bury(b.Context(), "no such customer"))
			require.ErrorIs(b, item.Err(), coord.ErrReleased)
			require.ErrorIs(b, item.Bury(b.Context(), "again"), queue.ErrStale)
			return true, "no such customer"
		},
		"buried by an operator": func(b bubble, admin *queue.Queue, item *queue.Item) (bool, string) {
			require.NoError(b, b.Server.ExpireSession(item.Hold().Session()))
			first, err := admin.Peek(b.Context())
			require.NoError(b, err)
			require.NoError(b, admin.Bury(b.Context(), first.Name, "blocks the others"))
			return false, "blocks the others"
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				c, other := b.Open(coord.WithIdentity("consumer")), b.Open(coord.WithIdentity("operator"))
				q, admin := b.queue(c, queue.WithDeadLetters(2)), b.queue(other, queue.WithDeadLetters(2))
				require.NoError(b, q.Put(b.Context(), []byte("poison"), queue.WithPriority(7)))
				first, err := q.Peek(b.Context())
				require.NoError(b, err)
				require.NoError(b, receive(b.T, q).Nack(b.Context(), 0))
				time.Sleep(time.Minute)
				died := time.Now()
				by, reason := end(b, admin, receive(b.T, q))
				got := letter(b, admin)
				require.WithinDuration(b, died, got.Died, time.Second)
				want := queue.DeadLetter{
					Name: got.Name, Data: []byte("poison"), Priority: 7, Died: got.Died,
					Deliveries: 2, Item: first.Name, By: other.Identity(), Reason: reason,
				}
				if by {
					want.By = c.Identity()
				}
				require.Equal(b, want, got)
				require.Zero(b, length(b.T, q))
				dead := newQueue(b.T, other, "/q/dead")
				item := receive(b.T, dead)
				require.Equal(b, "poison", string(item.Data), "it is an item like any other")
				ack(b.T, item)
			})
		})
	}
}

func TestALetterOfAnotherProgramHasNoStory(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		q := b.queue(c)
		letters, err := q.DeadLetters(b.Context())
		require.NoError(b, err)
		require.Empty(b, letters)
		put(b.T, newQueue(b.T, c, "/q/dead"), "by hand")
		got := letter(b, q)
		require.Equal(b, queue.DeadLetter{Name: got.Name, Data: []byte("by hand"), Priority: 100, Died: got.Died}, got)
		put(b.T, q, "a")
		require.NoError(b, receive(b.T, q).Bury(b.Context(), "bad"))
		letters, err = q.DeadLetters(b.Context())
		require.NoError(b, err)
		require.Equal(b, []string{"", "bad"}, []string{letters[0].Reason, letters[1].Reason})
	})
}

func TestAnItemThatAConsumerHasIsNeitherBuriedNorDropped(t *testing.T) {
	inBubble(t, func(b bubble) {
		q, admin := b.queue(b.Open()), b.queue(b.Open())
		put(b.T, q, "a")
		first, err := admin.Peek(b.Context())
		require.NoError(b, err)
		item := receive(b.T, q)
		require.ErrorIs(b, admin.Bury(b.Context(), first.Name, ""), coord.ErrBusy)
		require.ErrorIs(b, admin.Drop(b.Context(), first.Name), coord.ErrBusy)
		require.NoError(b, item.Nack(b.Context(), 0))
		require.NoError(b, admin.Drop(b.Context(), first.Name))
		require.ErrorIs(b, admin.Drop(b.Context(), first.Name), coord.ErrNoNode)
		require.ErrorIs(b, admin.Bury(b.Context(), first.Name, ""), coord.ErrNoNode)
		require.ErrorIs(b, admin.Drop(b.Context(), "../taken"), coord.ErrInvalid)
		require.ErrorIs(b, admin.Bury(b.Context(), first.Name, strings.Repeat("x", queue.MaxReason+1)), coord.ErrInvalid)
		require.ErrorIs(b, item.Bury(b.Context(), strings.Repeat("x", queue.MaxReason+1)), coord.ErrInvalid)
		letters, err := q.DeadLetters(b.Context())
		require.NoError(b, err)
		require.Empty(b, letters)
	})
}

// One that was delivered and given back between the look at it and the
// transaction has another version by then.
func TestAnItemThatIsDeliveredMeanwhileIsDroppedAllTheSame(t *testing.T) {
	inBubble(t, func(b bubble) {
		q, c := b.queue(b.Open()), b.Open()
		admin := b.queue(c)
		put(b.T, q, "a")
		first, err := admin.Peek(b.Context())
		require.NoError(b, err)
		late := b.Server.Inject(zkembed.Match{Session: c.SessionID(), Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1}, zkembed.Delay(time.Second))
		dropped := make(chan error, 1)
		go func() { dropped <- admin.Drop(b.Context(), first.Name) }()
		<-late.Struck()
		require.NoError(b, receive(b.T, q).Nack(b.Context(), 0))
		require.NoError(b, <-dropped)
		require.Zero(b, length(b.T, q))
	})
}

func TestALostReplyMakesOneDeadLetterWithItsStory(t *testing.T) {
	for _, fault := range []zkembed.Action{zkembed.LoseReply(), zkembed.Drop()} {
		inBubble(t, func(b bubble) {
			c := b.Open()
			q := b.queue(c, queue.WithDeadLetters(1))
			for i := range 3 {
				put(b.T, q, fmt.Sprint(i))
				first, err := q.Peek(b.Context())
				require.NoError(b, err)
				lose := func() *zkembed.Fault {
					return b.Server.Inject(zkembed.Match{PathPrefix: "/q/dead/", Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1}, fault)
				}
				var lost *zkembed.Fault
				switch i {
				case 0:
					lost = lose()
					require.NoError(b, q.Bury(b.Context(), first.Name, "bad"))
				case 1:
					item := receive(b.T, q)
					lost = lose()
					require.NoError(b, item.Nack(b.Context(), 0))
				case 2:
					require.NoError(b, b.Server.ExpireSession(receive(b.T, q).Hold().Session()))
					lost = lose()
					require.ErrorIs(b, coordtest.Err(q.TryReceive(b.Context())), queue.ErrEmpty)
				}
				require.Equal(b, 1, lost.Fired())
			}
			letters, err := q.DeadLetters(b.Context())
			require.NoError(b, err)
			require.Len(b, letters, 3)
			for i, l := range letters {
				require.Equal(b, fmt.Sprint(i), string(l.Data))
				require.NotEmpty(b, l.Reason)
			}
		})
	}
}

func TestTheStoryOfALetterThatIsGoneIsDeletedAndNoOther(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		q, dead := b.queue(c), newQueue(b.T, c, "/q/dead")
		bury := func(item string) {
			put(b.T, q, item)
			require.NoError(b, receive(b.T, q).Bury(b.Context(), item))
		}
		bury("a")
		bury("b")
		require.NoError(b, coordtest.Err(dead.Take(b.Context())))
		bury("c")
		records, err := c.Children(b.Context(), "/q/dead/records")
		require.NoError(b, err)
		require.Len(b, records, 2)
		letters, err := q.DeadLetters(b.Context())
		require.NoError(b, err)
		require.Equal(b, []string{"b", "c"}, []string{letters[0].Reason, letters[1].Reason})
	})
}

func TestAnItemForWhoseReasonThereIsNoRoomStays(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(coord.WithMaxPacket(4 << 10))
		q := b.queue(c, queue.WithDeadLetters(1))
		require.NoError(b, q.Put(b.Context(), bytes.Repeat([]byte("x"), 3<<10)))
		item := receive(b.T, q)
		require.ErrorIs(b, item.Bury(b.Context(), strings.Repeat("y", queue.MaxReason)), coord.ErrTooLarge)
		require.NoError(b, item.Err())
		require.NoError(b, item.Bury(b.Context(), "large"))
		require.Equal(b, "large", letter(b, q).Reason)
	})
}

func TestDeadLettersAreListedInOrder(t *testing.T) {
	inBubble(t, func(b bubble) {
		q := b.queue(b.Open())
		for _, priority := range []int{5, 1, 3} {
			require.NoError(b, q.Put(b.Context(), fmt.Append(nil, priority), queue.WithPriority(priority)))
			require.NoError(b, receive(b.T, q).Bury(b.Context(), ""))
		}
		letters, err := q.DeadLetters(b.Context())
		require.NoError(b, err)
		require.True(b, slices.IsSortedFunc(letters, func(x, y queue.DeadLetter) int { return x.Priority - y.Priority }))
	})
}

// Each listing costs as much as the queue is long.
func TestPeekListsOnceHoweverManyItemsGoMeanwhile(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		q := b.queue(c)
		for range 10 {
			require.NoError(b, q.Put(b.Context(), []byte("item")))
		}
		before := b.Server.SessionCounts(c.SessionID())
		gone := b.Server.Inject(zkembed.Match{Session: c.SessionID(), Ops: []zkembed.Op{zkembed.OpGetData}, Times: 5}, zkembed.ReplyError(zkembed.CodeNoNode))
		item, err := q.Peek(b.Context())
		require.NoError(b, err)
		require.Equal(b, "item", string(item.Data))
		require.Equal(b, 5, gone.Fired())
		counts := b.Server.SessionCounts(c.SessionID()).Since(before)
		require.Equal(b, 2, counts[zkembed.OpGetChildren]+counts[zkembed.OpGetChildren2], "the items, and the claims")
	})
}

func TestALookShowsTheItemsAndWhoHasThem(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(), b.Open()
		q, another := b.queue(c), b.queue(other)
		_, _, err := q.Items(b.Context())
		require.ErrorIs(b, err, coord.ErrNoNode)
		for _, data := range []string{"a", "b", "c"} {
			require.NoError(b, q.Put(b.Context(), []byte(data)))
		}
		held, err := q.Receive(b.Context())
		require.NoError(b, err)
		_, err = another.Receive(b.Context())
		require.NoError(b, err)
		all, taken, err := q.Items(b.Context())
		require.NoError(b, err)
		require.Len(b, all, 3)
		require.Len(b, taken, 2)
		require.Contains(b, taken, path.Base(held.Hold().Node()))
		items, err := q.PeekAt(b.Context(), append(all, "entry-100-0000000099")...)
		require.NoError(b, err)
		require.Len(b, items, 3)
		require.Equal(b, "b", string(items[1].Data))
		require.Equal(b, queue.DefaultPriority, items[1].Priority)
		claims, err := q.Claims(b.Context(), all...)
		require.NoError(b, err)
		require.Len(b, claims, 2)
		for _, claim := range claims {
			require.Contains(b, []string{c.Identity(), other.Identity()}, claim.Owner)
			require.True(b, claim.Holds)
		}
		consumers, err := q.Consumers(b.Context())
		require.NoError(b, err)
		require.NotEmpty(b, consumers)
		require.Equal(b, queue.ConsumerKind, consumers[0].Kind)
	})
}
