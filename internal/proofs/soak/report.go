package soak

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// verdict is what the report says.
type verdict struct {
	*run
	end         ending
	violations  map[string]int // of the history's rules, by place
	undecided   int            // parts of the history
	late        []zktest.Transaction
	lost        []string // by the servers
	openedLate  int      // passages of the barrier that the servers had opened late
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
		line("  %s\t%d\t%v\t%d", p.name, v.pulse.grants[key], v.pulse.longest[key].Round(time.Millisecond),
			v.violations[p.name])
	}
	line("  all\t%d\t%v\t%d", v.pulse.total(), v.pulse.longest[""].Round(time.Millisecond), sum(v.violations))
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
	line("  violations of the recipes' rules, parts of the history undecided\t%d, %d", sum(v.violations), v.undecided)
	line("  resource: uses accepted, refused\t%d, %d", v.register.uses, v.register.rejected)
	line("  writes by transactions, stale ones\t%d, %d", v.writes, len(v.staleWrites))
	line("  times the barrier was shut, passages, passages while it was shut\t%d, %d, %d", v.recorded(history.Shut),
		v.recorded(history.Pass), v.violations["gate"])
	line("  requests carried out late by the servers, passages while it was shut by these\t%d, %d", len(v.late),
		v.openedLate)
	line("  transactions that the servers have lost\t%s", cmp.Or(strings.Join(v.lost, ", "), "0"))
	line("  workers stuck %v after the last fault\t%d\tslowest %v", stuckAfter, len(v.end.stuck),
		v.end.slowest.Round(time.Millisecond))
	line("  until the first grant at the slowest place\t%v", slowest(v.end.first).Round(time.Millisecond))
	line("  heap of the library at the end, allowed\t%.1f MiB, %d MiB", v.end.heap/(1<<20),
		heapAllowance*v.opts.Clients>>20)
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

func slowest(first map[string]time.Duration) (most time.Duration) {
	for _, took := range first {
		most = max(most, took)
	}
	return most
}

// judge applies the rules and the other promises, and reports.
func (r *run) judge(end ending) {
	t := r.t
	v := verdict{run: r, end: end, violations: map[string]int{}}
	for _, p := range places {
		for _, rule := range p.rules(r.w.Path(p.name)) {
			violations, undecided := history.Check(t, r.rec, rule)
			v.violations[p.name] += violations
			v.undecided += undecided
		}
		key := r.w.Path(p.name)
		if gap := r.pulse.longest[key]; gap > longestGap || r.pulse.grants[key] == 0 {
			r.tally.problem("%s: %d grants, and none for %v; allowed are %v", p.name, r.pulse.grants[key], gap, longestGap)
		}
	}
	v.unknown = history.Unknowns(r.rec.Records())
	transactions, err := r.ens.Transactions()
	if err == nil {
		v.lost, err = r.ens.Lost(transactions)
	}
	if err != nil {
		r.tally.problem("%v", err)
	}
	v.late = late(transactions)
	gate := r.w.Path("gate")
	v.violations["gate"], _ = history.Check(t, r.rec, history.Barrier(gate, opened(v.late, gate, r.rec.Begin())...))
	v.openedLate = len(history.Barrier(gate).Judge(r.rec.Records()).Violations) - v.violations["gate"]
	v.writes, v.staleWrites = r.fence.Stale()
	for how, longest := range history.Unaware(r.rec.Records()) {
		r.tally.last("trust after "+how, longest)
	}
	report := v.report()
	fmt.Println(report)
	if err := r.file(report); err != nil {
		t.Errorf("the report cannot be kept: %v", err)
	}
	for _, problem := range r.tally.problems {
		t.Error(problem)
	}
	if len(r.tally.problems)+len(end.stuck)+len(end.orphans)+len(v.staleWrites) > 0 {
		t.Logf("the history is kept in %s", history.Keep(t, r.rec))
	}
	none := func(n int, what string, details any) {
		if n > 0 {
			t.Errorf("%d %s: %v", n, what, details)
		}
	}
	none(len(end.stuck), "workers stuck", end.stuck)
	none(len(end.orphans), "nodes left", end.orphans)
	none(end.watches, "watches left", r.w.Path(""))
	none(end.goroutines, "goroutines left", "see the end of the output")
	none(end.files, "files left open", "")
	if allowed := float64(heapAllowance * r.opts.Clients); end.heap > allowed {
		t.Errorf("the library has %.1f MiB of the heap in use at the end, allowed are %.1f", end.heap/(1<<20),
			allowed/(1<<20))
	}
	none(len(v.staleWrites), "stale writes by transactions", v.staleWrites)
	if r.tally.total() == 0 {
		t.Error("no fault happened")
	}
	if r.pulse.total() == 0 {
		t.Error("nothing was granted")
	}
	r.enough(v.unknown)
}

// file keeps the report, and a timetable: faults, and the grants in each
// second.
func (r *run) file(report string) error {
	name := filepath.Join(zktest.ArtefactDir(),
		fmt.Sprintf("soak-%s-seed%d", time.Now().Format("20060102-150405"), r.opts.Seed))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(name+".txt", []byte(report), 0o644); err != nil {
		return err
	}
	notes := strings.Join(r.rec.Notes(), "\n")
	return os.WriteFile(name+".log", fmt.Appendf(nil, "%s\ngrants in each second: %v\n", notes, r.pulse.seconds), 0o644)
}

// enough fails a long run in which a kind of fault never happened, or too many
// outcomes are unknown.
func (r *run) enough(unknown map[history.Kind]history.Share) {
	if time.Since(r.pulse.begin) < 10*time.Minute {
		return
	}
	for _, f := range clientFaults {
		if r.tally.faults[f.kind] == 0 {
			r.t.Errorf("no %s in a run of %v", f.kind, time.Since(r.pulse.begin))
		}
	}
	for _, f := range serverFaults {
		if r.tally.faults[f.kind] == 0 {
			r.t.Errorf("no %s in a run of %v", f.kind, time.Since(r.pulse.begin))
		}
	}
	for _, m := range workload.Meddlings {
		if r.tally.faults[m.Name] == 0 {
			r.t.Errorf("no %s in a run of %v", m.Name, time.Since(r.pulse.begin))
		}
	}
	if r.register.rejected == 0 {
		r.t.Error("the resource refused no token: the pauses are too short")
	}
	for kind, u := range unknown {
		// A Leave that reports a loss counts as unknown.
		if kind != history.Leave && u.Of > 1000 && float64(u.Unknown) > mostUnknown*float64(u.Of) {
			r.t.Errorf("of %d times %s, %d ended with an unknown outcome: more than one in %.0f", u.Of, kind, u.Unknown,
				1/mostUnknown)
		}
	}
}

// tally counts events, and keeps problems.
type tally struct {
	mu       sync.Mutex
	faults   map[string]int
	missed   map[string]int // faults that were tried and did not happen
	counts   map[string]int
	longest  map[string]time.Duration
	problems []string
}

func newTally() *tally {
	return &tally{
		faults: map[string]int{}, missed: map[string]int{}, counts: map[string]int{}, longest: map[string]time.Duration{},
	}
}

// fault counts a fault that happened n times; n = 0 means that it was tried and
// did not happen.
func (t *tally) fault(kind string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults[kind] += n
	if n == 0 {
		t.missed[kind]++
	}
}

func (t *tally) count(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what]++
}

func (t *tally) total() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return sum(t.faults)
}

// last keeps the longest duration of its kind.
func (t *tally) last(what string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.longest[what] = max(t.longest[what], d)
}

// problem keeps a failure that no rule of the history covers.
func (t *tally) problem(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems = append(t.problems, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// outOfTurn is the least delay behind a later request of the same session that
// only a server can cause: a client's goroutines overtake each other by less.
const outOfTurn = 200 * time.Millisecond

// late finds requests that the servers carried out long after later ones of the
// same session, although they promise the order. A follower that was cut off
// from its leader causes it when it is back: it passes on the requests it held,
// and right behind them its clients' attempts to return, after which the leader
// accepts the old requests.
func late(all []zktest.Transaction) (found []zktest.Transaction) {
	latest := map[int64][]zktest.Transaction{} // of each session, those with the largest number until then
	for _, t := range all {
		if t.Type < -1 {
			continue // the beginning and the end of a session
		}
		before := latest[t.Session]
		i := sort.Search(len(before), func(i int) bool { return before[i].Xid > t.Xid })
		switch {
		case i == len(before):
			latest[t.Session] = append(before, t)
		case t.Time.Sub(before[i].Time) > outOfTurn:
			found = append(found, t)
		}
	}
	return found
}

// opened lists when transactions deleted a node: the begin and the end of the
// millisecond, since the log's times are of whole milliseconds.
func opened(all []zktest.Transaction, path string, begin time.Time) (at []time.Duration) {
	for _, t := range all {
		if slices.Contains(t.Deleted, path) {
			at = append(at, t.Time.Sub(begin), t.Time.Add(time.Millisecond-1).Sub(begin))
		}
	}
	return at
}
