package cron_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

const year = 365 * 24 * time.Hour

// host has a clock of its own, and notes what its client reports.
type host struct {
	mu     sync.Mutex
	client *coord.Client // the newest
	ahead  time.Duration
	events []event.Event
}

func (h *host) set(ahead time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ahead = ahead
}

func (h *host) clock() cron.Option {
	return cron.Clock(func() time.Time {
		h.mu.Lock()
		defer h.mu.Unlock()
		return time.Now().Add(h.ahead)
	})
}

func (h *host) open(b coordtest.Bubble) *coord.Client {
	h.client = b.Open(coord.WithObserver(func(e event.Event) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.events = append(h.events, e)
	}))
	return h.client
}

// heard returns what was reported, of a kind.
func (h *host) heard(kind string) (texts []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		if e.Kind == kind {
			texts = append(texts, e.Path+": "+e.Err.Error())
		}
	}
	return texts
}

// timely notes by how much slots began before or after their instant.
type timely struct {
	mu   sync.Mutex
	late map[string][]time.Duration
}

func (t *timely) run(_ context.Context, s *cron.Slot) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.late[s.Key] = append(t.late[s.Key], time.Since(s.At))
	return nil, nil
}

func (t *timely) ran() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.late)
}

// Eight hosts run a schedule of an hour, by the minute. After ten minutes, one
// or several of the clocks are wrong, for a while or for ever.
func TestF65EverySlotGoesOnWhateverTheClockOfOneHostSays(t *testing.T) {
	coordtest.Cases(t, map[string]func(hosts []*host){
		"ten years ahead, for 3 s": func(hosts []*host) {
			hosts[3].set(10 * year)
			time.Sleep(3 * time.Second)
			hosts[3].set(0)
		},
		"hours ahead, and behind": func(hosts []*host) {
			hosts[0].set(5 * time.Hour)
			hosts[1].set(-5 * time.Hour)
		},
		"years ahead, and behind": func(hosts []*host) {
			hosts[0].set(10 * year)
			hosts[1].set(-20 * year)
		},
		"set again and again": func(hosts []*host) {
			for _, ahead := range []time.Duration{2 * time.Hour, -year, 10 * year, -3 * time.Hour, time.Minute, 0} {
				hosts[5].set(ahead)
				time.Sleep(100 * time.Second)
			}
		},
	}, func(t *testing.T, trouble func([]*host)) {
		coordtest.InBubble(t, func(b coordtest.Bubble) {
			schedule, first := in(60)
			seen := &timely{late: map[string][]time.Duration{}}
			hosts := make([]*host, 8)
			ctx, stop := context.WithCancel(b.Context())
			var running sync.WaitGroup
			for i := range hosts {
				hosts[i] = new(host)
				c := scheduled(b, hosts[i].open(b), schedule, hosts[i].clock(), cron.CatchUp(1000, 0))
				running.Go(func() {
					if err := c.Run(ctx, seen.run); !errors.Is(err, cron.ErrOver) && !errors.Is(err, context.Canceled) {
						b.Error(err)
					}
				})
			}
			time.Sleep(10 * time.Minute)
			trouble(hosts)
			time.Sleep(time.Until(first.Add(61 * time.Minute)))
			stop()
			running.Wait()
			for i := range 60 {
				slot := cron.Key(first.Add(time.Duration(i) * time.Minute))
				late := seen.late[slot]
				require.Len(b, late, 1, "%s: how often it ran", slot)
				require.LessOrEqual(b, late[0].Abs(), time.Minute+time.Second, slot)
			}
		})
	})
}

// With nobody else there, and a host whose clock is ahead, and told of it.
func TestAHostWhoseClockIsAheadIsAMinuteEarly(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		h := &host{ahead: 5 * time.Hour}
		s, first := in(10)
		seen := &timely{late: map[string][]time.Duration{}}
		require.ErrorIs(b, scheduled(b, h.open(b), s, h.clock()).Run(b.Context(), seen.run), cron.ErrOver)
		require.LessOrEqual(b, time.Until(first.Add(8*time.Minute)).Abs(), time.Second)
		for slot, late := range seen.late {
			require.GreaterOrEqual(b, late[0], -time.Minute, slot)
		}
		require.Equal(b,
			[]string{"/cron: this client's clock is 5h0m0s ahead of the ensemble's: slots are due 1m0s ahead of the latter"},
			h.heard(event.ClockAhead))
	})
}

// A host whose clock is behind comes first of all.
func TestAScheduleBeginsWhenTheEnsembleSaysThatItDid(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		h := &host{ahead: -year}
		ctx, stop := context.WithCancel(b.Context())
		ended := coordtest.Go(
			func() error { return scheduled(b, h.open(b), every(time.Minute), h.clock()).Run(ctx, nothing) })
		time.Sleep(time.Second)
		state, err := scheduled(b, b.Open(), every(time.Minute)).State(b.Context())
		require.NoError(b, err)
		require.LessOrEqual(b, time.Since(state.Through), time.Second+T)
		stop()
		require.ErrorIs(b, <-ended, context.Canceled)
	})
}

func nothing(context.Context, *cron.Slot) ([]byte, error) { return nil, nil }

// The mark is as a client without this bound, or wrong servers, can leave it.
// The schedule does not count as over, though none of its slots comes after.
func TestF65AMarkFromTheFutureIsReportedByEveryMember(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		inTenYears := time.Now().Add(10 * year).Truncate(time.Minute)
		hosts, seen := []*host{new(host), new(host)}, &timely{late: map[string][]time.Duration{}}
		ctx, stop := context.WithCancel(b.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer stop()
		for _, h := range hosts {
			c := scheduled(b, h.open(b), until{every(time.Minute), inTenYears.Add(-time.Hour)}, h.clock())
			running.Go(func() { _ = c.Run(ctx, seen.run) })
		}
		time.Sleep(10*time.Minute + time.Second)
		admin := b.Open()
		one := scheduled(b, admin, every(time.Minute))
		fine, err := one.State(b.Context())
		require.NoError(b, err)
		require.Zero(b, fine.Ahead)
		_, err = admin.Set(b.Context(), "/cron/mark", []byte(`{"through":"`+cron.Key(inTenYears)+`"}`), -1)
		require.NoError(b, err)
		ran := seen.ran()
		time.Sleep(time.Hour)
		require.Equal(b, ran, seen.ran(), "it stands still")
		for _, h := range hosts {
			require.Len(b, h.heard(event.MarkAhead), 1)
			require.Contains(b, h.heard(event.MarkAhead)[0], "/cron/mark: the schedule has come to 20")
		}
		state, err := one.State(b.Context())
		require.NoError(b, err)
		require.Equal(b, 10*year, state.Ahead.Round(time.Hour))

		require.NoError(b, one.Rewind(b.Context()))
		time.Sleep(10 * time.Minute)
		require.Equal(b, ran+10, seen.ran(), "it goes on")
		state, err = one.State(b.Context())
		require.NoError(b, err)
		require.Zero(b, state.Ahead)
		require.NoError(b, one.Rewind(b.Context()), "nothing is ahead")
		time.Sleep(10 * time.Minute)
		require.Equal(b, ran+20, seen.ran())
	})
}

// Their records stand where those of the slots will, when these are due.
func TestARewoundScheduleRunsSlotsThatRanBeforeTheirTime(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		h, d := &host{ahead: time.Hour}, &diary{}
		b.Server.ShiftClock(time.Hour) // of the servers, too, and so nobody can know
		ctx, stop := context.WithCancel(b.Context())
		early := scheduled(b, h.open(b), every(time.Minute), h.clock())
		ended := coordtest.Go(func() error { return early.Run(ctx, d.lasting(0)) })
		time.Sleep(5*time.Minute + 30*time.Second)
		stop()
		require.ErrorIs(b, <-ended, context.Canceled)
		require.Equal(b, "01:01 01:02 01:03 01:04 01:05", strings.Join(d.ran(), " "))
		b.Server.ShiftClock(0)
		c := scheduled(b, b.Open(), every(time.Minute))
		require.NoError(b, c.Rewind(b.Context()))
		require.Empty(b, states(b, c))
	})
}

// Two programs with different jobs share a path by mistake.
func TestF70TwoDifferentJobsAtOnePathAreReportedByEachOnce(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		ctx, stop := context.WithCancel(b.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer stop()
		hosts := map[string]*host{"report": new(host), "report too": new(host), "backup": new(host)}
		for name, h := range hosts {
			c := scheduled(b, h.open(b), every(time.Minute), cron.Describe(strings.TrimSuffix(name, " too")))
			running.Go(func() { _ = c.Run(ctx, nothing) })
		}
		time.Sleep(10 * time.Minute)
		for name, h := range hosts {
			require.Len(b, h.heard(event.Differs), 1, name)
		}
		require.Contains(b, hosts["backup"].heard(event.Differs)[0],
			`runs another job at this path: "report", and this client "backup"`)
		again, end := context.WithTimeout(ctx, 10*time.Minute)
		defer end()
		require.Error(b,
			scheduled(b, hosts["backup"].client, every(time.Minute), cron.Describe("backup")).Run(again, nothing))
		require.Len(b, hosts["backup"].heard(event.Differs), 1, "once for a client, whichever object it uses")
		one := scheduled(b, b.Open(), every(time.Minute))
		jobs, err := one.Jobs(b.Context())
		require.NoError(b, err)
		require.Len(b, jobs, 2)
		stop()
		running.Wait()
		require.NotEmpty(b, states(b, one), "nobody was refused")
	})
}

// The same job, over a session that ends.
func TestClientsOfOneJobReportNothing(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		ctx, stop := context.WithCancel(b.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer stop()
		h := new(host)
		for range 3 {
			client := h.open(b)
			c := scheduled(b, client, every(time.Minute), cron.Describe("report"))
			running.Go(func() { _ = c.Run(ctx, nothing) })
			time.Sleep(time.Minute)
			require.NoError(b, b.Server.ExpireSession(client.Info().SessionID))
		}
		time.Sleep(10 * time.Minute)
		require.Empty(b, h.heard(event.Differs))
		names, err := b.Open().Children(b.Context(), "/cron/runners")
		require.NoError(b, err)
		require.Len(b, names, 3, "each is there again")
	})
}

// The one who asks does not know the schedule, as the command.
func TestWhoOnlyLooksKnowsWhenTheNextSlotIsDue(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		looks := scheduled(b, b.Open(), until{})
		due := func() time.Time {
			s, err := looks.State(b.Context())
			require.NoError(b, err)
			return s.Next
		}
		require.Zero(b, due())
		ctx, stop := context.WithCancel(b.Context())
		first := time.Now().Truncate(time.Hour).Add(time.Hour)
		c := scheduled(b, b.Open(), every(time.Hour), cron.Jitter(10*time.Minute))
		ended := coordtest.Go(func() error { return c.Run(ctx, nothing) })
		time.Sleep(time.Minute)
		for i := range 3 {
			slot := first.Add(time.Duration(i) * time.Hour)
			require.GreaterOrEqual(b, due(), slot)
			require.Less(b, due(), slot.Add(10*time.Minute))
			time.Sleep(time.Until(due()) + time.Minute)
		}
		stop()
		require.ErrorIs(b, <-ended, context.Canceled)
		next := due()
		time.Sleep(24 * time.Hour)
		require.Equal(b, next, due(), "overdue")
	})
}
