package soak

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/internal/proofs/workload"
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
					w.Work(ctx, role.use(s.root))
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
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
