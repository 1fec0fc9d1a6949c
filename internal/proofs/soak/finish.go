package soak

import (
	"context"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord"
)

// stock is what may leak in this process.
type stock struct{ goroutines, files int }

func takeStock() stock {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		entries = nil
	}
	return stock{goroutines: runtime.NumGoroutine(), files: len(entries)}
}

// ending is what the soak found at its end.
type ending struct {
	stuck      []string // workers that were granted nothing after the last fault
	orphans    []string // ephemeral nodes that are left
	watches    int      // at the servers after all holds and waiters were gone, beyond one per client and place
	goroutines int      // more than at the beginning
	files      int
	heap       float64                  // in use by the library, more than at the beginning
	first      map[string]time.Duration // until the first grant, by place
	slowest    time.Duration            // until the last worker was granted something
}

// finish ends the soak: every worker is granted something once more, then all
// stop, and what is left is counted.
func (r *run) finish(stop context.CancelFunc, workers *sync.WaitGroup, base stock, heap float64) (end ending) {
	r.rec.Note("the faults are over")
	close(r.calm)
	for _, k := range r.children {
		k.proc.Send(calmly)
	}
	over := time.Now()
	end.stuck, end.first = r.stuck(over)
	end.slowest = time.Since(over)
	r.judgeRevival(end.first, r.clock.lag())
	r.pulse.stop()
	stop()
	workers.Wait()
	r.dismiss()
	r.drain()
	await(context.Background(), T+2*time.Second, func() bool { end.orphans = r.ephemerals(); return len(end.orphans) == 0 })
	end.watches = max(0, len(r.w.Watched())-len(r.fleet)*len(places))
	end.heap = libraryHeap() - heap
	for _, m := range r.fleet {
		if err := m.close(context.Background()); err != nil {
			r.tally.problem("closing %s: %v", m.Name, err)
		}
	}
	r.register.close()
	await(context.Background(), 10*time.Second, func() bool {
		now := takeStock()
		end.goroutines, end.files = now.goroutines-base.goroutines, now.files-base.files
		return end.goroutines <= 0 && end.files <= 0
	})
	return end
}

// dismiss has the children end, and waits for them.
func (r *run) dismiss() {
	for _, k := range r.children {
		k.proc.CloseStdin()
	}
	for _, k := range r.children {
		if code := k.proc.ExitCode(time.Minute); code != 0 {
			r.tally.problem("%s ended with status %d", k.name, code)
		}
		<-k.read
	}
}

// drain empties the queues with a client of its own, and closes that.
func (r *run) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, err := coord.Open(ctx, r.ens.ConnectString(), coord.WithSessionTimeout(T))
	if err != nil {
		r.tally.problem("draining: %v", err)
		return
	}
	s := r.site("drain", 7)
	s.Client = func(context.Context) *coord.Client { return c }
	if err := s.drain(ctx); err != nil {
		r.tally.problem("draining: %v", err)
	}
	if err := c.Close(ctx); err != nil {
		r.tally.problem("draining: %v", err)
	}
}

// ephemerals lists the ephemeral nodes there are.
func (r *run) ephemerals() (found []string) {
	var walk func(path string)
	admin := r.w.Admin()
	walk = func(path string) {
		children, stat, err := admin.Children(path)
		if err == zk.ErrNoNode {
			return
		}
		if err != nil {
			found = append(found, path+": "+err.Error())
			return
		}
		if stat.EphemeralOwner != 0 {
			found = append(found, path)
		}
		for _, child := range children {
			walk(path + "/" + child)
		}
	}
	walk(r.w.Path(""))
	return found
}
