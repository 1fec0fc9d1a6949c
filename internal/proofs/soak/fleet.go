package soak

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// member is a client in this process, behind proxies of its own.
type member struct {
	*site
	client  *coord.Client
	proxies []*zktest.Proxy
	over    atomic.Int64 // sessions that ended
	found   atomic.Int64 // creates found again after their reply was lost
}

func (r *run) enlist(i int) (*member, error) {
	m := &member{site: r.site(fmt.Sprintf("c%d", i), uint64(100+i))}
	var addrs []string
	for _, s := range r.ens.Servers() {
		p, err := proxy.New(s.Addr())
		if err != nil {
			return nil, err
		}
		m.proxies = append(m.proxies, p)
		addrs = append(addrs, p.Addr())
	}
	opts := []coord.Option{coord.WithSessionTimeout(T), coord.WithIdentity(m.Name), coord.WithObserver(m.observe(r))}
	if i%2 == 0 {
		opts = append(opts, coord.WithTick(tick))
	}
	if i%5 == 4 {
		opts = append(opts, coord.LoseAtDisconnect())
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	m.client, err = coord.Open(ctx, strings.Join(addrs, ","), opts...)
	m.Client = func(context.Context) *coord.Client { return m.client }
	return m, err
}

// site makes a client's site, of what all workers of this process share.
func (r *run) site(name string, seed uint64) *site {
	return &site{
		root: strings.TrimSuffix(r.w.Path(""), "/"), seed: r.opts.Seed<<8 + seed,
		Site: workload.Site{Name: name, Rec: r.rec, Pace: pace, Calm: r.calm, Checks: checks{run: r}},
	}
}

// checks are those of a client of this process.
type checks struct {
	workload.Unchecked
	run *run
}

func (c checks) Granted(w *workload.Worker, h history.Holder) { c.run.checkSignal(w.Name, h) }
func (c checks) Accept(key string, token int64) bool          { return c.run.register.use(key, token) }
func (c checks) Wrote(key string, w history.Write)            { c.run.fence.Wrote(key, w) }
func (c checks) Count(what string)                            { c.run.tally.count(what) }
func (c checks) Violated(format string, args ...any)          { c.run.tally.problem(format, args...) }

// Late judges how long after its context's end a call returned. The delay of
// timers at that time is allowed for.
func (c checks) Late(w *workload.Worker, what string, by time.Duration, err error) {
	c.run.tally.last("return after the context's end", by)
	if lag := c.run.clock.lag(); by > promptly+lag {
		c.run.tally.problem("%s: %s returned %v after its context ended, with %v; timers were late by %v", w.Name, what, by, err, lag)
	}
}

func (m *member) observe(r *run) func(coord.Event) {
	return func(e coord.Event) {
		switch e.Kind {
		case coord.SessionOver:
			m.over.Add(1)
			r.rec.Note("%s: session over: %v", m.Name, e.Err)
			r.tally.count("sessions over")
		case coord.ClaimRecovered:
			m.found.Add(1)
			r.tally.count("creates found again")
		case coord.StrayRemoved:
			r.tally.count("nodes made late, and removed")
		case coord.ClaimEnded:
			if errors.Is(e.Err, coord.ErrLost) {
				r.tally.count("holds lost")
			}
		case coord.NodeStranded:
			r.tally.problem("%s: node %s stranded: %v", m.Name, e.Path, e.Err)
		}
	}
}

// close ends the client and its proxies.
func (m *member) close(ctx context.Context) error {
	err := m.client.Close(ctx)
	for _, p := range m.proxies {
		p.Close()
	}
	return err
}

// inject puts the same fault into every proxy of the client, waits until it
// happens or the time is over, and returns how often it happened.
func (m *member) inject(ctx context.Context, f proxy.Fault, within time.Duration) (fired int) {
	var rules []*proxy.Rule
	first := make(chan struct{}, len(m.proxies))
	for _, p := range m.proxies {
		rule := p.Inject(f)
		rules = append(rules, rule)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var waiting sync.WaitGroup
	for _, rule := range rules {
		waiting.Go(func() {
			select {
			case <-rule.First():
				first <- struct{}{}
			case <-ctx.Done():
			}
		})
	}
	select {
	case <-first:
	case <-ctx.Done():
	}
	cancel()
	waiting.Wait()
	for _, rule := range rules {
		rule.Remove()
		fired += rule.Fired()
	}
	return fired
}

// stats sums the counters of the client's proxies.
func (m *member) stats() proxy.Stats { return proxy.Total(m.proxies) }
