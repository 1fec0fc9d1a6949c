package history

import (
	"cmp"
	"fmt"
	"slices"
)

// queueItem is what a history says about one item.
type queueItem struct {
	puts, takes, receives, acks []Record
}

func (q *queueItem) put() Record { return q.puts[0] }

// done reports whether the item was certainly, or may have been, taken out for
// good.
func (q *queueItem) done() bool {
	return len(q.takes) > 0 || slices.ContainsFunc(q.acks, func(r Record) bool { return r.Outcome != Failed })
}

// items sorts records by item. Acknowledgements are about the item of their
// receive. Takes and receives that did not return an item are given apart.
func items(records []Record) (all map[string]*queueItem, unknownTakes int) {
	received := map[int]string{}
	for _, r := range records {
		if r.Kind == Receive {
			received[r.ID] = r.Item
		}
	}
	all = map[string]*queueItem{}
	at := func(item string) *queueItem {
		if all[item] == nil {
			all[item] = &queueItem{}
		}
		return all[item]
	}
	for _, r := range records {
		switch {
		case r.Kind == Put && r.Outcome != Failed:
			at(r.Item).puts = append(at(r.Item).puts, r)
		case r.Kind == Take && r.Outcome == OK:
			at(r.Item).takes = append(at(r.Item).takes, r)
		case r.Kind == Take && r.Outcome != Failed:
			unknownTakes++
		case r.Kind == Receive && r.Outcome == OK:
			at(r.Item).receives = append(at(r.Item).receives, r)
		case r.Kind == Ack:
			at(received[r.Of]).acks = append(at(received[r.Of]).acks, r)
		}
	}
	return all, unknownTakes
}

// invented finds items that came out without having been put in, and items
// that were put in twice, which only a wrong test does.
func invented(records []Record) (found []Violation) {
	all, _ := items(records)
	for item, q := range all {
		out := slices.Concat(q.takes, q.receives)
		switch {
		case len(q.puts) > 1:
			found = append(found, Violation{q.put().Key, fmt.Sprintf("the test put %q more than once", item), ids(q.puts)})
		case len(out) > 0 && (len(q.puts) == 0 || q.put().Call > out[0].Return):
			found = append(found, Violation{out[0].Key, fmt.Sprintf("%q came out and had not been put in", item), ids(out)})
		}
	}
	return found
}

// repeated finds items that came out again after they were taken or
// acknowledged.
func repeated(records []Record) (found []Violation) {
	all, _ := items(records)
	for item, q := range all {
		if len(q.takes) > 1 {
			found = append(found,
				Violation{q.takes[0].Key, fmt.Sprintf("%q was taken %d times", item, len(q.takes)), ids(q.takes)})
		}
		acked := slices.DeleteFunc(slices.Clone(q.acks), func(r Record) bool { return r.Outcome != OK })
		for _, g := range slices.Concat(q.takes, acked) {
			for _, r := range slices.Concat(q.receives, q.takes) {
				if r.Call > g.Return {
					found = append(found,
						Violation{r.Key, fmt.Sprintf("%q came out again after its %s", item, g.Kind), []int{g.ID, r.ID}})
				}
			}
		}
		if len(acked) > 1 {
			found = append(found,
				Violation{acked[0].Key, fmt.Sprintf("%q was acknowledged %d times", item, len(acked)), ids(acked)})
		}
	}
	return found
}

// shared finds items that two had by such a grant at the same time.
func shared(kind Kind) func([]Record) []Violation {
	return sharedBy(kind, func(r Record) string { return r.Item })
}

// sharedBy is shared for what a grant names in another way; "" is nothing.
func sharedBy(kind Kind, what func(Record) string) func([]Record) []Violation {
	return func(records []Record) (found []Violation) {
		last := map[string]span{}
		for _, s := range spans(records, kind) {
			item := what(s.Record)
			if before, ok := last[item]; ok && before.to > s.from && item != "" {
				found = append(found, Violation{s.Key, fmt.Sprintf("%q: %s of %s at %v while %s had it, until %s",
					item, kind, s.Client, s.from, before.Client, until(before.to)), []int{before.ID, s.ID}})
			}
			last[item] = s
		}
		return found
	}
}

// lost finds items that were put in and never came out, where the queue was
// drained at the end. Each take with an unknown outcome may have lost one: that
// is what at most once means.
func lost(records []Record) (found []Violation) {
	all, unknownTakes := items(records)
	var missing []Record
	for _, q := range all {
		if len(q.puts) > 0 && q.put().Outcome == OK && !q.done() {
			missing = append(missing, q.put())
		}
	}
	if len(missing) > unknownTakes {
		slices.SortFunc(missing, func(a, b Record) int { return cmp.Compare(a.ID, b.ID) })
		found = append(found,
			Violation{missing[0].Key, fmt.Sprintf("%d items lost, the first is %q; %d takes may have taken one each",
				len(missing), missing[0].Item, unknownTakes), ids(missing)})
	}
	return found
}

func ids(records []Record) (all []int) {
	for _, r := range records {
		all = append(all, r.ID)
	}
	return all
}
