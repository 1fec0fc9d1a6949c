package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// round is what a history says about one round of a barrier.
type round struct {
	number  int64
	enters  []span
	leaves  []Record // that returned a verdict
	opened  time.Duration
	emptied time.Duration // when the last member began to leave, or was lost
}

func rounds(records []Record) []round {
	byNumber := map[int64]*round{}
	// Every member counts, also one that was lost before its Enter returned.
	for _, s := range append(spans(records, Enter), emptySpans(records)...) {
		r := byNumber[s.Round]
		if r == nil {
			r = &round{number: s.Round, opened: never}
			byNumber[s.Round] = r
		}
		r.enters = append(r.enters, s)
		r.opened = min(r.opened, s.from)
		r.emptied = max(r.emptied, s.to)
		for _, end := range s.ends {
			if end.Kind == Leave && end.Outcome == OK {
				r.leaves = append(r.leaves, end)
			}
		}
	}
	var all []round
	for _, number := range slices.Sorted(maps.Keys(byNumber)) {
		all = append(all, *byNumber[number])
	}
	return all
}

// emptySpans are the members of a round that were lost when they entered.
func emptySpans(records []Record) (all []span) {
	trusted := map[int]bool{}
	for _, s := range spans(records, Enter) {
		trusted[s.ID] = true
	}
	for _, r := range records {
		if r.Kind == Enter && r.Outcome == OK && !trusted[r.ID] {
			all = append(all, span{Record: r, from: never})
		}
	}
	return all
}

// size finds rounds with too many members, and members who were let in before
// enough had come.
func size(n int) func([]Record) []Violation {
	return func(records []Record) (found []Violation) {
		var calls []time.Duration
		for _, r := range records {
			if r.Kind == Enter {
				calls = append(calls, r.Call)
			}
		}
		slices.Sort(calls)
		before := 0 // members of earlier rounds
		for _, r := range rounds(records) {
			if len(r.enters) > n {
				found = append(found, r.violation("has %d members, not %d", len(r.enters), n))
			}
			called, _ := slices.BinarySearch(calls, r.opened)
			if called-before < n {
				found = append(found, r.violation("was opened at %v, when only %d had come, not %d", r.opened, called-before, n))
			}
			for _, e := range r.enters {
				if e.Weight != 0 && e.Weight != n {
					found = append(found, r.violation("is one of %d members to %s, not %d", e.Weight, e.Client, n))
				}
				if e.Call > r.opened {
					found = append(found, r.violation("was opened at %v, before member %s came, at %v", r.opened, e.Client, e.Call))
				}
			}
			before += len(r.enters)
		}
		return found
	}
}

// Complete is the verdict of a round in which every member has finished.
const Complete = "complete"

// verdicts finds rounds whose members were told different ends, and those that
// were called complete though a member had been lost before it left.
func verdicts(records []Record) (found []Violation) {
	for _, r := range rounds(records) {
		for _, e := range r.enters {
			if lost, ok := e.lostInside(); ok && len(r.leaves) > 0 && r.leaves[0].Verdict == Complete {
				found = append(found, r.violation("ended as complete, though %s was lost at %v and had not left", e.Client, lost))
			}
		}
		for _, l := range r.leaves {
			if l.Verdict != r.leaves[0].Verdict {
				found = append(found, r.violation("ended as %q for %s and as %q for %s", r.leaves[0].Verdict, r.leaves[0].Client, l.Verdict, l.Client))
				break
			}
		}
	}
	return found
}

// lostInside returns when a member was lost, if it had not begun to leave by
// then.
func (s span) lostInside() (at time.Duration, lost bool) {
	left := never
	at = never
	for _, end := range s.ends {
		switch end.Kind {
		case Leave:
			left = min(left, end.Call)
		case Lost:
			at = min(at, end.Call)
		}
	}
	return at, at < left
}

// together finds members who left a round while another was at work, and rounds
// that were opened while another was not over.
func together(records []Record) (found []Violation) {
	all := rounds(records)
	for i, r := range all {
		for _, l := range r.leaves {
			if l.Return < r.emptied {
				found = append(found, r.violation("let %s go at %v while a member was at work, until %s", l.Client, l.Return, until(r.emptied)))
			}
		}
		if i > 0 && r.opened < all[i-1].emptied {
			found = append(found, r.violation("was opened at %v while round %d lasted, until %s", r.opened, all[i-1].number, until(all[i-1].emptied)))
		}
	}
	return found
}

func (r *round) violation(format string, args ...any) Violation {
	v := Violation{Key: r.enters[0].Key, Text: fmt.Sprintf("round %d ", r.number) + fmt.Sprintf(format, args...)}
	for _, e := range r.enters {
		v.Records = append(v.Records, e.ID)
		for _, end := range e.ends {
			v.Records = append(v.Records, end.ID)
		}
	}
	slices.SortFunc(v.Records, cmp.Compare[int])
	return v
}
