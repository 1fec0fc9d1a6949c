package simulate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/history"
)

// Result is what one seed did, as far as it got.
type Result struct {
	*world
	virtual time.Duration
}

// run runs a seed and keeps res up to date. It must be called in a testing/synctest bubble of its own,
// in which nothing is left when it returns.
func run(seed uint64, res *Result) error {
	w, err := newWorld(seed)
	if err != nil {
		return err
	}
	defer w.giveUp()
	res.world = w
	r := w.stream(0)
	if err := w.populate(r); err != nil {
		return err
	}
	w.rules = w.assign(r)
	d := &driver{world: w, r: w.stream(1)}
	d.run(w.lasting(r))
	limit := time.AfterFunc(w.limit(), func() {
		w.noteTree()
		w.giveUp()
	})
	w.working.Wait()
	limit.Stop()
	w.settle()
	if err := w.srv.Close(); err != nil {
		w.violated("server: %v", err)
	}
	res.virtual = time.Since(w.begin)
	return nil
}

// lasting is for how long there is trouble: usually some T, rarely hours.
func (w *world) lasting(r *rand.Rand) time.Duration {
	if chance(r, 0.003) {
		return w.part(r, 150, 500)
	}
	return w.part(r, 12, 30)
}

// populate opens the clients and makes what must be there before.
func (w *world) populate(r *rand.Rand) error {
	w.admin = w.newStation("admin", r)
	w.admin.latency = 0
	w.admin.open(w.base)
	for i := range 2 + r.IntN(2) {
		s := w.newStation(fmt.Sprint("c", i), r)
		s.steady = i == 0
		w.stations = append(w.stations, s)
		s.open(w.base)
	}
	for _, key := range []string{"/lock", "/rw", "/election"} {
		if err := w.admin.client.Create(w.base, w.newResource(key).counter, []byte("0")); err != nil {
			return err
		}
	}
	w.dirs = []string{"/lock", "/seat", "/rw", "/election", "/party", "/leases/leases", "/leases/locks"}
	return nil
}

// assign hires workers for some of the recipes, which keeps a seed cheap and the
// mixtures many, and returns the rules that their history must obey.
func (w *world) assign(r *rand.Rand) (rules []history.Rule) {
	hire := func(n int, recipe, key string, once func(*worker, context.Context, *coord.Client) bool) {
		for range n {
			w.hire(w.stations[r.IntN(len(w.stations))], recipe, key, once)
		}
	}
	groups := []func(){
		func() {
			hire(2+r.IntN(3), "lock", "/lock", mutex)
			if chance(r, 0.4) {
				hire(1+r.IntN(2), "multi-lock", "/lock", several("/lock", "/rw"))
			}
		},
		func() { hire(2+r.IntN(3), "rwlock", "/rw", readersWriter) },
		func() {
			hire(1+r.IntN(3), "election", "/election", campaign)
			hire(r.IntN(2), "election loop", "/election", leadAgain)
			hire(r.IntN(2), "election observer", "/election", observe)
		},
		func() {
			limit := 1 + r.IntN(3)
			hire(2+r.IntN(3), "semaphore", "/leases", leases(limit))
			rules = append(rules, history.Leases("/leases", limit))
		},
		func() {
			g := &gate{}
			w.hire(w.stations[0], "barrier", "/gate", g.keep)
			hire(1+r.IntN(2), "barrier", "/gate", g.pass)
		},
		func() {
			p := &party{size: 2 + r.IntN(2), over: make(chan struct{})}
			p.all = p.size + r.IntN(2)
			hire(p.all, "double barrier", "/party", p.meet)
			rules = append(rules, history.Rounds("/party", p.size))
		},
		func() {
			s := &shop{queues: map[*coord.Client]*queue.Queue{}, done: map[*worker]bool{}, producers: 1 + r.IntN(2)}
			hire(s.producers, "queue producer", "/queue", s.produce)
			hire(1+r.IntN(3), "queue", "/queue", s.consume)
			rules = append(rules, history.Queue("/queue", true))
			w.finish = func() { s.close(w) }
		},
	}
	if chance(r, 0.6) {
		hire(1+r.IntN(2), "long lock", "/seat", sit)
	}
	for _, i := range r.Perm(len(groups))[:2+r.IntN(3)] {
		groups[i]()
	}
	return append(rules, history.Mutex("/lock"), history.Mutex("/seat"), history.ReadersWriter("/rw"), history.Election("/election"))
}

// limit is until when everybody has had a turn after the last fault.
func (w *world) limit() time.Duration { return 5*w.timeout + time.Minute }

// noteTree writes down what is in the way of those who got no turn.
func (w *world) noteTree() {
	for _, n := range w.srv.Nodes() {
		w.note("%s of session 0x%x, version %d: %q", n.Path, n.Stat.EphemeralOwner, n.Stat.Version, n.Data)
	}
	for _, s := range w.stations {
		w.note("%s has session 0x%x", s.name, s.session())
	}
	w.note("watched: %v", w.srv.Watched())
}

// settle looks at what is left when everybody has finished.
func (w *world) settle() {
	prompt := w.timeout + 2*w.tick + 3*time.Second
	for key, took := range w.first {
		if took > prompt {
			w.violated("%s: the first grant came %v after the last fault", key, took)
		}
	}
	if _, stale := w.fence.Stale(); stale > 0 {
		w.violated("%d transactions were carried out after one of a later holder", stale)
	}
	w.finish()
	time.Sleep(w.timeout + 2*w.tick + 2*time.Second)
	for _, n := range w.srv.Nodes() {
		if n.Stat.EphemeralOwner != 0 {
			w.violated("left behind: %s of session 0x%x", n.Path, n.Stat.EphemeralOwner)
		}
	}
	for _, s := range append(w.stations, w.admin) {
		if c := s.take(); c != nil {
			if err := c.Close(context.Background()); err != nil {
				w.violated("%s: close: %v", s.name, err)
			}
		}
	}
	time.Sleep(time.Second)
	if n := w.srv.WatchCount(); n != 0 {
		w.violated("%d watches left: %v", n, w.srv.Watched())
	}
	for _, s := range w.srv.Sessions() {
		w.violated("session 0x%x left", s.ID)
	}
}
