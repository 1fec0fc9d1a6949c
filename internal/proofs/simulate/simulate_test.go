package simulate

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
	"github.com/zkcoord/zkcoord/internal/virtual"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

var (
	one    = flag.Uint64("seed", 0, "run this seed only")
	repeat = flag.Int("repeat", 1, "how often to run the seed")
	from   = flag.Uint64("from", 1, "the first seed")
	seeds  = flag.Int("seeds", 30, "how many seeds; 0 runs until stopped")
	every  = flag.Duration("report", time.Minute, "how often to report when running until stopped or for long")
)

// patience is how much processor time a seed may take: some seconds are usual
// under the race detector. On the wall clock it may be much more, at a low
// priority on a busy machine.
const patience = 5 * time.Minute

// processorTime is what the process, with all seeds that run at a time, has
// taken.
func processorTime() time.Duration {
	var usage unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &usage) // never fails
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// awaitEnd panics, with all goroutines, if a seed does not end.
func awaitEnd(seed uint64, ended <-chan struct{}) {
	limit := processorTime() + time.Duration(runtime.GOMAXPROCS(0))*patience
	for workload.Pause(context.Background(), time.Second, ended) {
		if processorTime() > limit {
			panic(fmt.Sprintf("seed %d has not ended after %v of processor time", seed, patience))
		}
	}
}

func TestMain(m *testing.M) { zktest.Main(m) }

func TestTheRecipesKeepTheirPromisesWhateverGoesWrong(t *testing.T) {
	debug.SetTraceback("all")
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	report := NewReport()
	if *one != 0 {
		for i := range *repeat {
			t.Run(fmt.Sprintf("seed=%d/%d", *one, i+1), func(t *testing.T) { try(t, *one, report) })
		}
		t.Log(report)
		return
	}
	running, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	reporting, done := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		for workload.Pause(reporting, *every, nil) {
			fmt.Println(report)
		}
	})
	var next atomic.Uint64
	t.Run("all", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for running.Err() == nil {
					n := next.Add(1) - 1
					if *seeds > 0 && n >= uint64(*seeds) {
						return
					}
					t.Run(fmt.Sprint("seed=", *from+n), func(t *testing.T) { try(t, *from+n, report) })
				}
			})
		}
	})
	done()
	watching.Wait()
	fmt.Println(report)
	if *focus == "" && report.seeds >= 30 && len(report.missing()) > 0 {
		t.Errorf("faults that never struck: %v", report.missing())
	}
}

// latest is how long after the end of its window a hold's Done may be closed.
// In virtual time only waiting takes time.
const latest = time.Millisecond

// try runs a seed in a bubble and judges it.
func try(t *testing.T, seed uint64, report *Report) {
	var res Result
	ended := make(chan struct{})
	defer close(ended)
	go awaitEnd(seed, ended)
	trouble := inBubble(t, seed, &res)
	if res.world == nil {
		t.Fatalf("seed %d: %s", seed, trouble)
	}
	for _, v := range res.violations {
		t.Errorf("seed %d: %s", seed, v)
	}
	if trouble != "" {
		t.Errorf("seed %d: %s", seed, trouble)
		res.note("%s", trouble)
	}
	_, undecided := history.Check(t, res.rec, res.rules...)
	if late := res.rec.LatestSignal(); late > latest {
		t.Errorf("seed %d: Done was closed %v after the end of the window", seed, late)
	}
	// A node that the driver was to delete may be there still.
	if longest := history.Unaware(res.rec.Records())[expired]; longest > res.timeout {
		t.Errorf("seed %d: a holder trusted its hold for %v after the end of its session; T is %v", seed,
			longest, res.timeout)
	}
	report.add(&res, t.Failed(), undecided)
	if t.Failed() {
		dir := history.Keep(t, res.rec)
		fmt.Printf("seed %d failed: history and faults are kept in %s; again: make simulate SEED=%d REPEAT=50\n",
			seed, dir, seed)
	}
}

// inBubble returns what went wrong with the bubble itself, such as goroutines
// that were left in it.
func inBubble(t *testing.T, seed uint64, res *Result) (trouble string) {
	defer func() {
		if p := recover(); p != nil {
			stacks := make([]byte, 4<<20)
			trouble = fmt.Sprintf("%v\n%s", p, stacks[:runtime.Stack(stacks, true)])
		}
	}()
	virtual.Test(t, func(t *testing.T) {
		if err := run(seed, res); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	})
	return ""
}

func TestTheDriverExcusesTheHoldOfTheNodeThatItDeletedAndOfNoOtherOfThatName(t *testing.T) {
	for name, test := range map[string]struct{ older, violations int }{"its node": {0, 0}, "an earlier one": {1, 1}} {
		t.Run(name, func(t *testing.T) {
			virtual.Test(t, func(t *testing.T) {
				w, err := newWorld(1)
				require.NoError(t, err)
				defer func() { require.NoError(t, w.srv.Close()) }()
				defer w.giveUp()
				s, admin := w.newStation("c0", w.stream(0)), w.newStation("admin", w.stream(1))
				for _, s := range []*station{s, admin} {
					s.open(t.Context())
					defer func() { require.NoError(t, s.take().Close(t.Context())) }()
				}
				m, err := lock.New(s.client, "/lock")
				require.NoError(t, err)
				h, err := m.Acquire(t.Context())
				require.NoError(t, err)
				w.srv.Inject(zkembed.Match{Session: h.Session()}, zkembed.DelayEvents(time.Hour))
				require.NoError(t, admin.client.Delete(t.Context(), h.Node(), -1))
				_, err = s.client.Txn(t.Context(), coord.EphemeralOp(h.Node(), nil))
				require.NoError(t, err)
				w.deleted[h.Node()] = erased{h.Token() - int64(test.older), time.Now()}
				s.Look(&workload.Worker{}, h)
				require.Len(t, w.violations, test.violations)
			})
		})
	}
}
