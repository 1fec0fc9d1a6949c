package simulate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
)

// shared is the members of the shards that stay until all faults are over, and
// the judge has seen every key owned.
type shared struct {
	names   []string
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
}

func (w *world) populateShards(r *rand.Rand, keys int) {
	w.shared.ctx, w.shared.stop = context.WithCancel(w.base)
	opts := []shards.Option{}
	if workload.Chance(r, 0.5) {
		opts = append(opts, shards.MovesAtATime(1+r.IntN(2)))
	}
	if workload.Chance(r, 0.3) {
		opts = append(opts, shards.Cooldown(w.part(r, 0, 2)))
	}
	for i := range 2 + r.IntN(2) {
		st := w.stations[r.IntN(len(w.stations))]
		k := workload.NewWorker(st.site, fmt.Sprint("resident", i), "shards resident", "/shards", w.stream(1000+i), nil)
		w.shared.names = append(w.shared.names, k.Name)
		use := workload.Reside(keys, opts...)
		if i > 0 && workload.Chance(r, 0.3) {
			use = workload.Reside(0, opts...) // any list
		}
		w.shared.running.Go(func() { k.Work(w.shared.ctx, use) })
	}
}

// judgeShards waits until every key is owned, and every resident member is in,
// after the last fault; then they leave.
func (w *world) judgeShards() {
	if w.shared.names == nil {
		return
	}
	defer w.shared.running.Wait()
	defer w.shared.stop()
	// A function may take a session timeout to drain, and a moment more.
	limit := 2*w.timeout + 2*w.tick + 4*time.Second
	var missing string
	for {
		if missing = workload.NotShared(w.base, w.admin.client, "/shards", w.shared.names); missing == "" {
			w.count(w.counts, "shards seen with all keys owned", 1)
			return
		}
		if time.Since(w.repaired) > limit {
			break
		}
		time.Sleep(w.timeout / 100)
	}
	w.noteTree()
	w.violated("shards: %v after the last fault %s", time.Since(w.repaired), missing)
}

// shardsTroubles are what is done to shards.
var shardsTroubles = toShards(workload.Meddlings)

// toShards makes faults of what is done to the shards, if there are any.
func toShards(all []workload.Meddling) (troubles []trouble) {
	for _, kind := range all {
		troubles = append(troubles, trouble{kind.Name, kind.Weight, func(d *driver) (time.Duration, func() int) {
			if d.shared.names == nil {
				return nothing()
			}
			return d.meddleWithShards(kind)
		}})
	}
	return troubles
}

func (d *driver) meddleWithShards(kind workload.Meddling) (time.Duration, func() int) {
	m := &workload.Meddler{
		Checks: d.admin, Client: d.admin.client, Path: "/shards", Rand: rand.New(rand.NewPCG(d.r.Uint64(), 0)), Calm: d.calm,
		Resident: d.shared.names, Deleting: func(node string, stat coord.Stat) { d.deletes(node, stat.Czxid, stat.Owner) },
	}
	if kind.Lasts {
		m.Lasts = d.part(d.r, 0.1, 2)
	}
	happened := make(chan bool, 1)
	ctx, cancel := context.WithTimeout(context.Background(), m.Lasts+d.timeout/2)
	d.running.Go(func() { happened <- kind.Do(m, ctx) })
	return m.Lasts, func() int {
		defer cancel()
		return workload.Times(<-happened)
	}
}
