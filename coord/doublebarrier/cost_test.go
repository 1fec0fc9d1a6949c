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
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// calm is a session time-out long enough for no ping and no probe to come in
// the way of the counting.
const calm = time.Hour

// inCalm is a bubble with n clients whose sessions last that long.
func inCalm(t *testing.T, n int, f func(t *testing.T, b bubble, clients []*coord.Client)) {
	inBubble(t, func(t *testing.T, b bubble) {
		var clients []*coord.Client
		for range n {
			clients = append(clients, b.Open(coord.WithSessionTimeout(calm)))
		}
		f(t, b, clients)
	}, zkembed.WithSessionTimeouts(0, calm))
}

// spent is what a session asked for and was told in a phase.
type spent struct{ requests, wakeUps int }

// phase runs f for every client together and returns what each session spent.
func (b bubble) phase(clients []*coord.Client, f func(i int)) []spent {
	synctest.Wait()
	var before []zkembed.Counts
	for _, c := range clients {
		before = append(before, b.Server.SessionCounts(c.SessionID()))
	}
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
	time.Sleep(time.Second) // whatever comes late, such as the watch on the own node
	var all []spent
	for i, c := range clients {
		counts := b.Server.SessionCounts(c.SessionID()).Since(before[i])
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

// ordinary is the most that a member spent, one left out: the opener, or the
// monitor. Which one that is is known, or it is the one that spent most.
func ordinary(all []spent, special ...int) (most spent) {
	if len(special) == 0 {
		busiest := slices.MaxFunc(all, func(x, y spent) int { return x.requests - y.requests })
		special = []int{slices.Index(all, busiest)}
	}
	for i, s := range all {
		if i != special[0] {
			most = spent{max(most.requests, s.requests), max(most.wakeUps, s.wakeUps)}
		}
	}
	return most
}

func TestAMembersRequestsAndWakeUpsDoNotGrowWithTheNumberOfMembers(t *testing.T) {
	for _, n := range []int{3, 32, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inCalm(t, n, func(t *testing.T, b bubble, clients []*coord.Client) {
				members := make([]*doublebarrier.Member, n)
				for r := range 3 {
					enter := b.phase(clients, func(i int) {
						m, err := barrier(t, clients[i], "/b", n).Enter(b.Context())
						require.NoError(t, err)
						members[i] = m
					})
					leave := b.phase(clients, func(i int) { require.NoError(t, members[i].Leave(b.Context())) })
					monitor := slices.IndexFunc(members, func(m *doublebarrier.Member) bool { return m.Index() == 0 })
					t.Logf("round %d: enter %+v total %d, leave %+v total %d", r+1, ordinary(enter), total(enter), ordinary(leave, monitor), total(leave))
					if r == 0 {
						// All of them find no barrier and make it.
						require.LessOrEqual(t, ordinary(enter).requests, 12)
						continue
					}
					// The opener opens besides. In a small round all list, in a
					// large one only the opener.
					each, opener := 4, 2
					if n <= doublebarrier.Small {
						each, opener = 5, 1
					}
					require.LessOrEqual(t, ordinary(enter).requests, each)
					require.LessOrEqual(t, ordinary(enter).wakeUps, 1)
					require.LessOrEqual(t, total(enter), each*n+opener)
					// The monitor reads every other, once or twice.
					require.LessOrEqual(t, ordinary(leave, monitor).requests, 5)
					require.LessOrEqual(t, ordinary(leave, monitor).wakeUps, 4)
					require.LessOrEqual(t, total(leave), 5*n+2*n+1)
				}
			})
		})
	}
}

// Members die one after the other while the others wait to leave, the monitor
// first each time: each death costs the others little, and wakes only the next.
func TestADeathInLeaveWakesTheNextOnly(t *testing.T) {
	const n, deaths = 40, 10
	inCalm(t, n, func(t *testing.T, b bubble, clients []*coord.Client) {
		members := make([]*doublebarrier.Member, n)
		left := make([]<-chan error, n)
		b.phase(clients, func(i int) {
			time.Sleep(time.Duration(i) * time.Second)
			m, err := barrier(t, clients[i], "/b", n).Enter(b.Context())
			require.NoError(t, err)
			require.Equal(t, i, m.Index())
			members[i] = m
		})
		for i := range n - 1 {
			left[i] = leaving(b.Context(), members[i])
		}
		time.Sleep(lasts) // each watches the one before it
		for i := range deaths {
			all := b.phase(clients[i+1:], func(at int) {
				if at == 0 {
					require.NoError(t, b.Server.ExpireSession(clients[i].SessionID()))
				}
			})
			require.Equal(t, 1, all[0].wakeUps)
			require.LessOrEqual(t, all[0].requests, n)
			for _, s := range all[1:] {
				require.Equal(t, spent{}, s)
			}
		}
		told := members[n-1].Leave(b.Context())
		requireMissing(t, told, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		for i, l := range left[:n-1] {
			if i < deaths {
				require.ErrorIs(t, <-l, coord.ErrLost)
			} else {
				require.Equal(t, told, <-l)
			}
		}
	})
}

// A member that looks at the others only when all of them have left already
// does not take them for dead, one after the other.
func TestALeaverThatIsSlowToLookAroundAsksNoMoreThanTheOthers(t *testing.T) {
	const n = 20
	inCalm(t, n, func(t *testing.T, b bubble, clients []*coord.Client) {
		members := make([]*doublebarrier.Member, n)
		b.phase(clients, func(i int) {
			time.Sleep(time.Duration(i) * time.Second)
			m, err := barrier(t, clients[i], "/b", n).Enter(b.Context())
			require.NoError(t, err)
			members[i] = m
		})
		slow := b.Server.Inject(zkembed.Match{Session: clients[n-1].SessionID(), PathPrefix: members[n-2].Node(), Times: 1}, zkembed.Delay(time.Minute))
		all := b.phase(clients, func(i int) {
			if i < n-1 {
				<-slow.Struck()
			}
			require.NoError(t, members[i].Leave(b.Context()))
		})
		require.LessOrEqual(t, all[n-1].requests, 5)
	})
}

// BenchmarkRound is one round of n members with a session each: all enter at
// once, and leave at once. The server is in the same process.
func BenchmarkRound(b *testing.B) {
	for _, n := range []int{8, 32} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			w := zktest.NewEmbedded(b)
			w.SetTimeout(time.Minute) // no probe comes in between
			barriers := make([]*doublebarrier.Barrier, n)
			for i := range barriers {
				c := coordtest.Open(b, w.ConnectString(), coord.WithSessionTimeout(time.Minute))
				barriers[i] = barrier(b, c, w.Path("barrier"), n)
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range leaveAll(b, round(b, barriers...)...) {
					require.NoError(b, err)
				}
			}
		})
	}
}
