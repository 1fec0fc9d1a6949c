package cron_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

const T = coordtest.T

func TestMain(m *testing.M) { zktest.Main(m) }

// every is a schedule whose instants do not depend on each other.
type every time.Duration

func (e every) Next(t time.Time) time.Time {
	return t.Truncate(time.Duration(e)).Add(time.Duration(e))
}

// until is a schedule that ends.
type until struct {
	every
	last time.Time
}

func (u until) Next(t time.Time) time.Time {
	if next := u.every.Next(t); !next.After(u.last) {
		return next
	}
	return time.Time{}
}

// in returns a schedule of n slots, a minute apart, and the first of them. The
// clock in a bubble begins at midnight.
func in(n int) (cron.Schedule, time.Time) {
	first := every(time.Minute).Next(time.Now()).UTC()
	return until{every(time.Minute), first.Add(time.Duration(n-1) * time.Minute)}, first
}

func scheduled(t testing.TB, c *coord.Client, s cron.Schedule, opts ...cron.Option) *cron.Cron {
	t.Helper()
	made, err := cron.New(c, "/cron", s, opts...)
	require.NoError(t, err)
	return made
}

// diary notes which slots ran.
type diary struct {
	mu   sync.Mutex
	runs []string
}

func (d *diary) note(s *cron.Slot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs = append(d.runs, s.At.Format("15:04"))
}

// ran returns the slots that ran, in the order in which they began.
func (d *diary) ran() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.runs)
}

// lasting is a function that takes a time, and ends with its context.
func (d *diary) lasting(took time.Duration) cron.Func {
	return func(ctx context.Context, s *cron.Slot) ([]byte, error) {
		d.note(s)
		select {
		case <-time.After(took):
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// states returns the states on record, by slot.
func states(t testing.TB, c *cron.Cron) map[string]once.State {
	t.Helper()
	all := map[string]once.State{}
	for r, err := range c.Ledger().List(coordtest.Limited(t)) {
		require.NoError(t, err)
		all[r.Key] = r.State
	}
	return all
}

var errNoLuck = errors.New("no luck")

// Real servers, in both dialects, in real time.
func TestEachSlotIsRunByOneOfTheClients(t *testing.T) {
	coordtest.EachDialect(t, func(s coordtest.Scene) {
		ctx, stop := context.WithCancel(coordtest.Limited(s))
		defer stop()
		const enough = 10
		var mu sync.Mutex
		ran := map[string]int{}
		var running sync.WaitGroup
		for range 3 {
			c, err := cron.New(s.Open(), s.W.Path("cron"), every(50*time.Millisecond))
			require.NoError(s, err)
			running.Go(func() {
				err := c.Run(ctx, func(_ context.Context, s *cron.Slot) ([]byte, error) {
					mu.Lock()
					defer mu.Unlock()
					ran[s.Key]++
					if len(ran) == enough {
						stop()
					}
					return nil, nil
				})
				if !errors.Is(err, context.Canceled) {
					s.Error(err)
				}
			})
		}
		running.Wait()
		require.GreaterOrEqual(s, len(ran), enough)
		for slot, times := range ran {
			require.Equal(s, 1, times, slot)
		}
	})
}

func TestTheKeyOfASlotIsItsInstant(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		s, first := in(2)
		c := scheduled(b, b.Open(), s, cron.Clock(func() time.Time { return time.Now().Add(20 * time.Second) }))
		d := &diary{}
		begun := time.Now()
		require.ErrorIs(b, c.Run(b.Context(), func(_ context.Context, s *cron.Slot) ([]byte, error) {
			d.note(s)
			if s.Attempt != 1 || s.Token() == 0 || s.Key != cron.Key(s.At) {
				b.Error(s)
			}
			return []byte("result"), nil
		}), cron.ErrOver)
		require.Equal(b, 100*time.Second, time.Since(begun).Round(time.Second), "by its own clock")
		require.Equal(b, map[string]once.State{cron.Key(first): once.Done, cron.Key(first.Add(time.Minute)): once.Done},
			states(b, c))
		require.Equal(b, "2000-01-01T00:01:00Z", cron.Key(first))
	})
}

func TestASlotWhoseClientHasGoneIsRunAgainUnlessItMayRunOnceOnly(t *testing.T) {
	for _, mostOnce := range []bool{false, true} {
		t.Run(fmt.Sprint(mostOnce), func(t *testing.T) {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				var opts []cron.Option
				if mostOnce {
					opts = append(opts, cron.Attempts(1, 0))
				}
				s, first := in(2)
				c := b.Open()
				d := &diary{}
				ctx, stop := context.WithCancel(b.Context())
				one := coordtest.Go(func() error { return scheduled(b, c, s, opts...).Run(ctx, d.lasting(10*time.Minute)) })
				time.Sleep(90 * time.Second)
				other := scheduled(b, b.Open(), s, opts...)
				two := coordtest.Go(func() error { return other.Run(b.Context(), d.lasting(0)) })
				time.Sleep(10 * time.Second)
				require.Len(b, d.ran(), 1)
				cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{c.Info().SessionID}})
				stop()
				require.ErrorIs(b, <-one, context.Canceled)
				require.ErrorIs(b, <-two, cron.ErrOver)
				cut.Heal()
				runs, state := "00:01 00:01 00:02", once.Done
				if mostOnce {
					runs, state = "00:01 00:02", once.Unfinished
				}
				require.Equal(b, runs, strings.Join(d.ran(), " "))
				require.Equal(b, map[string]once.State{cron.Key(first): state, cron.Key(first.Add(time.Minute)): once.Done},
					states(b, other))
			})
		})
	}
}

func TestAFailureEndsASlotUnlessThereAreAttemptsLeft(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		for _, attempts := range []int{0, 1, 3} {
			s, first := in(1)
			opts := []cron.Option{cron.KeepLast(1000)}
			if attempts > 0 {
				opts = append(opts, cron.Attempts(attempts, time.Minute))
			}
			var at []time.Duration
			var told []error
			var mu sync.Mutex
			report := cron.OnEnd(func(r once.Result, err error) {
				mu.Lock()
				defer mu.Unlock()
				if r.State != once.Failed {
					b.Error(r)
				}
				told = append(told, err)
			})
			c := scheduled(b, b.Open(), s, append(opts, report)...)
			require.ErrorIs(b, c.Run(b.Context(), func(context.Context, *cron.Slot) ([]byte, error) {
				mu.Lock()
				defer mu.Unlock()
				at = append(at, time.Since(first))
				return nil, errNoLuck
			}), cron.ErrOver)
			require.Equal(b, once.Failed, states(b, c)[cron.Key(first)])
			require.Equal(b, slices.Repeat([]error{errNoLuck}, max(1, attempts)), told)
			require.Len(b, at, max(1, attempts))
			if attempts == 3 {
				require.GreaterOrEqual(b, at[1]-at[0], time.Minute)
				require.GreaterOrEqual(b, at[2]-at[1], 2*time.Minute)
			}
		}
	})
}

func TestASlotWhoseClientStopsIsRunByAnother(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		s, _ := in(1)
		d := &diary{}
		ctx, stop := context.WithCancel(b.Context())
		one := coordtest.Go(func() error { return scheduled(b, b.Open(), s).Run(ctx, d.lasting(time.Hour)) })
		time.Sleep(90 * time.Second)
		other := scheduled(b, b.Open(), s)
		two := coordtest.Go(func() error { return other.Run(b.Context(), d.lasting(0)) })
		time.Sleep(time.Second)
		stop()
		require.ErrorIs(b, <-one, context.Canceled)
		stopped := time.Now()
		require.ErrorIs(b, <-two, cron.ErrOver)
		require.Less(b, time.Since(stopped), time.Second)
		require.Equal(b, []string{"00:01", "00:01"}, d.ran())
	})
}

// The client has chosen a slot. Until its claim arrives, the slot is over, and
// so many others have ended that it is not on record.
func TestASlotThatTheLedgerHasForgottenIsNotRunAgain(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		first := time.Now().UTC().Truncate(time.Second).Add(time.Second)
		s := until{every(time.Second), first.Add(9 * time.Second)}
		late, d := b.Open(), &diary{}
		slow := b.Server.Inject(creates("/cron/keys", late), zkembed.Delay(T/3))
		var own []string
		ended := coordtest.Go(func() error {
			return scheduled(b, late, s, cron.KeepLast(1), cron.CatchUp(1000, 0), behind(-4*time.Second)).
				Run(b.Context(), func(_ context.Context, s *cron.Slot) ([]byte, error) {
					own = append(own, s.Key)
					return nil, nil
				})
		})
		<-slow.Struck()
		other := scheduled(b, b.Open(), s, cron.KeepLast(1), cron.CatchUp(1000, 0))
		require.ErrorIs(b, other.Run(b.Context(), d.lasting(0)), cron.ErrOver)
		require.ErrorIs(b, <-ended, cron.ErrOver)
		require.NotContains(b, own, cron.Key(first))
		require.Len(b, append(own, d.ran()...), 10)
		require.NotContains(b, states(b, other), cron.Key(first), "a record of nothing that ran")
	})
}

// Its record was deleted after its client had gone.
func TestASlotThatMayRunOnceOnlyIsNotRunAgainWithoutARecord(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		s, first := in(2)
		d := &diary{}
		c := b.Open()
		one := scheduled(b, c, s, cron.Attempts(1, 0))
		slot, err := one.Begin(b.Context())
		require.NoError(b, err)
		require.NoError(b, b.Server.ExpireSession(c.Info().SessionID))
		<-slot.Done()
		time.Sleep(T)
		require.NoError(b, one.Ledger().Forget(b.Context(), slot.Key))
		require.ErrorIs(b, scheduled(b, b.Open(), s, cron.Attempts(1, 0)).Run(b.Context(), d.lasting(0)), cron.ErrOver)
		require.Equal(b, []string{first.Add(time.Minute).Format("15:04")}, d.ran())
	})
}

func TestHowFarAScheduleHasComeIsShown(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		s, first := in(2)
		c := scheduled(b, b.Open(), s)
		state, err := c.State(b.Context())
		require.NoError(b, err)
		require.Equal(b, cron.State{Next: first}, state)
		slot, err := c.Begin(b.Context())
		require.NoError(b, err)
		state, err = c.State(b.Context())
		require.NoError(b, err)
		require.Equal(b, cron.State{Through: first, Open: []time.Time{first}, Next: first.Add(time.Minute)}, state)
		res, err := slot.End(b.Context(), []byte("result"), nil)
		require.NoError(b, err)
		require.Equal(b, "result", string(res.Data))
		state, err = c.State(b.Context())
		require.NoError(b, err)
		require.Empty(b, state.Open)
	})
}

func TestAWaitLeavesNoWatchBehind(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		s, _ := in(20)
		var running sync.WaitGroup
		for range 3 {
			c := scheduled(b, b.Open(), s, cron.Keep(24*time.Hour))
			running.Go(func() { _ = c.Run(b.Context(), (&diary{}).lasting(10*time.Second)) })
		}
		running.Wait()
		require.LessOrEqual(b, b.Server.WatchCount(), 3, "one on the mark for each: %q", b.Server.Watched())
	})
}

// Both take their options from one slice.
func TestNewLeavesTheCallersOptionsAlone(t *testing.T) {
	c := coordtest.Open(t, zktest.New(t, zktest.Embedded).ConnectString())
	common := make([]cron.Option, 0, 2)
	bad := append(common, cron.KeepLast(0))
	require.NoError(t, coordtest.Err(cron.New(c, "/cron", every(time.Minute), common...)))
	require.ErrorIs(t, coordtest.Err(cron.New(c, "/cron", every(time.Minute), bad...)), coord.ErrInvalid)
}

func TestAScheduleAndAMarkThatMakeNoSenseAreRefused(t *testing.T) {
	c := coordtest.Open(t, zktest.New(t, zktest.Embedded).ConnectString())
	s := scheduled(t, c, every(time.Minute))
	stuck := scheduled(t, c, scheduleFunc(func(t time.Time) time.Time { return t }))
	require.ErrorContains(t, coordtest.Err(stuck.Begin(coordtest.Limited(t))), "not later")
	require.NoError(t, coordtest.Err(c.Txn(coordtest.Limited(t), coord.SetOp("/cron/mark", []byte("scribble"), -1))))
	require.ErrorContains(t, coordtest.Err(s.Begin(coordtest.Limited(t))), "/cron/mark")
	require.ErrorContains(t, coordtest.Err(s.State(coordtest.Limited(t))), "scribble")
}

func behind(by time.Duration) cron.Option {
	return cron.Clock(func() time.Time { return time.Now().Add(-by) })
}

// A client has chosen a slot, and comes to it when it has failed.
// The client that ran the slot dies before it has noted its end in the mark.
func TestAFailureStaysOnRecordThoughAnotherClientComesLate(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		s, first := in(1)
		late, other := b.Open(), b.Open()
		slow := b.Server.Inject(creates("/cron/keys", late), zkembed.Delay(T/3))
		waits := scheduled(b, late, s)
		ended := coordtest.Go(func() error {
			return waits.Run(b.Context(), func(context.Context, *cron.Slot) ([]byte, error) {
				b.Error("it is run again")
				return nil, nil
			})
		})
		<-slow.Struck()
		slot, err := scheduled(b, other, s).Begin(b.Context())
		require.NoError(b, err)
		noted := b.Server.Inject(zkembed.Match{
			Session: other.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/cron/mark", Times: 1,
		}, zkembed.ReplyError(zkembed.CodeNoAuth))
		require.NoError(b, coordtest.Err(slot.End(b.Context(), nil, errNoLuck)))
		require.Equal(b, 1, noted.Fired())
		b.Close(other)
		require.ErrorIs(b, <-ended, cron.ErrOver)
		require.Equal(b, map[string]once.State{cron.Key(first): once.Failed}, states(b, waits))
	})
}

// The end of a slot is noted in the mark, too, before anybody looks.
func TestASlotThatHasEndedIsNotRunAgainThoughItsRecordIsGone(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		s, first := in(1)
		c := scheduled(b, b.Open(), s)
		slot, err := c.Begin(b.Context())
		require.NoError(b, err)
		require.NoError(b, coordtest.Err(slot.End(b.Context(), nil, nil)))
		require.NoError(b, c.Ledger().Forget(b.Context(), cron.Key(first)))
		require.ErrorIs(b, coordtest.Err(c.Begin(b.Context())), cron.ErrOver)
	})
}

func TestWhoeverSaysHowOftenOnlyKeepsTheDefaultOfTheRecords(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		s, _ := in(130)
		c := scheduled(b, b.Open(), s, cron.Attempts(3, 0), cron.Attempts(1, 0))
		require.ErrorIs(b, c.Run(b.Context(), (&diary{}).lasting(0)), cron.ErrOver)
		require.Len(b, states(b, c), 100)
	})
}

// creates matches the creation of the client's first node below a path.
func creates(below string, c *coord.Client) zkembed.Match {
	return zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpCreate}, PathPrefix: below, Times: 1}
}

// The requests that the package's documentation names.
func TestTheCostOfASlot(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		s, _ := in(200)
		runs, waits := b.Open(coord.WithSessionTimeout(time.Hour)), b.Open(coord.WithSessionTimeout(time.Hour))
		ctx, stop := context.WithCancel(b.Context())
		var running sync.WaitGroup
		for _, c := range []*cron.Cron{scheduled(b, runs, s), scheduled(b, waits, s, behind(time.Second))} {
			running.Go(func() { _ = c.Run(ctx, (&diary{}).lasting(10*time.Second)) })
		}
		time.Sleep(150*time.Minute + 30*time.Second) // records are deleted
		one, other := b.Server.SessionCounts(runs.Info().SessionID), b.Server.SessionCounts(waits.Info().SessionID)
		time.Sleep(10 * time.Minute)
		mine := b.Server.SessionCounts(runs.Info().SessionID).Since(one)
		others := b.Server.SessionCounts(waits.Info().SessionID).Since(other)
		require.LessOrEqual(b, mine.Total(), 10*44)
		require.LessOrEqual(b, others.Total(), 10*6)
		stop()
		running.Wait()
	})
}
