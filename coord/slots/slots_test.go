package slots_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// scene is a test on some server, in some dialect.
type scene struct{ coordtest.Scene }

func each(t *testing.T, f func(s scene)) {
	coordtest.EachDialect(t, func(s coordtest.Scene) { f(scene{s}) })
}

// client returns the slots for a client of its own.
func (s scene) client(n int, opts ...slots.Option) *slots.Slots {
	s.Helper()
	return of(s, s.Open(), s.W.Path("ids"), n, opts...)
}

func of(t testing.TB, c *coord.Client, path string, n int, opts ...slots.Option) *slots.Slots {
	t.Helper()
	s, err := slots.New(c, path, n, opts...)
	require.NoError(t, err)
	return s
}

// has acquires, and requires a number.
func has(t testing.TB, s *slots.Slots, number int) *slots.Slot {
	t.Helper()
	slot := coordtest.Acquire(t, s)
	require.Equal(t, number, slot.Number)
	require.Positive(t, slot.Token())
	return slot
}

func busy(t testing.TB, s *slots.Slots) {
	t.Helper()
	require.ErrorIs(t, coordtest.Err(s.TryAcquire(coordtest.Limited(t))), coord.ErrBusy)
}

func release(t testing.TB, slots ...*slots.Slot) {
	t.Helper()
	for _, slot := range slots {
		require.NoError(t, slot.Release(coordtest.Limited(t)))
	}
}

// begin acquires in the background.
func begin(ctx context.Context, s *slots.Slots) <-chan granted {
	return coordtest.Begin(ctx, s.Acquire)
}

type granted = coordtest.Outcome[*slots.Slot]

func given(t testing.TB, g <-chan granted, number int) *slots.Slot {
	t.Helper()
	slot := coordtest.Had(t, g)
	require.Equal(t, number, slot.Number)
	return slot
}

// inLine returns when so many wait.
func (s scene) inLine(n int) {
	s.Helper()
	zktest.Eventually(s, coordtest.Soon, func() bool {
		line, _, err := s.W.Admin().Children(s.W.Path("ids/line"))
		return err == nil && len(line) == n
	}, "%d in line", n)
}

func TestTheLowestFreeNumberIsGiven(t *testing.T) {
	each(t, func(s scene) {
		one, other := s.client(3), s.client(3)
		zero, first, second := has(s, one, 0), has(s, other, 1), has(s, one, 2)
		busy(s, other)
		wait := begin(s.Context(), other)
		s.inLine(1)
		next := begin(s.Context(), one)
		s.inLine(2)
		release(s, first)
		again := given(s, wait, 1)
		require.Greater(s, again.Token(), first.Token())
		release(s, second)
		second = given(s, next, 2)
		release(s, zero, again)
		slot, err := one.TryAcquire(coordtest.Limited(s))
		require.NoError(s, err)
		require.Equal(s, 0, slot.Number)
		release(s, slot, second)
		require.NoError(s, one.Do(coordtest.Limited(s), func(ctx context.Context, slot *slots.Slot) error {
			busy(s, s.client(1))
			return ctx.Err()
		}))
		s.inLine(0)
	})
}

func TestAllGetDifferentNumbersAtTheSameTime(t *testing.T) {
	each(t, func(s scene) {
		const n = 12
		var mu sync.Mutex
		got := map[int]bool{}
		var asking sync.WaitGroup
		for i := range 3 {
			pool := s.client(n)
			for k := range n / 3 {
				asking.Go(func() {
					acquire := pool.Acquire
					if k%2 == 1 {
						acquire = pool.TryAcquire
					}
					slot, err := acquire(coordtest.Limited(s))
					if err != nil {
						s.Error(i, err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					got[slot.Number] = true
				})
			}
		}
		asking.Wait()
		require.Len(s, got, n)
		busy(s, s.client(n))
	})
}

// A client with a smaller n is given smaller numbers; who has a larger one
// keeps it.
func TestNumbersBelowTheClientsOwnNAreGiven(t *testing.T) {
	each(t, func(s scene) {
		many, few := s.client(3), s.client(1)
		zero, first := has(s, many, 0), has(s, many, 1)
		busy(s, few)
		third := has(s, many, 2)
		require.NoError(s, first.Err())
		release(s, zero)
		zero = has(s, few, 0)
		busy(s, many)
		release(s, zero, first, third)
	})
}

func TestAnOwnerIsGivenItsNumberAgain(t *testing.T) {
	each(t, func(s scene) {
		a := s.client(4, slots.Durable("a", time.Hour))
		has(s, s.client(4), 0)
		first := has(s, a, 1)
		release(s, first)
		has(s, s.client(4), 2) // 1 is free, and a's
		b := s.client(4, slots.Durable("b", time.Hour))
		release(s, has(s, b, 3))
		busy(s, s.client(4))
		again := has(s, s.client(4, slots.Durable("a", time.Hour)), 1)
		require.Greater(s, again.Token(), first.Token())
		list, err := b.List(coordtest.Limited(s))
		require.NoError(s, err)
		require.Equal(s, []string{"0 held", "1 held a", "2 held", "3 b away"}, texts(list))
		release(s, again)
	})
}

func texts(list []slots.State) (all []string) {
	for _, now := range list {
		text := []string{fmt.Sprint(now.Number)}
		if now.Holder != nil {
			text = append(text, "held")
		}
		if now.Owner != "" {
			text = append(text, now.Owner)
		}
		if !now.Away.IsZero() {
			text = append(text, "away")
		}
		all = append(all, strings.Join(text, " "))
	}
	return all
}

// Its former process is still there, or the servers believe so.
func TestAnOwnerWaitsForItsNumberAndKeepsNobodyWaiting(t *testing.T) {
	each(t, func(s scene) {
		former := has(s, s.client(3, slots.Durable("a", 0)), 0)
		same := s.client(3, slots.Durable("a", 0))
		busy(s, same)
		wait := begin(s.Context(), same)
		other := has(s, s.client(3), 1)
		require.Empty(s, wait, "two have a's number")
		s.W.ExpireSession(former.Session())
		again := given(s, wait, 0)
		zktest.Receive(s, coordtest.Soon, former.Done(), "the loss")
		release(s, other, again)
	})
}

func TestTwoOfOneNameThatBeginAtTheSameTimeShareANumber(t *testing.T) {
	each(t, func(s scene) {
		held := []*slots.Slot{has(s, s.client(2), 0), has(s, s.client(2), 1)}
		one, two := s.client(2, slots.Durable("a", 0)), s.client(2, slots.Durable("a", 0))
		first, second := begin(s.Context(), one), begin(s.Context(), two)
		s.inLine(2)
		busy(s, s.client(2, slots.Durable("b", 0)))
		release(s, held...)
		var slot granted
		select {
		case slot = <-first:
			first = second
		case slot = <-second:
		}
		require.NoError(s, slot.Err)
		s.inLine(0)
		require.Empty(s, first, "a has two numbers")
		release(s, slot.Value)
		release(s, given(s, first, slot.Value.Number))
	})
}

func TestAnOwnerIsForgotten(t *testing.T) {
	each(t, func(s scene) {
		a, other := s.client(1, slots.Durable("a", time.Hour)), s.client(1)
		slot := has(s, a, 0)
		require.ErrorIs(s, other.Forget(coordtest.Limited(s), "a"), coord.ErrBusy)
		release(s, slot)
		busy(s, other)
		require.NoError(s, other.Forget(coordtest.Limited(s), "b"))
		busy(s, other)
		require.NoError(s, other.Forget(coordtest.Limited(s), "a"))
		slot = has(s, other, 0)
		list, err := a.List(coordtest.Limited(s))
		require.NoError(s, err)
		require.Equal(s, []string{"0 held"}, texts(list))
		require.Equal(s, slot.Token(), list[0].Holder.Token)
		require.NotContains(s, list[0].Holder.Owner, "\n")
		release(s, slot)
	})
}

func TestOnlyTheFirstInLineIsWokenByARelease(t *testing.T) {
	w := zktest.NewEmbedded(t, zkembed.WithSessionTimeouts(0, time.Hour))
	s := scene{coordtest.Scene{T: t, W: w, Dialect: coord.Curator}}
	open := func() *coord.Client {
		return coordtest.Open(t, w.ConnectString(), coord.WithSessionTimeout(time.Minute))
	}
	owner := open()
	pool := of(s, owner, w.Path("ids"), 2)
	before := w.Embedded().SessionCounts(owner.Info().SessionID)
	slot := has(s, pool, 0)
	release(s, slot)
	s.inLine(0)
	t.Log("a first acquire and release:", w.Embedded().SessionCounts(owner.Info().SessionID).Since(before))
	before = w.Embedded().SessionCounts(owner.Info().SessionID)
	slot = has(s, pool, 0)
	other := has(s, pool, 1)
	s.inLine(0)
	t.Log("two more acquires:", w.Embedded().SessionCounts(owner.Info().SessionID).Since(before))
	var clients []*coord.Client
	var waits []<-chan granted
	for i := range 5 {
		clients = append(clients, open())
		waits = append(waits, begin(s.Context(), of(s, clients[i], w.Path("ids"), 2)))
		s.inLine(i + 1)
	}
	last := clients[4]
	zktest.Eventually(s, coordtest.Soon, func() bool {
		return w.Embedded().SessionCounts(last.Info().SessionID)[zkembed.OpGetData] == 3
	}, "the last watches its own place, and the two before it")
	before = w.Embedded().SessionCounts(last.Info().SessionID)
	release(s, slot)
	slot = given(s, waits[0], 0)
	idle := w.Embedded().SessionCounts(last.Info().SessionID).Since(before)
	require.Zero(s, idle.Total()+idle[zkembed.OpNotify], "%v", idle)
	release(s, slot, other)
	for _, wait := range waits[1:] {
		release(s, coordtest.Had(s, wait))
	}
}

// While N is being changed that is no fault, so nobody is refused.
func TestTheFirstThatComesWithAnotherNumberOfSlotsReportsThatOnce(t *testing.T) {
	each(t, func(s scene) {
		told := map[string][]string{}
		use := func(name string, n int, opts ...slots.Option) *slots.Slots {
			return of(s, s.Open(coord.WithObserver(func(e event.Event) {
				if e.Kind == event.Differs {
					told[name] = append(told[name], e.Path+": "+e.Err.Error())
				}
			})), s.W.Path("ids"), n, opts...)
		}
		one, same := use("one", 2, slots.Durable("host", time.Hour)), use("same", 2)
		first := has(s, one, 0)
		release(s, has(s, same, 1))
		require.Empty(s, told)
		more := use("more", 3)
		for range 2 {
			release(s, has(s, more, 1))
		}
		second := has(s, more, 1)
		release(s, first)
		first = has(s, one, 0) // its own number
		require.Equal(s, map[string][]string{
			"more": {
				s.W.Path("ids") +
					": a holder was told that there are 2 slots here; this client, 3: each is given numbers below its own",
			},
			"one": {
				s.W.Path("ids") +
					": a holder was told that there are 3 slots here; this client, 2: each is given numbers below its own",
			},
		}, told)
		release(s, first, second)
	})
}
