package queue_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// kazooTakes makes a claim as Kazoo does.
func kazooTakes(t testing.TB, c *coord.Client, path string) {
	t.Helper()
	require.NoError(t, coordtest.Err(c.Txn(t.Context(), coord.EphemeralOp(path, []byte("4f1d5b2c9e")))))
}

// settlements are the ways to be done with an item.
var settlements = map[string]func(*queue.Item, context.Context) error{
	"ack":             (*queue.Item).Ack,
	"nack":            func(i *queue.Item, ctx context.Context) error { return i.Nack(ctx, 0) },
	"nack with delay": func(i *queue.Item, ctx context.Context) error { return i.Nack(ctx, time.Second) },
}

// The claims of both items were broken, others have the items, and their former
// receiver does not know. Two claims of one item by this library are nodes of
// the same path and version: the version of the entry distinguishes them.
// Kazoo's claims do not change the entry: they are told by their version.
func TestNothingIsRemovedThatAnotherHasByNow(t *testing.T) {
	for name, settle := range settlements {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				c, admin := b.Open(), b.Open()
				q, other := b.queue(c), b.queue(b.Open(), queue.Backoff(0))
				put(b, q, "a", "b")
				stale := []*queue.Item{receive(b, q), receive(b, q)}
				b.Server.Inject(zkembed.Match{Session: c.Info().SessionID}, zkembed.DelayEvents(10*time.Minute))
				require.NoError(b, inspect.Break(b.Context(), admin, stale[0].Node()))
				again := receive(b, other)
				require.Equal(b, "a", string(again.Data))
				kazoos := stale[1].Node()
				require.NoError(b, inspect.Break(b.Context(), admin, kazoos))
				kazooTakes(b, admin, kazoos)
				for _, item := range stale {
					require.NoError(b, item.Err(), "it does not know")
					require.ErrorIs(b, settle(item, b.Context()), queue.ErrStale)
				}
				time.Sleep(2 * T)
				require.NoError(b, again.Err(), "the other's claim was removed")
				data, _, err := admin.Get(b.Context(), kazoos)
				require.NoError(b, err, "Kazoo's claim was removed")
				require.Equal(b, "4f1d5b2c9e", string(data))
				require.Equal(b, 2, length(b, other))
				ack(b, again)
			})
		})
	}
}

func TestAnAckOfAnItemThatWasDeletedByHandIsStaleAndLeavesNoClaim(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := coordtest.Open(t, w.ConnectString())
		q := newQueue(t, c, w.Path("q"))
		put(t, q, "a")
		item := receive(t, q)
		require.NoError(t, c.Delete(t.Context(), only(t, c, w.Path("q/entries")), -1))
		require.ErrorIs(t, item.Ack(t.Context()), queue.ErrStale)
		<-item.Done()
		zktest.Eventually(t, secondWaits, func() bool { return len(children(t, c, w.Path("q/taken"))) == 0 },
			"the claim goes")
	})
}

func TestAnItemIsAckedOrNackedOnce(t *testing.T) {
	inBubble(t, func(b bubble) {
		q := b.queue(b.Open())
		put(b, q, "a", "b")
		first, second := receive(b, q), receive(b, q)
		require.NoError(b, first.Ack(b.Context()))
		require.ErrorIs(b, first.Nack(b.Context(), 0), queue.ErrStale)
		require.ErrorIs(b, first.Nack(b.Context(), time.Second), queue.ErrStale)
		require.NoError(b, second.Nack(b.Context(), time.Second))
		require.ErrorIs(b, second.Ack(b.Context()), queue.ErrStale)
		require.ErrorIs(b, second.Nack(b.Context(), 0), queue.ErrStale)
		require.Equal(b, 1, length(b, q))
		again := receive(b, q)
		<-second.Done()
		require.Equal(b, 2, again.Deliveries)
		ack(b, again)
	})
}

// An item that was given back, or whose claim was broken, comes back to the
// consumers of the very object that had it.
func TestAnItemComesBackToThoseWhoWaitBesideItsReceiver(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, q := b.consumer()
		put(b, q, "a")
		for _, end := range []func(*queue.Item){
			func(i *queue.Item) { require.NoError(b, i.Nack(b.Context(), 0)) },
			func(i *queue.Item) { require.NoError(b, i.Nack(b.Context(), time.Minute)) },
			func(*queue.Item) {
				require.NoError(b, inspect.Break(b.Context(), c, b.claim(c)))
			},
		} {
			item := receive(b, q)
			got := make(chan *queue.Item, 1)
			go b.receive(q, got)
			synctest.Wait()
			end(item)
			again := b.next(got)
			require.Equal(b, item.Deliveries+1, again.Deliveries)
			require.NoError(b, again.Nack(b.Context(), 0))
		}
	})
}

// Kazoo puts items so large that a claim cannot carry them again.
func TestAnItemTooLargeToBeCountedIsDeliveredAllTheSame(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := coordtest.Open(t, w.ConnectString())
		q := newQueue(t, c, w.Path("q"))
		put(t, q, "small")
		large := bytes.Repeat([]byte("x"), 0xfffff-200)
		require.NoError(t, coordtest.Err(c.Txn(t.Context(), coord.AppendOp(w.Path("q/entries")+"/entry-000-", large))))
		for range 2 {
			item := receive(t, q)
			require.Equal(t, large, item.Data)
			require.Equal(t, 1, item.Deliveries)
			require.NoError(t, item.Nack(t.Context(), 0))
		}
		ack(t, receive(t, q))
		require.Equal(t, 1, length(t, q))
		require.ErrorIs(t, q.Put(t.Context(), large), coord.ErrTooLarge)
		require.NoError(t, q.Put(t.Context(), large[:queue.MaxSize]))
		ack(t, receive(t, q))
		ack(t, receive(t, q))
	})
}

func TestNothingIsPutWhenTheSequenceNumbersAreUsedUpUntilTheDirectoryIsMadeAnew(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, q := b.consumer()
		put(b, q, "a")
		require.NoError(b, b.Server.SetSequence("/q/entries", 1<<31-1<<16))
		put(b, q, "b")
		require.ErrorIs(b, q.Put(b.Context(), nil), coord.ErrSequenceExhausted)
		require.NoError(b, b.Server.SetSequence("/q/entries", 1<<31-1))
		other := b.queue(b.Open())
		put(b, other, "c")
		require.ErrorIs(b, other.Put(b.Context(), nil), coord.ErrSequenceExhausted)
		require.ErrorIs(b, b.queue(b.Open()).Put(b.Context(), nil), coord.ErrSequenceExhausted)
		for _, want := range []string{"a", "b", "c"} {
			require.Equal(b, want, take(b, q))
		}
		require.NoError(b, c.Delete(b.Context(), "/q/entries", -1))
		put(b, q, "d")
		require.Equal(b, "d", take(b, q))
	})
}

func TestADeadLetterForWhichThereIsNoNumberIsReported(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		q, dead := b.queue(c, queue.DeadLetters(1)), newQueue(b, c, "/q/dead")
		put(b, dead, "a")
		require.NoError(b, b.Server.SetSequence("/q/dead/entries", 1<<31-1))
		put(b, dead, "b") // the counter sticks from here on
		put(b, q, "c")
		require.NoError(b, receive(b, q).Nack(b.Context(), 0))
		_, err := q.TryReceive(b.Within(time.Minute))
		require.ErrorIs(b, err, coord.ErrSequenceExhausted)
		require.ErrorContains(b, err, "/q/dead/entries")
		require.Equal(b, 1, length(b, q), "it stays")
	})
}

func TestAWaitingConsumerSurvivesItsSession(t *testing.T) {
	inBubble(t, func(b bubble) {
		got := make(chan *queue.Item, 3)
		clients := b.idle(4, got)
		for _, c := range clients {
			id := c.Info().SessionID
			require.NoError(b, b.Server.ExpireSession(id))
			for c.Info().SessionID == id || c.Info().SessionID == 0 {
				time.Sleep(time.Second)
			}
		}
		producer := b.queue(b.Open())
		for range clients {
			put(b, producer, "a")
			ack(b, b.next(got))
		}
	})
}

func TestTryFormsFailOnAnEmptyQueue(t *testing.T) {
	inBubble(t, func(b bubble) {
		q, other := b.queue(b.Open()), b.queue(b.Open())
		require.ErrorIs(b, coordtest.Err(q.TryReceive(b.Context())), queue.ErrEmpty)
		require.ErrorIs(b, coordtest.Err(q.TryTake(b.Context())), queue.ErrEmpty)
		put(b, q, "a", "b")
		held, err := q.TryReceive(b.Context())
		require.NoError(b, err)
		data, err := other.TryTake(b.Context())
		require.NoError(b, err)
		require.Equal(b, "b", string(data))
		require.ErrorIs(b, coordtest.Err(other.TryReceive(b.Context())), queue.ErrEmpty)
		require.NoError(b, held.Nack(b.Context(), 0))
		time.Sleep(queue.DefaultBackoff)
		require.NoError(b, coordtest.Err(other.TryTake(b.Context())))
	})
}

func TestCloseFreesThoseWhoWait(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.idle(4, make(chan *queue.Item, 4))
		q := b.queue(b.Open())
		ended := make(chan error, 6)
		for range 3 {
			go func() { _, err := q.Receive(context.Background()); ended <- err }()
			go func() { _, err := q.Take(context.Background()); ended <- err }()
		}
		synctest.Wait()
		require.NoError(b, q.Close(b.Context()))
		for range 6 {
			err := <-ended
			require.ErrorIs(b, err, queue.ErrClosed)
			require.NotErrorIs(b, err, context.Canceled, "nobody has cancelled the caller")
		}
		require.ErrorIs(b, coordtest.Err(q.TryReceive(b.Context())), queue.ErrClosed)
	})
}

func TestAPutThatWasNeverSentIsNotUnconfirmed(t *testing.T) {
	inBubble(t, func(b bubble) {
		q := b.queue(b.Open())
		put(b, q, "a")
		b.Server.Stop()
		defer b.Server.Resume()
		synctest.Wait()
		err := q.Put(b.Within(time.Second), []byte("b"))
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.ErrorIs(b, err, coord.ErrDisconnected)
		require.NotErrorIs(b, err, coord.ErrUnconfirmed)
	})
}

func TestAPutWhoseSessionEndedBeforeItsReplyIsUnconfirmed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(), b.queue(b.Open())
		q := b.queue(c)
		put(b, q, "a")
		lost := b.Server.Inject(zkembed.Match{
			Ops: []zkembed.Op{zkembed.OpMulti}, Session: c.Info().SessionID, Times: 1,
			Func: func(r zkembed.Request) bool {
				return len(r.Parts) == 2
			},
		}, zkembed.LoseReply())
		done := coordtest.Go(func() error { return q.Put(b.Context(), []byte("b")) })
		<-lost.Struck()
		require.NoError(b, b.Server.ExpireSession(c.Info().SessionID))
		require.ErrorIs(b, <-done, coord.ErrUnconfirmed)
		require.Equal(b, 2, length(b, other), "it was put")
		put(b, q, "c")
		require.Equal(b, 3, length(b, other))
	})
}

// Consumers give up at random points of a Receive or Take; at none does a claim
// stay, and no item is lost but to a Take that cannot know.
func TestConsumersThatGiveUpAnywhereLeaveNoClaim(t *testing.T) {
	for seed := range uint64(4) {
		inBubble(t, func(b bubble) { giveUpAnywhere(b, &chance{r: rand.New(rand.NewPCG(seed, 7))}) })
	}
}

func giveUpAnywhere(b bubble, c *chance) {
	const n = 150
	producer := b.queue(b.Open())
	putBatch(b, producer, n)
	slow := b.Server.Inject(zkembed.Match{}, zkembed.DelayReply(time.Millisecond))
	var mu sync.Mutex
	var wg sync.WaitGroup
	seen, unknown := map[string]int{}, 0
	note := func(data []byte, err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			seen[string(data)]++
		case errors.Is(err, coord.ErrUnconfirmed):
			unknown++
		}
	}
	for k := range 4 {
		q := b.queue(b.Open())
		wg.Go(func() {
			for range 100 {
				ctx, cancel := context.WithTimeout(b.Context(), time.Duration(c.n(9000))*time.Microsecond)
				if k%2 > 0 {
					note(q.Take(ctx))
				} else if item, err := q.Receive(ctx); err == nil {
					ack(b, item)
					note(item.Data, nil)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	slow.Remove()
	time.Sleep(T)
	require.Empty(b, children(b, b.Open(), "/q/taken"))
	for left := length(b, producer); left > 0; left-- {
		item := receive(b, producer)
		seen[string(item.Data)]++
		ack(b, item)
	}
	for item, times := range seen {
		require.Equal(b, 1, times, "item %s", item)
	}
	b.Logf("%d items seen, %d takes unknown", len(seen), unknown)
	require.LessOrEqual(b, n-len(seen), unknown)
}

func TestAReceiveWhoseSessionEndsWithAClaimUnderWayGoesOnInTheNext(t *testing.T) {
	for _, fault := range []zkembed.Action{zkembed.LoseReply(), zkembed.Drop()} {
		inBubble(t, func(b bubble) {
			c, q := b.consumer()
			put(b, q, "a")
			f := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/q/taken/", Times: 1}, fault)
			id := c.Info().SessionID
			got := coordtest.Go(func() *queue.Item { return receive(b, q) })
			<-f.Struck()
			require.NoError(b, b.Server.ExpireSession(id))
			item := b.next(got)
			require.Equal(b, "a", string(item.Data))
			require.NotEqual(b, id, c.Info().SessionID)
			ack(b, item)
			require.Zero(b, length(b, q))
		})
	}
}

func TestF56AConsumerIsNotRefusedForAContenderOfTheOtherDialectAmongTheIdle(t *testing.T) {
	inBubble(t, func(b bubble) {
		got := make(chan *queue.Item, 2)
		b.idle(2, got)
		defer b.Foreign("/q/waiting")()
		q := b.queue(b.Open()) // which needs a place, since it is not alone
		failed := coordtest.Go(func() error { return coordtest.Err(q.Receive(b.Context())) })
		time.Sleep(time.Minute)
		require.Empty(b, failed)
		for range 3 {
			put(b, b.queue(b.Open()), "a")
		}
		require.NoError(b, <-failed)
	})
}

func TestClientsOfBothDialectsShareAQueue(t *testing.T) {
	inBubble(t, func(b bubble) {
		got := make(chan *queue.Item, 6)
		b.idle(3, got)
		for range 3 {
			q := b.queue(b.Open(coord.WithDialect(coord.Kazoo)))
			go b.receive(q, got)
		}
		time.Sleep(time.Second)
		producer := b.queue(b.Open())
		for range 6 {
			put(b, producer, "a")
		}
		for range 6 {
			ack(b, b.next(got))
		}
	})
}

// The item that one consumer could not obtain is there for another of the same
// object, which found nothing while the first tried.
func TestWhatOneConsumerFailsToObtainGoesToAnotherOfTheSameObject(t *testing.T) {
	for range 20 {
		inBubble(t, func(b bubble) {
			producer, c := b.queue(b.Open()), b.Open()
			q := b.queue(c)
			put(b, producer, "before")
			require.NoError(b, coordtest.Err(producer.TryTake(b.Context())))
			refused := b.Server.Inject(zkembed.Match{
				Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1,
				Func: func(r zkembed.Request) bool {
					return len(r.Parts) == 4 // the witness, and the three operations of a take
				},
			}, zkembed.ReplyError(zkembed.CodeNoAuth))
			taken, failed := make(chan string, 2), make(chan error, 2)
			for range 2 {
				go func() {
					data, err := q.Take(b.Context())
					if err != nil {
						failed <- err
						return
					}
					taken <- string(data)
				}()
			}
			synctest.Wait()
			put(b, producer, "a")
			require.ErrorIs(b, <-failed, coord.ErrNoAuth)
			require.Equal(b, 1, refused.Fired())
			require.Equal(b, "a", zktest.Receive(b, T, taken, "nobody takes the item"))
		})
	}
}

func TestACloseWithADeadContextLeavesNothing(t *testing.T) {
	for range 10 {
		inBubble(t, func(b bubble) {
			c, q := b.consumer()
			put(b, q, "a")
			receive(b, q)
			waiting := b.Within(time.Second)
			require.ErrorIs(b, coordtest.Err(q.Receive(waiting)), context.DeadlineExceeded)
			dead, cancel := context.WithCancel(b.Context())
			cancel()
			_ = q.Close(dead)
			b.nothingOf(c)
		})
	}
}

func TestAnItemThatWasLostAndForgottenIsNotKept(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, q := b.consumer()
		put(b, q, "a")
		lost := weak.Make(receive(b, q))
		require.NoError(b, inspect.Break(b.Context(), c, b.claim(c)))
		time.Sleep(time.Second)
		again := receive(b, q)
		runtime.GC()
		require.Nil(b, lost.Value(), "held until Close")
		ack(b, again)
	})
}

// The next item is read ahead, and may have been delivered and given back
// before it is asked for.
func TestAnItemThatWasReadAheadAndDeliveredMeanwhileIsNotOverlooked(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		mine, other := b.queue(c), b.queue(b.Open())
		put(b, other, "held", "before", "first", "second")
		held := receive(b, other) // mine knows of another consumer then
		ack(b, receive(b, mine))
		first := receive(b, mine) // just after the one before
		require.Equal(b, "first", string(first.Data))
		require.Equal(b, 4, b.Server.SessionCounts(c.Info().SessionID)[zkembed.OpGetData], "the second is read ahead")
		second := receive(b, other)
		require.Equal(b, "second", string(second.Data))
		require.NoError(b, second.Nack(b.Context(), 0))
		ack(b, first)
		again := receive(b, mine)
		require.Equal(b, "second", string(again.Data))
		require.Equal(b, 2, again.Deliveries)
		ack(b, again)
		ack(b, held)
	})
}

// Who asks for a claim, as for any other hold, writes into its node. It is the
// receiver's all the same.
func TestAClaimThatWasAskedForIsAckedAllTheSame(t *testing.T) {
	for _, name := range []string{"ack", "nack", "nack with delay", "close"} {
		for _, heard := range []time.Duration{0, time.Second} {
			inBubble(t, func(b bubble) {
				admin := b.Open()
				q := b.queue(b.Open())
				put(b, q, "a")
				item := receive(b, q)
				for range 2 {
					require.NoError(b, inspect.Revoke(b.Context(), admin, b.claim(admin)))
					time.Sleep(heard)
				}
				require.NoError(b, item.Err(), "to be asked is not to lose")
				if heard > 0 {
					<-item.Revoked()
				}
				if settle := settlements[name]; settle != nil {
					require.NoError(b, settle(item, b.Context()), name)
				} else {
					require.NoError(b, q.Close(b.Context()))
				}
				time.Sleep(2 * time.Second)
				require.Empty(b, children(b, admin, "/q/taken"), name)
				require.Equal(b, name == "ack", length(b, b.queue(admin)) == 0, name)
			})
		}
	}
}

// The request of an Ack is lost, and before its repeat the claim is broken, and
// the item is received and removed by another: a deleted entry is no proof of
// one's own work.
func TestF57AnItemThatAnotherHasRemovedBeforeTheRepeatIsStale(t *testing.T) {
	type settlement struct {
		taken  int // of the two items
		settle func(context.Context, *queue.Queue, []*queue.Item) error
	}
	batch := func(ctx context.Context, q *queue.Queue, items []*queue.Item) error { return q.AckBatch(ctx, items...) }
	for name, s := range map[string]settlement{
		"ack": {
			1, func(ctx context.Context, _ *queue.Queue, items []*queue.Item) error { return items[0].Ack(ctx) },
		},
		"nack": {
			1, func(ctx context.Context, _ *queue.Queue, items []*queue.Item) error { return items[0].Nack(ctx, 0) },
		},
		"batch":             {2, batch},
		"one item of batch": {1, batch},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				c, other := b.Open(), b.Open()
				mine, others := b.queue(c), b.queue(other)
				put(b, mine, "a", "b")
				items := []*queue.Item{receive(b, mine), receive(b, mine)}
				b.Server.Inject(zkembed.Match{Session: c.Info().SessionID}, zkembed.DelayEvents(T))
				match := zkembed.Match{
					Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/q/taken/", Times: 1,
				}
				lost, late := b.Server.Inject(match, zkembed.Drop()), b.Server.Inject(match, zkembed.Delay(2*time.Second))
				settled := coordtest.Go(func() error { return s.settle(b.Context(), mine, items) })
				time.Sleep(time.Second)
				require.Equal(b, [2]int{1, 1}, [2]int{lost.Fired(), late.Fired()})
				for _, item := range items[:s.taken] {
					require.NoError(b, inspect.Break(b.Context(), other, item.Node()))
					again := receive(b, others)
					require.Equal(b, item.Data, again.Data)
					ack(b, again)
				}
				require.ErrorIs(b, <-settled, queue.ErrStale)
				if name == "one item of batch" {
					require.ErrorIs(b, items[1].Err(), coord.ErrReleased)
					require.Zero(b, length(b, others), "what nobody took away is removed")
				}
			})
		})
	}
}

// The claim is answered, and the reply to the read of the next item, which goes
// with it, is missing until the window is over. The read may also go before the
// claim: then there is another try.
func TestAnItemWhoseClaimEndsBeforeItIsReturnedIsNotHandedOut(t *testing.T) {
	const late = time.Second
	for tries, struck := 0, false; !struck; tries++ {
		require.Less(t, tries, 100)
		inBubble(t, func(b bubble) {
			var silent sync.Once
			c := b.Open(coord.WithObserver(func(e event.Event) {
				if e.Kind == event.Granted {
					silent.Do(func() {
						b.Server.Stop()
						time.AfterFunc(T*9/10, b.Server.Resume)
					})
				}
			}))
			q := b.queue(c)
			put(b, b.queue(b.Open()), "a", "b")
			b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, PathPrefix: "/q/entries/entry-100-0000000001", Times: 1},
				zkembed.DelayReply(late))
			time.Sleep(T / 2)
			begun, session := time.Now(), c.Info().SessionID
			item := receive(b, q)
			require.NoError(b, item.Err())
			struck = time.Since(begun) > late
			if struck {
				require.Equal(b, session, c.Info().SessionID, "the session survived")
			}
			time.Sleep(T)
		})
	}
}

// The first Ack of a queue object makes a node before.
func TestAnAckWhoseContextEndsBeforeItIsSentGivesTheItemBack(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		q, other := b.queue(c), b.queue(b.Open())
		put(b, other, "a")
		item := receive(b, q)
		slow := b.Server.Inject(zkembed.Match{
			Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpCreate, zkembed.OpMulti}, Times: 1,
		}, zkembed.DelayReply(T/4))
		require.ErrorIs(b, item.Ack(b.Within(T/8)), coord.ErrUnconfirmed)
		require.Equal(b, 1, slow.Fired())
		require.Equal(b, "a", string(receive(b, other).Data))
	})
}

func TestAnAckOfABatchOutlastsItsContextNoLongerThanOneOfAnItem(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		q := b.queue(c)
		put(b, b.queue(b.Open()), "a", "b")
		items, err := q.ReceiveBatch(b.Context(), 2)
		require.NoError(b, err)
		require.Len(b, items, 2)
		b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpCreate, zkembed.OpMulti}},
			zkembed.DelayReply(T/3))
		ctx := b.Within(T / 8)
		require.ErrorIs(b, q.AckBatch(ctx, items...), coord.ErrUnconfirmed)
		over, _ := ctx.Deadline()
		require.LessOrEqual(b, time.Since(over), 50*time.Millisecond)
	})
}
