package prom_test

import (
	"context"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/contrib/prom"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/internal/promtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// serve exports metrics, and returns where.
func serve(t *testing.T, m *prom.Metrics) string {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(m))
	server := httptest.NewServer(promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/metrics"
}

// lose has a new program hold a lock and lose it.
func lose(t *testing.T, srv *zkembed.Server, c *coord.Client, path string) {
	t.Helper()
	m, err := lock.New(c, path)
	require.NoError(t, err)
	h, err := m.Acquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, srv.ExpireSession(h.Session()))
	<-h.Done()
}

// Scraped by Prometheus itself, the first loss raises its alert, and so does
// what a process had counted before its first scrape.
func TestF96TheFirstEventRaisesTheAlertOnIt(t *testing.T) {
	promtest.Tool(t, "prometheus")
	srv, err := zkembed.Start()
	require.NoError(t, err)
	t.Cleanup(func() { _ = srv.Close() })
	metrics, restarted := prom.New(), prom.New()
	c := open(t, srv, metrics)
	m, err := lock.New(c, "/jobs")
	require.NoError(t, err)
	h, err := m.Acquire(t.Context())
	require.NoError(t, err)
	lose(t, srv, open(t, srv, restarted), "/restarted") // before any scrape
	p := promtest.Start(t, "alerts.yml", serve(t, metrics), serve(t, restarted))
	p.Awaits(`zkcoord_losses_total{path="/jobs", cause="expired"} == 0`)
	require.Equal(t, "/restarted", p.Fires("ZkcoordHoldsLost")[0].Labels["path"])
	require.NotContains(t, p.Firing(), "ZkcoordForeignContender")

	waits, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for waits.Err() == nil {
			short, cancel := context.WithTimeout(waits, 300*time.Millisecond)
			_, _ = m.Acquire(short)
			cancel()
		}
	}()
	p.Fires("ZkcoordWaitsTimeOut")
	stop()

	_, err = c.Txn(t.Context(), coord.AppendOp("/jobs/0123456789abcdef0123456789abcdef__lock__", nil)) // as Kazoo does
	require.NoError(t, err)
	p.Fires("ZkcoordForeignContender")

	for n := range 2 { // two programs that disagree about a ledger
		ledger, err := once.New(c, "/ledger", once.Attempts(1+n, 0))
		require.NoError(t, err)
		_, err = ledger.Do(t.Context(), "job", func(context.Context, *once.Run) ([]byte, error) { return nil, nil })
		require.NoError(t, err)
	}
	require.Equal(t, "differs", p.Fires("ZkcoordReport")[0].Labels["event"])

	require.NoError(t, srv.ExpireSession(h.Session()))
	<-h.Done()
	p.Awaits(`ALERTS{alertname="ZkcoordHoldsLost", alertstate="firing", path="/jobs"}`)

	srv.Stop()
	p.Fires("ZkcoordNoSession")
	srv.Resume()
	zktest.Eventually(t, time.Minute, func() bool { return c.Info().SessionID != 0 }, "the client comes back")
}

// The servers are sound, but the session is so short that little is left of the
// window after any delay.
func TestF96AShortWindowRaisesItsAlert(t *testing.T) {
	promtest.Tool(t, "prometheus")
	srv, err := zkembed.Start(zkembed.WithTick(500 * time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(func() { _ = srv.Close() })
	metrics := prom.New()
	c, err := coord.Open(t.Context(), srv.ConnectString(), coord.WithObserver(metrics.Observe),
		coord.WithSessionTimeout(time.Second))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	m, err := lock.New(c, "/jobs")
	require.NoError(t, err)
	holding, stop := context.WithCancel(t.Context())
	held := make(chan struct{})
	go func() { // again and again: a machine under load loses such a hold
		defer close(held)
		for holding.Err() == nil {
			_ = m.Do(holding, func(ctx context.Context, h *coord.Hold) error {
				metrics.Watch("jobs", h)
				<-ctx.Done()
				return nil
			})
		}
	}()
	p := promtest.Start(t, "alerts.yml", serve(t, metrics))
	require.Equal(t, "jobs", p.Fires("ZkcoordWindowShort")[0].Labels["name"])
	stop()
	<-held
}

// A rule that no test raises on what a program really exports may never fire.
func TestF96EachRuleIsTriedOnWhatTheProgramsExport(t *testing.T) {
	rules, err := os.ReadFile("alerts.yml")
	require.NoError(t, err)
	var tests []byte
	for _, file := range []string{
		"alerts_test.go", "../../cmd/internal/see/exporter_test.go", "../../cmd/internal/attend/alerts_test.go",
	} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		tests = append(tests, text...)
	}
	found := regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllSubmatch(rules, -1)
	require.NotEmpty(t, found)
	for _, rule := range found {
		require.Contains(t, string(tests), `"`+string(rule[1])+`"`, "a call of Fires or Awaits")
	}
}
