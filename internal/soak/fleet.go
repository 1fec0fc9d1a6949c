package soak

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// member is a client in this process, behind proxies of its own.
type member struct {
	*site
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
	opts := []coord.Option{coord.WithSessionTimeout(T), coord.WithIdentity(m.name), coord.WithObserver(m.observe(r))}
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
	return m, err
}

// site makes what all workers of this process share into a client's.
func (r *run) site(name string, seed uint64) *site {
	return &site{
		name: name, rec: r.rec, root: r.w.Path(""), seed: r.opts.Seed<<8 + seed,
		use: r.register.use, problem: r.tally.problem, count: r.tally.count,
		late: r.late, heed: r.heed,
		told:  func() {},
		wrote: r.fence.Wrote, passed: r.passed, gate: &r.gate, quiet: &r.quiet,
	}
}

// late judges how long after its context's end a call returned. What timers of
// this process were late by at the same time is the machine's.
func (r *run) late(worker string, d time.Duration) {
	r.tally.last("return after the context's end", d)
	if d > promptly+r.clock.lag() {
		r.tally.problem("%s: a call returned %v after its context ended; timers were late by %v", worker, d, r.clock.lag())
	}
}

func (m *member) observe(r *run) func(coord.Event) {
	return func(e coord.Event) {
		switch e.Kind {
		case coord.SessionOver:
			m.over.Add(1)
			r.rec.Note("%s: session over: %v", m.name, e.Err)
			r.tally.count("sessions over")
		case coord.ClaimRecovered:
			m.found.Add(1)
			r.tally.count("creates found again")
		case coord.StrayRemoved:
			r.tally.count("nodes made late, and removed")
		case coord.ClaimLost:
			r.tally.count("holds lost")
		case coord.NodeStranded:
			r.tally.problem("%s: node %s stranded: %v", m.name, e.Path, e.Err)
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

// inject puts the same fault into every proxy of the client, and tells how
// often it happened by the time that it did, or that the time was over.
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

// stats adds up what the client's proxies did.
func (m *member) stats() (sum proxy.Stats) {
	for _, p := range m.proxies {
		s := p.Stats()
		sum.Cut += s.Cut
		sum.Held += s.Held
		sum.Delayed += s.Delayed
		sum.Refused += s.Refused
		sum.Hung += s.Hung
	}
	return sum
}
