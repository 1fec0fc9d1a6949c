package see

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

type ExporterVerb struct {
	Listen string   `default:"127.0.0.1:9141" help:"Where to listen; port 0 takes a free one."`
	Most   int      `default:"10000" placeholder:"N" help:"Look at so many nodes for each path at most."`
	Paths  []string `arg:"" name:"path" predictor:"path" help:"Where to look: the paths themselves and all below them."`
}

// mostScrapes is how many scrapes are answered at a time. They share a look.
const mostScrapes = 4

// Run serves metrics of what stands at the paths and below, until it is
// interrupted. A scrape looks again, unless another scrape is looking.
func (v *ExporterVerb) Run(s *term.Streams, c *conn.Connection) error {
	var places []look.Surveyed
	slices.Sort(v.Paths)
	for _, path := range slices.Compact(v.Paths) {
		place := look.Surveyed{Most: v.Most, Path: path}
		if err := place.Validate(); err != nil {
			return term.UsageError("%w", err)
		}
		places = append(places, place)
	}
	address, err := conn.AddressOf("--listen", v.Listen)
	if err != nil {
		return err
	}
	return c.Serving(address, func(ctx context.Context, client *coord.Client, listener net.Listener) error {
		e := &exporter{ctx: ctx, client: client, places: places, within: c.ConnectTimeout, scrapes: make(chan struct{}, mostScrapes)}
		return e.serve(s, listener)
	})
}

// serve answers scrapes until it is interrupted.
func (e *exporter) serve(s *term.Streams, listener net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("/metrics", e)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `<!doctype html><title>zkcoord exporter</title><a href="metrics">metrics</a>`+"\n")
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: e.within}
	context.AfterFunc(e.ctx, func() { _ = server.Close() })
	at := "http://" + listener.Addr().String() + "/metrics"
	if err := s.Print(map[string]string{"metrics": at}, "%s\n", at); err != nil {
		return err
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// exporter is what the exporter's metrics are collected from.
type exporter struct {
	ctx    context.Context
	client *coord.Client
	places []look.Surveyed
	within time.Duration

	scrapes chan struct{} // a place for each that is answered
	looks   singleflight.Group
	seen    look.Sightings
}

// The metrics of a recipe, by its path and kind, and of a place.
var (
	upMetric      = metric("up", "Whether the place could be looked at.", "place")
	leftMetric    = metric("left_out_nodes", "Nodes that were not looked at (--most, --connect-timeout).", "place")
	hiddenMetric  = metric("hidden_nodes", "Nodes that must not be listed.", "place")
	holdersMetric = ofRecipe("holders", "Contenders that hold.")
	waitingMetric = ofRecipe("waiting", "Contenders that wait.")
	thereMetric   = ofRecipe("holder_there_seconds", "Age of the oldest node that holds, its wait included.")
	heldMetric    = ofRecipe("held_seconds", "Time since the oldest grant among the holders, where all were seen.")
	waitMetric    = ofRecipe("oldest_wait_seconds", "Age of the oldest node that waits.")
	oddMetric     = ofRecipe("oddities", "Things that are odd, as the verb ls lists them.")
	itemsMetric   = ofRecipe("queue_items", "Items of a queue, including items that consumers have.")
	handMetric    = ofRecipe("queue_in_hand", "Items that consumers have.")
	deadMetric    = ofRecipe("queue_dead_letters", "Dead letters of a queue.")
	openMetric    = ofRecipe("round_open", "Whether a double barrier's round is open.")
	insideMetric  = ofRecipe("round_inside", "Members of the open round that have not finished.")
	doneMetric    = ofRecipe("round_finished", "Members of the open round that have finished.")
)

func metric(name, help string, labels ...string) *gaugeMetric {
	return &gaugeMetric{"zkcoord_path_" + name, help, labels}
}

func ofRecipe(name, help string) *gaugeMetric { return metric(name, help, "kind", "path") }

// ServeHTTP answers a scrape with a look at every place, or with what a look
// brings that is under way.
func (e *exporter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	select {
	case e.scrapes <- struct{}{}:
		defer func() { <-e.scrapes }()
	default:
		http.Error(w, "too many scrapes at a time", http.StatusServiceUnavailable)
		return
	}
	text, _, _ := e.looks.Do("", func() (any, error) { return e.look().String(), nil })
	w.Header().Set("Content-Type", expositionType)
	_, _ = io.WriteString(w, text.(string)) // an error means that the scraper is gone
}

// look looks at every place. Places may overlap: a recipe counts once.
func (e *exporter) look() *exposition {
	to := newExposition()
	defer e.seen.Look()()
	seen := map[string]bool{}
	for _, place := range e.places {
		ctx, cancel := context.WithTimeout(e.ctx, e.within)
		found, err := place.Look(ctx, e.client)
		cancel()
		to.sample(upMetric, truth(err == nil), place.Path)
		if err != nil {
			continue
		}
		to.sample(leftMetric, float64(found.Left), place.Path)
		to.sample(hiddenMetric, float64(len(found.Hidden)), place.Path)
		for _, r := range found.Recipes {
			if !seen[r.Path] {
				seen[r.Path] = true
				e.seen.Date(&r)
				collect(r, to)
			}
		}
	}
	return to
}

func collect(r look.Report, to *exposition) {
	tell := func(m *gaugeMetric, value float64) { to.sample(m, value, r.Kind, r.Path) }
	var there, held, waits float64
	known := true
	for _, c := range r.Contenders {
		if c.Holds && c.HeldFor == nil {
			known = false
		} else if c.Holds {
			held = max(held, *c.HeldFor)
		}
		switch {
		case c.Age == nil:
		case c.Holds:
			there = max(there, *c.Age)
		case r.Waits(c):
			waits = max(waits, *c.Age)
		}
	}
	tell(holdersMetric, float64(len(r.Holders())))
	tell(waitingMetric, float64(r.Waiting()))
	tell(thereMetric, there)
	if known {
		tell(heldMetric, held)
	}
	tell(waitMetric, waits)
	tell(oddMetric, float64(len(r.Findings())))
	if q := r.Queue; q != nil {
		tell(itemsMetric, float64(q.Items))
		tell(handMetric, float64(q.InHand))
		tell(deadMetric, float64(q.Dead))
	}
	if round := r.Round; round != nil {
		tell(openMetric, truth(round.Open))
		tell(insideMetric, float64(round.Inside))
		tell(doneMetric, float64(round.Finished))
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// gaugeMetric is a metric whose value goes up and down.
type gaugeMetric struct {
	name, help string
	labels     []string
}

// exposition is what a scrape answers, in Prometheus' text format: the samples
// of a metric stand together, below its description. A library would cost every
// verb: client_golang adds 3.6 ms (13 %) of processor time and 1.9 MB (13 %) of
// memory to each "lock", and 14 % to the binary; expfmt alone adds 2 ms, 1.2 MB
// and 12 %.
type exposition struct {
	metrics []*gaugeMetric
	samples map[*gaugeMetric]*strings.Builder
}

func newExposition() *exposition {
	return &exposition{samples: map[*gaugeMetric]*strings.Builder{}}
}

// expositionType is its media type.
const expositionType = "text/plain; version=0.0.4; charset=utf-8"

var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// sample adds a value for one set of labels, which come in the metric's order.
func (e *exposition) sample(m *gaugeMetric, value float64, labels ...string) {
	lines := e.samples[m]
	if lines == nil {
		lines = &strings.Builder{}
		e.metrics, e.samples[m] = append(e.metrics, m), lines
	}
	pairs := make([]string, len(labels))
	for i, label := range labels {
		pairs[i] = m.labels[i] + `="` + escaped.Replace(strings.ToValidUTF8(label, "\ufffd")) + `"`
	}
	fmt.Fprintf(lines, "%s{%s} %v\n", m.name, strings.Join(pairs, ","), value)
}

func (e *exposition) String() string {
	var b strings.Builder
	for _, m := range e.metrics {
		fmt.Fprintf(&b, "# HELP %[1]s %[2]s\n# TYPE %[1]s gauge\n%[3]s", m.name, m.help, e.samples[m])
	}
	return b.String()
}
