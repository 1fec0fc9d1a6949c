package prom_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/contrib/prom"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/lock"
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
	require.Eventually(t, func() bool { return strings.Contains(scrape(t, reg), want+"\n") }, 20*time.Second, time.Millisecond, want)
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
	require.NotContains(t, text, "zkcoord_losses_total{")

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
