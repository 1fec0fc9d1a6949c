package lock_test

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// turns has n goroutines wait for the mutex, one after the other, and returns
// where their turns appear. Each lasts for d.
func turns(b coordtest.Bubble, m *lock.Mutex, name string, n int, d time.Duration) <-chan string {
	granted := make(chan string, n)
	for i := range n {
		go func() {
			assert.NoError(b, m.Do(b.Context(), func(ctx context.Context, _ *coord.Hold) error {
				granted <- fmt.Sprint(name, i)
				time.Sleep(d)
				return ctx.Err()
			}))
		}()
		time.Sleep(time.Microsecond)
	}
	return granted
}

// TestALocalQueueIsOneNode and its turns are in order, and without requests.
func TestALocalQueueIsOneNode(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := mutex(b.T, b.Open(), "/lock", lock.LocalQueue(3, time.Second))
		h := coordtest.Acquire(b, m)
		before := b.Server.Counts()
		granted := turns(b, m, "", 100, 10*time.Millisecond)
		time.Sleep(time.Second)
		require.Empty(b, granted)
		require.Len(b, coordtest.Call(b, m.Contenders), 1)
		require.NoError(b, h.Release(b.Context()))
		for i := range 100 {
			require.Equal(b, fmt.Sprint(i), <-granted)
		}
		time.Sleep(100 * time.Millisecond)
		counts := b.Server.Counts().Since(before)
		require.Zero(b, counts[zkembed.OpCreate], "one node for all")
		require.Equal(b, 1, counts[zkembed.OpDelete])
		require.LessOrEqual(b, counts.Total(), 8, "requests do not grow with the turns: %v", counts)
		require.Empty(b, coordtest.Call(b, m.Contenders))
	})
}

// cycle acquires and releases, and returns the hold.
func cycle(b coordtest.Bubble, acquire func(context.Context) (*coord.Hold, error)) *coord.Hold {
	b.Helper()
	h, err := acquire(b.Context())
	require.NoError(b, err)
	require.NoError(b, h.Release(b.Context()))
	return h
}

// Two processes that both have work enough take turns in the proportion of
// their options, by number or by time.
func TestALocalQueueGivesWayToOthers(t *testing.T) {
	for _, tt := range []struct {
		name    string
		turns   int
		most    time.Duration
		atLeast int // turns in a row
		atMost  int
	}{
		{"after so many turns", 4, time.Hour, 4, 4},
		{"after so long", 1000, 95 * time.Millisecond, 8, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				var all sync.Mutex
				var order []byte
				var done sync.WaitGroup
				process := func(name byte) {
					m := mutex(b.T, b.Open(), "/lock", lock.LocalQueue(tt.turns, tt.most))
					for range 100 {
						done.Go(func() {
							assert.NoError(b, m.Do(b.Context(), func(ctx context.Context, _ *coord.Hold) error {
								require.True(b, all.TryLock(), "two hold")
								order = append(order, name)
								time.Sleep(10 * time.Millisecond)
								all.Unlock()
								return ctx.Err()
							}))
						})
					}
				}
				process('a')
				process('b')
				done.Wait()
				require.Len(b, order, 200)
				b.Logf("%s", order)
				runs := regexp.MustCompile("a+|b+").FindAllString(string(order), -1)
				require.Greater(b, len(runs), 11)
				for _, run := range runs[1 : len(runs)-2] { // the first began alone, and one ends before the other
					require.GreaterOrEqual(b, len(run), tt.atLeast, "%v", runs)
					require.LessOrEqual(b, len(run), tt.atMost, "%v", runs)
				}
			})
		})
	}
}

func TestALocalQueueIsLeftByThoseThatGiveUp(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		other := mutex(b.T, b.Open(), "/lock")
		h := coordtest.Acquire(b, other)
		m := mutex(b.T, b.Open(), "/lock", lock.LocalQueue(10, time.Minute))
		short := b.Within(time.Minute)
		failed := coordtest.Go(func() error { return coordtest.Err(m.Acquire(short)) })
		time.Sleep(time.Second)
		granted := turns(b, m, "", 1, 0)
		time.Sleep(time.Second)
		line := coordtest.Call(b, m.Contenders)
		require.Len(b, line, 2)
		require.ErrorIs(b, <-failed, context.DeadlineExceeded)
		time.Sleep(time.Second)
		require.Equal(b, line, coordtest.Call(b, m.Contenders), "the place in the line is kept for the one that waits")
		require.ErrorIs(b, coordtest.Err(m.Acquire(short)), context.DeadlineExceeded)
		require.NoError(b, h.Release(b.Context()))
		require.Equal(b, "0", <-granted)

		h = coordtest.Acquire(b, other)
		short = b.Within(time.Minute)
		require.ErrorIs(b, coordtest.Err(m.Acquire(short)), context.DeadlineExceeded)
		time.Sleep(time.Second)
		require.Len(b, coordtest.Call(b, m.Contenders), 1, "nobody waits any more, and a node is left")
		require.NoError(b, h.Release(b.Context()))
	})
}

// The turn shares the hold's fate, and the others join the line again.
func TestALocalQueueThatLosesItsNode(t *testing.T) {
	coordtest.InBubbles(t, map[string]func(b coordtest.Bubble, c *coord.Client, h *coord.Hold){
		"deleted": func(b coordtest.Bubble, _ *coord.Client, h *coord.Hold) {
			require.NoError(b, inspect.Break(b.Context(), b.Open(), h.Node()))
		},
		"deleted after it was asked for": func(b coordtest.Bubble, _ *coord.Client, h *coord.Hold) {
			require.NoError(b, inspect.Revoke(b.Context(), b.Open(), h.Node()))
			time.Sleep(time.Second)
			require.NoError(b, h.Err())
			require.NoError(b, inspect.Break(b.Context(), b.Open(), h.Node()))
		},
		"expired": func(b coordtest.Bubble, c *coord.Client, _ *coord.Hold) {
			require.NoError(b, b.Server.ExpireSession(c.Info().SessionID))
		},
	}, func(b coordtest.Bubble, lose func(b coordtest.Bubble, c *coord.Client, h *coord.Hold)) {
		c := b.Open()
		m := mutex(b.T, c, "/lock", lock.LocalQueue(10, time.Minute), lock.Linger(time.Minute))
		h := coordtest.Acquire(b, m)
		granted := turns(b, m, "", 3, 0)
		lose(b, c, h)
		<-h.Done()
		require.ErrorIs(b, h.Err(), coord.ErrLost)
		time.Sleep(time.Minute)
		require.Len(b, granted, 3, "some are not in the line again")
		for i := range 3 {
			require.Equal(b, fmt.Sprint(i), <-granted)
		}
		next := coordtest.Acquire(b, m)
		require.Greater(b, next.Token(), h.Token())
		require.NoError(b, next.Release(b.Context()))
		require.NoError(b, h.Release(b.Context()))
	})
}

// No turn is granted from memory when the window is over, though nothing has
// told so yet.
func TestALocalQueueLooksAtTheWindow(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := mutex(b.T, b.Open(), "/lock", lock.Linger(time.Hour))
		h := cycle(b, m.Acquire)
		time.Sleep(time.Second)
		b.Server.Stop()
		time.Sleep(2 * coordtest.T)
		short := b.Within(time.Second)
		require.ErrorIs(b, coordtest.Err(m.Acquire(short)), context.DeadlineExceeded)
		require.ErrorIs(b, coordtest.Err(m.TryAcquire(short)), context.DeadlineExceeded)
		b.Server.Resume()
		again := coordtest.Acquire(b, m)
		require.Greater(b, again.Token(), h.Token())
		require.NoError(b, again.Release(b.Context()))
	})
}

func TestALockThatLingersIsTakenAgainWithoutARequest(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := mutex(b.T, b.Open(), "/lock", lock.Linger(time.Second))
		token := cycle(b, m.Acquire).Token()
		time.Sleep(10 * time.Millisecond)
		before := b.Server.Counts()
		for range 100 {
			require.Equal(b, token, cycle(b, m.Acquire).Token())
			require.Equal(b, token, cycle(b, m.TryAcquire).Token())
		}
		require.Zero(b, b.Server.Counts().Since(before).Total())
		for range 3 {
			time.Sleep(900 * time.Millisecond)
			require.Equal(b, token, cycle(b, m.Acquire).Token())
		}
		time.Sleep(900 * time.Millisecond)
		require.Len(b, coordtest.Call(b, m.Contenders), 1)
		time.Sleep(200 * time.Millisecond)
		require.Empty(b, coordtest.Call(b, m.Contenders), "it lingers longer than it should")
		require.Greater(b, cycle(b, m.Acquire).Token(), token)
	})
}

// A newcomer of either dialect has to wait for a round trip, not for the end of
// the lingering.
func TestALockThatLingersYieldsAtOnce(t *testing.T) {
	kazoo := func(b coordtest.Bubble) {
		path := "/lock/0123456789abcdef0123456789abcdef__lock__0000000007"
		require.NoError(b, b.Open().Create(b.Context(), path, nil))
	}
	coordtest.InBubbles(t, map[string]func(b coordtest.Bubble, h *coord.Hold){
		"another waits": func(b coordtest.Bubble, _ *coord.Hold) {
			cycle(b, mutex(b.T, b.Open(), "/lock").Acquire)
		},
		"of the other dialect": func(b coordtest.Bubble, _ *coord.Hold) { kazoo(b) },
		"of an unknown recipe": func(b coordtest.Bubble, _ *coord.Hold) { b.Unknown("/lock", "n_") },
		"asked for": func(b coordtest.Bubble, h *coord.Hold) {
			require.NoError(b, inspect.Revoke(b.Context(), b.Open(), h.Node()))
		},
	}, func(b coordtest.Bubble, disturb func(b coordtest.Bubble, h *coord.Hold)) {
		h := cycle(b, mutex(b.T, b.Open(), "/lock", lock.Linger(time.Hour)).Acquire)
		time.Sleep(time.Second)
		begun := time.Now()
		disturb(b, h)
		time.Sleep(10 * time.Millisecond)
		_, there, err := b.Open().Exists(b.Context(), h.Node())
		require.NoError(b, err)
		require.False(b, there)
		require.Less(b, time.Since(begun), time.Second)
	})
}

// After a newcomer arrives, the current turn goes on, and the queue gets no
// turns beyond those it is allowed.
func TestATurnIsNotCutShortByANewcomer(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := mutex(b.T, b.Open(), "/lock", lock.Linger(time.Hour))
		cycle(b, m.Acquire)
		h := coordtest.Acquire(b, m)
		granted := turns(b, mutex(b.T, b.Open(), "/lock"), "other", 1, 0)
		time.Sleep(time.Minute)
		require.NoError(b, h.Err())
		require.Empty(b, granted)
		require.ErrorIs(b, coordtest.Err(m.TryAcquire(b.Context())), coord.ErrBusy)
		require.NoError(b, h.Release(b.Context()))
		require.Equal(b, "other0", <-granted)
		time.Sleep(time.Second) // until that turn is over
	})
}

func TestALocalQueueFailsForAll(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c, other := b.Open(), b.Open()
		m := mutex(b.T, c, "/lock", lock.LocalQueue(10, time.Minute))
		h := coordtest.Acquire(b, mutex(b.T, other, "/lock"))
		failed := make(chan error, 10)
		for range cap(failed) {
			go func() { failed <- coordtest.Err(m.Acquire(b.Context())) }()
		}
		time.Sleep(time.Second)
		require.ErrorIs(b, coordtest.Err(m.TryAcquire(b.Context())), coord.ErrBusy)
		require.NoError(b, c.Close(b.Context()))
		for range cap(failed) {
			require.ErrorIs(b, <-failed, coord.ErrClosed)
		}
		require.ErrorIs(b, coordtest.Err(m.TryAcquire(b.Context())), coord.ErrClosed)
		require.NoError(b, h.Release(b.Context()))
	})
}

// endsNext is a context that ends after it was asked whether it has, and as the
// turn before is released.
type endsNext struct {
	context.Context
	asked  int
	before *coord.Hold
}

func (c *endsNext) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	c.before.Abandon()
	return done
}

func (c *endsNext) Err() error {
	c.asked++
	if c.asked == 1 {
		return nil
	}
	return context.Canceled
}

// A turn that is granted while its caller's context ends is given back.
func TestATurnThatComesTooLate(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := mutex(b.T, b.Open(), "/lock", lock.Linger(time.Minute))
		cycle(b, m.Acquire)
		late := 0
		for range 200 {
			before := coordtest.Acquire(b, m)
			h, err := m.Acquire(&endsNext{Context: b.Context(), before: before})
			if err == nil {
				require.NoError(b, h.Release(b.Context()))
				continue
			}
			require.ErrorIs(b, err, context.Canceled)
			late++
			cycle(b, m.Acquire)
		}
		require.NotZero(b, late)
	})
}

// A request ends the turns of a node, however many are left.
func TestALocalQueueObeysARequest(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := mutex(b.T, b.Open(), "/lock", lock.LocalQueue(1000, time.Hour))
		h := coordtest.Acquire(b, m)
		granted := turns(b, m, "", 50, time.Second)
		time.Sleep(time.Second)
		other := b.Open()
		require.NoError(b, inspect.Revoke(b.Context(), other, h.Node()))
		<-h.Revoked()
		require.NoError(b, h.Release(b.Context()))
		time.Sleep(10 * time.Millisecond)
		_, there, err := other.Exists(b.Context(), h.Node())
		require.NoError(b, err)
		require.False(b, there, "the node has further turns")
		for i := range 50 {
			require.Equal(b, fmt.Sprint(i), <-granted)
		}
		time.Sleep(2 * time.Second) // until the last is over
	})
}

// Until the line has been read, the queue assumes that a contender waits.
func TestALocalQueueGivesWayToThoseItDoesNotKnowOfYet(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := mutex(b.T, b.Open(), "/lock", lock.LocalQueue(2, time.Hour))
		h := coordtest.Acquire(b, m)
		others := turns(b, mutex(b.T, b.Open(), "/lock"), "other", 1, 0)
		time.Sleep(time.Second)
		slow := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetChildren2}}, zkembed.DelayReply(time.Minute/10))
		granted := turns(b, m, "", 10, time.Microsecond)
		require.NoError(b, h.Release(b.Context()))
		time.Sleep(time.Second)
		require.Len(b, granted, 1, "the second turn is the last")
		time.Sleep(time.Minute)
		require.NotZero(b, slow.Fired())
		require.Len(b, others, 1)
		slow.Remove()
		for i := range 10 {
			require.Equal(b, fmt.Sprint(i), <-granted)
		}
		time.Sleep(time.Minute)
	})
}

func TestF61ATryTakesNoMoreTurnsThanTheQueueHas(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := mutex(b.T, b.Open(), "/lock", lock.LocalQueue(2, time.Hour), lock.Linger(time.Hour))
		h := coordtest.Acquire(b, m)
		other := turns(b, mutex(b.T, b.Open(), "/lock"), "other", 1, 0)
		time.Sleep(time.Second)
		slow := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetChildren2}}, zkembed.DelayReply(8*time.Second))
		defer slow.Remove()
		require.NoError(b, h.Release(b.Context()))
		require.Equal(b, h.Token(), cycle(b, m.TryAcquire).Token())
		require.ErrorIs(b, coordtest.Err(m.TryAcquire(b.Context())), coord.ErrBusy)
		require.Len(b, other, 1, "the node has further turns")
		require.NotZero(b, slow.Fired())
	})
}

// A try waits for its listing. Meanwhile a turn has made the lock linger,
// alone, at a node that is deleted, and the client does not hear of that.
func TestALockTakenByATryYieldsWhateverIsKnownOfTheNodeBeforeIt(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c, other := b.Open(), b.Open()
		m := mutex(b.T, c, "/lock", lock.Linger(time.Hour))
		throttle := func(op zkembed.Op, times int) *zkembed.Fault {
			return b.Server.Inject(
				zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{op}, Times: times},
				zkembed.ReplyError(zkembed.CodeThrottledOp))
		}
		unheard := throttle(zkembed.OpGetData, 0)
		slow := throttle(zkembed.OpGetChildren2, 1)
		tried := coordtest.Begin(b.Context(), m.TryAcquire)
		<-slow.Struck()
		before := cycle(b, m.Acquire)
		time.Sleep(time.Millisecond) // until it is known to be alone
		slow = throttle(zkembed.OpGetChildren2, 1)
		require.NoError(b, inspect.Break(b.Context(), other, before.Node()))
		<-slow.Struck()
		require.Empty(b, tried)
		h := coordtest.Had(b, tried)
		require.Greater(b, h.Token(), before.Token())
		unheard.Remove()
		require.NoError(b, h.Release(b.Context()))
		time.Sleep(time.Second)
		require.Len(b, coordtest.Call(b, m.Contenders), 1, "the lock does not linger")
		short := b.Within(time.Second)
		next, err := mutex(b.T, other, "/lock").Acquire(short)
		require.NoError(b, err, "nobody watches the node")
		require.NoError(b, next.Release(b.Context()))
	})
}

func TestATryAfterAReleaseIsNotBusyAndNoLostReplyKeepsTheNode(t *testing.T) {
	for name, opts := range map[string][]lock.Option{
		"local":            {lock.LocalQueue(1, time.Hour)},
		"local, delayed":   {lock.LocalQueue(1, time.Hour), lock.Delay(delay)},
		"lingers, delayed": {lock.Linger(time.Hour), lock.Delay(delay)},
	} {
		t.Run(name, func(t *testing.T) {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				m := mutex(b.T, b.Open(), "/lock", opts...)
				again := func() {
					h, err := m.TryAcquire(b.Context())
					require.NoError(b, err)
					require.NoError(b, h.Release(b.Context()))
				}
				for range 50 {
					again()
				}
				time.Sleep(2 * time.Hour) // it lingers no more
				b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/lock", Times: 1},
					zkembed.LoseReply())
				again()
			})
		})
	}
}

func TestATryWithAnEndedContextGetsNoTurn(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		m := mutex(b.T, b.Open(), "/lock", lock.Linger(time.Hour))
		require.NoError(b, coordtest.Acquire(b, m).Release(b.Context()))
		ended, end := context.WithCancel(b.Context())
		end()
		require.ErrorIs(b, coordtest.Err(m.TryAcquire(ended)), context.Canceled)
	})
}

// endsAfter is a context that ends when it has been asked.
type endsAfter struct {
	context.Context
	end context.CancelFunc
}

func (c endsAfter) Err() error {
	defer c.end()
	return c.Context.Err()
}

func TestATryThatWaitsForItsFormerNodeEndsWithItsContext(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		m := mutex(b.T, c, "/lock", lock.LocalQueue(1, time.Hour), lock.Delay(delay))
		h, err := m.TryAcquire(b.Context())
		require.NoError(b, err)
		b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}}, zkembed.Hang())
		require.NoError(b, h.Release(b.Context()))
		ctx, end := context.WithCancel(b.Context())
		begun := time.Now()
		require.ErrorIs(b, coordtest.Err(m.TryAcquire(endsAfter{ctx, end})), context.Canceled)
		require.Less(b, time.Since(begun), time.Second)
	})
}
