package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

var errNoFollower = errors.New("no server follows")

// run is one soak.
type run struct {
	t        testing.TB
	opts     Options
	w        *zktest.World
	ens      *zktest.Ens
	rec      *history.Recorder
	tally    *tally
	pulse    *pulse
	register *register
	fence    history.Fence
	clock    *workload.Clock
	fleet    []*member
	sharing  sharing

	calm chan struct{}
	born atomic.Int64 // children

	children []*child // one of each lane, at the end those alive
}

// Run soaks, judges, and reports. It fails t if a promise was broken.
func Run(t testing.TB, opts Options) {
	r := &run{t: t, opts: opts, rec: history.New(), tally: newTally(), calm: make(chan struct{})}
	r.w = zktest.NewPrivate(t, zktest.Ensemble, zktest.WithQuorumLinks())
	r.ens = r.w.Ensemble()
	r.rec.ByChecks()
	r.rec.Note("seed %d, duration %v, %d clients, %d children", opts.Seed, opts.Duration, opts.Clients, opts.Children)
	if err := r.prepare(); err != nil {
		t.Fatal(err)
	}
	base, heap := takeStock(), libraryHeap()
	r.pulse = newPulse()
	r.rec.Sink(r.pulse.see)
	for i := range opts.Clients {
		m, err := r.enlist(i)
		if err != nil {
			t.Fatal(err)
		}
		r.fleet = append(r.fleet, m)
	}
	if err := r.reside(); err != nil {
		t.Fatal(err)
	}
	var stopClock func()
	r.clock, stopClock = workload.StartClock()
	defer stopClock()
	working, stop := context.WithCancel(context.Background())
	defer stop()
	var workers sync.WaitGroup
	for _, m := range r.fleet {
		workers.Go(func() { m.work(working) })
	}
	r.disturb()
	end := r.finish(stop, &workers, base, heap)
	r.judge(end)
}

// prepare makes the nodes that transactions write to.
func (r *run) prepare() error {
	admin := r.w.Admin()
	paths := []string{r.w.Path("")}
	for _, p := range places {
		paths = append(paths, workload.Counter(r.w.Path(p.name)))
	}
	for _, path := range paths {
		if _, err := admin.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			return err
		}
	}
	var err error
	r.register, err = newRegister()
	return err
}

// disturb runs all lanes of faults until the time is over, or until an
// interrupt asks for the verdict early. When it returns, everything is
// repaired.
func (r *run) disturb() {
	ctx, cancel := context.WithTimeout(context.Background(), r.opts.Duration)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var lanes sync.WaitGroup
	lanes.Go(func() { r.troubleServers(ctx) })
	lanes.Go(func() { r.troubleShards(ctx) })
	lanes.Go(func() { r.tell(ctx) })
	for i, m := range r.fleet {
		lanes.Go(func() { r.troubleClient(ctx, m, r.rng(uint64(i))) })
	}
	r.children = make([]*child, r.opts.Children)
	for i := range r.children {
		lanes.Go(func() { r.tend(ctx, i) })
	}
	lanes.Wait()
}

// tell prints the progress every minute.
func (r *run) tell(ctx context.Context) {
	for pause(ctx, time.Minute) {
		r.tally.mu.Lock()
		problems := slices.Clone(r.tally.problems)
		r.tally.mu.Unlock()
		fmt.Printf("%s soak: %d grants, %d faults, %d problems %v\n",
			time.Now().Format("15:04:05"), r.pulse.total(), r.tally.total(), len(problems), problems[max(0, len(problems)-3):])
	}
}

func (r *run) troubleClient(ctx context.Context, m *member, rng *rand.Rand) {
	for pause(ctx, within(rng, T/4, 2*T)) {
		f := workload.Pick(rng, clientFaults, func(f clientFault) int { return f.weight })
		r.rec.Note("%s: %s", m.Name, f.kind)
		n := f.cause(ctx, r, m, rng)
		m.heal()
		r.tally.fault(f.kind, n)
		r.mustProgress(ctx, m.Name, time.Now())
	}
}

// mustProgress waits until the client is granted something.
func (r *run) mustProgress(ctx context.Context, client string, since time.Time) {
	limit := 3 * stuckAfter // a fault of the servers may last meanwhile
	if !await(ctx, limit, func() bool { return r.pulse.since(client, since) }) && ctx.Err() == nil {
		r.tally.problem("%s was granted nothing for %v after a fault", client, limit)
	}
}

func (r *run) troubleServers(ctx context.Context) {
	rng := r.rng(99)
	for r.flows(ctx, "before") && pause(ctx, within(rng, T/4, T)) {
		f := workload.Pick(rng, serverFaults, r.opts.weight)
		r.rec.Note("servers: %s", f.kind)
		begin := time.Now()
		n := 0
		s, err := f.victim(r, rng)
		if err == nil {
			n, err = f.cause(ctx, r, rng, s)
		}
		if err != nil {
			r.tally.problem("%s: %v", f.kind, err)
		}
		if err := r.ens.AwaitReady(); err != nil {
			r.tally.problem("after %s: %v", f.kind, err)
			return
		}
		r.rec.Note("servers: %s is over after %v", f.kind, time.Since(begin))
		r.tally.fault(f.kind, n)
		if n == 0 {
			continue
		}
		if r.flows(ctx, "after "+f.kind) {
			r.tally.count("faults of the servers with enough grants before and after")
		}
	}
}

// flows waits until grants per second reach the floor, or reports a problem. It
// returns false when ctx has ended.
func (r *run) flows(ctx context.Context, when string) bool {
	begin := time.Now()
	ok := await(ctx, 2*stuckAfter, func() bool { return r.pulse.rate() >= floor })
	if !ok && ctx.Err() == nil {
		r.tally.problem("%s: fewer than %d grants per second for %v", when, floor, 2*stuckAfter)
	}
	r.tally.last("until the floor of throughput is reached", time.Since(begin))
	return ctx.Err() == nil
}

// stock is what may leak in this process.
type stock struct{ goroutines, files int }

func takeStock() stock {
	entries, _ := os.ReadDir("/proc/self/fd")
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
// stop, and the leftovers are counted.
func (r *run) finish(stop context.CancelFunc, workers *sync.WaitGroup, base stock, heap float64) (end ending) {
	r.rec.Note("the faults are over")
	close(r.calm)
	for _, k := range r.children {
		k.proc.Send(calmly)
	}
	over := time.Now()
	var judging sync.WaitGroup
	judging.Go(func() { r.judgeShards(over) })
	end.stuck, end.first = r.stuck(over)
	end.slowest = time.Since(over)
	judging.Wait()
	r.judgeRevival(end.first, r.lag())
	r.pulse.stop()
	stop()
	workers.Wait()
	r.dismiss()
	r.drain()
	await(context.Background(), T+2*time.Second,
		func() bool { end.orphans = r.ephemerals(); return len(end.orphans) == 0 })
	end.watches = max(0,
		len(r.w.Watched())-len(
			r.fleet)*(len(places)+numbers+1)) // who acquires a slot watches two directories, and the numbers
	end.heap = libraryHeap() - heap
	for _, m := range r.fleet {
		if err := m.close(context.Background()); err != nil {
			r.tally.problem("closing %s: %v", m.Name, err)
		}
	}
	_ = r.register.listener.Close()
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

// drain empties the queues with a client of its own, and closes the client.
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

// ephemerals lists the ephemeral nodes there are, and what could not be read.
func (r *run) ephemerals() []string {
	found, err := ephemerals(r.w.Admin(), r.w.Path(""), func(int64) bool { return true })
	if err != nil {
		found = append(found, err.Error())
	}
	return found
}

// checkSignal checks when the loss of a hold is signalled. Its Deadline is then
// its session's, which only grows: a signal after it is too late, however the
// hold was lost.
func (r *run) checkSignal(worker string, h history.Holder) {
	windowed, ok := h.(interface{ Deadline() time.Time })
	if !ok {
		return
	}
	go func() {
		<-h.Done()
		now := time.Now()
		after, err := now.Sub(windowed.Deadline()), h.Err()
		if err == nil || errors.Is(err, coord.ErrReleased) {
			return
		}
		r.tally.count("losses signalled")
		if after <= 0 {
			return
		}
		time.Sleep(2 * workload.Beat) // until the clock has measured a delay that the signal had, too
		r.signalled(worker, after, r.lag())
	}()
}

// signalled judges a signal that came so long after the end of the window, when
// timers were late by lag. The machine is allowed as much as for calls.
func (r *run) signalled(worker string, after, lag time.Duration) {
	r.tally.last("signal of a loss after the end of the window", after)
	if after > promptly+lag {
		r.tally.problem("%s: a loss was signalled %v after the end of the window; timers were late by %v", worker, after, lag)
	}
}
