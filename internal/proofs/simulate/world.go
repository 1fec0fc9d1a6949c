package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
	"github.com/zkcoord/zkcoord/zkembed"
)

// world is one seed's server, clients and bookkeeping.
type world struct {
	seed    uint64
	srv     *zkembed.Server
	rec     *history.Recorder
	begin   time.Time
	tick    time.Duration
	timeout time.Duration // T, the session timeout
	haste   float64       // of the workers; 1 is usual
	dialect coord.Dialect // of all clients

	stations []*station
	admin    *station
	workers  []*workload.Worker
	working  sync.WaitGroup
	base     context.Context // ends when every worker has had its turn, or should have
	giveUp   context.CancelFunc
	calm     chan struct{} // closed after the last fault

	shop   *workload.Shop   // nil in seeds without a queue
	ledger *workload.Ledger // nil in seeds without jobs
	fence  history.Fence
	shared shared // without members in seeds without shards
	clocks clocks
	dirs   []string // of claims

	mu         sync.Mutex
	violations []string
	faults     map[string]int
	grants     map[string]int
	counts     map[string]int
	ended      map[int64]time.Time      // sessions that the driver ended
	deleted    map[string]erased        // nodes that the driver began to delete, by path
	foreign    map[string]time.Time     // until when claims may meet a foreign contender, by directory
	repaired   time.Time                // when all faults were over
	first      map[string]time.Duration // from repaired to the first grant on a path
	newest     map[string]int64         // the largest token that the resource at a path has seen
	rules      []history.Rule
}

func newWorld(seed uint64) (*world, error) {
	r := rand.New(rand.NewPCG(seed, 0))
	ticks := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 3 * time.Second}
	w := &world{
		seed: seed, rec: history.New(), begin: time.Now(), tick: ticks[r.IntN(len(ticks))],
		haste:   0.3 + 0.7*r.Float64(),
		dialect: coord.Curator, calm: make(chan struct{}), newest: map[string]int64{},
		faults: map[string]int{}, grants: map[string]int{}, counts: map[string]int{},
		ended: map[int64]time.Time{}, deleted: map[string]erased{}, first: map[string]time.Duration{},
		foreign: map[string]time.Time{},
	}
	w.timeout = w.tick * time.Duration(4+r.IntN(16))
	if workload.Chance(r, 0.3) {
		w.dialect = coord.Kazoo
		w.counts["seeds in Kazoo's dialect"] = 1
	}
	w.base, w.giveUp = context.WithCancel(context.Background())
	late := time.Duration(r.Float64() * float64(min(w.tick/2, w.timeout/8))) // the most that the trust window allows for
	srv, err := zkembed.Start(zkembed.WithAddr(""), zkembed.WithTick(w.tick), zkembed.WithReaper(0),
		zkembed.WithPingLateness(late))
	w.srv = srv
	return w, err
}

// stream is a random source of its own for one purpose.
func (w *world) stream(n int) *rand.Rand { return rand.New(rand.NewPCG(w.seed, uint64(n)+1)) }

// note keeps a line for the log of faults.
func (w *world) note(format string, args ...any) { w.rec.Note(format, args...) }

// violated notes that a promise was broken.
func (w *world) violated(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.note("VIOLATION %s", text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, fmt.Sprintf("%v after the start: %s", time.Since(w.begin), text))
}

func (w *world) count(table map[string]int, name string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	table[name] += n
}

// erased is a node that the driver began to delete.
type erased struct {
	token int64 // distinguishes it from a later one of the same name
	at    time.Time
}

// excused reports whether the driver has ended a hold, and the holder cannot
// know it yet. A holder learns of the end of its session at the latest when its
// window ends, and of the deletion of its node later. The token is 0 of a hold
// that has none.
func (w *world) excused(node string, token, session int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ended, bySession := w.ended[session]
	deleted, byNode := w.deleted[node]
	byNode = byNode && (token == 0 || token == deleted.token)
	return bySession && time.Since(ended) <= w.timeout || byNode && time.Since(deleted.at) <= 4*w.timeout
}

// part draws a share of the session timeout, between lo and hi of it.
func (w *world) part(r *rand.Rand, lo, hi float64) time.Duration {
	return time.Duration((lo + (hi-lo)*r.Float64()) * float64(w.timeout))
}

// pause sleeps, but no longer than end stays open.
func pause(d time.Duration, end <-chan struct{}) { workload.Pause(context.Background(), d, end) }

// pace sets the workers' pace: deadlines that are often shorter than a fault,
// and holds that outlast the session timeout.
func (w *world) pace() workload.Pace {
	return workload.Pace{
		Timeout: w.timeout, Deadlines: 0.3, Cancels: 0.2, Early: 2 * w.timeout, Rushed: 0.1, Certain: time.Hour,
		Hold: w.hold, Step: w.timeout * 3 / 10, Writes: 0.5, Pause: time.Duration(0.9 / w.haste * float64(w.timeout)),
	}
}

// hold draws how long a hold is used: mostly short, sometimes longer than the
// session timeout, rarely longer than a holder may take to learn of its loss
// (see excused).
func (w *world) hold(r *rand.Rand) time.Duration {
	switch how := r.Float64(); {
	case how < 0.15:
		return 0
	case how < 0.85:
		return w.part(r, 0, 0.15)
	case how < 0.92:
		return w.part(r, 0.1, 0.6)
	}
	w.count(w.faults, "long hold", 1)
	if workload.Chance(r, 0.2) {
		return w.part(r, 5, 7)
	}
	return w.part(r, 1, 3)
}

// Granted counts a grant, and times the first on each path after the last
// fault. A grant whose window is over was not checked before it was returned:
// in virtual time nothing lies between the return and this.
func (s *station) Granted(k *workload.Worker, what history.Holder) {
	if what != nil && errors.Is(what.Err(), coord.ErrWindowOver) {
		s.w.violated("%s: %s was granted after its window: %v", k.Name, k.Recipe, what.Err())
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.grants[k.Recipe]++
	if _, had := s.w.first[k.Key]; !had && !s.w.repaired.IsZero() {
		s.w.first[k.Key] = time.Since(s.w.repaired)
	}
}

// Look compares what a hold says with the server's tree: a hold that is trusted
// now had its node a moment ago.
func (s *station) Look(k *workload.Worker, h coord.Held) {
	there := false
	for _, n := range s.w.srv.Nodes() {
		there = there ||
			n.Path == h.Node() && n.Stat.EphemeralOwner == h.Session() && (h.Token() == 0 || h.Token() == n.Stat.Czxid)
	}
	if !there && h.Err() == nil && !s.w.excused(h.Node(), h.Token(), h.Session()) {
		s.w.violated("%s: trusts %s, but the server has given it up", k.Name, h.Node())
	}
	s.Count("holds compared with the server")
}

// late is how long after its context's end a call may return.
const late = 50 * time.Millisecond

// Late judges calls that return after their context's end.
func (s *station) Late(k *workload.Worker, what string, by time.Duration, err error) {
	if by > late {
		s.w.violated("%s: %s returned %v after its context had ended: %v", k.Name, what, by, err)
	}
}

// Expected reports whether a foreign contender or a closed client explains an
// error.
func (s *station) Expected(_ *workload.Worker, err error) bool {
	return errors.Is(err, coord.ErrForeign) && s.w.hadForeigners(err) || errors.Is(err, coord.ErrClosed) && !s.steady
}

// Accept takes a write with a token, unless a newer one was seen.
func (s *station) Accept(key string, token int64) bool {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if token < s.w.newest[key] {
		return false
	}
	s.w.newest[key] = token
	return true
}

// Wrote records what a transaction of a holder wrote.
func (s *station) Wrote(key string, written history.Write) { s.w.fence.Wrote(key, written) }

// Count counts an event: what happened to a worker, or what it did wrong on
// purpose.
func (s *station) Count(what string) {
	switch what {
	case "deadline", "cancellation", "use after the loss":
		s.w.count(s.w.faults, what, 1)
	default:
		s.w.count(s.w.counts, what, 1)
	}
}

// Violated notes that a promise was broken.
func (s *station) Violated(format string, args ...any) { s.w.violated(format, args...) }
