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

// next matches the next transaction of a client on a path of this prefix.
func next(c *coord.Client, prefix string) zkembed.Match {
	return zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: prefix, Times: 1}
}

func TestADeliveryBetweenTheReadingAndTheClaimIsCounted(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		q, quick := b.queue(c), b.queue(b.Open())
		put(b, quick, "a")
		late := b.Server.Inject(next(c, "/q/taken/"), zkembed.Delay(time.Second))
		got := coordtest.Go(func() *queue.Item { return receive(b, q) })
		<-late.Struck()
		require.NoError(b, receive(b, quick).Nack(b.Context(), 0))
		item := b.next(got)
		require.Equal(b, 2, item.Deliveries)
		ack(b, item)
		require.Zero(b, length(b, quick))
	})
}

func TestATakeDeliversNothingBeyondTheLimitOfDeliveries(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, victim := b.Open(), b.Open()
		q, quick := b.queue(c, queue.DeadLetters(1)), b.queue(victim, queue.DeadLetters(1))
		put(b, quick, "poison")
		late := b.Server.Inject(next(c, "/q/taken/"), zkembed.Delay(time.Second))
		taken := coordtest.Go(func() error { return coordtest.Err(q.Take(b.Within(T))) })
		<-late.Struck()
		receive(b, quick)
		require.NoError(b, b.Server.ExpireSession(victim.Info().SessionID)) // it dies of the item
		require.ErrorIs(b, <-taken, context.DeadlineExceeded)
		require.Equal(b, "poison", take(b, newQueue(b, c, "/q/dead")))
	})
}

// An item put elsewhere before the call is found, though the watch event is
// still on its way.
func TestATryFindsWhatWasPutBeforeIt(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		q, producer := b.queue(c), b.queue(b.Open())
		require.ErrorIs(b, coordtest.Err(q.TryTake(b.Context())), queue.ErrEmpty)
		b.Server.Inject(zkembed.Match{Session: c.Info().SessionID}, zkembed.DelayEvents(time.Second))
		put(b, producer, "a")
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
				_, q := b.consumer()
				put(b, q, "first")
				ack(b, receive(b, q)) // the directories
				for range 5 {
					b.restricted(perms)
				}
				_, err := q.TryReceive(b.Context())
				require.ErrorIs(b, err, queue.ErrEmpty)
				require.ErrorIs(b, err, coord.ErrNoAuth)
				put(b, q, "a", "b")
				serve(b, q, "a", "b")
				require.Equal(b, 5, length(b, q))
			})
		})
	}
}

// An item that the ACL denies costs little, and is tried again.
func TestAnItemThatMayNotBeHadIsTriedAgainLater(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, q := b.consumer()
		put(b, q, "first")
		ack(b, receive(b, q))
		put(b, q, "a")
		refused := b.Server.Inject(zkembed.Match{
			Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetData}, PathPrefix: "/q/entries/",
		}, zkembed.ReplyError(zkembed.CodeNoAuth))
		received := make(chan *queue.Item, 1)
		go b.receive(q, received)
		time.Sleep(time.Minute)
		require.Empty(b, received)
		require.LessOrEqual(b, refused.Fired(), 7)
		refused.Remove()
		time.Sleep(time.Minute)
		require.Len(b, received, 1)
		ack(b, <-received)
	})
}

// The servers keep the former session's nodes for a while: the claims, and the
// node that counts the consumer.
func TestAConsumerAloneReceivesInOrderAlsoJustAfterItsSessionWasLost(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, former := b.Open(), b.Open()
		q, p := b.queue(c), b.queue(former)
		require.ErrorIs(b, coordtest.Err(q.Receive(b.Within(time.Second))),
			context.DeadlineExceeded) // has waited, and so has a node
		own := only(b, c, "/q/consumers")
		put(b, p, "claimed in the former session", "a", "b", "c", "d", "e", "f", "g", "h")
		_, err := former.Txn(b.Context(),
			coord.EphemeralOp(own+"-former", nil),
			coord.EphemeralOp("/q/taken/"+slices.Min(children(b, c, "/q/entries")), nil))
		require.NoError(b, err)
		serve(b, q, "a", "b", "c", "d", "e", "f", "g", "h")
		b.Close(c, former)
	})
}

// The first attempt is lost, and the repeat refused, since the claim was broken
// and another has the item: the first cannot be carried out any more.
func TestANackThatIsStaleIsNotUnconfirmed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		q := b.queue(c)
		put(b, q, "a")
		item := receive(b, q)
		lost := b.Server.Inject(next(c, "/q/entries/"), zkembed.Drop())
		done := coordtest.Go(func() error { return item.Nack(b.Context(), 0) })
		<-lost.Struck()
		hung := b.Server.Inject(next(c, "/q/entries/"), zkembed.Delay(time.Second))
		<-hung.Struck()
		require.NoError(b, inspect.Break(b.Context(), admin, b.claim(admin)))
		again := receive(b, b.queue(admin))
		err := <-done
		require.ErrorIs(b, err, queue.ErrStale)
		require.NotErrorIs(b, err, coord.ErrUnconfirmed)
		ack(b, again)
	})
}

// letters are the n dead letters.
func letters(b testing.TB, q *queue.Queue, n int) []queue.DeadLetter {
	b.Helper()
	all, err := q.DeadLetters(b.Context())
	require.NoError(b, err)
	require.Len(b, all, n)
	return all
}

func TestADeadLetterTellsItsStory(t *testing.T) {
	for name, end := range map[string]func(b bubble, admin *queue.Queue, item *queue.Item) (by bool, reason string){
		"given back too often": func(b bubble, _ *queue.Queue, item *queue.Item) (bool, string) {
			require.NoError(b, item.Nack(b.Context(), time.Minute))
			return true, "given back after 2 deliveries"
		},
		"never answered": func(b bubble, admin *queue.Queue, item *queue.Item) (bool, string) {
			require.NoError(b, b.Server.ExpireSession(item.Session()))
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
			require.NoError(b, b.Server.ExpireSession(item.Session()))
			first, err := admin.Peek(b.Context())
			require.NoError(b, err)
			require.NoError(b, admin.Bury(b.Context(), first.Name, "blocks the others"))
			return false, "blocks the others"
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				c, other := b.Open(coord.WithIdentity("consumer")), b.Open(coord.WithIdentity("operator"))
				q, admin := b.queue(c, queue.DeadLetters(2)), b.queue(other, queue.DeadLetters(2))
				require.NoError(b, q.Put(b.Context(), []byte("poison"), queue.Priority(7)))
				first, err := q.Peek(b.Context())
				require.NoError(b, err)
				require.NoError(b, receive(b, q).Nack(b.Context(), 0))
				time.Sleep(time.Minute)
				died := time.Now()
				by, reason := end(b, admin, receive(b, q))
				got := letters(b, admin, 1)[0]
				require.WithinDuration(b, died, got.Died, time.Second)
				want := queue.DeadLetter{
					Name: got.Name, Data: []byte("poison"), Priority: 7, Died: got.Died,
					Deliveries: 2, Item: first.Name, By: other.Info().Identity, Reason: reason,
				}
				if by {
					want.By = c.Info().Identity
				}
				require.Equal(b, want, got)
				require.Zero(b, length(b, q))
				serve(b, newQueue(b, other, "/q/dead"), "poison") // an item like any other
			})
		})
	}
}

func TestALetterOfAnotherProgramHasNoStory(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, q := b.consumer()
		letters(b, q, 0)
		put(b, newQueue(b, c, "/q/dead"), "by hand")
		got := letters(b, q, 1)[0]
		require.Equal(b, queue.DeadLetter{Name: got.Name, Data: []byte("by hand"), Priority: 100, Died: got.Died}, got)
		put(b, q, "a")
		require.NoError(b, receive(b, q).Bury(b.Context(), "bad"))
		all := letters(b, q, 2)
		require.Equal(b, []string{"", "bad"}, []string{all[0].Reason, all[1].Reason})
	})
}

func TestAnItemThatAConsumerHasIsNeitherBuriedNorDropped(t *testing.T) {
	inBubble(t, func(b bubble) {
		q, admin := b.queue(b.Open()), b.queue(b.Open())
		put(b, q, "a")
		first, err := admin.Peek(b.Context())
		require.NoError(b, err)
		item := receive(b, q)
		require.ErrorIs(b, admin.Bury(b.Context(), first.Name, ""), coord.ErrBusy)
		require.ErrorIs(b, admin.Drop(b.Context(), first.Name), coord.ErrBusy)
		require.NoError(b, item.Nack(b.Context(), 0))
		require.NoError(b, admin.Drop(b.Context(), first.Name))
		require.ErrorIs(b, admin.Drop(b.Context(), first.Name), coord.ErrNoNode)
		require.ErrorIs(b, admin.Bury(b.Context(), first.Name, ""), coord.ErrNoNode)
		require.ErrorIs(b, admin.Drop(b.Context(), "../taken"), coord.ErrInvalid)
		require.ErrorIs(b, admin.Bury(b.Context(), first.Name, strings.Repeat("x", queue.MaxReason+1)), coord.ErrInvalid)
		require.ErrorIs(b, item.Bury(b.Context(), strings.Repeat("x", queue.MaxReason+1)), coord.ErrInvalid)
		letters(b, q, 0)
	})
}

// One that was delivered and given back between the look at it and the
// transaction has another version by then.
func TestAnItemThatIsDeliveredMeanwhileIsDroppedAllTheSame(t *testing.T) {
	inBubble(t, func(b bubble) {
		q, c := b.queue(b.Open()), b.Open()
		admin := b.queue(c)
		put(b, q, "a")
		first, err := admin.Peek(b.Context())
		require.NoError(b, err)
		late := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1},
			zkembed.Delay(time.Second))
		dropped := coordtest.Go(func() error { return admin.Drop(b.Context(), first.Name) })
		<-late.Struck()
		require.NoError(b, receive(b, q).Nack(b.Context(), 0))
		require.NoError(b, <-dropped)
		require.Zero(b, length(b, q))
	})
}

func TestALostReplyMakesOneDeadLetterWithItsStory(t *testing.T) {
	for _, fault := range []zkembed.Action{zkembed.LoseReply(), zkembed.Drop()} {
		inBubble(t, func(b bubble) {
			_, q := b.consumer(queue.DeadLetters(1))
			for i := range 3 {
				put(b, q, fmt.Sprint(i))
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
					item := receive(b, q)
					lost = lose()
					require.NoError(b, item.Nack(b.Context(), 0))
				case 2:
					require.NoError(b, b.Server.ExpireSession(receive(b, q).Session()))
					lost = lose()
					require.ErrorIs(b, coordtest.Err(q.TryReceive(b.Context())), queue.ErrEmpty)
				}
				require.Equal(b, 1, lost.Fired())
			}
			for i, l := range letters(b, q, 3) {
				require.Equal(b, fmt.Sprint(i), string(l.Data))
				require.NotEmpty(b, l.Reason)
			}
		})
	}
}

func TestTheStoryOfALetterThatIsGoneIsDeletedAndNoOther(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		q, dead := b.queue(c), newQueue(b, c, "/q/dead")
		bury := func(item string) {
			put(b, q, item)
			require.NoError(b, receive(b, q).Bury(b.Context(), item))
		}
		bury("a")
		bury("b")
		take(b, dead)
		put(b, q, "c")
		item := receive(b, q)
		before := b.Server.SessionCounts(c.Info().SessionID)
		require.NoError(b, item.Bury(b.Context(), "c"))
		require.Zero(b, b.Server.SessionCounts(c.Info().SessionID).Since(before)[zkembed.OpGetData], "no letter is read")
		require.Len(b, children(b, c, "/q/dead/records"), 2)
		left := letters(b, q, 2)
		require.Equal(b, []string{"b", "c"}, []string{left[0].Reason, left[1].Reason})
	})
}

func TestAnItemForWhoseReasonThereIsNoRoomStays(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(coord.WithMaxPacket(4 << 10))
		q := b.queue(c, queue.DeadLetters(1))
		require.NoError(b, q.Put(b.Context(), bytes.Repeat([]byte("x"), 3<<10)))
		item := receive(b, q)
		require.ErrorIs(b, item.Bury(b.Context(), strings.Repeat("y", queue.MaxReason)), coord.ErrTooLarge)
		require.NoError(b, item.Err())
		require.NoError(b, item.Bury(b.Context(), "large"))
		require.Equal(b, "large", letters(b, q, 1)[0].Reason)
	})
}

func TestDeadLettersAreListedInOrder(t *testing.T) {
	inBubble(t, func(b bubble) {
		q := b.queue(b.Open())
		for _, priority := range []int{5, 1, 3} {
			require.NoError(b, q.Put(b.Context(), fmt.Append(nil, priority), queue.Priority(priority)))
			require.NoError(b, receive(b, q).Bury(b.Context(), ""))
		}
		require.True(b,
			slices.IsSortedFunc(letters(b, q, 3), func(x, y queue.DeadLetter) int { return x.Priority - y.Priority }))
	})
}

// Each listing costs as much as the queue is long.
func TestPeekListsOnceHoweverManyItemsGoMeanwhile(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, q := b.consumer()
		putBatch(b, q, 10)
		before := b.Server.SessionCounts(c.Info().SessionID)
		gone := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetData}, Times: 5},
			zkembed.ReplyError(zkembed.CodeNoNode))
		item, err := q.Peek(b.Context())
		require.NoError(b, err)
		require.Equal(b, "5", string(item.Data))
		require.Equal(b, 5, gone.Fired())
		counts := b.Server.SessionCounts(c.Info().SessionID).Since(before)
		require.Equal(b, 2, counts[zkembed.OpGetChildren]+counts[zkembed.OpGetChildren2], "the items, and the claims")
	})
}

func TestALookShowsTheItemsAndWhoHasThem(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(), b.Open()
		q, another := b.queue(c), b.queue(other)
		_, _, err := q.Items(b.Context())
		require.ErrorIs(b, err, coord.ErrNoNode)
		put(b, q, "a", "b", "c")
		held := receive(b, q)
		receive(b, another)
		all, taken, err := q.Items(b.Context())
		require.NoError(b, err)
		require.Len(b, all, 3)
		require.Len(b, taken, 2)
		require.Contains(b, taken, path.Base(held.Node()))
		require.ErrorIs(b, coordtest.Err(q.PeekAt(b.Context(), "x")), coord.ErrInvalid)
		items, err := q.PeekAt(b.Context(), append(all, "entry-100-0000000099")...)
		require.NoError(b, err)
		require.Len(b, items, 3)
		require.Equal(b, "b", string(items[1].Data))
		require.Equal(b, queue.DefaultPriority, items[1].Priority)
		claims, err := q.Claims(b.Context(), all...)
		require.NoError(b, err)
		require.Len(b, claims, 2)
		for _, claim := range claims {
			require.Contains(b, []string{c.Info().Identity, other.Info().Identity}, claim.Owner)
			require.True(b, claim.Holds)
		}
		consumers, err := q.Consumers(b.Context())
		require.NoError(b, err)
		require.NotEmpty(b, consumers)
		require.Equal(b, queue.ConsumerKind, consumers[0].Kind)
	})
}

// An item dies while the dead letters are listed.
func TestADeadLetterThatComesMeanwhileHasItsStory(t *testing.T) {
	inBubble(t, func(b bubble) {
		q := b.queue(b.Open())
		put(b, q, "a", "b")
		require.NoError(b, receive(b, q).Bury(b.Context(), "because"))
		looker := b.Open()
		slow := b.Server.Inject(zkembed.Match{Session: looker.Info().SessionID, Func: func(r zkembed.Request) bool {
			return slices.Equal(r.Paths, []string{"/q/dead/entries"})
		}, Times: 1}, zkembed.Delay(T/10))
		listed := coordtest.Begin(b.Context(), b.queue(looker).DeadLetters)
		<-slow.Struck()
		require.NoError(b, receive(b, q).Bury(b.Context(), "because"))
		for _, l := range coordtest.Had(b, listed) {
			require.Equal(b, "because", l.Reason)
		}
	})
}

// The process that makes the directories dies between the two.
func TestAQueueWhoseFirstProducerDiedHalfWayIsOne(t *testing.T) {
	inBubble(t, func(b bubble) {
		dying := b.Open()
		made := 0
		b.Server.Inject(zkembed.Match{Session: dying.Info().SessionID, Func: func(r zkembed.Request) bool {
			if slices.Equal(r.Paths, []string{"/q/entries"}) || slices.Equal(r.Paths, []string{"/q/taken"}) {
				made++
			}
			return made > 1
		}}, zkembed.Hang())
		require.Error(b, b.queue(dying).Put(b.Within(T/10), []byte("never")))
		require.NoError(b, b.Server.ExpireSession(dying.Info().SessionID))
		q := b.queue(b.Open())
		put(b, q, "x")
		_, _, listed := q.Items(b.Context())
		require.NoError(b, listed)
		first, err := q.Peek(b.Context())
		require.NoError(b, err)
		require.NoError(b, q.Drop(b.Context(), first.Name))
	})
}

func TestPeekPassesOverWhatMayNotBeRead(t *testing.T) {
	inBubble(t, func(b bubble) {
		q := b.queue(b.Open())
		put(b, q, "mine")
		owner := b.Open(coord.WithAuth("digest", "u:p"), coord.WithACL("auth::cdrwa"))
		require.NoError(b, coordtest.Err(owner.Txn(b.Context(), coord.AppendOp("/q/entries/entry-000-", nil))))
		first, err := q.Peek(b.Context())
		require.NoError(b, err)
		require.Equal(b, "mine", string(first.Data))
		require.NoError(b, q.Drop(b.Context(), first.Name))
		err = coordtest.Err(q.Peek(b.Context()))
		require.ErrorIs(b, err, queue.ErrEmpty)
		require.ErrorIs(b, err, coord.ErrNoAuth)
	})
}
