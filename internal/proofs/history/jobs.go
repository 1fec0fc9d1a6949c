package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// doing is what a history says about one job.
type doing struct {
	runs []Record // that were begun
	ends []Record // Did and Ask, with the result
}

// doings sorts records by job, and returns every call that may have begun a
// run.
func doings(records []Record) (all map[string]*doing, begun []Record) {
	all = map[string]*doing{}
	runs := map[int]Record{}
	for _, r := range records {
		if r.Kind == Run {
			runs[r.ID] = r
			begun = append(begun, r)
			if all[r.Item] == nil {
				all[r.Item] = &doing{}
			}
		}
	}
	for _, r := range records {
		switch {
		case r.Outcome != OK:
		case r.Kind == Run:
			all[r.Item].runs = append(all[r.Item].runs, r)
		case r.Kind == Did:
			r.Item, r.Verdict = runs[r.Of].Item, runs[r.Of].Verdict
			all[r.Item].ends = append(all[r.Item].ends, r)
		case r.Kind == Ask:
			if all[r.Item] == nil {
				all[r.Item] = &doing{}
			}
			all[r.Item].ends = append(all[r.Item].ends, r)
		}
	}
	return all, begun
}

// ended finds jobs with a result of none of their runs, and jobs that ran again
// or changed their result after their end was on record, unless that record may
// have been deleted, since it is older than age, or keep other runs may have
// begun meanwhile.
func ended(keep int, age time.Duration) func([]Record) []Violation {
	return func(records []Record) (found []Violation) {
		all, begun := doings(records)
		slices.SortFunc(begun, func(a, b Record) int { return cmp.Compare(a.Call, b.Call) })
		deleted := func(from, by Record) bool {
			at, _ := slices.BinarySearchFunc(begun, from.Call,
				func(r Record, t time.Duration) int { return cmp.Compare(r.Call, t) })
			n := 0 // its own run counts
			for _, r := range begun[at:] {
				if n > keep || r.Call >= by.Return {
					break // a long history has many
				}
				n++
			}
			for _, r := range begun[:at] {
				if n > keep {
					break
				}
				if r.returned() > from.Call {
					n++
				}
			}
			return keep > 0 && n > keep
		}
		tooOld := func(from Record, d *doing, by Record) bool {
			since := from.Return
			for _, end := range d.ends {
				if end.Kind == Did && end.Of == from.ID {
					since = end.Call
				}
			}
			return age > 0 && by.Return-since > age
		}
		for item, d := range all {
			for _, end := range d.ends {
				i := slices.IndexFunc(d.runs, func(r Record) bool { return r.Verdict == end.Verdict })
				if i < 0 {
					found = append(found,
						Violation{end.Key, fmt.Sprintf("%q has the result %q, of none of its runs", item, end.Verdict), []int{end.ID}})
					continue
				}
				for _, later := range slices.Concat(d.runs, d.ends) {
					if later.Call > end.Return && (later.Kind == Run || later.Verdict != end.Verdict) && !deleted(d.runs[i], later) &&
						!tooOld(d.runs[i], d, later) {
						found = append(found, Violation{end.Key, fmt.Sprintf("%q had ended with %q when %s came to a %s, with %q",
							item, end.Verdict, later.Client, later.Kind, later.Verdict), []int{d.runs[i].ID, end.ID, later.ID}})
					}
				}
			}
		}
		return found
	}
}

// attempted finds jobs with more than n runs.
func attempted(n int) func([]Record) []Violation {
	return func(records []Record) (found []Violation) {
		all, _ := doings(records)
		for item, d := range all {
			if n > 0 && len(d.runs) > n {
				found = append(found,
					Violation{d.runs[0].Key, fmt.Sprintf("%q ran %d times, of %d", item, len(d.runs), n), ids(d.runs)})
			}
		}
		return found
	}
}

// skipped finds instants of a schedule that nobody ran, though a later one was.
func skipped(every time.Duration) func([]Record) []Violation {
	return func(records []Record) (found []Violation) {
		all, _ := doings(records)
		var ran []Record // the first run of each
		for _, d := range all {
			if len(d.runs) > 0 {
				ran = append(ran, d.runs[0])
			}
		}
		slices.SortFunc(ran, func(a, b Record) int { return instant(a).Compare(instant(b)) })
		for i := 1; i < len(ran); i++ {
			before, now := ran[i-1], ran[i]
			if apart := instant(now).Sub(instant(before)); apart != every {
				found = append(found, Violation{now.Key, fmt.Sprintf("%q ran, and the one before was %q, %v earlier, not %v",
					now.Item, before.Item, apart, every), []int{before.ID, now.ID}})
			}
		}
		return found
	}
}

// instant is when a slot is due.
func instant(r Record) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, r.Item) // zero for what is none
	return t
}
