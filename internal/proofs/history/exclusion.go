package history

import (
	"fmt"
	"slices"
)

// exclusion finds exclusive grants that were trusted while another was.
func exclusion(records []Record) (found []Violation) {
	all := spans(records, Exclusive, Shared)
	var active []span
	for _, s := range all {
		active = slices.DeleteFunc(active, func(a span) bool { return a.to <= s.from })
		for _, a := range active {
			if a.Kind == Exclusive || s.Kind == Exclusive {
				found = append(found, Violation{s.Key, fmt.Sprintf("%s of %s from %v while %s of %s lasts, until %s: they overlap by %v",
					s.Kind, s.Client, s.from, a.Kind, a.Client, until(a.to), min(a.to, s.to)-s.from), []int{a.ID, s.ID}})
			}
		}
		active = append(active, s)
	}
	return found
}

// tokenOrder finds exclusive grants whose token is smaller than that of the
// grant before, or the same, unless tokens may repeat.
func tokenOrder(repeat bool) func([]Record) []Violation {
	return func(records []Record) (found []Violation) {
		var last span
		for _, s := range spans(records, Exclusive) {
			if !follows(s.Token, last.Token, repeat) {
				found = append(found, Violation{s.Key, fmt.Sprintf("token %d of %s follows token %d of %s",
					s.Token, s.Client, last.Token, last.Client), []int{last.ID, s.ID}})
			}
			last = s
		}
		return found
	}
}

func follows(token, last int64, repeat bool) bool { return token > last || repeat && token == last }

// refused finds exclusive grants that a fenced resource turned away while they
// were trusted.
func refused(records []Record) (found []Violation) {
	byToken := map[int64]span{}
	for _, s := range spans(records, Exclusive) {
		byToken[s.Token] = s
	}
	for _, r := range records {
		if s, ok := byToken[r.Token]; ok && r.Kind == Refused && s.from <= r.Call && r.Return < s.to {
			found = append(found, Violation{r.Key, fmt.Sprintf("token %d of %s refused at %v, though trusted from %v until %s",
				r.Token, r.Client, r.Return, s.from, until(s.to)), []int{s.ID, r.ID}})
		}
	}
	return found
}

// atMost finds moments at which more than n leases were trusted.
func atMost(n int) func([]Record) []Violation {
	return func(records []Record) (found []Violation) {
		var active []span
		for _, s := range spans(records, Lease) {
			active = slices.DeleteFunc(active, func(a span) bool { return a.to <= s.from })
			active = append(active, s)
			ids, sum := []int{}, 0
			for _, a := range active {
				ids, sum = append(ids, a.ID), sum+a.weight()
			}
			if sum > n {
				found = append(found, Violation{s.Key, fmt.Sprintf("%d leases at %v, of %d", sum, s.from, n), ids})
			}
		}
		return found
	}
}

func (r *Record) weight() int { return max(1, r.Weight) }
