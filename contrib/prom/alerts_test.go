package prom_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/contrib/prom"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
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

	require.NoError(t, srv.ExpireSession(h.Session()))
	<-h.Done()
	p.Awaits(`ALERTS{alertname="ZkcoordHoldsLost", alertstate="firing", path="/jobs"}`)

	srv.Stop()
	p.Fires("ZkcoordNoSession")
	srv.Resume()
	zktest.Eventually(t, time.Minute, func() bool { return c.SessionID() != 0 }, "the client comes back")
}
