package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// verdict is what the report says.
type verdict struct {
	*run
	end         ending
	violations  map[string]int // of the history's rules, by place
	undecided   int            // parts of the history
	late        []zktest.Transaction
	openedLate  int // passages of the barrier that the servers had opened late
	unknown     map[history.Kind]history.Share
	writes      int
	staleWrites []string
}

func (v *verdict) report() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(table, format+"\n", args...) }
	seconds := time.Since(v.pulse.begin)
	line("Soak: seed %d, %v of faults, %d clients and %d children, three servers of ZooKeeper %s, tick %v, T %v",
		v.opts.Seed, v.opts.Duration, v.opts.Clients, v.opts.Children, v.ens.Servers()[0].Version(), tick, T)
	line("\nfaults\tseen\ttried in vain")
	for _, kind := range slices.Sorted(maps.Keys(v.tally.faults)) {
		line("  %s\t%d\t%d", kind, v.tally.faults[kind], v.tally.missed[kind])
	}
	line("  all\t%d\t", v.tally.total())
	line("\nplaces\tgrants\tlongest gap\tviolations")
	for _, p := range places {
		key := v.w.Path(p.name)
		line("  %s\t%d\t%v\t%d", p.name, v.pulse.grants[key], v.pulse.longest[key].Round(time.Millisecond), v.violations[p.name])
	}
	line("  all\t%d\t%v\t%d", v.pulse.total(), v.pulse.longest[""].Round(time.Millisecond), v.sum())
	line("  per second\t%.1f", float64(v.pulse.total())/seconds.Seconds())
	line("\ncounts")
	for _, what := range slices.Sorted(maps.Keys(v.tally.counts)) {
		line("  %s\t%d", what, v.tally.counts[what])
	}
	for _, what := range slices.Sorted(maps.Keys(v.tally.longest)) {
		line("  longest %s\t%v", what, v.tally.longest[what].Round(time.Millisecond))
	}
	for _, kind := range slices.Sorted(maps.Keys(v.unknown)) {
		line("  %s with an unknown outcome\t%d of %d", kind, v.unknown[kind].Unknown, v.unknown[kind].Of)
	}
	v.verdictLines(line)
	if err := table.Flush(); err != nil {
		return err.Error()
	}
	return b.String()
}

func (v *verdict) verdictLines(line func(string, ...any)) {
	line("\nverdict")
	line("  violations of the recipes' rules, parts of the history undecided\t%d, %d", v.sum(), v.undecided)
	line("  resource: uses accepted, refused, stale accepted\t%d, %d, %d", v.register.uses, v.register.rejected, v.register.stale())
	line("  writes by transactions, stale ones\t%d, %d", v.writes, len(v.staleWrites))
	line("  times the barrier was shut, passages, passages while it was shut\t%d, %d, %d", v.recorded(history.Shut), v.recorded(history.Pass), v.violations["gate"])
	line("  requests carried out late by the servers, passages while it was shut by these\t%d, %d", len(v.late), v.openedLate)
	line("  workers stuck %v after the last fault\t%d\tslowest %v", stuckAfter, len(v.end.stuck), v.end.slowest.Round(time.Millisecond))
	line("  until the first grant at the slowest place\t%v", slowest(v.end.first).Round(time.Millisecond))
	line("  heap of the library at the end, allowed\t%.1f MiB, %d MiB", v.end.heap/(1<<20), heapAllowance*v.opts.Clients>>20)
	line("  nodes left\t%d", len(v.end.orphans))
	line("  watches, goroutines, files left\t%d, %d, %d", v.end.watches, max(0, v.end.goroutines), max(0, v.end.files))
	line("  other problems\t%d", len(v.tally.problems))
	line("  records\t%d", v.rec.Len())
}

// recorded counts the operations of a kind that succeeded.
func (v *verdict) recorded(kind history.Kind) (n int) {
	for _, r := range v.rec.Records() {
		if r.Kind == kind && r.Outcome == history.OK {
			n++
		}
	}
	return n
}

func (v *verdict) sum() (n int) {
	for _, k := range v.violations {
		n += k
	}
	return n
}

func slowest(first map[string]time.Duration) (most time.Duration) {
	for _, took := range first {
		most = max(most, took)
	}
	return most
}
