package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// pace is the pace of all workers: most wait for their turn.
var pace = workload.Pace{
	Timeout: T, Deadlines: 0.05, Cancels: 0.05, Early: 300 * time.Millisecond, Rushed: 0.005,
	Patience: 30 * time.Second, Certain: 5 * time.Minute,
	Step: 15 * time.Millisecond, Writes: 0.1, Pause: 20 * time.Millisecond,
}

// site is one client with its workers, in this process or in a child.
type site struct {
	workload.Site
	root string
	seed uint64
}

// work runs all workers of the site until ctx ends.
func (s *site) work(ctx context.Context) {
	var all sync.WaitGroup
	for i, p := range places {
		for j, role := range p.roles {
			if role.only != nil && !role.only(s.Name) {
				continue
			}
			w := s.worker(p.name+role.suffix, p, uint64(i+100*j))
			all.Go(func() {
				if role.use != nil {
					w.Work(ctx, role.use)
					return
				}
				shop := p.shop()
				w.Work(ctx, shop.Trade)
				s.close(ctx, w, shop)
			})
		}
	}
	all.Wait()
}

func (s *site) worker(name string, p place, n uint64) *workload.Worker {
	hold := workload.Between(p.hold[0], p.hold[1])
	return workload.NewWorker(&s.Site, name, p.name, s.root+"/"+p.name, rand.New(rand.NewPCG(s.seed, n)), hold)
}

func (s *site) close(ctx context.Context, w *workload.Worker, shop *workload.Shop) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stuckAfter)
	defer cancel()
	if err := shop.Close(ctx); err != nil {
		s.Violated("%s: closing the queue: %v", w.Name, err)
	}
}

// drain empties the queues: items that are still missing then were lost.
func (s *site) drain(ctx context.Context) error {
	for _, p := range places {
		if p.roles[0].use != nil {
			continue
		}
		w, shop := s.worker(p.name, p, 0), p.shop()
		if err := shop.Drain(ctx, w, s.Client(ctx)); err != nil {
			return err
		}
		s.close(ctx, w, shop)
	}
	return nil
}

// pause waits, and reports whether ctx still lasts.
func pause(ctx context.Context, d time.Duration) bool { return workload.Pause(ctx, d, nil) }

// place is a path, the recipe used there, and what its history must obey.
type place struct {
	name  string
	hold  [2]time.Duration // how long to hold, least and most
	roles []role
	rules func(key string) []history.Rule
}

// role is what a worker does at a place.
type role struct {
	suffix string
	only   func(client string) bool // clients that have such a worker; nil stands for all
	use    workload.Use             // nil for a queue's workers
}

var (
	short = [2]time.Duration{5 * time.Millisecond, 45 * time.Millisecond}
	// long holds are long enough for a double hold to show.
	long = [2]time.Duration{300 * time.Millisecond, 2500 * time.Millisecond}
)

// leases is the limit of the semaphore, party the size of the double barrier,
// numbers is how many slots there are, and keys how many keys are shared.
const leases, party, numbers, keys = 3, 3, 3, workload.MostKeys

// crowd shares a mutex among the workers of a client.
var crowd = &workload.Crowd{Opts: []lock.Option{lock.LocalQueue(5, time.Second), lock.Linger(100 * time.Millisecond)}}

// kept is how many runs the ledger of jobs keeps.
const kept = 200

// jobs is the ledger, as the clients of this process use it.
var jobs = &workload.Ledger{Opts: []once.Option{once.KeepLast(kept)}}

var places = []place{
	{"lock", short, []role{{"", nil, workload.Lock}}, one(history.Mutex)},
	{"lock-long", long, []role{{"", some, workload.Lock}, {".several", few, several}}, one(history.Mutex)},
	{
		"crowd", short,
		[]role{{".a", nil, crowd.Lock}, {".b", nil, crowd.Lock}, {".c", few, workload.Lock}},
		one(history.Turns),
	},
	{"shared", short, []role{{".r", nil, workload.Share(0)}, {".w", some, workload.Share(1)}}, one(history.ReadersWriter)},
	{
		"shared-long", long,
		[]role{{".r", some, workload.Share(0)}, {".w", few, workload.Share(1)}},
		one(history.ReadersWriter),
	},
	{
		"election", long, []role{
			{"", some, workload.Campaign}, {".run", few, workload.Lead}, {".observe", few, workload.Observe},
		}, one(history.Election),
	},
	{"leases", short, []role{{"", nil, workload.Lease(leases)}}, counted},
	{"leases-long", long, []role{{"", some, workload.Lease(leases)}}, counted},
	{"queue", short, []role{{".receive", nil, nil}}, drained},
	{"queue-take", short, []role{{".take", nil, nil}}, drained},
	{
		"jobs", short, []role{{"", nil, jobs.Do}}, func(key string) []history.Rule {
			return []history.Rule{history.Jobs(key, 0, kept, 0)}
		},
	},
	{"group", short, []role{{"", some, workload.Join}}, one(history.Mutex)},
	{"count", short, []role{{"", some, workload.Count}}, one(history.Counter)},
	{"slots", short, []role{{"", nil, workload.Number(numbers)}}, one(history.Numbers)},
	{sharedAt, long, []role{{"", some, workload.ShareKeys(keys)}}, shared},
	{
		"meeting", short, []role{{"", nil, workload.Meet(party)}}, func(key string) []history.Rule {
			return []history.Rule{history.Rounds(key, party)}
		},
	},
	{
		"gate", long, []role{{".keep", first, workload.Keep}, {".pass", nil, workload.Pass}}, func(string) []history.Rule {
			return nil
		},
	}, // see judge
}

func several(w *workload.Worker, c *coord.Client) bool {
	root := path.Dir(w.Key)
	return workload.Several(root+"/lock-long", root+"/shared-long")(w, c)
}

// shop is the queue of a worker at the place, whose items are received, or
// taken.
func (p place) shop() *workload.Shop {
	shop := &workload.Shop{Full: 60}
	if p.name == "queue-take" {
		shop.Takes = 1
	}
	return shop
}

// some and few choose the clients that work at places where the line of all
// clients would be too long.
func some(client string) bool { return client[len(client)-1]%2 == 0 }
func few(client string) bool  { return client[len(client)-1]%4 == 0 }

// first is the client, in the soak's own process, that keeps the gate.
func first(client string) bool { return client == "c0" }

func counted(key string) []history.Rule { return []history.Rule{history.Leases(key, leases)} }
func drained(key string) []history.Rule { return []history.Rule{history.Queue(key, true)} }

func shared(path string) (rules []history.Rule) {
	for _, lock := range workload.KeysOf(path, workload.MostKeys) {
		rules = append(rules, history.Mutex(lock))
	}
	return rules
}

func one(rule func(string) history.Rule) func(string) []history.Rule {
	return func(key string) []history.Rule { return []history.Rule{rule(key)} }
}

// member is a client in this process, behind proxies of its own.
type member struct {
	*site
	client  *coord.Client
	proxies []*zktest.Proxy
	over    atomic.Int64 // sessions that ended
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
	observe := observer(m.Name, m.Checks)
	observed := coord.WithObserver(func(e event.Event) {
		if e.Kind == event.SessionOver {
			m.over.Add(1)
			r.rec.Note("%s: session over: %v", m.Name, e.Err)
		}
		observe(e)
	})
	opts := []coord.Option{coord.WithSessionTimeout(T), coord.WithIdentity(m.Name), observed}
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
		root: r.w.Path(""), seed: r.opts.Seed<<8 + seed,
		Site: workload.Site{Name: name, Rec: r.rec, Pace: pace, Calm: r.calm, Checks: checks{run: r}},
	}
}

// checks are the checks of a client of this process.
type checks struct {
	workload.Unchecked
	run *run
}

func (c checks) Granted(w *workload.Worker, h history.Holder) { c.run.checkSignal(w.Name, h) }
func (c checks) Accept(key string, token int64) bool          { return c.run.register.use(key, token) }
func (c checks) Wrote(key string, w history.Write)            { c.run.fence.Wrote(key, w) }
func (c checks) Count(what string)                            { c.run.tally.count(what) }
func (c checks) Violated(format string, args ...any)          { c.run.tally.problem(format, args...) }

// Late judges how long after its context's end a call returned. The check
// allows for the delay of timers at that time.
func (c checks) Late(w *workload.Worker, what string, by time.Duration, err error) {
	c.run.tally.last("return after the context's end", by)
	if lag := c.run.lag(); by > promptly+lag {
		c.run.tally.problem("%s: %s returned %v after its context ended, with %v; timers were late by %v", w.Name, what,
			by, err, lag)
	}
}

// observer counts what a client tells.
func observer(client string, to workload.Checks) func(event.Event) {
	counted := map[string]string{
		event.SessionOver: "sessions over", event.Recovered: "creates found again",
		event.StrayRemoved: "nodes made late, and removed",
	}
	return func(e event.Event) {
		switch what, ok := counted[e.Kind]; {
		case ok:
			to.Count(what)
		case e.Kind == event.NodeStranded:
			to.Violated("%s: node %s stranded: %v", client, e.Path, e.Err)
		case e.Kind == event.Ended && errors.Is(e.Err, coord.ErrLost):
			to.Count("holds lost")
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
	for _, p := range m.proxies {
		rules = append(rules, p.Inject(f))
	}
	await(ctx, within, func() bool {
		return slices.ContainsFunc(rules, func(rule *proxy.Rule) bool { return rule.Fired() > 0 })
	})
	for _, rule := range rules {
		rule.Remove()
		fired += rule.Fired()
	}
	return fired
}

// stats sums the counters of the client's proxies.
func (m *member) stats() proxy.Stats { return proxy.Total(m.proxies) }
