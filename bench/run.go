package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/zkcoord/zkcoord/internal/interop"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// plan is how much a run measures.
type plan struct {
	repetitions int
	during      time.Duration // of each measurement
	sites       string        // pattern of their names, as path.Match has it
	rows        string
	table       []row
}

// Limits of what a contender may take for a command.
const (
	prepareWithin = 5 * time.Minute
	closeWithin   = 30 * time.Second
)

// chainLinks is how many hand-offs a chain has; over links each takes 5 ms.
var chainLinks = map[bool]int{false: 2000, true: 200}

// run measures all rows at all sites of the plan.
func run(t *testing.T, p plan) (cells []*cell) {
	for _, s := range sites {
		has := func(r row) bool { return slices.Contains(r.sites, s) }
		if ok, _ := path.Match(p.sites, s.name); ok && slices.ContainsFunc(p.table, has) {
			t.Run(s.name, func(t *testing.T) { cells = append(cells, measureSite(t, p, s)...) })
		}
	}
	return cells
}

func (p plan) String() string {
	return fmt.Sprintf("Repetitions: %d of %v, on %d processors, %s, %s",
		p.repetitions, p.during, runtime.NumCPU(), runtime.Version(), time.Now().Format("2 January 2006"))
}

// measurer is what measures at one site.
type measurer struct {
	t        *testing.T
	plan     plan
	site     *site
	servers  map[string][]*server       // by kind
	programs map[string]interop.Program // of contenders, compiled
	running  map[string]processes       // contenders
	paths    int
}

func newMeasurer(t *testing.T, p plan, s *site) *measurer {
	return &measurer{
		t: t, plan: p, site: s,
		servers: map[string][]*server{}, programs: map[string]interop.Program{}, running: map[string]processes{},
	}
}

func measureSite(t *testing.T, p plan, s *site) (cells []*cell) {
	m := newMeasurer(t, p, s)
	m.warmUp()
	for _, r := range p.table {
		if ok, _ := path.Match(p.rows, r.name); !ok || !slices.Contains(r.sites, s) {
			continue
		}
		tasks, names := r.cases()
		for i, task := range tasks {
			cells = append(cells, m.measure(r.at(i), task, names[i])...)
		}
	}
	return cells
}

// warmUp lets the compilers of the servers and of Curator do their work before
// anything is measured.
func (m *measurer) warmUp() {
	t := task{work: "contend", sessions: 8, each: 1, during: 5 * time.Second}
	if _, err := m.once(contenderNamed(curator), t, false); err != nil {
		m.t.Error("warming up:", err)
	}
}

// measure runs one case of a row: every contender in every repetition. The
// first, which is not in the plan's number, counts and warms up.
func (m *measurer) measure(r row, t task, name string) (cells []*cell) {
	if t.during == 0 {
		t.during = m.plan.during
	}
	if t.settle == 0 {
		t.settle = t.during / 4
	}
	for _, who := range r.who {
		cells = append(cells, &cell{
			Site: m.site.name, Row: r.name, Case: name, Contender: who,
			Run: m.plan.String(), samples: make([]figures, m.plan.repetitions),
		})
	}
	for repetition := range m.plan.repetitions + 1 {
		for i := range cells {
			c := cells[(i+repetition)%len(cells)]
			s, err := m.once(contenderNamed(c.Contender), t, repetition == 0)
			switch {
			case err != nil:
				m.t.Logf("%s %s %s %s: %v", c.Site, c.Row, c.Case, c.Contender, err)
				c.Failed++
			case repetition == 0:
				c.counted = s
			default:
				c.samples[repetition-1] = s
			}
		}
	}
	for _, c := range cells {
		c.sum()
		c.compare(r, cells)
		m.t.Logf("%s %s %s %s: %v", c.Site, c.Row, c.Case, c.Contender, c.Figures)
	}
	return cells
}

// once lets one contender do a task.
func (m *measurer) once(c contender, t task, counting bool) (figures, error) {
	m.paths++
	t.path = fmt.Sprintf("/bench-%d", m.paths)
	if t.timeout == 0 {
		t.timeout = 10 * time.Second
	}
	servers := m.serversFor(c.server)
	for _, s := range servers {
		t.addrs = append(t.addrs, s.address(counting || m.site.delay > 0))
	}
	if t.work == "wait" {
		return m.takeover(c, t)
	}
	if c.name == limit && t.work == "contend" && !t.own {
		t.work, t.count = "chain", chainLinks[m.site.delay > 0]
	}
	for len(m.running[c.name]) < max(t.processes, 1) {
		m.running[c.name] = append(m.running[c.name], m.start(c))
	}
	all := m.running[c.name][:max(t.processes, 1)]
	f, err := all.do(t, servers, counting || m.site.delay > 0)
	if err != nil {
		for _, p := range m.running[c.name] {
			p.child.Kill()
		}
		delete(m.running, c.name)
	}
	return f, err
}

func (m *measurer) serversFor(kind string) []*server {
	if m.servers[kind] == nil {
		m.servers[kind] = startServers(m.t, kind, m.site.servers)
		for _, s := range m.servers[kind] {
			s.start(m.t, m.site.delay)
		}
	}
	return m.servers[kind]
}

// processes do one task, all together.
type processes []process

// do has them prepare, run and close the task, and adds what others saw of it.
func (all processes) do(t task, servers []*server, counting bool) (figures, error) {
	for i, p := range all {
		t.behind = t.lined && i > 0
		p.child.Send("prepare " + t.String())
		if t.behind {
			continue // they all queue together
		}
		if _, err := p.answered("prepared", prepareWithin); err != nil {
			return nil, err
		}
	}
	for _, p := range all[1:] {
		if !t.lined {
			break
		}
		if _, err := p.answered("prepared", prepareWithin); err != nil {
			return nil, err
		}
	}
	recovery, again := time.Duration(0), 0
	if t.cut && counting {
		recovery, again = servers[0].cut(prepareWithin)
	}
	before, err := all.look(servers)
	if err != nil {
		return nil, err
	}
	f, err := all.run(t)
	if err != nil {
		return nil, err
	}
	after, err := all.look(servers)
	if err != nil {
		return nil, err
	}
	after.add(f, before, counting)
	if t.cut && counting {
		f["recovery"], f["again"] = recovery.Seconds(), float64(again)
	}
	begun := time.Now()
	for _, p := range all {
		p.child.Send("close")
		if _, err := p.answered("closed", closeWithin); err != nil {
			return nil, err
		}
	}
	f["close"] = time.Since(begun).Seconds()
	return f, nil
}

// run returns the figures of the first process, with the operations of all
// processes, and the smallest share of them.
func (all processes) run(t task) (sum figures, err error) {
	for _, p := range all {
		p.child.Send("run")
	}
	least := math.Inf(1)
	for _, p := range all {
		words, err := p.answered("figures", t.during+prepareWithin)
		if err != nil {
			return nil, err
		}
		f, err := parseFigures(words)
		if err != nil {
			return nil, err
		}
		least = min(least, f["ops"])
		if sum == nil {
			sum = f
		} else {
			sum["ops"] += f["ops"]
			sum["queued"] = max(sum["queued"], f["queued"])
		}
	}
	sum["share"] = least * float64(len(all)) / max(sum["ops"], 1)
	if sum["seconds"] > 0 {
		sum["rate"] = sum["ops"] / sum["seconds"]
	}
	return sum, nil
}

// seen is what can be seen of a contender and its servers from outside.
type seen struct {
	client, server               time.Duration // of processors
	requests, answers, sent, got int
	writes                       int
}

func (all processes) look(servers []*server) (s seen, err error) {
	for _, p := range all {
		s.client += processorTime(p.child.PID())
	}
	for _, one := range servers {
		s.server += processorTime(one.pid)
		stats := one.proxy.Stats()
		s.sent += stats.Passed[proxy.ToServer].Bytes
		s.got += stats.Passed[proxy.ToClient].Bytes
		requests, answers := stats.Passed[proxy.ToServer].Packets, stats.Passed[proxy.ToClient].Packets
		if one.counts != nil {
			if requests, answers, err = one.counts(); err != nil {
				return s, err
			}
		}
		s.writes += one.writes()
		s.requests += requests
		s.answers += answers
	}
	return s, nil
}

// add notes what each operation took.
func (s seen) add(f figures, before seen, counting bool) {
	each := func(name string, n float64) { f[name] = n / max(f["ops"], 1) }
	each("client", (s.client - before.client).Seconds())
	each("server", (s.server - before.server).Seconds())
	if counting {
		each("writes", float64(s.writes-before.writes))
		each("requests", float64(s.requests-before.requests))
		each("answers", float64(s.answers-before.answers))
		each("sent", float64(s.sent-before.sent))
		each("got", float64(s.got-before.got))
	}
}

// takeover kills the process of a holder, at a random place between two ticks.
func (m *measurer) takeover(c contender, t task) (figures, error) {
	holder, next := m.start(c), m.start(c)
	defer holder.child.Kill()
	defer next.child.Kill()
	for _, p := range []process{holder, next} {
		p.child.Send("prepare " + t.String())
		if _, err := p.answered("prepared", prepareWithin); err != nil {
			return nil, err
		}
	}
	holder.child.Send("run")
	if _, err := holder.answered("figures", prepareWithin); err != nil {
		return nil, err
	}
	next.child.Send("run")
	<-time.After(tick + rand.N(tick)) // it is in line by then
	begun := time.Now()
	holder.child.Kill()
	_, err := next.answered("figures", prepareWithin)
	return figures{"takeover": time.Since(begun).Seconds()}, err
}
