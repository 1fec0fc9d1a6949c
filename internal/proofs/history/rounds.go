package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// round is what a history says about one round of a barrier.
type round struct {
	number  int64
	enters  []span
	leaves  []Record // that returned a verdict
	opened  time.Duration
	emptied time.Duration // when the last member began to leave, or was lost
}

func rounds(records []Record) []*round {
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
	return slices.SortedFunc(maps.Values(byNumber), func(a, b *round) int { return cmp.Compare(a.number, b.number) })
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

// verdicts finds rounds whose members got different verdicts, and rounds that
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
				found = append(found,
					r.violation("ended as %q for %s and as %q for %s", r.leaves[0].Verdict, r.leaves[0].Client, l.Verdict, l.Client))
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
				found = append(found,
					r.violation("let %s go at %v while a member was at work, until %s", l.Client, l.Return, until(r.emptied)))
			}
		}
		if i > 0 && r.opened < all[i-1].emptied {
			found = append(found,
				r.violation("was opened at %v while round %d lasted, until %s", r.opened, all[i-1].number, until(all[i-1].emptied)))
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

// roundState counts the members of one round at each of its stages.
type roundState struct{ arrived, entered, departed, left int }

// A member arrives and enters between the call and the return of its Enter,
// departs at its Leave, and has left when that returns. It enters when all have
// arrived, and has left when all have departed.
const (
	arrive = "arrive"
	pass   = "enter"
	depart = "depart"
	left   = "leave"
)

type roundStep struct {
	stage  string
	member string
	size   int // members of the round
}

// roundModel judges a round of at most n.
func roundModel(n int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return roundState{} },
		Step: func(state, input, _ any) (bool, any) {
			r, s := state.(roundState), input.(roundStep)
			switch s.stage {
			case arrive:
				r.arrived++
				return r.arrived <= n, r
			case pass:
				r.entered++
				return r.arrived == s.size, r
			case depart:
				r.departed++
				return r.departed <= s.size, r
			}
			r.left++
			return r.departed == s.size, r
		},
		DescribeOperation: func(input, _ any) string {
			s := input.(roundStep)
			return s.member + ": " + s.stage
		},
		DescribeState: func(state any) string { return fmt.Sprintf("%+v", state) },
	}
}

func roundSteps(records []Record) (all [][]porcupine.Operation) {
	for _, r := range rounds(records) {
		var ops []porcupine.Operation
		add := func(member span, stage string, from, to int64) {
			ops = append(ops, porcupine.Operation{
				ClientId: len(ops), Input: roundStep{stage, member.Client, len(r.enters)}, Call: from, Return: to,
			})
		}
		for _, e := range r.enters {
			add(e, arrive, int64(e.Call), int64(e.Return))
			add(e, pass, int64(e.Call), int64(e.Return))
			if e.to == never {
				continue
			}
			add(e, depart, int64(e.to), int64(never))
			if i := slices.IndexFunc(e.ends, func(end Record) bool { return end.Kind == Leave && end.Outcome == OK }); i >= 0 {
				add(e, left, int64(e.ends[i].Call), int64(e.ends[i].Return))
			}
		}
		all = append(all, ops)
	}
	return all
}

// passages finds waits that began and ended while the barrier was shut.
func passages(opened []time.Duration) func([]Record) []Violation {
	return func(records []Record) (found []Violation) {
		shut := spans(records, Shut) // apart, since there is one keeper
		for _, r := range records {
			if r.Kind != Pass || r.Outcome != OK {
				continue
			}
			i := sort.Search(len(shut), func(i int) bool { return shut[i].from >= r.Call }) - 1
			if i < 0 || r.Return >= shut[i].to ||
				slices.ContainsFunc(opened, func(at time.Duration) bool { return shut[i].from <= at && at <= r.Return }) {
				continue
			}
			found = append(found, Violation{r.Key, fmt.Sprintf("%s passed from %v to %v, while it was shut from %v until %s",
				r.Client, r.Call, r.Return, shut[i].from, until(shut[i].to)), []int{shut[i].ID, r.ID}})
		}
		return found
	}
}
