package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Violation is a promise that a history shows broken.
type Violation struct {
	Key     string
	Text    string
	Records []int // IDs of the records that show it
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: %s (records %v)", v.Key, v.Text, v.Records)
}

// span is the time for which a grant was trusted.
type span struct {
	Record                 // the grant
	from, to time.Duration // trusted in between
	ends     []Record      // what ended it, by time
}

// spans returns the grants of the given kinds in the order in which their
// trust began. Those that were never trusted are left out. What breaks a grant
// breaks its node, and so all turns of the node in a local queue, which share
// its token: if the grant had returned, or its token had been seen, by then.
func spans(records []Record, kinds ...Kind) []span {
	grants, ends, broken := map[int]Record{}, map[int][]Record{}, map[int64][]Record{}
	for _, r := range records {
		grants[r.ID] = r
		if r.Of != 0 {
			ends[r.Of] = append(ends[r.Of], r)
		}
		switch of := grants[r.Of]; {
		case r.Kind != Broken:
		case r.Node != 0:
			broken[r.Node] = append(broken[r.Node], r)
		case of.Token != 0 && (of.Return < r.Call || of.Token <= r.Token):
			broken[of.Token] = append(broken[of.Token], r)
		}
	}
	var all []span
	for _, r := range records {
		if r.Outcome != OK || !slices.Contains(kinds, r.Kind) {
			continue
		}
		s := span{Record: r, from: r.Return, to: never, ends: ends[r.ID]}
		for _, end := range slices.Concat(s.ends, broken[s.Token]) {
			if end.Kind != Broken || end.Return >= s.from && !s.apart(end.Node) {
				s.to = min(s.to, end.Call)
			}
		}
		slices.SortFunc(s.ends, func(a, b Record) int { return cmp.Compare(a.Call, b.Call) })
		if s.from < s.to {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return all
}

// of returns the records of one key.
func of(records []Record, key string) []Record {
	var own []Record
	for _, r := range records {
		if r.Key == key {
			own = append(own, r)
		}
	}
	return own
}

func until(t time.Duration) string {
	if t == never {
		return "its end"
	}
	return t.String()
}

// Share is how many calls there were, and of how many the outcome is unknown.
type Share struct{ Unknown, Of int }

// Unknowns counts the calls of each kind that returned.
func Unknowns(records []Record) map[Kind]Share {
	all := map[Kind]Share{}
	for _, r := range records {
		if r.Kind == Lost || r.Kind == Broken || r.Kind == Refused || r.Outcome == Open {
			continue
		}
		s := all[r.Kind]
		s.Of++
		if r.Outcome == Unknown {
			s.Unknown++
		}
		all[r.Kind] = s
	}
	return all
}

// Unaware returns how long, at most, a holder went on trusting a grant that the
// test had ended from outside, by how it was ended.
func Unaware(records []Record) map[string]time.Duration {
	grants, broken, ended := map[int]Record{}, map[int]Record{}, map[int]time.Duration{}
	for _, r := range records {
		if before, ok := broken[r.Of]; r.Kind == Broken && (!ok || r.Call < before.Call) {
			broken[r.Of] = r
		} else if r.Kind != Broken && r.Of != 0 {
			if at, ok := ended[r.Of]; !ok || r.Call < at {
				ended[r.Of] = r.Call
			}
		}
		grants[r.ID] = r
	}
	longest := map[string]time.Duration{}
	for id, b := range broken {
		if end, ok := ended[id]; ok && grants[id].Outcome == OK && grants[id].Return < b.Call {
			longest[b.Err] = max(longest[b.Err], end-b.Call)
		}
	}
	return longest
}

// exclusion finds exclusive grants that were trusted while another was.
func exclusion(records []Record) (found []Violation) {
	all := spans(records, Exclusive, Shared)
	var active []span
	for _, s := range all {
		active = slices.DeleteFunc(active, func(a span) bool { return a.to <= s.from })
		for _, a := range active {
			if a.Kind == Exclusive || s.Kind == Exclusive {
				found = append(found,
					Violation{s.Key, fmt.Sprintf("%s of %s from %v while %s of %s lasts, until %s: they overlap by %v",
						s.Kind, s.Client, s.from, a.Kind, a.Client, until(a.to), min(a.to, s.to)-s.from), []int{a.ID, s.ID}})
			}
		}
		active = append(active, s)
	}
	return found
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
