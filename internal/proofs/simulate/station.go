package simulate

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
	"github.com/zkcoord/zkcoord/zkembed"
)

// station is a client and the workers that use it. A client that was closed or
// has crashed is replaced.
type station struct {
	workload.Unchecked // records of this process are never lost

	w       *world
	name    string
	opts    []coord.Option
	servers string
	steady  bool // never crashes
	latency time.Duration
	site    *workload.Site
	slow    atomic.Int64 // by how many nanoseconds each read and write is delayed
	slowed  atomic.Int64 // reads and writes that were delayed
	wall    wallClock

	mu     sync.Mutex
	client *coord.Client
	ready  chan struct{} // closed when client can be used
	dials  *rand.Rand
}

func (w *world) newStation(name string, r *rand.Rand) *station {
	s := &station{w: w, name: name, ready: make(chan struct{}), dials: rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))}
	s.servers = [...]string{"one:2181", "one:2181,two:2181", "one:2181,two:2181,three:2181"}[r.IntN(3)]
	s.latency = [...]time.Duration{0, 100 * time.Microsecond, 2 * time.Millisecond, w.timeout / 200}[r.IntN(4)]
	s.opts = []coord.Option{
		coord.WithSessionTimeout(w.timeout), coord.WithDialer(s.dial), coord.WithIdentity(name),
		coord.WithDialect(w.dialect), coord.WithObserver(s.observe),
	}
	if workload.Chance(r, 0.6) {
		s.opts = append(s.opts, coord.WithTick(w.tick))
	}
	if workload.Chance(r, 0.15) {
		s.opts = append(s.opts, coord.LoseAtDisconnect())
	}
	s.site = &workload.Site{Name: name, Rec: w.rec, Client: s.get, Pace: w.pace(), Calm: w.calm, Checks: s}
	return s
}

// observe counts the library's events.
func (s *station) observe(e event.Event) {
	switch e.Kind {
	case event.Recovered:
		s.Count("creates found again")
	case event.StrayRemoved:
		s.w.note("%s: stray %s of session 0x%x removed", s.name, e.Path, e.Session)
		s.Count("strays removed")
	}
}

// open makes the station's client. It tries again until there is one.
func (s *station) open(ctx context.Context) {
	for ctx.Err() == nil {
		c, err := coord.Open(ctx, s.servers, s.opts...)
		switch {
		case errors.Is(err, coord.ErrInvalid):
			panic(err)
		case err != nil:
			continue
		}
		s.mu.Lock()
		s.client = c
		close(s.ready)
		s.mu.Unlock()
		return
	}
}

// get waits for the client; it returns nil when ctx ends first.
func (s *station) get(ctx context.Context) *coord.Client {
	s.mu.Lock()
	ready := s.ready
	s.mu.Unlock()
	select {
	case <-ready:
	case <-ctx.Done():
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// take removes the client from the workers' choice, and returns it; nil if it
// was removed already.
func (s *station) take() *coord.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.client
	if c != nil {
		s.client, s.ready = nil, make(chan struct{})
	}
	return c
}

// session is the current session's id, or 0.
func (s *station) session() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		return 0
	}
	return s.client.Info().SessionID
}

// broken records that the driver ends the station's holds, or one of them if
// node is its token.
func (s *station) broken(key string, node int64, how string) {
	s.w.rec.Break(s.name+".", key, node, how, time.Now(), s.w.timeout)
}

func (s *station) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	nc, err := s.w.srv.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &slowConn{Conn: nc, station: s}
	c.up = rand.New(rand.NewPCG(s.dials.Uint64(), 0))
	c.down = rand.New(rand.NewPCG(s.dials.Uint64(), 1))
	return c, nil
}

// slowConn is a connection on which everything takes some time, and more while
// its station is slow.
type slowConn struct {
	net.Conn
	station  *station
	up, down *rand.Rand // used by one goroutine each
}

// lag waits at least a moment: then a loss is on record before another client
// can hear of its consequences.
func (c *slowConn) lag(r *rand.Rand) {
	slow := time.Duration(c.station.slow.Load())
	if slow > 0 {
		c.station.slowed.Add(1)
	}
	time.Sleep(time.Duration(r.Float64()*float64(c.station.latency)) + slow + time.Microsecond)
}

func (c *slowConn) Write(p []byte) (int, error) {
	c.lag(c.up)
	return c.Conn.Write(p)
}

func (c *slowConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.lag(c.down)
	return n, err
}

func lag(d *driver) (time.Duration, func() int) {
	ids := d.some()
	f, before := d.srv.AddFollower(d.part(d.r, 0.002, 0.4), ids...), d.reads(ids)
	return d.part(d.r, 0.5, 4), func() int {
		f.Stop()
		return workload.Times(d.reads(ids) > before) // not, when one of the sessions has ended
	}
}

// reads counts the reads of some sessions; nil stands for all.
func (d *driver) reads(ids []int64) (n int) {
	counts := []zkembed.Counts{d.srv.Counts()}
	if ids != nil {
		counts = nil
		for _, id := range ids {
			counts = append(counts, d.srv.SessionCounts(id))
		}
	}
	for _, c := range counts {
		n += c[zkembed.OpGetData] + c[zkembed.OpGetChildren] + c[zkembed.OpGetChildren2] + c[zkembed.OpExists]
	}
	return n
}

// isolate puts sessions on a follower and cuts that off from its leader.
func isolate(d *driver) (time.Duration, func() int) {
	ids := d.some()
	if ids == nil {
		return nothing()
	}
	f := d.srv.AddFollower(d.part(d.r, 0, 0.1), ids...)
	lasts, before := d.part(d.r, 1.2, 2.2), d.part(d.r, 0, 0.3)
	isolating := time.AfterFunc(before, f.Isolate)
	begun := time.Now()
	return lasts + before, func() int {
		isolating.Stop()
		f.Rejoin()
		f.Stop()
		return workload.Times(time.Since(begun)-before >= d.timeout)
	}
}

// silent puts sessions on a follower, and silences one direction of its link to
// the leader for less or more than T.
func silent(way zkembed.Direction) func(d *driver) (time.Duration, func() int) {
	return func(d *driver) (time.Duration, func() int) {
		ids := d.some()
		if ids == nil {
			return nothing()
		}
		f := d.srv.AddFollower(d.part(d.r, 0, 0.02), ids...)
		lasts, before := d.outage(), d.part(d.r, 0, 0.3)
		d.running.Go(func() {
			pause(before, d.calm)
			f.Silence(way)
		})
		return before + lasts, func() int {
			f.Rejoin()
			f.Stop()
			return min(1, f.Link().Held)
		}
	}
}

// breakage is the direction of a link that falls silent, and the one that is
// cut before or when the silence ends.
type breakage struct{ silent, cut zkembed.Direction }

var breakages = []breakage{
	{zkembed.ToFollower, zkembed.ToLeader},
	{zkembed.ToFollower, zkembed.Both},
	{zkembed.ToLeader, zkembed.ToFollower},
	{zkembed.Both, zkembed.ToLeader},
	{0, zkembed.ToLeader},
}

// broken puts sessions on a follower whose link is cut after a silence. The
// leader may never hear what the follower acknowledges last. For some time the
// follower does not come back, as one that looks for a leader.
func broken(d *driver) (time.Duration, func() int) {
	ids := d.some()
	for _, n := range d.srv.Nodes() {
		if n.Stat.EphemeralOwner != 0 && strings.HasPrefix(n.Path, "/seat/") {
			ids = []int64{n.Stat.EphemeralOwner} // a holder's session
		}
	}
	if ids == nil {
		return nothing()
	}
	f := d.srv.AddFollower(d.part(d.r, 0, 0.02), ids...)
	how := breakages[d.r.IntN(len(breakages))]
	before, quiet, away := d.part(d.r, 0, 0.3), d.part(d.r, 0.1, 0.48), d.part(d.r, 0, 1.8)
	if workload.Chance(d.r, 0.5) { // without other faults at the same time
		how, before, quiet, away = breakages[0], 0, d.part(d.r, 0.3, 0.48), d.part(d.r, 0.9, 1.2)
		d.pause = quiet + away
	}
	cut := quiet
	if workload.Chance(d.r, 0.7) {
		cut = time.Duration((0.6 + 0.4*d.r.Float64()) * float64(quiet))
	}
	d.running.Go(func() {
		pause(before, d.calm)
		f.Silence(how.silent)
		pause(cut, d.calm)
		f.Cut(how.cut)
		pause(quiet-cut, d.calm)
		f.Silence(0)
	})
	return before + quiet + away, func() int {
		f.Rejoin()
		f.Stop()
		return min(1, f.Link().Lost)
	}
}
