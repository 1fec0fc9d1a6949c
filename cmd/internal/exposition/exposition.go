// Package exposition writes metrics in Prometheus' text format. A library
// would cost every verb: client_golang adds 3.6 ms (13 %) of processor time and
// 1.9 MB (13 %) of memory to each "lock", and 14 % to the binary; expfmt alone
// adds 2 ms, 1.2 MB and 12 %.
package exposition

import (
	"fmt"
	"strings"
)

// Metric is a metric of one name.
type Metric struct {
	name, help, kind string
	labels           []string
}

// Gauge is a metric whose value goes up and down.
func Gauge(name, help string, labels ...string) *Metric { return &Metric{name, help, "gauge", labels} }

// Counter is a metric whose value only goes up.
func Counter(name, help string, labels ...string) *Metric {
	return &Metric{name, help, "counter", labels}
}

// Text is what a scrape answers: the samples of a metric stand together, below
// its description.
type Text struct {
	metrics []*Metric
	samples map[string]*strings.Builder // by the metric's name
}

// New returns a text without samples.
func New() *Text { return &Text{samples: map[string]*strings.Builder{}} }

// ContentType is the text's media type.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// Sample adds a value for one set of labels, which come in the metric's order.
func (e *Text) Sample(m *Metric, value float64, labels ...string) {
	lines := e.samples[m.name]
	if lines == nil {
		lines = &strings.Builder{}
		e.metrics, e.samples[m.name] = append(e.metrics, m), lines
	}
	pairs := make([]string, len(labels))
	for i, label := range labels {
		pairs[i] = m.labels[i] + `="` + escaped.Replace(strings.ToValidUTF8(label, "\ufffd")) + `"`
	}
	name := m.name
	if len(pairs) > 0 {
		name += "{" + strings.Join(pairs, ",") + "}"
	}
	fmt.Fprintf(lines, "%s %v\n", name, value)
}

func (e *Text) String() string {
	var b strings.Builder
	for _, m := range e.metrics {
		fmt.Fprintf(&b, "# HELP %[1]s %[2]s\n# TYPE %[1]s %[3]s\n%[4]s", m.name, m.help, m.kind, e.samples[m.name])
	}
	return b.String()
}
