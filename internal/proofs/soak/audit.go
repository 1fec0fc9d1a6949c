package soak

import (
	"slices"
	"sort"
	"time"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// outOfTurn is the least delay behind a later request of the same session that
// only a server can cause: a client's goroutines overtake each other by less.
const outOfTurn = 200 * time.Millisecond

// late finds requests that the servers carried out long after later ones of the
// same session, although they promise the order. A follower that was cut off
// from its leader causes it when it is back: it passes on the requests it held,
// and right behind them its clients' attempts to return, after which the leader
// accepts the old requests.
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

// opened lists when transactions deleted a node: the begin and the end of the
// millisecond, since the log's times are of whole milliseconds.
func opened(all []zktest.Transaction, path string, begin time.Time) (at []time.Duration) {
	for _, t := range all {
		if slices.Contains(t.Deleted, path) {
			at = append(at, t.Time.Sub(begin), t.Time.Add(time.Millisecond-1).Sub(begin))
		}
	}
	return at
}
