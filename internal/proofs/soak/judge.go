package soak

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

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
		t.Errorf("the library has %.1f MiB of the heap in use at the end, allowed are %.1f", end.heap/(1<<20), allowed/(1<<20))
	}
	none(r.register.stale(), "stale tokens accepted by the resource", "")
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
	name := filepath.Join(zktest.ArtefactDir(), fmt.Sprintf("soak-%s-seed%d", time.Now().Format("20060102-150405"), r.opts.Seed))
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
	if r.register.rejected == 0 {
		r.t.Error("the resource refused no token: the pauses are too short")
	}
	for kind, u := range unknown {
		// A Leave that reports a loss counts as unknown.
		if kind != history.Leave && u.Of > 1000 && float64(u.Unknown) > mostUnknown*float64(u.Of) {
			r.t.Errorf("of %d times %s, %d ended with an unknown outcome: more than one in %.0f", u.Of, kind, u.Unknown, 1/mostUnknown)
		}
	}
}
