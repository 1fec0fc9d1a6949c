package prom_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/contrib/prom"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/group"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/zkembed"
)

func open(t *testing.T, srv *zkembed.Server, m *prom.Metrics) *coord.Client {
	t.Helper()
	c, err := coord.Open(t.Context(), srv.ConnectString(), coord.WithObserver(m.Observe))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func scrape(t *testing.T, reg *prometheus.Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, w.Code, w.Body.String())
	return w.Body.String()
}

func eventually(t *testing.T, reg *prometheus.Registry, want string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(scrape(t, reg), want+"\n") }, 20*time.Second,
		time.Millisecond, want)
}

func TestWhatAClientDoesIsScraped(t *testing.T) {
	srv, err := zkembed.Start()
	require.NoError(t, err)
	t.Cleanup(func() { _ = srv.Close() })
	reg, m := prometheus.NewPedanticRegistry(), prom.New()
	require.NoError(t, reg.Register(m))
	c := open(t, srv, m)
	eventually(t, reg, "zkcoord_sessions 1")
	mutex, err := lock.New(c, "/jobs")
	require.NoError(t, err)
	h, err := mutex.Acquire(t.Context())
	require.NoError(t, err)
	m.Watch("jobs", h)
	eventually(t, reg, `zkcoord_holds{path="/jobs"} 1`)
	require.Regexp(t, `(?m)^zkcoord_window_left_seconds\{name="jobs"\} [1-9]`, scrape(t, reg))

	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = mutex.Acquire(short)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	eventually(t, reg, `zkcoord_waits_ended_total{cause="timeout",path="/jobs"} 1`)

	other := open(t, srv, prom.New())
	_ = h.Revoked()
	require.NoError(t, inspect.Revoke(t.Context(), other, h.Node()))
	<-h.Revoked()
	eventually(t, reg, `zkcoord_revocations_total{path="/jobs"} 1`)
	require.NoError(t, h.Release(t.Context()))
	text := scrape(t, reg)
	require.Contains(t, text, `zkcoord_wait_seconds_count{path="/jobs"} 1`)
	require.Contains(t, text, `zkcoord_hold_seconds_count{path="/jobs"} 1`)
	require.NotContains(t, text, "zkcoord_holds{")
	require.NotContains(t, text, "zkcoord_window_left_seconds{")
	require.NotRegexp(t, `zkcoord_losses_total\{.*\} [1-9]`, text)

	h, err = mutex.Acquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, srv.ExpireSession(h.Session()))
	<-h.Done()
	eventually(t, reg, `zkcoord_losses_total{cause="expired",path="/jobs"} 1`)
	eventually(t, reg, `zkcoord_session_events_total{event="over"} 1`)
	require.NotContains(t, scrape(t, reg), "zkcoord_holds{")
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// Turns of a local queue and re-entrant holds are holds of one node.
func TestHoldsOfOneNodeAreCounted(t *testing.T) {
	srv, err := zkembed.Start()
	require.NoError(t, err)
	t.Cleanup(func() { _ = srv.Close() })
	reg, m := prometheus.NewPedanticRegistry(), prom.New(prom.WithPath(func(string) string { return "all" }))
	require.NoError(t, reg.Register(m))
	mutex, err := lock.New(open(t, srv, m), "/jobs", lock.Reentrant())
	require.NoError(t, err)
	h, err := mutex.Acquire(t.Context())
	require.NoError(t, err)
	inner, err := mutex.Acquire(h.Context(t.Context()))
	require.NoError(t, err)
	eventually(t, reg, `zkcoord_holds{path="all"} 2`)
	require.NoError(t, inner.Release(t.Context()))
	eventually(t, reg, `zkcoord_holds{path="all"} 1`)
	require.NoError(t, h.Release(t.Context()))
	require.NotContains(t, scrape(t, reg), "zkcoord_holds{")
	require.Contains(t, scrape(t, reg), `zkcoord_hold_seconds_count{path="all"} 2`)
}

// Otherwise increase() does not see the first event.
func TestCountersAreThereBeforeTheFirstEvent(t *testing.T) {
	reg, m := prometheus.NewPedanticRegistry(), prom.New()
	require.NoError(t, reg.Register(m))
	m.Observe(event.Event{Kind: event.Joined, Path: "/jobs/n", Recipe: "/jobs"})
	text := scrape(t, reg)
	for _, sample := range []string{
		`losses_total{cause="window",path="/jobs"}`, `losses_total{cause="other",path="/jobs"}`,
		`revocations_total{path="/jobs"}`,
		`waits_ended_total{cause="timeout",path="/jobs"}`, `session_events_total{event="over"}`,
		`session_events_total{event="unattended"}`, `node_events_total{event="foreign"}`,
		`reports_total{event="failed"}`, `reports_total{event="differs"}`, `reports_total{event="clock_ahead"}`,
		`reports_total{event="mark_ahead"}`,
	} {
		require.Contains(t, text, "zkcoord_"+sample+" 0\n")
	}
}

// The kinds are those of package event, as it stands.
func TestEveryKindOfEventIsCounted(t *testing.T) {
	source, err := os.ReadFile("../../coord/event/event.go")
	require.NoError(t, err)
	kinds := regexp.MustCompile(`(?m)^\t\w+ += "([^"]+)"`).FindAllStringSubmatch(string(source), -1)
	require.Greater(t, len(kinds), 14)
	for _, kind := range kinds {
		reg, m := prometheus.NewPedanticRegistry(), prom.New()
		require.NoError(t, reg.Register(m))
		before := scrape(t, reg)
		m.Observe(event.Event{Kind: kind[1], Path: "/jobs/n", Recipe: "/jobs"})
		require.NotEqual(t, before, scrape(t, reg), kind[1])
	}
}

// A ledger with thousands of keys, or a schedule with a slot each second, must
// not make as many series.
func TestEveryClaimIsCountedUnderThePathOfItsRecipe(t *testing.T) {
	srv, err := zkembed.Start()
	require.NoError(t, err)
	t.Cleanup(func() { _ = srv.Close() })
	for _, dialect := range []coord.Dialect{coord.Curator, coord.Kazoo} {
		reg, m := prometheus.NewPedanticRegistry(), prom.New()
		require.NoError(t, reg.Register(m))
		c, err := coord.Open(t.Context(), srv.ConnectString(), coord.WithObserver(m.Observe), coord.WithDialect(dialect))
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		root := "/" + string(dialect)
		want := []string{}
		for name, use := range uses {
			require.NoError(t, use(t.Context(), c, root+"/"+name), name)
			want = append(want, root+"/"+name)
		}
		labels := map[string]bool{}
		for _, match := range regexp.MustCompile(`path="([^"]*)"`).FindAllStringSubmatch(scrape(t, reg), -1) {
			labels[match[1]] = true
		}
		require.ElementsMatch(t, want, slices.Collect(maps.Keys(labels)))
	}
}

// held makes a use of a recipe that holds something, with a function for which
// only the error counts.
func held[H any](
	do func(context.Context, func(context.Context, H) error) error, err error,
) func(context.Context) error {
	return func(ctx context.Context) error {
		if err != nil {
			return err
		}
		return do(ctx, func(context.Context, H) error { return nil })
	}
}

// each is a schedule.
type each time.Duration

func (e each) Next(t time.Time) time.Time { return t.Add(time.Duration(e)) }

// uses are one use of each recipe that makes claims.
var uses = map[string]func(ctx context.Context, c *coord.Client, path string) error{
	"lock": func(ctx context.Context, c *coord.Client, path string) error {
		m, err := lock.New(c, path)
		return held(m.Do, err)(ctx)
	},
	"shared": func(ctx context.Context, c *coord.Client, path string) error {
		l, err := rwlock.New(c, path)
		return held(l.DoRead, err)(ctx)
	},
	"semaphore": func(ctx context.Context, c *coord.Client, path string) error {
		s, err := semaphore.New(c, path, 2)
		return held(s.Do, err)(ctx)
	},
	"slots": func(ctx context.Context, c *coord.Client, path string) error {
		s, err := slots.New(c, path, 2)
		return held(s.Do, err)(ctx)
	},
	"leader": func(ctx context.Context, c *coord.Client, path string) error {
		e, err := election.New(c, path)
		if err != nil {
			return err
		}
		term, err := e.Campaign(ctx, nil)
		if err != nil {
			return err
		}
		return term.Resign(ctx)
	},
	"group": func(ctx context.Context, c *coord.Client, path string) error {
		g, err := group.New(c, path)
		if err != nil {
			return err
		}
		_, err = g.Join(ctx, "host1", nil)
		return err
	},
	"round": func(ctx context.Context, c *coord.Client, path string) error {
		b, err := doublebarrier.New(c, path, 1)
		if err != nil {
			return err
		}
		return held(b.Do, nil)(ctx)
	},
	"queue": func(ctx context.Context, c *coord.Client, path string) error {
		q, err := queue.New(c, path)
		if err != nil {
			return err
		}
		for range 2 {
			if err := q.Put(ctx, nil); err != nil {
				return err
			}
			item, err := q.Receive(ctx)
			if err != nil {
				return err
			}
			if err := item.Ack(ctx); err != nil {
				return err
			}
		}
		idle, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		_, _ = q.Receive(idle) // it waits
		return nil
	},
	"ledger": func(ctx context.Context, c *coord.Client, path string) error {
		o, err := once.New(c, path, once.KeepLast(2))
		for i := range 5 {
			if err == nil {
				_, err = o.Do(ctx, strconv.Itoa(i), func(context.Context, *once.Run) ([]byte, error) { return nil, nil })
			}
		}
		return err
	},
	"schedule": func(ctx context.Context, c *coord.Client, path string) error {
		s, err := cron.New(c, path, each(10*time.Millisecond))
		for range 2 {
			var slot *cron.Slot
			if err == nil {
				slot, err = s.Begin(ctx)
			}
			if err == nil {
				_, err = slot.End(ctx, nil, nil)
			}
		}
		return err
	},
	"shards": func(ctx context.Context, c *coord.Client, path string) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		owned := make(chan string, 2)
		s, err := shards.New(c, path, shards.Keys("one", "two"))
		if err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() {
			ended <- s.Run(ctx, func(ctx context.Context, key string, _ coord.Held) error {
				owned <- key
				<-ctx.Done()
				return nil
			})
		}()
		for range 2 {
			select {
			case <-owned:
			case err := <-ended:
				return err
			}
		}
		cancel()
		<-ended
		return nil
	},
}

// The dashboard asks for nothing that is not exported, nor does it leave out
// anything.
func TestTheDashboardShowsWhatIsExported(t *testing.T) {
	data, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	var dashboard struct {
		Title  string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(data, &dashboard))
	described := make(chan *prometheus.Desc, 100)
	prom.New().Describe(described)
	close(described)
	exported := map[string]bool{}
	for d := range described {
		exported[regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String())[1]] = true
	}
	shown := map[string]bool{}
	for _, panel := range dashboard.Panels {
		require.NotEmpty(t, panel.Title)
		for _, target := range panel.Targets {
			for _, name := range regexp.MustCompile(`zkcoord_\w+`).FindAllString(target.Expr, -1) {
				if strings.HasPrefix(name, "zkcoord_path_") || strings.HasPrefix(name, "zkcoord_attend_") {
					continue // the exporter's and the attendant's, whose tests look for them
				}
				shown[strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")] = true
			}
		}
	}
	require.Equal(t, exported, shown)
}
