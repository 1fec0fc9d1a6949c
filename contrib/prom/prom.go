// Package prom counts for Prometheus what the clients of package coord do:
// how long claims wait, how long they hold, how holds end, and what becomes of
// sessions.
//
//	metrics := prom.New()
//	prometheus.MustRegister(metrics)
//	client, err := coord.Open(ctx, servers, coord.WithObserver(metrics.Observe))
//
// One Metrics serves any number of clients. dashboard.json is a Grafana
// dashboard for what it exports, and for what the exporter of the command does.
//
// # Metrics
//
//	zkcoord_wait_seconds{path}            histogram: from the call to the grant
//	zkcoord_hold_seconds{path}            histogram: from the grant to the end of the hold
//	zkcoord_holds{path}                   gauge: holds that last
//	zkcoord_losses_total{path,cause}      holds that were lost: expired, window, deleted, disconnected, closed, other
//	zkcoord_waits_ended_total{path,cause} waits without a grant: timeout, cancelled, lost, busy, other
//	zkcoord_revocations_total{path}       requests to give up
//	zkcoord_window_left_seconds{name}     gauge: how long a watched hold can be trusted yet; see [Metrics.Watch]
//	zkcoord_sessions                      gauge: sessions that are connected
//	zkcoord_session_events_total{event}   up, down, over, attended, unattended
//	zkcoord_node_events_total{event}      recovered, stray, stranded, foreign
//	zkcoord_reports_total{event}          failed, differs, clock_ahead, mark_ahead: the log says what, and where
//
// path is the path of the recipe: of a ledger or of shards, not of one of their
// keys. A program that has a recipe for each of many things makes as many
// series; [WithPath] puts them together.
//
// The counters of a path are there, at 0, from its first claim on, and the
// others from the beginning, so that increase() sees the first event. What a
// process counts in the moments before it exits is lost, as always.
package prom

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
)

// Metrics is what was counted. It is a [prometheus.Collector], and safe for
// concurrent use.
type Metrics struct {
	path func(recipe string) string

	wait, hold                 *prometheus.HistogramVec
	holds                      *prometheus.GaugeVec
	losses, ended, revocations *prometheus.CounterVec
	sessions                   prometheus.Gauge
	sessionEvents              *prometheus.CounterVec
	nodeEvents, reports        *prometheus.CounterVec
	left                       *prometheus.Desc

	mu        sync.Mutex
	labels    map[string]bool // of paths, that were seen
	held      map[string]held // by node
	connected map[int64]bool  // sessions
	over      map[int64]bool  // sessions, until the next is connected: the ends of their holds are reported later
	watched   map[coord.Held]string
}

// held is a node with holds that last.
type held struct {
	session int64
	label   string
	holds   int
}

// Option sets something about [Metrics].
type Option func(*Metrics)

// WithPath says what the label path is, given the path of a recipe.
func WithPath(label func(recipe string) string) Option {
	return func(m *Metrics) { m.path = label }
}

// New makes metrics, which are still to be registered.
func New(opts ...Option) *Metrics {
	buckets := prometheus.ExponentialBuckets(0.001, 4, 12) // 1 ms to 70 min
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets},
			[]string{"path"})
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		path: func(recipe string) string { return recipe },
		wait: histogram("zkcoord_wait_seconds", "Time from the call to the grant."),
		hold: histogram("zkcoord_hold_seconds", "Time from the grant to the end of the hold."),
		holds: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "zkcoord_holds", Help: "Holds that last."},
			[]string{"path"}),
		losses:      counter("zkcoord_losses_total", "Holds that were lost.", "path", "cause"),
		ended:       counter("zkcoord_waits_ended_total", "Waits that ended without a grant.", "path", "cause"),
		revocations: counter("zkcoord_revocations_total", "Requests to give up.", "path"),
		sessions: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "zkcoord_sessions", Help: "Sessions that are connected.",
		}),
		sessionEvents: counter("zkcoord_session_events_total",
			"Sessions that came up, were disconnected, are over, or have an attendant, or none.", "event"),
		nodeEvents: counter("zkcoord_node_events_total",
			"Nodes that were recovered, made late, left behind, or are of another dialect.", "event"),
		reports: counter("zkcoord_reports_total",
			"What recipes found wrong: a function that failed, a path that another client uses in another way, a clock or a mark that is ahead.", "event"),
		left: prometheus.NewDesc("zkcoord_window_left_seconds",
			"How long a watched hold can be trusted yet.", []string{"name"}, nil),
		labels:    map[string]bool{},
		held:      map[string]held{},
		connected: map[int64]bool{},
		over:      map[int64]bool{},
		watched:   map[coord.Held]string{},
	}
	for _, opt := range opts {
		opt(m)
	}
	for _, kind := range []string{"up", "down", "over", "attended", "unattended"} {
		m.sessionEvents.WithLabelValues(kind)
	}
	for _, kind := range nodeEvents {
		m.nodeEvents.WithLabelValues(kind)
	}
	for _, kind := range reports {
		m.reports.WithLabelValues(kind)
	}
	return m
}

// nodeEvents are the values of the label event, by the kinds of events.
var nodeEvents = map[string]string{
	event.Recovered: "recovered", event.StrayRemoved: "stray", event.NodeStranded: "stranded", event.Foreign: "foreign",
}

// reports are the values of the label event, by the kinds of events.
var reports = map[string]string{
	event.Failed: "failed", event.Differs: "differs", event.ClockAhead: "clock_ahead", event.MarkAhead: "mark_ahead",
}

// label returns the label of a recipe's path. Its counters are there from then
// on.
func (m *Metrics) label(recipe string) string {
	label := m.path(recipe)
	m.mu.Lock()
	known := m.labels[label]
	m.labels[label] = true
	m.mu.Unlock()
	if !known {
		for _, cause := range lossCauses {
			m.losses.WithLabelValues(label, cause.name)
		}
		for _, cause := range []string{"timeout", "cancelled", "busy", "lost", other} {
			m.ended.WithLabelValues(label, cause)
		}
		m.revocations.WithLabelValues(label)
	}
	return label
}

// Observe counts an event. It is for [coord.WithObserver].
func (m *Metrics) Observe(e event.Event) {
	switch e.Kind {
	case event.Joined:
		m.label(e.Recipe)
	case event.Granted:
		label := m.label(e.Recipe)
		m.wait.WithLabelValues(label).Observe(e.Took.Seconds())
		m.began(e, label)
	case event.Ended:
		m.end(e, m.label(e.Recipe))
	case event.Revoked:
		m.revocations.WithLabelValues(m.label(e.Recipe)).Inc()
	case event.SessionUp, event.SessionDown, event.SessionOver, event.SessionAttended:
		m.session(e)
	default:
		if kind, counts := nodeEvents[e.Kind]; counts {
			m.nodeEvents.WithLabelValues(kind).Inc()
		}
		if kind, counts := reports[e.Kind]; counts {
			m.reports.WithLabelValues(kind).Inc()
		}
	}
}

func (m *Metrics) began(e event.Event, label string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.held[e.Path]
	m.held[e.Path] = held{e.Session, label, h.holds + 1}
}

// end counts the end of a hold, or of a wait: of a claim that was not granted.
func (m *Metrics) end(e event.Event, label string) {
	m.mu.Lock()
	h, holds := m.held[e.Path]
	h.holds--
	if h.holds > 0 {
		m.held[e.Path] = h
	} else {
		delete(m.held, e.Path)
	}
	m.mu.Unlock()
	if !holds {
		m.ended.WithLabelValues(label, whyNot(e.Err)).Inc()
		return
	}
	m.hold.WithLabelValues(label).Observe(e.Took.Seconds())
	if errors.Is(e.Err, coord.ErrLost) {
		m.losses.WithLabelValues(label, causeOf(e.Err)).Inc()
	}
}

func (m *Metrics) session(e event.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e.Kind {
	case event.SessionUp:
		m.sessionEvents.WithLabelValues("up").Inc()
		m.connected[e.Session] = true
		maps.DeleteFunc(m.held, func(_ string, h held) bool { return m.over[h.session] })
		clear(m.over)
		return
	case event.SessionAttended:
		kind := "attended"
		if e.Err != nil {
			kind = "unattended"
		}
		m.sessionEvents.WithLabelValues(kind).Inc()
		return
	case event.SessionDown:
		m.sessionEvents.WithLabelValues("down").Inc()
	case event.SessionOver:
		m.sessionEvents.WithLabelValues("over").Inc()
		m.over[e.Session] = true
	}
	delete(m.connected, e.Session)
}

// other is the cause that has no name of its own.
const other = "other"

// lossCauses are the values of the label cause of holds that were lost. The
// first that fits counts.
var lossCauses = []struct {
	err  error // nil: any
	name string
}{
	{coord.ErrClosed, "closed"},
	{coord.ErrSessionExpired, "expired"},
	{coord.ErrWindowOver, "window"},
	{coord.ErrNodeDeleted, "deleted"},
	{coord.ErrDisconnected, "disconnected"},
	{nil, other},
}

// causeOf is why a hold was lost.
func causeOf(err error) string {
	for _, known := range lossCauses {
		if known.err != nil && errors.Is(err, known.err) {
			return known.name
		}
	}
	return other
}

// whyNot is why a wait ended without a grant.
func whyNot(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, coord.ErrBusy):
		return "busy"
	case errors.Is(err, coord.ErrLost), errors.Is(err, coord.ErrNodeDeleted):
		return "lost"
	}
	return other
}

// Watch exports how long a hold can be trusted yet, until it ends. Of holds
// with the same name, the shortest counts.
func (m *Metrics) Watch(name string, h coord.Held) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watched[h] = name
}

// Describe is part of [prometheus.Collector].
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(ch)
	}
	ch <- m.left
}

// Collect is part of [prometheus.Collector].
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.count()
	for _, c := range m.all() {
		c.Collect(ch)
	}
	for name, left := range m.windows() {
		ch <- prometheus.MustNewConstMetric(m.left, prometheus.GaugeValue, left.Seconds(), name)
	}
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{
		m.wait, m.hold, m.holds, m.losses, m.ended, m.revocations, m.sessions, m.sessionEvents, m.nodeEvents, m.reports,
	}
}

// count brings the gauges up to date.
func (m *Metrics) count() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holds.Reset()
	for _, h := range m.held {
		if m.over[h.session] {
			continue
		}
		m.holds.WithLabelValues(h.label).Add(float64(h.holds))
	}
	m.sessions.Set(float64(len(m.connected)))
}

// windows are what is left of the watched holds' windows, by name.
func (m *Metrics) windows() map[string]time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	least := map[string]time.Duration{}
	for h, name := range m.watched {
		if h.Err() != nil {
			delete(m.watched, h)
			continue
		}
		left := time.Until(h.Deadline())
		if before, ok := least[name]; !ok || left < before {
			least[name] = left
		}
	}
	return least
}
