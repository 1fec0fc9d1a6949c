package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Report adds up what many seeds did.
type Report struct {
	mu       sync.Mutex
	begun    time.Time
	seeds    int
	failed   []uint64
	virtual  time.Duration
	faults   map[string]int
	grants   map[string]int
	counts   map[string]int
	records  int
	open     int // parts of histories that a model did not decide in time
	slowest  time.Duration
	slowSeed uint64
}

// NewReport returns an empty report.
func NewReport() *Report {
	return &Report{begun: time.Now(), faults: map[string]int{}, grants: map[string]int{}, counts: map[string]int{}}
}

// add counts a seed.
func (r *Report) add(res *Result, failed bool, undecided int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seeds++
	r.open += undecided
	if failed {
		r.failed = append(r.failed, res.seed)
	}
	r.virtual += res.virtual
	r.records += res.rec.Len()
	for _, sum := range []struct{ to, from map[string]int }{
		{r.faults, res.faults}, {r.grants, res.grants}, {r.counts, res.counts},
	} {
		for name, n := range sum.from {
			sum.to[name] += n
		}
	}
	for _, took := range res.first {
		if took > r.slowest {
			r.slowest, r.slowSeed = took, res.seed
		}
	}
}

// missing are the kinds of faults that never struck.
func (r *Report) missing() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range troubles {
		if r.faults[t.name] == 0 {
			names = append(names, t.name)
		}
	}
	return names
}

// String returns the report as text.
func (r *Report) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b,
		"%d seeds in %v: %.1f virtual hours, %d grants, %d faults, %d records judged, %d parts undecided, %d seeds with violations %v\n",
		r.seeds, time.Since(r.begun).Round(time.Second), r.virtual.Hours(), total(r.grants), total(r.faults), r.records,
		r.open, len(r.failed), r.failed)
	fmt.Fprintf(&b, "slowest first grant on a path after the last fault: %v (seed %d)\n",
		r.slowest.Round(time.Millisecond), r.slowSeed)
	for _, table := range []struct {
		title  string
		counts map[string]int
	}{{"faults", r.faults}, {"grants", r.grants}, {"checks and what came of them", r.counts}} {
		fmt.Fprintf(&b, "%s:\n", table.title)
		for _, name := range slices.Sorted(maps.Keys(table.counts)) {
			fmt.Fprintf(&b, "  %-40s %10d\n", name, table.counts[name])
		}
	}
	return b.String()
}

func total(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}
