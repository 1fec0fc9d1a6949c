package soak

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

// sharedAt is the place of the shards.
const sharedAt = "shards"

// sharing is the members of the shards that stay until the faults are over, and
// the client of what is done to the shards meanwhile.
type sharing struct {
	meddler *coord.Client
	names   []string
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
}

// reside has some clients of this process stay members. The last comes without
// a list.
func (r *run) reside() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	r.sharing.meddler, err = coord.Open(ctx, r.ens.ConnectString(), coord.WithSessionTimeout(T), coord.WithTick(tick))
	if err != nil {
		return err
	}
	r.sharing.ctx, r.sharing.stop = context.WithCancel(context.Background())
	list := keys
	for i, m := range r.fleet[:3] {
		w := m.worker(fmt.Sprint("resident", i), place{name: sharedAt, hold: long}, uint64(1000+i))
		r.sharing.names = append(r.sharing.names, w.Name)
		if i == 2 {
			list = 0
		}
		use := workload.Reside(list, shards.MovesAtATime(1+i), shards.Cooldown(T/2))
		r.sharing.running.Go(func() { w.Work(r.sharing.ctx, use) })
	}
	return nil
}

// troubleShards meddles with the shards.
func (r *run) troubleShards(ctx context.Context) {
	rng := r.rng(98)
	for pause(ctx, within(rng, T/2, 2*T)) {
		kind := workload.Pick(rng, workload.Meddlings, func(m workload.Meddling) int { return m.Weight })
		r.rec.Note("shards: %s", kind.Name)
		m := &workload.Meddler{
			Checks: checks{run: r}, Client: r.sharing.meddler, Path: r.w.Path(sharedAt),
			Rand:  rand.New(rand.NewPCG(rng.Uint64(), 0)),
			Lasts: within(rng, T/10, 2*T), Calm: ctx.Done(), Resident: r.sharing.names,
			Deleting: func(node string, stat coord.Stat) {
				r.rec.Break("", workload.KeyOf(r.w.Path(sharedAt), node), stat.Czxid, "shards deleted", time.Now(), unaware)
			},
		}
		meddling, cancel := context.WithTimeout(context.Background(), m.Lasts+stuckAfter)
		happened := kind.Do(m, meddling)
		cancel()
		r.tally.fault(kind.Name, workload.Times(happened))
	}
}

// setAllKeys sets the keys that a fault may have taken from the list: of one
// key, not every member gets its share in time.
func (r *run) setAllKeys(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s, err := shards.New(r.sharing.meddler, r.w.Path(sharedAt))
	if err == nil {
		err = s.SetKeys(ctx, workload.KeyNames(keys)...)
	}
	if err != nil {
		r.tally.problem("shards: the keys cannot be set again: %v", err)
	}
}

// judgeShards waits until every key is owned, and every resident member is in,
// after the last fault; then they leave. A session may have to end before, and
// a function that hangs may drain for T.
func (r *run) judgeShards(over time.Time) {
	limit := 2*T + 4*time.Second
	missing := ""
	r.setAllKeys(limit)
	await(context.Background(), limit, func() bool {
		missing = workload.NotShared(context.Background(), r.sharing.meddler, r.w.Path(sharedAt), r.sharing.names)
		return missing == ""
	})
	r.tally.last("until every key of the shards is owned after the last fault", time.Since(over))
	if missing != "" && time.Since(over) > limit+r.lag() {
		r.tally.problem("shards: %v after the last fault %s", time.Since(over), missing)
	}
	r.sharing.stop()
	r.sharing.running.Wait()
	if err := r.sharing.meddler.Close(context.Background()); err != nil {
		r.tally.problem("closing the client that meddled: %v", err)
	}
}
