package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/history"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// childName is the name under which the child's main function is registered.
const childName = "soak"

// monotonic is the machine's monotonic clock, the same for all processes.
func monotonic() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}

// childMain is a client with its workers, like those in the soak's own process.
// What it records goes to stdout: a line with the clock at the beginning, then
// records, and lines that begin with "!" for problems and "#" for what is to be
// counted. It ends when stdin does.
func childMain(args []string) {
	name, servers, root, registerAddr := args[0], args[1], args[2], args[3]
	seed, _ := strconv.ParseUint(args[4], 10, 64)
	out := make(chan string, 4096)
	written := make(chan struct{})
	go func() {
		defer close(written)
		w := bufio.NewWriter(os.Stdout)
		for line := range out {
			fmt.Fprintln(w, line)
			if len(out) == 0 {
				_ = w.Flush()
			}
		}
		_ = w.Flush()
	}()
	say := func(format string, args ...any) { out <- fmt.Sprintf(format, args...) }
	problem := func(format string, args ...any) { say("! "+format, args...) }
	if err := childWork(name, servers, root, registerAddr, seed, say); err != nil {
		problem("%s: %v", name, err)
	}
	close(out)
	<-written
}

func childWork(name, servers, root, registerAddr string, seed uint64, say func(string, ...any)) error {
	problem := func(format string, args ...any) { say("! "+format, args...) }
	resource, err := dialRegister(registerAddr)
	if err != nil {
		return err
	}
	rec := history.New()
	say("%d", int64(monotonic()-time.Since(rec.Begin())))
	rec.Sink(func(r history.Record) {
		line, err := json.Marshal(r)
		if err != nil {
			problem("%v", err)
		}
		say("%s", line)
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := coord.Open(ctx, servers, coord.WithSessionTimeout(T), coord.WithTick(tick), coord.WithIdentity(name),
		coord.WithObserver(func(e coord.Event) {
			switch e.Kind {
			case coord.NodeStranded:
				problem("%s: node %s stranded: %v", name, e.Path, e.Err)
			case coord.SessionOver:
				say("# sessions over")
			case coord.ClaimLost:
				say("# holds lost")
			case coord.ClaimRecovered:
				say("# creates found again")
			}
		}))
	if err != nil {
		return err
	}
	var quiet, drained atomic.Bool
	s := &site{
		name: name, client: c, rec: rec, root: root, seed: seed, use: resource.use, problem: problem,
		count: func(what string) { say("# %s", what) },
		late:  func(time.Duration) {}, wrote: func(string, int64, int64) {},
		quiet: &quiet, items: new(atomic.Int64), drained: &drained,
	}
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			quiet.Store(true)
		}
		drained.Store(true)
		cancel()
	}()
	s.work(ctx)
	return c.Close(context.Background())
}

// kid is a child process as the soak sees it.
type kid struct {
	name  string
	proc  *zktest.ChildProcess
	read  chan struct{} // closed when its last line has been read
	ready chan struct{} // closed when its first line has been
}

// spawn starts a child; n is different for each.
func (r *run) spawn(n int) *kid {
	name := fmt.Sprintf("p%d", n)
	k := &kid{name: name, read: make(chan struct{}), ready: make(chan struct{})}
	k.proc = zktest.Child(r.t, childName, name, r.ens.ConnectString(), r.w.Path(""),
		r.register.listener.Addr().String(), strconv.FormatUint(r.opts.Seed<<8+uint64(n), 10))
	go r.listen(k)
	return k
}

// listen takes in what a child says.
func (r *run) listen(k *kid) {
	defer close(k.read)
	here := monotonic() - time.Since(r.rec.Begin())
	var shift time.Duration
	first := true
	for line := range k.proc.Lines() {
		switch {
		case first:
			n, err := strconv.ParseInt(line, 10, 64)
			if err != nil {
				r.tally.problem("%s: %s", k.name, line)
				continue
			}
			shift, first = time.Duration(n)-here, false
			close(k.ready)
		case strings.HasPrefix(line, "! "):
			r.tally.problem("%s", line[2:])
		case strings.HasPrefix(line, "# "):
			r.tally.count(line[2:])
		default:
			var rec history.Record
			if err := json.Unmarshal([]byte(line), &rec); err != nil {
				continue // the last line of a process that was killed
			}
			r.rec.Import(k.name, rec, shift)
		}
	}
}

// tend is the lane of one child's faults. A killed child is replaced by another.
func (r *run) tend(ctx context.Context, lane int) {
	rng := r.rng(uint64(500 + lane))
	k := r.spawn(int(r.born.Add(1)))
	defer func() { r.keep(k) }()
	for pause(ctx, within(rng, T/2, 3*T)) {
		begin := time.Now()
		switch n := rng.IntN(100); {
		case n < 55:
			r.freeze(ctx, k, "client pauses beyond T", within(rng, T+2*tick, 2*T+T/2))
		case n < 75:
			r.freeze(ctx, k, "client pauses within T", within(rng, T/10, T/2))
		default:
			r.rec.Note("kill client %s", k.name)
			k.proc.Kill()
			<-k.read
			r.rec.Died(k.name + ".")
			r.tally.fault("clients killed", 1)
			k = r.spawn(int(r.born.Add(1)))
		}
		r.mustProgress(ctx, k.name, begin)
	}
}

func (r *run) freeze(ctx context.Context, k *kid, kind string, d time.Duration) {
	r.rec.Note("%s: %s for %v", kind, k.name, d)
	if err := k.proc.Stop(); err != nil {
		r.tally.fault(kind, 0)
		return
	}
	stopped := time.Now()
	pause(ctx, d)
	whole := time.Since(stopped) >= d
	if err := k.proc.Continue(); err != nil || !whole {
		r.tally.fault(kind, 0)
		return
	}
	r.tally.fault(kind, 1)
}

// rng is a source of random numbers for one lane.
func (r *run) rng(lane uint64) *rand.Rand { return rand.New(rand.NewPCG(r.opts.Seed, lane)) }
