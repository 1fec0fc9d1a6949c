package soak

import (
	"math"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
)

// pulse follows the grants as they are recorded.
type pulse struct {
	begin time.Time

	mu      sync.Mutex
	grants  map[string]int           // by place
	last    map[string]time.Time     // by place, by client, and by worker
	longest map[string]time.Duration // between grants, by place, and of all: ""
	seconds []int                    // grants in each second since begin
	over    bool
}

func newPulse() *pulse {
	return &pulse{
		begin: time.Now(), grants: map[string]int{}, last: map[string]time.Time{}, longest: map[string]time.Duration{},
	}
}

// see is the recorder's sink.
func (p *pulse) see(r history.Record) {
	if r.Outcome != history.OK {
		return
	}
	switch r.Kind {
	case history.Exclusive, history.Shared, history.Lease, history.Receive, history.Take, history.Put, history.Enter,
		history.Pass,
		history.Run, history.Ask, history.Number, history.Add:
	default:
		return
	}
	p.grant(r.Client, workload.RecipeAt(r.Key))
}

// grant counts that a worker was granted something.
func (p *pulse) grant(worker, key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	client, _, _ := strings.Cut(worker, ".")
	p.grants[key]++
	if !p.over {
		for _, what := range []string{key, ""} {
			if before, ok := p.last[what]; ok {
				p.longest[what] = max(p.longest[what], now.Sub(before))
			}
		}
	}
	for _, what := range []string{"", key, client, worker} {
		p.last[what] = now
	}
	second := int(now.Sub(p.begin) / time.Second)
	for len(p.seconds) <= second {
		p.seconds = append(p.seconds, 0)
	}
	p.seconds[second]++
}

// stop ends the measurement of gaps.
func (p *pulse) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

// since reports whether the client or worker was granted something since then.
func (p *pulse) since(who string, then time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last[who].After(then)
}

// workers lists the workers that were ever granted something, by a prefix of
// their names.
func (p *pulse) workers(prefixes ...string) (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for who := range p.last {
		for _, prefix := range prefixes {
			if strings.HasPrefix(who, prefix+".") {
				names = append(names, who)
			}
		}
	}
	return names
}

// rate is how many grants there were in the whole second before this one.
func (p *pulse) rate() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if second := int(time.Since(p.begin)/time.Second) - 1; second >= 0 && second < len(p.seconds) {
		return p.seconds[second]
	}
	return 0
}

func (p *pulse) total() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return sum(p.grants)
}

func sum(counts map[string]int) (n int) {
	for _, k := range counts {
		n += k
	}
	return n
}

// lagWindow is how long a delay of timers counts.
const lagWindow = 5 * time.Second

// lag is the longest delay of a timer in the last seconds, if it is large
// enough to matter.
func (r *run) lag() time.Duration {
	if lag := r.clock.Worst(time.Now().Add(-lagWindow)); lag > workload.Beat {
		return lag
	}
	return 0
}

// heapAllowance is how much of the heap the library and the ZooKeeper client
// may have in use for each client at the end of the soak, when no worker holds
// or waits any more and the clients are still open. A connection has two
// buffers of 1.5 MiB, a former one may not be collected yet, and the estimate
// is made from samples. A leak of 100 bytes with each grant amounts to more in
// an hour.
const heapAllowance = 8 << 20

// libraries are the packages whose allocations are the library's.
var libraries = []string{"github.com/zkcoord/zkcoord/coord", "github.com/go-zookeeper/zk."}

// harness are the packages whose allocations are the test's: they keep the
// whole history.
const harness = "github.com/zkcoord/zkcoord/internal/"

// libraryHeap estimates how many bytes allocated by the library are in use,
// from the samples that the runtime takes. The size of the whole heap says
// little, since the history grows all the time.
func libraryHeap() (bytes float64) {
	runtime.GC()
	runtime.GC() // the profile shows the last cycle but one
	n, _ := runtime.MemProfile(nil, false)
	samples := make([]runtime.MemProfileRecord, n+100)
	n, ok := runtime.MemProfile(samples, false)
	if !ok {
		return 0
	}
	for _, s := range samples[:n] {
		if byLibrary(s.Stack()) {
			bytes += scaled(s.InUseObjects(), s.InUseBytes(), runtime.MemProfileRate)
		}
	}
	return bytes
}

// byLibrary reports whether the innermost function that is neither the
// runtime's nor the standard library's is the library's. The text of an error
// counts for its caller.
func byLibrary(stack []uintptr) bool {
	for frames := runtime.CallersFrames(stack); ; {
		frame, more := frames.Next()
		name := frame.Function
		if strings.HasPrefix(name, harness) {
			return false
		}
		for _, prefix := range libraries {
			if strings.HasPrefix(name, prefix) && !strings.HasSuffix(name, ").Error") {
				return true
			}
		}
		if !more {
			return false
		}
	}
}

// scaled estimates what the samples stand for: an allocation of a size is
// sampled with a probability of 1-exp(-size/rate).
func scaled(objects, bytes int64, rate int) float64 {
	if objects == 0 || bytes == 0 {
		return 0
	}
	if rate <= 1 {
		return float64(bytes)
	}
	size := float64(bytes) / float64(objects)
	return float64(bytes) / (1 - math.Exp(-size/float64(rate)))
}
