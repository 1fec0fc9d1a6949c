package history

import (
	"fmt"
	"slices"
	"sort"
	"time"
)

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
