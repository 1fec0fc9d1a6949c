package see

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/exposition"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

type ExporterVerb struct {
	Listen string   `default:"127.0.0.1:9141" help:"Where to listen; port 0 takes a free one."`
	Most   int      `default:"10000" placeholder:"N" help:"Look at N nodes at most, for each path."`
	Paths  []string `arg:"" name:"path" predictor:"path" help:"Where to look: the paths themselves and all below them."`
}

// mostScrapes is how many scrapes are answered at a time, at most. They share a
// look.
const mostScrapes = 4

// Run serves metrics of the recipes at the paths and below, until it is
// interrupted. A scrape looks again, unless another scrape is looking.
func (v *ExporterVerb) Run(s *term.Streams, c *conn.Connection) error {
	var places []look.Surveyed
	slices.Sort(v.Paths)
	for _, path := range slices.Compact(v.Paths) {
		place := look.Surveyed{Dialect: c.LineDialect(), Most: v.Most, Path: path}
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
		e := &exporter{
			ctx: ctx, client: client, book: look.NewAddressBook(c), places: places, within: c.ConnectTimeout,
			scrapes: make(chan struct{}, mostScrapes),
		}
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

// exporter collects the metrics.
type exporter struct {
	ctx    context.Context
	client *coord.Client
	book   *look.AddressBook
	places []look.Surveyed
	within time.Duration

	scrapes chan struct{} // an entry for each that is being answered
	looks   singleflight.Group
	seen    look.Sightings
}

func gauge(name, help string, labels ...string) *exposition.Metric {
	return exposition.Gauge("zkcoord_path_"+name, help, labels...)
}

// ServeHTTP answers a scrape with a look at every place, or with the result of
// a look that is under way.
func (e *exporter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	select {
	case e.scrapes <- struct{}{}:
		defer func() { <-e.scrapes }()
	default:
		http.Error(w, "too many scrapes at a time", http.StatusServiceUnavailable)
		return
	}
	text, _, _ := e.looks.Do("", func() (any, error) { return e.look().String(), nil })
	w.Header().Set("Content-Type", exposition.ContentType)
	_, _ = io.WriteString(w, text.(string)) // an error means that the scraper is gone
}

// look looks at every place. Places may overlap; a recipe counts once.
func (e *exporter) look() *exposition.Text {
	to := exposition.New()
	defer e.seen.Look()()
	seen := map[string]bool{}
	ctx, cancel := context.WithTimeout(e.ctx, e.within) // all together
	defer cancel()
	surveys, failures := make([]*look.Survey, len(e.places)), make([]error, len(e.places))
	var looking sync.WaitGroup
	for i, place := range e.places {
		looking.Go(func() { surveys[i], failures[i] = place.Look(ctx, e.client) })
	}
	looking.Wait()
	for i, place := range e.places {
		metric := func(name, help string, value float64) { to.Sample(gauge(name, help, "place"), value, place.Path) }
		metric("up", "Whether the place could be looked at.", truth(failures[i] == nil))
		if failures[i] != nil {
			continue
		}
		found := surveys[i]
		metric("left_out_nodes", "Nodes that were not looked at (--most, --connect-timeout).", float64(found.Left))
		metric("hidden_nodes", "Nodes that may not be listed.", float64(len(found.Hidden)))
		for i := range found.Recipes {
			e.seen.Date(&found.Recipes[i])
			e.book.Fill(ctx, &found.Recipes[i])
		}
		for _, r := range found.Whole() {
			if !seen[r.Path] {
				seen[r.Path] = true
				collect(r, to)
			}
		}
	}
	return to
}

// collect writes the samples of a recipe.
func collect(r look.Report, to *exposition.Text) {
	sample := func(name, help string, value float64) {
		to.Sample(gauge(name, help, "kind", "path"), value, r.Kind, r.Path)
	}
	known := func(name, help string, value *float64) {
		if value != nil {
			sample(name, help, *value)
		}
	}
	collectContenders(r, sample)
	odd := r.Findings()
	sample("oddities", "Things that are odd, as the verb ls lists them.", float64(len(odd)))
	for _, o := range odd {
		to.Sample(gauge("odd", "Whether this is odd.", "kind", "odd", "path"), 1, r.Kind, o.Name, r.Path)
	}
	if q := r.Queue; q != nil {
		sample("queue_items", "Items of a queue, including items that consumers have.", float64(q.Items))
		sample("queue_in_hand", "Items that consumers have.", float64(q.InHand))
		sample("queue_dead_letters", "Dead letters of a queue.", float64(q.Dead))
		sample("queue_dead_letters_unacknowledged", "Dead letters of a queue that nobody has acknowledged.",
			float64(q.Unseen))
		sample("queue_oldest_item_seconds", "Age of the oldest item that no consumer has.", q.Oldest)
	}
	if round := r.Round; round != nil {
		sample("round_open", "Whether a double barrier's round is open.", truth(round.Open))
		sample("round_inside", "Members of the open round that have not finished.", float64(round.Inside))
		sample("round_finished", "Members of the open round that have finished.", float64(round.Finished))
	}
	if n := r.Numbers; n != nil {
		sample("slots_kept", "Numbers that are kept for owners that are away.", float64(len(n.Kept)))
		if n.Free != nil {
			sample("slots_free", "Numbers that anybody may be given.", float64(*n.Free))
		}
	}
	if l := r.Ledger; l != nil {
		sample("once_jobs", "Jobs on record.", float64(l.Jobs))
		sample("once_running", "Jobs that somebody has.", float64(l.Running))
		sample("once_failed", "Jobs whose last attempt has failed, and that nobody tries again.", float64(l.Failed))
		sample("once_unfinished", "Jobs that were begun, whose end is not on record, and that nobody has.",
			float64(l.Unfinished))
		known("once_oldest_run_seconds", "Time since the oldest attempt that is under way began.", l.OldestRun)
	}
	if s := r.Schedule; s != nil {
		sample("cron_under_way", "Slots that were chosen and are not known to have ended.", float64(len(s.Open)))
		sample("cron_left_out", "Slots that were left out so far.", float64(s.LeftOut))
		sample("cron_failing", "How many slots failed in a row, counted from the newest that ended.", float64(s.Failing))
		sample("cron_mark_ahead_seconds",
			"By how much a schedule's mark was in the future when it was noted, if that is too much.", s.Ahead)
		sample("cron_members", "Processes that run the schedule, of those that describe their job.", float64(s.Members))
		known("cron_next_due_seconds", "Time until the next slot is due, below 0 when it is overdue.", s.NextDue)
		known("cron_last_slot_seconds", "Time since the newest slot on record was due.", s.LastSlot)
		known("cron_last_success_seconds", "Time since the newest slot that ended well was due.", s.LastSuccess)
	}
	if s := r.Shards; s != nil {
		sample("shards_members", "Members that are there.", float64(s.Members))
		sample("shards_keys", "Keys.", float64(s.Keys))
		sample("shards_keys_unowned", "Keys that nobody has.", float64(s.Unowned))
		sample("shards_keys_failing", "Keys whose function fails, or has not returned in time.", float64(s.Failing))
		sample("shards_keys_moving", "Keys that the plan gives to another member than has them.", float64(s.Moving))
	}
}

// collectContenders writes the samples of holders and waiters.
func collectContenders(r look.Report, sample func(name, help string, value float64)) {
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
	sample("holders", "Contenders that hold.", float64(len(r.Holders())))
	sample("waiting", "Contenders that wait.", float64(r.Waiting()))
	sample("holder_there_seconds", "Age of the oldest node that holds, its wait included.", there)
	if known {
		sample("held_seconds",
			"Time since the oldest grant among the holders, at most, if all grants were seen: a grant between two scrapes counts from the first of them.", held)
	}
	sample("unknown_contenders", "Contenders of unknown recipes, which others do not exclude.", float64(r.Unknown()))
	sample("oldest_wait_seconds", "Age of the oldest node that waits.", waits)
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
