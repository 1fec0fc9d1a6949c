package simulate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
)

// Result is what one seed did, as far as it got.
type Result struct {
	*world
	virtual time.Duration
}

// run runs a seed and keeps res up to date. It must be called in a
// testing/synctest bubble of its own. When it returns, nothing runs in the
// bubble any more.
func run(seed uint64, res *Result) error {
	w, err := newWorld(seed)
	if err != nil {
		return err
	}
	defer w.giveUp()
	res.world = w
	r := w.stream(0)
	w.setServers(r)
	if err := w.populate(r); err != nil {
		return err
	}
	w.rules = w.assign(r)
	d := &driver{world: w, r: w.stream(1)}
	d.run(w.lasting(r))
	w.judgeShards()
	w.serve()
	w.checkLeftovers()
	if err := w.srv.Close(); err != nil {
		w.violated("server: %v", err)
	}
	res.virtual = time.Since(w.begin)
	return nil
}

// lasting draws how long faults go on: usually some T, rarely hours.
func (w *world) lasting(r *rand.Rand) time.Duration {
	if workload.Chance(r, 0.003) {
		return w.part(r, 150, 500)
	}
	return w.part(r, 12, 30)
}

// populate opens the clients and makes the nodes that the workers need.
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
	for _, key := range guarded {
		if err := w.admin.client.Create(w.base, workload.Counter(key), []byte("0")); err != nil {
			return err
		}
	}
	w.dirs = []string{
		"/lock", "/described", "/crowd", "/seat", "/rw", "/election", "/party", "/leases/leases", "/leases/locks",
	}
	return nil
}

// guarded are the paths whose holders write.
var guarded = []string{"/lock", "/described", "/crowd", "/rw", "/election", "/group"}

// described are dialects whose names have no GUID, and one whose have.
var described = []coord.Dialect{
	coord.Numbers, coord.ZooKeeper, coord.Named("one"), coord.Description{Prefix: "n_"}.Dialect(),
	coord.Description{Prefix: "n_"}.Dialect(),
	coord.Description{Prefix: "zlock#{guid}#"}.Dialect(),
}

// assign adds workers for some of the recipes, and returns the rules that their
// history must obey. A seed without some recipes is cheap, and the mixtures
// differ.
func (w *world) assign(r *rand.Rand) (rules []history.Rule) {
	hire := func(n int, recipe, key string, use workload.Use) {
		for range n {
			w.addWorker(w.stations[r.IntN(len(w.stations))], recipe, key, w.hold, use)
		}
	}
	share := func() {
		keys := 3 + r.IntN(2)
		w.populateShards(r, keys)
		hire(1+r.IntN(2), "shards", "/shards", workload.ShareKeys(keys))
		for _, lock := range workload.KeysOf("/shards", workload.MostKeys) {
			rules = append(rules, history.Mutex(lock))
		}
	}
	schedule := func() { rules = append(rules, w.populateCron(r)) }
	groups := []func(){
		func() {
			hire(2+r.IntN(3), "lock", "/lock", workload.Lock)
			if workload.Chance(r, 0.4) {
				hire(1+r.IntN(2), "multi-lock", "/lock", workload.Several("/lock", "/rw"))
			}
		},
		func() {
			crowd := &workload.Crowd{Opts: []lock.Option{lock.LocalQueue(1+r.IntN(5), w.part(r, 0, 1)+time.Millisecond)}}
			if workload.Chance(r, 0.5) {
				crowd.Opts = append(crowd.Opts, lock.Linger(w.part(r, 0, 1)+time.Millisecond))
			}
			hire(4+r.IntN(3), "local queue", "/crowd", crowd.Lock)
			hire(r.IntN(2), "lock beside local queues", "/crowd", workload.Lock)
			rules = append(rules, history.Turns("/crowd"))
		},
		func() {
			d := described[r.IntN(len(described))]
			hire(3+r.IntN(3), "described line", "/described", workload.LockIn(d))
		},
		func() { hire(2+r.IntN(3), "rwlock", "/rw", workload.Share(0.5)) },
		func() {
			hire(1+r.IntN(3), "election", "/election", workload.Campaign)
			hire(r.IntN(2), "election loop", "/election", workload.Lead)
			hire(r.IntN(2), "election observer", "/election", workload.Observe)
		},
		func() {
			limit := 1 + r.IntN(3)
			hire(2+r.IntN(3), "semaphore", "/leases", workload.Lease(limit))
			rules = append(rules, history.Leases("/leases", limit))
		},
		func() {
			w.addWorker(w.stations[0], "barrier keeper", "/gate", w.shut, workload.Keep)
			hire(1+r.IntN(2), "barrier", "/gate", workload.Pass)
			rules = append(rules, history.Barrier("/gate"))
		},
		func() {
			size := 2 + r.IntN(2)
			hire(size+r.IntN(2), "double barrier", "/party", workload.Meet(size))
			rules = append(rules, history.Rounds("/party", size))
		},
		func() {
			w.shop = &workload.Shop{Full: 30, Takes: 0.3}
			hire(1+r.IntN(2), "queue producer", "/queue", w.shop.Produce)
			hire(1+r.IntN(3), "queue", "/queue", w.shop.Consume)
			rules = append(rules, history.Queue("/queue", true))
		},
		func() {
			attempts, keep, age := 0, 0, time.Duration(0)
			w.ledger = &workload.Ledger{}
			switch how := r.IntN(11); how {
			case 0:
			case 5, 6, 7:
				keep = 1 + r.IntN(8)
				w.ledger.Opts = []once.Option{once.KeepLast(keep)}
			case 8, 9, 10:
				age = w.part(r, 0.5, 4)
				w.ledger.Opts = []once.Option{once.Keep(age)}
			default:
				attempts = how
				w.ledger.Opts = []once.Option{once.Attempts(attempts, w.part(r, 0, 0.2))}
			}
			hire(2+r.IntN(3), "once", "/jobs", w.ledger.Do)
			rules = append(rules, history.Jobs("/jobs", attempts, keep, age))
		},
		share,
		schedule,
		func() {
			hire(2+r.IntN(3), "group", "/group", workload.Join)
			hire(r.IntN(2), "group observer", "/group", workload.See)
			rules = append(rules, history.Mutex("/group"))
		},
		func() {
			hire(2+r.IntN(3), "counter", "/count", workload.Count)
			rules = append(rules, history.Counter("/count"))
		},
		func() {
			hire(2+r.IntN(4), "slots", "/slots", workload.Number(1+r.IntN(3)))
			for _, owner := range workload.Owners {
				hire(1, "slots operator", "/slots", workload.Forget(owner))
			}
			rules = append(rules, history.Numbers("/slots"))
		},
	}
	if workload.Chance(r, 0.6) {
		for range 1 + r.IntN(2) {
			w.addWorker(w.stations[r.IntN(len(w.stations))], "long lock", "/seat", workload.Between(2*w.timeout, 8*w.timeout),
				workload.Sit)
		}
	}
	for _, i := range r.Perm(len(groups))[:2+r.IntN(3)] {
		groups[i]()
	}
	if *focus == "shards" && w.shared.names == nil {
		share()
	}
	if (*focus == "clocks" || workload.Chance(r, 0.3)) && w.clocks.table == nil {
		schedule()
	}
	return append(rules, history.Mutex("/lock"), history.Mutex("/described"), history.Mutex("/seat"),
		history.ReadersWriter("/rw"), history.Election("/election"))
}

// shut is how long the keeper keeps a barrier shut.
func (w *world) shut(r *rand.Rand) time.Duration { return w.part(r, 0, 1.5) }

// addWorker adds a worker to a station.
func (w *world) addWorker(st *station, recipe, key string, hold func(*rand.Rand) time.Duration, use workload.Use) {
	n := len(w.workers)
	k := workload.NewWorker(st.site, fmt.Sprint(n), recipe, key, w.stream(100+n), hold)
	w.workers = append(w.workers, k)
	w.working.Go(func() { k.Work(w.base, use) })
}

// serve waits until every worker has had a turn after the last fault, ends the
// work, and empties the queue.
func (w *world) serve() {
	limit := time.NewTimer(w.limit())
	defer limit.Stop()
	for _, k := range w.workers {
		if !w.getsTurn(k, limit) {
			w.noteTree()
			limit.Reset(0)
			w.violated("%s %s: no turn within the limit after the last fault", k.Name, k.Recipe)
		}
	}
	w.giveUp()
	w.working.Wait()
	if w.shop == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.limit())
	defer cancel()
	k := workload.NewWorker(w.stations[0].site, "drain", "queue", "/queue", w.stream(99), nil)
	if err := w.shop.Drain(ctx, k, w.stations[0].client); err != nil {
		w.violated("the queue cannot be emptied: %v", err)
	}
}

// getsTurn waits until a worker has had its turn, or the limit is over. That
// begins again as long as a schedule catches up: the faults may have left many
// slots.
func (w *world) getsTurn(k *workload.Worker, limit *time.Timer) bool {
	for {
		select {
		case <-k.Served():
			return true
		case <-limit.C:
			if k.Recipe != "cron" || !w.clocks.table.CatchesUp() {
				return false
			}
			limit.Reset(w.limit())
		}
	}
}

// limit is the time within which every worker gets a turn after the last fault.
func (w *world) limit() time.Duration { return 5*w.timeout + time.Minute }

// noteTree notes the nodes that keep workers from their turn.
func (w *world) noteTree() {
	for _, n := range w.srv.Nodes() {
		w.note("%s of session 0x%x, version %d: %q", n.Path, n.Stat.EphemeralOwner, n.Stat.Version, n.Data)
	}
	for _, s := range w.stations {
		w.note("%s has session 0x%x", s.name, s.session())
	}
	w.note("watched: %v", w.srv.Watched())
}

// checkLeftovers reports leftovers when all clients are closed.
func (w *world) checkLeftovers() {
	prompt := w.timeout + 2*w.tick + 3*time.Second
	for key, took := range w.first {
		if took > prompt && key != "/cron" { // where no slot may be due
			w.violated("%s: the first grant came %v after the last fault", key, took)
		}
	}
	if _, stale := w.fence.Stale(); len(stale) > 0 {
		w.violated("stale transactions were carried out: %v", stale)
	}
	if w.shop != nil {
		if err := w.shop.Close(context.Background()); err != nil {
			w.violated("queue: close: %v", err)
		}
	}
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

// driver makes trouble until stopped.
type driver struct {
	*world
	r       *rand.Rand
	running sync.WaitGroup
	down    atomic.Bool   // one restart at a time
	pause   time.Duration // how long to wait before the next fault
}

// run makes trouble for some time and repairs everything.
func (d *driver) run(total time.Duration) {
	for time.Since(d.begin) < total {
		d.start(workload.Pick(d.r, troubles, trouble.often))
		gap := d.part(d.r, 0.02, 1)
		if workload.Chance(d.r, 0.1) {
			gap = d.part(d.r, 1, 4) // a quiet time, in which all clients recover
		}
		time.Sleep(max(gap, d.pause))
		d.pause = 0
	}
	close(d.calm)
	d.running.Wait()
	d.srv.Heal()
	d.mu.Lock()
	d.repaired = time.Now()
	d.mu.Unlock()
	d.note("last fault repaired")
}

func (d *driver) start(t trouble) {
	lasts, end := t.do(d)
	d.note("%s for %v", t.name, lasts)
	if end == nil {
		return
	}
	d.running.Go(func() {
		pause(lasts, d.calm)
		n := end()
		d.note("%s ends, struck %d", t.name, n)
		d.count(d.faults, t.name, n)
	})
}

// atOnce is the end of a fault that has happened n times at one moment.
func atOnce(n int) (time.Duration, func() int) { return 0, func() int { return n } }

// nothing is the end of a fault that could not happen.
func nothing() (time.Duration, func() int) { return 0, nil }

// station picks a client.
func (d *driver) station() *station { return d.stations[d.r.IntN(len(d.stations))] }

// some picks the sessions of one or more clients, or nil, which stands for all.
// It is nil, too, when no client has a session.
func (d *driver) some() (ids []int64) {
	if workload.Chance(d.r, 0.3) {
		return nil
	}
	n := 1 + d.r.IntN(max(1, len(d.stations)/2))
	for _, i := range d.r.Perm(len(d.stations)) {
		if id := d.stations[i].session(); id != 0 && len(ids) < n {
			ids = append(ids, id)
		}
	}
	return ids
}
