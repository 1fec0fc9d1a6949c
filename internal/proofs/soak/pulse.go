package soak

import (
	"strings"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/internal/proofs/history"
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
	return &pulse{begin: time.Now(), grants: map[string]int{}, last: map[string]time.Time{}, longest: map[string]time.Duration{}}
}

// see is the recorder's sink.
func (p *pulse) see(r history.Record) {
	if r.Outcome != history.OK {
		return
	}
	switch r.Kind {
	case history.Exclusive, history.Shared, history.Lease, history.Receive, history.Take, history.Put, history.Enter, history.Pass:
	default:
		return
	}
	p.grant(r.Client, r.Key)
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

func (p *pulse) total() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.grants {
		n += k
	}
	return n
}
