package soak

import (
	"slices"
	"sort"
	"time"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// outOfTurn is by how much a request must come after a later one of its session
// for a server to be the cause: goroutines of a client overtake each other by
// less.
const outOfTurn = 200 * time.Millisecond

// late finds what the servers carried out long after later requests of the same
// session, which they promise not to do. A follower that was cut off from its
// leader does so when it is back: it passes on what it held, and right behind it
// its clients' attempts to return, which make the old requests pass.
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

// opened lists when transactions deleted a node. Their times are of whole
// milliseconds, so that there are two for each.
func opened(all []zktest.Transaction, path string, begin time.Time) (at []time.Duration) {
	for _, t := range all {
		if slices.Contains(t.Deleted, path) {
			at = append(at, t.Time.Sub(begin), t.Time.Add(time.Millisecond-1).Sub(begin))
		}
	}
	return at
}
