package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// growing finds grants of an item, or of a lock, whose token is smaller than
// that of the grant before, or the same, unless tokens may repeat.
func growing(kind Kind, repeat bool) func([]Record) []Violation {
	return func(records []Record) (found []Violation) {
		last := map[string]span{}
		for _, s := range spans(records, kind) {
			if before := last[s.Item]; !follows(s.Token, before.Token, repeat) {
				what := strings.TrimSpace(string(kind) + " " + s.Item)
				found = append(found, Violation{s.Key, fmt.Sprintf("%s: token %d of %s follows token %d of %s",
					what, s.Token, s.Client, before.Token, before.Client), []int{before.ID, s.ID}})
			}
			last[s.Item] = s
		}
		return found
	}
}

// counted finds impossible sums of a counter, where every add adds one: a sum
// of two adds; one that is not above the number of adds that had returned
// before the call, or is above the number of those called before the return;
// and one that is smaller than the sum of an add that had returned before the
// call.
func counted(records []Record) (found []Violation) {
	var done, called []time.Duration // of adds that counted; that may have counted
	var adds []Record
	for _, r := range records {
		if r.Kind != Add || r.Outcome == Failed {
			continue
		}
		called = append(called, r.Call)
		if r.Outcome == OK {
			done, adds = append(done, r.Return), append(adds, r)
		}
	}
	slices.Sort(done)
	slices.Sort(called)
	slices.SortStableFunc(adds, func(a, b Record) int { return cmp.Compare(b.Sum, a.Sum) })
	before := func(all []time.Duration, t time.Duration) int64 {
		n, _ := slices.BinarySearch(all, t)
		return int64(n)
	}
	var first Record // to return, of those with larger sums
	for i, r := range adds {
		if i > 0 && r.Sum == adds[i-1].Sum {
			found = append(found,
				Violation{
					r.Key, fmt.Sprintf("%s and %s have the sum %d", adds[i-1].Client, r.Client, r.Sum), []int{adds[i-1].ID, r.ID},
				})
		}
		if least, most := before(done, r.Call)+1, before(called, r.Return); r.Sum < least || r.Sum > most {
			found = append(found,
				Violation{
					r.Key, fmt.Sprintf("%s has the sum %d: %d adds at least, and %d at most", r.Client, r.Sum, least, most),
					[]int{r.ID},
				})
		}
		if first.ID != 0 && first.Return < r.Call {
			found = append(found,
				Violation{
					r.Key, fmt.Sprintf("%s has the sum %d after %d of %s", r.Client, r.Sum, first.Sum, first.Client),
					[]int{first.ID, r.ID},
				})
		}
		if first.ID == 0 || r.Return < first.Return {
			first = r
		}
	}
	return found
}
