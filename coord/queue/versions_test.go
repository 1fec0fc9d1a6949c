package queue_test

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
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
// version: the version of the entry distinguishes the claims.
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
		c, victim := b.Open(), b.Open()
		q, quick := b.queue(c, queue.WithDeadLetters(1)), b.queue(victim, queue.WithDeadLetters(1))
		put(b.T, quick, "poison")
		late := b.Server.Inject(zkembed.Match{
			Session: c.SessionID(), Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/q/taken/", Times: 1,
		}, zkembed.Delay(time.Second))
		go func() {
			<-late.Struck()
			if err := coordtest.Err(quick.Receive(b.Context())); err != nil {
				b.Error(err)
			}
			_ = b.Server.ExpireSession(victim.SessionID()) // it dies of the item
		}()
		require.ErrorIs(b, coordtest.Err(q.Take(b.Within(T))), context.DeadlineExceeded)
		dead := newQueue(b.T, c, "/q/dead")
		data, err := dead.Take(b.Context())
		require.NoError(b, err)
		require.Equal(b, "poison", string(data))
	})
}

// An item put elsewhere before the call is found, though the watch event is
// still on its way.
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
	require.NoError(b, coordtest.Err(c.Txn(b.Context(), coord.AppendOp("/q/entries/entry-100-", []byte("secret")))))
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

// An item that the ACL denies costs little, and is tried again.
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
		received := coordtest.Go(func() *queue.Item {
			item, err := q.Receive(b.Context())
			if err != nil {
				b.Error(err)
			}
			return item
		})
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
			coord.EphemeralOp(own+"-former", nil),
			coord.EphemeralOp("/q/taken/"+slices.Min(entries), nil))
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
		dropped := coordtest.Go(func() error { return admin.Drop(b.Context(), first.Name) })
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
