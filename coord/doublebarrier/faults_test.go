package doublebarrier_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// lasts is longer than anything that no fault holds up takes, and too short for
// a session to end.
const lasts = 2 * time.Second

// pool opens n clients and returns them with each one's view of the barrier /b.
func (b bubble) pool(clients, n int, opts ...doublebarrier.Option) ([]*coord.Client, []*doublebarrier.Barrier) {
	b.Helper()
	var cs []*coord.Client
	for range clients {
		cs = append(cs, b.Open())
	}
	return cs, b.views(cs, n, opts...)
}

// views returns each client's view of the barrier /b.
func (b bubble) views(clients []*coord.Client, n int, opts ...doublebarrier.Option) (bs []*doublebarrier.Barrier) {
	b.Helper()
	for _, c := range clients {
		bs = append(bs, barrier(b, c, "/b", n, opts...))
	}
	return bs
}

// enter calls Enter for each, one after the other, each when the ones before
// have done what they can.
func (b bubble) enter(bs ...*doublebarrier.Barrier) (all []arrival) {
	for _, each := range bs {
		all = append(all, entering(b.Context(), each))
		time.Sleep(lasts)
	}
	return all
}

// kill ends a process as a crash does, with its session.
func (b bubble) kill(c *coord.Client) {
	b.Helper()
	require.NoError(b, b.Server.ExpireSession(c.Info().SessionID))
	b.Close(c)
}

// begun opens n clients, which enter /b one after the other: the members have
// the clients' order.
func (b bubble) begun(n int) ([]*coord.Client, []*doublebarrier.Member) {
	b.Helper()
	cs, bs := b.pool(n, n)
	return cs, entered(b, b.enter(bs...)...)
}

// Whichever single request or reply is lost, three members get through two
// rounds, and every member finishes.
func TestProofNoSingleLossHangsOrSplitsARound(t *testing.T) {
	for name, apart := range map[string]bool{"listed along": false, "listed apart": true} {
		t.Run(name, func(t *testing.T) { require.Greater(t, loseEach(t, apart), 50) })
	}
}

// loseEach returns how many requests and replies were lost.
func loseEach(t *testing.T, apart bool) (struck int) {
	losses := map[string]zkembed.Action{"request": zkembed.Drop(), "reply": zkembed.LoseReply()}
	ops := []zkembed.Op{
		zkembed.OpCreate, zkembed.OpCreateContainer, zkembed.OpMulti, zkembed.OpSetData, zkembed.OpDelete,
		zkembed.OpGetData, zkembed.OpExists, zkembed.OpGetChildren2,
	}
	for name, loss := range losses {
		for _, op := range ops {
			for skip, more := 0, true; more; skip++ {
				t.Run(fmt.Sprint(op, " ", skip, " ", name), func(t *testing.T) {
					inBubble(t, func(t *testing.T, b bubble) {
						cs, bs := b.pool(3, 3)
						for _, each := range bs {
							if apart {
								each.ListApart()
							}
						}
						fault := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{op}, Skip: skip, Times: 1}, loss)
						for range 2 {
							leave(t, round(t, bs...)...)
						}
						b.Close(cs...)
						more = fault.Fired() > 0
						struck += fault.Fired()
					})
				})
			}
		}
	}
	return struck
}

func TestARoundBeginsOnlyWhileAllItsMembersAreThere(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(3, 2)
		b.enter(bs[0])
		slow := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/b", Times: 1},
			zkembed.Delay(2*lasts))
		second := b.enter(bs[1])[0]
		<-slow.Struck()
		b.kill(cs[0])
		time.Sleep(3 * lasts)
		pending(t, "entered with a dead one", second)
		through(t, second, b.enter(bs[2])[0])
	})
}

func TestWhenOneOfTooManyDiesBeforeTheRoundBeginsAnotherTakesItsPlaceAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(3, 2)
		b.enter(bs[0])
		slow := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/b", Times: 2},
			zkembed.Delay(3*lasts))
		rest := b.enter(bs[1:]...)
		require.Equal(t, 2, slow.Fired())
		b.kill(cs[0])
		through(t, rest...)
	})
}

// The node ready goes while the transaction that begins the round is on its
// way.
func TestAReadyThatGoesBeforeTheRoundBeginsIsMadeAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(2, 1)
		through(t, b.enter(bs[0])...)
		slow := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/b", Times: 1},
			zkembed.Delay(2*lasts))
		only := b.enter(bs[0])[0]
		<-slow.Struck()
		require.NoError(t, cs[1].Delete(b.Context(), "/b/ready", -1))
		through(t, only)
	})
}

func TestOneMemberTooManyIsToldSo(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		_, bs := b.pool(3, 2)
		first := b.enter(bs[0])[0]
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/b", Times: 2}, zkembed.Delay(3*lasts))
		rest := b.enter(bs[1:]...)
		require.ErrorIs(t, (<-rest[1]).Err, doublebarrier.ErrLate)
		through(t, first, rest[0])
	})
}

// The listing made along with the third one's create shows the members of a
// round that has just begun, and they die before it reads ready.
func TestAMemberIsNotLateForARoundThatCrashedAsItCame(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(4, 2)
		first := b.enter(bs[0])[0]
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/b", Times: 1},
			zkembed.Delay(lasts+lasts/10))
		second := b.enter(bs[1])[0]
		b.Server.Inject(zkembed.Match{Session: cs[2].Info().SessionID, Ops: []zkembed.Op{zkembed.OpCreate}, Times: 1},
			zkembed.Delay(lasts/5))
		slow := b.Server.Inject(zkembed.Match{
			Session: cs[2].Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetData}, PathPrefix: "/b/ready", Skip: 1, Times: 1,
		}, zkembed.Delay(lasts/2))
		third := entering(b.Context(), bs[2])
		entered(t, first, second)
		<-slow.Struck()
		b.kill(cs[0])
		b.kill(cs[1])
		time.Sleep(lasts)
		pending(t, "came to an end", third)
		through(t, third, b.enter(bs[3])[0])
	})
}

func TestAMemberThatWaitsForTheNextRoundGetsAPlaceInTheOrderOfArrival(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		_, bs := b.pool(8, 2, doublebarrier.WaitForNextRound())
		all := b.enter(bs...)
		for r := range 4 {
			pair := entered(t, all[2*r:2*r+2]...)
			for i, m := range pair {
				require.EqualValues(t, r+1, m.Round())
				require.Equal(t, i, m.Index())
			}
			pending(t, "entered before its turn", all[2*r+2:]...)
			leave(t, pair...)
			synctest.Wait()
		}
	})
}

// A member that learns of the end only after later rounds still gets its
// round's outcome.
func TestTheOutcomeIsKeptForAMemberThatIsSlowToReadIt(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(5, 3)
		ms := entered(t, b.enter(bs[:3]...)...)
		next := func() { leave(t, round(t, bs[0], bs[3], bs[4])...) }
		b.kill(cs[1])
		slow := leaving(t.Context(), ms[2])
		synctest.Wait()
		cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{cs[2].Info().SessionID}, Direction: zkembed.ToClient})
		verdict := ms[0].Leave(b.Context())
		requireMissing(t, []int{1}, verdict)
		for range 3 {
			next()
		}
		pending(t, "left though it cannot have heard of it", slow)
		cut.Heal()
		require.Equal(t, verdict, <-slow)
		next()
		data, _, err := cs[0].Get(b.Context(), "/b/ready")
		require.NoError(t, err)
		require.NotContains(t, string(data), "past", "nobody is left to read it")
	})
}

func TestANewcomerAtALaggingServerIsNotTakenForALateOne(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(4, 2)
		b.Server.AddFollower(2*time.Second, cs[2].Info().SessionID)
		through(t, b.enter(bs[:2]...)...)
		// For two seconds the newcomer's server shows the round open and its
		// members there.
		third := entering(b.Context(), bs[2])
		time.Sleep(lasts)
		pending(t, "came to an end", third)
		through(t, third, entering(b.Context(), bs[3]))
	})
}

func TestEveryCallEndsWithItsContextWhateverTheServerDoes(t *testing.T) {
	// Each call is given up after each of its steps; from then on the server
	// answers nothing, or late.
	for name, trouble := range map[string]func(srv *zkembed.Server) (heal func()){
		"silent": func(srv *zkembed.Server) func() { return srv.Partition(zkembed.Cut{}).Heal },
		"down":   func(srv *zkembed.Server) func() { srv.Stop(); return srv.Resume },
		"slow": func(srv *zkembed.Server) func() {
			return srv.Inject(zkembed.Match{}, zkembed.Delay(2*time.Second)).Remove
		},
	} {
		for step := range 8 {
			t.Run(fmt.Sprint(name, " after ", step), func(t *testing.T) {
				inBubble(t, func(t *testing.T, b bubble) {
					_, bs := b.pool(2, 2)
					through(t, entering(b.Context(), bs[0]), entering(b.Context(), bs[1]))
					b.givesUp(step, func(ctx context.Context) error { return coordtest.Err(bs[0].Enter(ctx)) },
						func() func() { return trouble(b.Server) })
					time.Sleep(T)
					empty(t, bs[1])
				})
			})
		}
	}
}

// givesUp makes a call with a second to run, and begins the trouble after so
// many of its steps of a millisecond each.
func (b bubble) givesUp(step int, call func(context.Context) error, trouble func() (heal func())) {
	b.Helper()
	const limit, grace = time.Second, 50 * time.Millisecond
	b.Server.Inject(zkembed.Match{}, zkembed.Delay(time.Millisecond))
	begun := time.Now()
	ended := coordtest.Go(func() error { return call(b.Within(limit)) })
	time.Sleep(time.Duration(step)*time.Millisecond + 500*time.Microsecond)
	heal := trouble()
	require.ErrorIs(b, <-ended, context.DeadlineExceeded)
	require.LessOrEqual(b, time.Since(begun), limit+grace)
	heal()
}

func TestALeaveEndsWithItsContextWhateverTheServerDoes(t *testing.T) {
	for step := range 8 {
		t.Run(fmt.Sprint("silent after ", step), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b bubble) {
				cs, bs := b.pool(2, 2)
				members := entered(t, b.enter(bs...)...)
				b.givesUp(step, members[0].Leave, func() func() {
					return b.Server.Partition(zkembed.Cut{Sessions: []int64{cs[0].Info().SessionID}}).Heal
				})
				requireMissing(t, []int{0}, members[1].Leave(b.Context()))
				time.Sleep(T)
				empty(t, bs[1])
			})
		})
	}
}

func TestClosingTheClientEndsWhoWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(3, 2)
		alone := b.enter(bs[0])[0]
		b.Close(cs[0])
		require.ErrorIs(t, (<-alone).Err, coord.ErrClosed)
		members := entered(t, b.enter(bs[1:]...)...)
		early := leaving(b.Context(), members[0])
		synctest.Wait()
		b.Close(cs[1])
		require.ErrorIs(t, <-early, coord.ErrClosed)
		requireMissing(t, []int{0}, members[1].Leave(b.Context()))
	})
}

// Of many who wait for the next round, only the first is woken when members
// inside go.
func TestThoseWhoWaitForTheNextRoundAreNoHerd(t *testing.T) {
	const n, many = 10, 60
	inCalm(t, n+many, func(t *testing.T, b bubble, clients []*coord.Client) {
		bs := b.views(clients, n, doublebarrier.WaitForNextRound())
		inside := b.enter(bs[:n]...)
		waiters := b.enter(bs[n:]...)
		rest := clients[n:]
		deaths := b.phase(rest, func(i int) {
			if i < n-1 {
				require.NoError(t, b.Server.ExpireSession(clients[i].Info().SessionID))
			}
		})
		require.Less(t, total(deaths), 3*n+3)
		require.Equal(t, spent{}, deaths[1], "the second who waits")
		require.Equal(t, spent{}, ordinary(deaths))
		last := entered(t, inside[n-1])[0]
		end := b.phase(rest, func(i int) {
			if i == 0 {
				requireMissing(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, last.Leave(b.Context()))
			}
		})
		require.LessOrEqual(t, ordinary(end[1:]).requests, 6)
		require.LessOrEqual(t, ordinary(end[1:]).wakeUps, 2)
		for _, m := range entered(t, waiters[:n]...) {
			require.EqualValues(t, 2, m.Round())
		}
		pending(t, "one too many entered", waiters[n])
		b.Close(rest[n:]...)
		for _, w := range waiters[n:] {
			require.ErrorIs(t, (<-w).Err, coord.ErrClosed)
		}
	})
}

// tour is the round trip of a long link.
const tour = 4 * time.Millisecond

func TestARoundTakesAConstantAndSmallNumberOfRoundTripsInARow(t *testing.T) {
	for _, n := range []int{8, 32, 40} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inCalm(t, n, func(t *testing.T, b bubble, clients []*coord.Client) {
				b.Server.Inject(zkembed.Match{}, zkembed.DelayReply(tour))
				b.Server.Inject(zkembed.Match{}, zkembed.DelayEvents(tour))
				inARow(t, b, clients)
			})
		})
	}
}

// inARow has the clients enter and leave a barrier, all together except for a
// last one, and counts their requests and the round trips of the slowest.
func inARow(t *testing.T, b bubble, clients []*coord.Client) {
	n := len(clients)
	members := make([]*doublebarrier.Member, n) // by index
	enter := func(i int) {
		m, err := barrier(t, clients[i], "/b", n).Enter(b.Context())
		require.NoError(t, err)
		members[m.Index()] = m
	}
	leave := func(i int) { require.NoError(t, members[i].Leave(b.Context())) }
	toEnter, each := time.Duration(5), 9*n // requests in a round that all come to and leave together
	if n <= doublebarrier.Small {
		toEnter, each = 4, 10*n
	}
	phase := func(what string, most time.Duration, last int, f func(i int)) (requests int) {
		var all sync.WaitGroup
		begun := time.Now()
		spent := b.phase(clients, func(i int) {
			switch {
			case last < 0:
				f(i)
			case i != last:
				all.Go(func() { f(i) })
			default:
				time.Sleep(time.Second)
				begun = time.Now()
				f(i)
				all.Wait()
			}
		})
		rounds := (time.Since(begun) - time.Second) / tour
		t.Logf("%s: %d round trips, %.2f requests per member", what, rounds, float64(total(spent))/float64(n))
		require.LessOrEqual(t, rounds, most, what)
		return total(spent)
	}
	b.phase(clients, enter) // which makes the barrier
	b.phase(clients, leave)
	for range 2 {
		requests := phase("all enter", toEnter, -1, enter) + phase("all leave", 5, -1, leave)
		require.LessOrEqual(t, requests, each+n/4)
		requests = phase("one enters last", toEnter, 0, enter) + phase("one leaves last", 5, n-1, leave)
		require.LessOrEqual(t, requests, each+2*n)
		requests = phase("one enters last", toEnter, n-1, enter) + phase("the monitor leaves last", 5, 0, leave)
		require.LessOrEqual(t, requests, each+2*n)
	}
}
