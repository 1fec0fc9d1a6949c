package doublebarrier_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/zkembed"
)

// calm is a session time-out long enough for no ping and no probe to come in
// the way of the counting.
const calm = time.Hour

// inCalm is a bubble with n clients whose sessions last that long.
func inCalm(t *testing.T, n int, f func(b bubble, clients []*coord.Client)) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := zkembed.Start(zkembed.WithAddr(""), zkembed.WithReaper(0), zkembed.WithSessionTimeouts(0, calm))
		require.NoError(t, err)
		b := bubble{t, srv}
		var clients []*coord.Client
		for range n {
			clients = append(clients, b.open(coord.WithSessionTimeout(calm)))
		}
		f(b, clients)
		b.close(clients...)
		require.NoError(t, srv.Close())
	})
}

// spent is what a session asked for and was told in a phase.
type spent struct{ requests, wakeUps int }

// phase runs f for every client together and returns what each session spent.
func (b bubble) phase(clients []*coord.Client, f func(i int)) []spent {
	synctest.Wait()
	var before []zkembed.Counts
	for _, c := range clients {
		before = append(before, b.srv.SessionCounts(c.SessionID()))
	}
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
	time.Sleep(time.Second) // whatever comes late, such as the watch on the own node
	var all []spent
	for i, c := range clients {
		counts := b.srv.SessionCounts(c.SessionID()).Since(before[i])
		all = append(all, spent{counts.Total(), counts[zkembed.OpNotify]})
	}
	return all
}

func total(all []spent) (requests int) {
	for _, s := range all {
		requests += s.requests
	}
	return requests
}

// ordinary is the most that a member spent, the one left out that spent most:
// the opener, or the monitor.
func ordinary(all []spent) spent {
	busiest := slices.MaxFunc(all, func(x, y spent) int { return x.requests - y.requests })
	busiestAt := slices.Index(all, busiest)
	var most spent
	for i, s := range all {
		if i != busiestAt {
			most = spent{max(most.requests, s.requests), max(most.wakeUps, s.wakeUps)}
		}
	}
	return most
}

func TestAMembersRequestsAndWakeUpsDoNotGrowWithTheNumberOfMembers(t *testing.T) {
	for _, n := range []int{3, 32, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inCalm(t, n, func(b bubble, clients []*coord.Client) {
				members := make([]*doublebarrier.Member, n)
				for r := range 3 {
					enter := b.phase(clients, func(i int) {
						m, err := barrier(t, clients[i], "/b", n).Enter(b.Context())
						require.NoError(t, err)
						members[i] = m
					})
					leave := b.phase(clients, func(i int) { require.NoError(t, members[i].Leave(b.Context())) })
					t.Logf("round %d: enter %+v total %d, leave %+v total %d", r+1, ordinary(enter), total(enter), ordinary(leave), total(leave))
				}
			})
		})
	}
}
