package cron_test

import (
	"context"
	"errors"
	"math/rand"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// replicas run one schedule, each by a clock of its own.
type replicas struct {
	coordtest.Bubble
	rand     *rand.Rand
	schedule cron.Schedule
	opts     []cron.Option
	beside   int

	mu     sync.Mutex
	live   map[*replica]bool
	calls  map[string]int // of the function
	ended  map[string]int // of them, those that returned in time
	noted  map[string]int // of them, those that are known to be on record
	active int            // under way, by clients that can trust their holds
	faults map[string]int
}

type replica struct {
	client *coord.Client
	kill   context.CancelFunc
	active int // slots under way that count
}

// start runs the schedule in a process of its own until it is over. A process
// that is killed is replaced by another.
func (all *replicas) start(ahead time.Duration) {
	for {
		ctx, kill := context.WithCancel(all.Context())
		defer kill()
		c, err := coord.Open(ctx, all.Server.ConnectString(), coord.WithSessionTimeout(T),
			coord.WithDialer(all.Server.DialContext))
		if err != nil {
			all.Error(err)
			return
		}
		r := &replica{client: c, kill: kill}
		all.mu.Lock()
		all.live[r] = true
		all.mu.Unlock()
		clock := cron.Clock(func() time.Time { return time.Now().Add(ahead) })
		report := cron.OnEnd(func(res once.Result, err error) {
			if res.State == once.Done && err == nil {
				all.count(all.noted, res.Key)
			}
		})
		s, err := cron.New(c, "/cron", all.schedule, append(all.opts, clock, report)...)
		if err == nil {
			err = s.Run(ctx, func(ctx context.Context, s *cron.Slot) ([]byte, error) { return nil, all.run(ctx, r, s) })
		}
		all.mu.Lock()
		delete(all.live, r)
		all.mu.Unlock()
		if err := c.Close(context.Background()); err != nil {
			all.Error(err)
		}
		if !errors.Is(err, context.Canceled) {
			if !errors.Is(err, cron.ErrOver) {
				all.Error(err)
			}
			return
		}
		time.Sleep(time.Duration(all.number(60)) * time.Second)
	}
}

func (all *replicas) number(n int) int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.rand.Intn(n)
}

func (all *replicas) count(of map[string]int, key string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	of[key]++
}

// begin counts a slot as under way, until end is called.
func (all *replicas) begin(r *replica) {
	all.mu.Lock()
	defer all.mu.Unlock()
	r.active++
	all.active++
	if all.active > all.beside {
		all.Errorf("%d slots at a time", all.active)
	}
}

// end does not count those that do not count any more.
func (all *replicas) end(r *replica, most int) {
	all.mu.Lock()
	defer all.mu.Unlock()
	n := min(most, r.active)
	r.active -= n
	all.active -= n
}

// run is a function that does as its context says.
func (all *replicas) run(ctx context.Context, r *replica, s *cron.Slot) error {
	all.count(all.calls, s.Key)
	all.begin(r)
	defer all.end(r, 1)
	select {
	case <-time.After(time.Duration(all.number(45)) * time.Second):
		all.count(all.ended, s.Key)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// one picks a replica, more often than not one that runs a slot.
func (all *replicas) one() *replica {
	all.mu.Lock()
	defer all.mu.Unlock()
	var some []*replica
	for r := range all.live {
		some = append(some, r)
		if r.active > 0 {
			some = append(some, r, r, r, r, r, r, r)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[all.rand.Intn(len(some))]
}

// trouble makes trouble until done is closed.
func (all *replicas) trouble(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Duration(all.number(90)) * time.Second):
		}
		r := all.one()
		if r == nil {
			continue
		}
		id := r.client.Info().SessionID
		switch kind := all.number(3); kind {
		case 0:
			all.faults["killed"]++
			all.Server.Partition(zkembed.Cut{Sessions: []int64{id}}) // for ever
			r.kill()
		case 1:
			all.faults["cut off"]++
			cut := all.Server.Partition(zkembed.Cut{Sessions: []int64{id}})
			time.Sleep(time.Duration(all.number(50)) * time.Second)
			cut.Heal()
		default:
			all.faults["session ended"]++
			all.end(r, all.beside)           // the client hears of it later than others do
			_ = all.Server.ExpireSession(id) // it may be over
		}
	}
}

// Clocks that differ by up to 45 s, slots that are a minute apart. With
// FAULTS_LONG set there are 10,000 of them.
func TestEachSlotRunsWhateverBecomesOfTheReplicas(t *testing.T) {
	slots := 100
	if os.Getenv("FAULTS_LONG") != "" {
		slots = 10_000
	}
	everything := cron.CatchUp(1000, 0)
	met := 0 // functions that met a fault
	for name, c := range map[string]struct {
		share    int // of the slots
		beside   int
		mostOnce bool
		opts     []cron.Option
	}{
		"at least once":             {2, 1, false, []cron.Option{everything, cron.KeepLast(1)}},
		"at least once, two beside": {4, 2, false, []cron.Option{everything, cron.KeepLast(1), cron.MaxConcurrent(2)}},
		"at most once": {
			4, 2, true, []cron.Option{everything, cron.KeepLast(1), cron.MaxConcurrent(2), cron.Attempts(1, 0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			seed := time.Now().UnixNano()
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				first, n := time.Now().Truncate(time.Minute).Add(2*time.Minute), slots/c.share
				all := &replicas{
					Bubble: b, rand: rand.New(rand.NewSource(seed)), opts: c.opts, beside: c.beside,
					schedule: until{every(time.Minute), first.Add(time.Duration(n-1) * time.Minute)},
					live:     map[*replica]bool{}, calls: map[string]int{}, ended: map[string]int{}, noted: map[string]int{},
					faults: map[string]int{},
				}
				var running sync.WaitGroup
				for i := range 8 {
					running.Go(func() { all.start(time.Duration(i-4) * 45 * time.Second / 7) })
				}
				done := make(chan struct{})
				go func() {
					running.Wait()
					close(done)
				}()
				all.trouble(done)
				again, cut := 0, 0
				for i := range n {
					at := cron.Key(first.Add(time.Duration(i) * time.Minute))
					calls, ended := all.calls[at], all.ended[at]
					if c.mostOnce && calls > 1 || !c.mostOnce && ended == 0 || all.noted[at] > 1 {
						b.Errorf("%s: called %d times, ended %d times, on record %d times", at, calls, ended, all.noted[at])
					}
					again += max(0, calls-1)
					if ended == 0 {
						cut++
					}
				}
				b.Logf("seed %d: %d slots, %d calls more, %d slots did not end; %v", seed, n, again, cut, all.faults)
				require.Len(b, all.faults, 3)
				met += again + cut
			})
		})
	}
	require.NotZero(t, met)
}

// The beginning is noted in the mark when the hold can still be trusted, and
// the servers' answer comes when it cannot.
func TestASlotWhoseHoldIsOverIsNotBegun(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		s, first := in(1)
		c := b.Open()
		const late = T * 47 / 100 // after half of T, the client gives the connection up
		noted := b.Server.Inject(zkembed.Match{
			Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti},
			PathPrefix: "/cron/keys", Times: 1, Func: func(r zkembed.Request) bool {
				return slices.Contains(r.Paths, "/cron/mark")
			},
		}, zkembed.DelayReply(late))
		var slowing sync.WaitGroup
		defer slowing.Wait()
		slowing.Go(func() {
			<-noted.Struck()
			slow := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID}, zkembed.DelayReply(late))
			time.Sleep(late)
			slow.Remove()
		})
		slot, err := scheduled(b, c, s).Begin(b.Context())
		require.NoError(b, err)
		require.Equal(b, first, slot.At)
		require.NoError(b, slot.Err())
		require.NoError(b, coordtest.Err(slot.End(b.Context(), nil, nil)))
	})
}
