package cron_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

// away has nobody there for some minutes, and then a client until the end of
// the schedule; it returns what ran since.
func away(b coordtest.Bubble, minutes int, opts ...cron.Option) []string {
	s, _ := in(minutes + 2)
	b.Log("the first client comes, and goes")
	ctx, stop := context.WithCancel(b.Context())
	d := &diary{}
	ended := coordtest.Go(func() error { return scheduled(b, b.Open(), s, opts...).Run(ctx, d.lasting(0)) })
	time.Sleep(90 * time.Second)
	stop()
	require.ErrorIs(b, <-ended, context.Canceled)
	require.Len(b, d.ran(), 1)
	time.Sleep(time.Duration(minutes) * time.Minute)
	d = &diary{}
	require.ErrorIs(b, scheduled(b, b.Open(), s, opts...).Run(b.Context(), d.lasting(time.Second)), cron.ErrOver)
	return d.ran()
}

func TestMissedSlotsAreMadeUpForAsFarAsIsAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		opts []cron.Option
		runs string
		left int
	}{
		"the last": {nil, "00:11 00:12", 9},
		"three":    {[]cron.Option{cron.CatchUp(3, 0)}, "00:09 00:10 00:11 00:12", 7},
		"all": {
			[]cron.Option{cron.CatchUp(1000, 0)}, "00:02 00:03 00:04 00:05 00:06 00:07 00:08 00:09 00:10 00:11 00:12", 0,
		},
		"none":                   {[]cron.Option{cron.CatchUp(1, 20*time.Second)}, "00:12", 10},
		"those of three minutes": {[]cron.Option{cron.CatchUp(1000, 3*time.Minute)}, "00:09 00:10 00:11 00:12", 7},
	} {
		t.Run(name, func(t *testing.T) {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				require.Equal(b, c.runs, strings.Join(away(b, 10, c.opts...), " "))
				state, err := scheduled(b, b.Open(), every(time.Minute)).State(b.Context())
				require.NoError(b, err)
				require.Equal(b, c.left, state.LeftOut)
			})
		})
	}
}

// A schedule of seconds, and nobody was there for a month.
func TestManyMissedSlotsAreNotGoneThroughOneByOne(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		called := 0
		s := scheduleFunc(func(t time.Time) time.Time {
			called++
			return every(time.Second).Next(t)
		})
		c := b.Open()
		require.NoError(b, c.Create(b.Context(), "/cron/mark", []byte(`{"through":"1999-12-01T00:00:00Z"}`)))
		slot, err := scheduled(b, c, s).Begin(b.Context())
		require.NoError(b, err)
		require.WithinDuration(b, time.Now(), slot.At, 2*time.Second)
		require.Less(b, called, 500_000)
		require.NoError(b, coordtest.Err(slot.End(b.Context(), nil, nil)))
	})
}

type scheduleFunc func(time.Time) time.Time

func (f scheduleFunc) Next(t time.Time) time.Time { return f(t) }

// Each slot takes two and a half minutes; two clients.
func TestASlotThatIsDueWhileOneIsUnderWay(t *testing.T) {
	for name, c := range map[string]struct {
		opts  []cron.Option
		runs  string
		after time.Duration // the first slot, until the last has ended
	}{
		"waits, and the last is run": {nil, "00:01 00:03 00:06", 7*time.Minute + 30*time.Second},
		"waits": {
			[]cron.Option{cron.CatchUp(1000, 0)}, "00:01 00:02 00:03 00:04 00:05 00:06", 15 * time.Minute,
		},
		"is left out": {[]cron.Option{cron.Skip()}, "00:01 00:04", 5*time.Minute + 30*time.Second},
		"runs beside": {
			[]cron.Option{cron.MaxConcurrent(3)}, "00:01 00:02 00:03 00:04 00:05 00:06", 7*time.Minute + 30*time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				s, first := in(6)
				d := &diary{}
				var running sync.WaitGroup
				for range 2 {
					c := scheduled(b, b.Open(), s, c.opts...)
					running.Go(func() {
						if err := c.Run(b.Context(), d.lasting(150*time.Second)); !errors.Is(err, cron.ErrOver) {
							b.Error(err)
						}
					})
				}
				running.Wait()
				require.Equal(b, c.runs, strings.Join(d.ran(), " "))
				require.Equal(b, c.after, time.Since(first).Round(30*time.Second))
			})
		})
	}
}

// All say the same, and wait for the same.
func TestJitterIsTheSameForAll(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		s, first := in(30)
		delays := map[string]time.Duration{}
		var mu sync.Mutex
		var running sync.WaitGroup
		for range 3 {
			c := scheduled(b, b.Open(), s, cron.Jitter(50*time.Second))
			running.Go(func() {
				if err := c.Run(b.Context(), func(_ context.Context, s *cron.Slot) ([]byte, error) {
					mu.Lock()
					defer mu.Unlock()
					delays[s.Key] = time.Since(s.At)
					return nil, nil
				}); !errors.Is(err, cron.ErrOver) {
					b.Error(err)
				}
			})
		}
		running.Wait()
		require.Len(b, delays, 30)
		some := map[time.Duration]bool{}
		for _, d := range delays {
			require.Less(b, d, 51*time.Second)
			some[d.Round(10*time.Second)] = true
		}
		require.Greater(b, len(some), 3)
		require.Greater(b, delays[cron.Key(first)], time.Second)
	})
}

func TestAClockThatIsSetIsNoticedWithinAMinute(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		var mu sync.Mutex
		ahead := time.Duration(0)
		clock := cron.Clock(func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(ahead)
		})
		client := b.Open()
		_, err := recipe.EnsembleTime(b.Context(), client, "/cron/log", 0) // what it knows of the servers' clock is older
		require.NoError(b, err)
		c := scheduled(b, client, every(24*time.Hour), clock)
		slot := coordtest.Go(func() time.Time {
			s, err := c.Begin(b.Context())
			if err != nil {
				b.Error(err)
				return time.Time{}
			}
			_, _ = s.End(b.Context(), nil, nil)
			return s.At
		})
		time.Sleep(time.Hour)
		mu.Lock()
		ahead = 23*time.Hour + time.Second
		b.Server.ShiftClock(ahead)
		mu.Unlock()
		set := time.Now()
		require.Equal(b, "2000-01-02T00:00:00Z", cron.Key(<-slot))
		require.LessOrEqual(b, time.Since(set), 61*time.Second)
	})
}

// At most once: the client of a slot dies in the middle.
func TestSlotsThatAreDueUntilADeadClientsSlotIsOverAreSkipped(t *testing.T) {
	for name, opts := range map[string][]cron.Option{"at least once": nil, "at most once": {cron.Attempts(1, 0)}} {
		t.Run(name, func(t *testing.T) {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				opts := append(opts, cron.Skip())
				s := until{every(10 * time.Second), time.Now().Add(100 * time.Second)}
				dying := b.Open()
				first, err := scheduled(b, dying, s, opts...).Begin(b.Context())
				require.NoError(b, err)
				ended := coordtest.Go(func() error {
					return scheduled(b, b.Open(), s, opts...).
						Run(b.Context(), func(ctx context.Context, s *cron.Slot) ([]byte, error) {
							if !s.At.Equal(first.At) && time.Since(s.At) > 2*time.Second {
								b.Errorf("%s was due while another was under way", s.Key)
							}
							return nil, nil
						})
				})
				time.Sleep(36 * time.Second)
				require.NoError(b, b.Server.ExpireSession(dying.Info().SessionID))
				require.ErrorIs(b, <-ended, cron.ErrOver)
			})
		})
	}
}
