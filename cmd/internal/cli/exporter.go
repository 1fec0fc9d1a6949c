package cli

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/zkcoord/zkcoord/coord"
)

type exporterVerb struct {
	Listen string   `default:"127.0.0.1:9141" help:"Where to listen; port 0 takes a free one."`
	Most   int      `default:"10000" placeholder:"N" help:"Look at so many nodes for each path at most."`
	Paths  []string `arg:"" name:"path" predictor:"path" help:"Where to look: the paths themselves and all below them."`
}

// Run serves metrics of what stands at the paths and below, until it is
// interrupted. Each scrape looks anew.
func (v *exporterVerb) Run(s *streams, c *connection) error {
	var places []surveyed
	slices.Sort(v.Paths)
	for _, path := range slices.Compact(v.Paths) {
		place := surveyed{Most: v.Most, Path: path}
		if err := place.Validate(); err != nil {
			return usageError("%w", err)
		}
		places = append(places, place)
	}
	ctx, calm := interruptible(context.Background())
	defer calm()
	client, err := c.open(ctx)
	if err != nil {
		return bySignal(ctx, err)
	}
	defer hangUp(client)
	listener, err := net.Listen("tcp", v.Listen)
	if err != nil {
		return exitWith(exitFailed, "%w (--listen tells where)", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&exporter{ctx, client, places, c.ConnectTimeout})
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: c.ConnectTimeout}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	at := "http://" + listener.Addr().String() + "/metrics"
	if err := s.print(map[string]string{"metrics": at}, "%s\n", at); err != nil {
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
	places []surveyed
	within time.Duration
}

// The metrics of a recipe, by its path and kind, and of a place.
var (
	upMetric      = metric("up", "Whether the place could be looked at.", "place")
	leftMetric    = metric("left_out_nodes", "Nodes that were not looked at (--most, --connect-timeout).", "place")
	hiddenMetric  = metric("hidden_nodes", "Nodes that must not be listed.", "place")
	holdersMetric = ofRecipe("holders", "Contenders that hold.")
	waitingMetric = ofRecipe("waiting", "Contenders that wait.")
	heldMetric    = ofRecipe("hold_age_seconds", "Age of the oldest node that holds.")
	waitMetric    = ofRecipe("oldest_wait_seconds", "Age of the oldest node that waits.")
	oddMetric     = ofRecipe("oddities", "Things that are odd, as the verb ls tells them.")
	itemsMetric   = ofRecipe("queue_items", "Items of a queue, those in hand counted.")
	handMetric    = ofRecipe("queue_in_hand", "Items that consumers have.")
	deadMetric    = ofRecipe("queue_dead_letters", "Dead letters of a queue.")
	openMetric    = ofRecipe("round_open", "Whether a double barrier's round is open.")
	insideMetric  = ofRecipe("round_inside", "Members of the open round that have not finished.")
	doneMetric    = ofRecipe("round_finished", "Members of the open round that have finished.")
)

func metric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("zkcoord_path_"+name, help, labels, nil)
}

func ofRecipe(name, help string) *prometheus.Desc { return metric(name, help, "path", "kind") }

// Describe tells no metrics: those that there are depend on what is found.
func (e *exporter) Describe(chan<- *prometheus.Desc) {}

// Collect looks at every place. Places may overlap: a recipe counts once.
func (e *exporter) Collect(to chan<- prometheus.Metric) {
	seen := map[string]bool{}
	for _, place := range e.places {
		ctx, cancel := context.WithTimeout(e.ctx, e.within)
		found, err := place.look(ctx, e.client)
		cancel()
		sample(to, upMetric, truth(err == nil), place.Path)
		if err != nil {
			continue
		}
		sample(to, leftMetric, float64(found.Left), place.Path)
		sample(to, hiddenMetric, float64(len(found.Hidden)), place.Path)
		for _, r := range found.recipes {
			if !seen[r.Path] {
				seen[r.Path] = true
				r.collect(to)
			}
		}
	}
}

func (r report) collect(to chan<- prometheus.Metric) {
	tell := func(desc *prometheus.Desc, value float64) { sample(to, desc, value, r.Path, r.Kind) }
	var held, waits float64
	for _, c := range r.Contenders {
		switch {
		case c.Age == nil:
		case c.Holds:
			held = max(held, *c.Age)
		case r.waits(c):
			waits = max(waits, *c.Age)
		}
	}
	tell(holdersMetric, float64(len(r.holders())))
	tell(waitingMetric, float64(r.waiting()))
	tell(heldMetric, held)
	tell(waitMetric, waits)
	tell(oddMetric, float64(len(r.odd())))
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

func sample(to chan<- prometheus.Metric, desc *prometheus.Desc, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
