package doublebarrier_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestAMemberThatGivesUpWaitingLeavesNothingAndIsNotCounted(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		bs := several(t, w, 2)
		ctx, cancel := context.WithCancelCause(t.Context())
		first := entering(ctx, bs[0])
		waiting(t, bs[1], 1)
		why := errors.New("no patience")
		cancel(why)
		require.ErrorIs(t, zktest.Receive(t, coordtest.Soon, first, "Enter ends").Err, why)
		waiting(t, bs[1], 0)
		second := entering(t.Context(), bs[1])
		waiting(t, bs[0], 1)
		pending(t, "entered with one that has given up", second)
		through(t, second, entering(t.Context(), bs[0]))
	})
}

func TestAMemberWhoseNodeOrSessionGoesWhileItWaitsComesAgain(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		a, b := open(t, w.ConnectString()), open(t, w.ConnectString())
		first := barrier(t, a, w.Path("b"), 2)
		second := barrier(t, b, w.Path("b"), 2)
		early := entering(t.Context(), first)
		waiting(t, second, 1)
		s, err := second.Status(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.Admin().Delete(s.Waiting[0], -1))
		came := func() bool {
			now, err := second.Status(t.Context())
			return err == nil && len(now.Waiting) == 1 && now.Waiting[0] != s.Waiting[0]
		}
		zktest.Eventually(t, coordtest.Soon, came, "it comes again after its node was deleted")
		s, err = second.Status(t.Context())
		require.NoError(t, err)
		w.ExpireSession(a.Info().SessionID)
		zktest.Eventually(t, coordtest.Soon, came, "it comes again after its session expired")
		through(t, early, entering(t.Context(), second))
	})
}

// requireMissing requires that Leave told each that these members are missing.
func requireMissing(t *testing.T, missing []int, told ...error) {
	t.Helper()
	for _, err := range told {
		require.ErrorIs(t, err, doublebarrier.ErrIncomplete)
		var incomplete *doublebarrier.IncompleteError
		require.ErrorAs(t, err, &incomplete)
		require.Equal(t, missing, incomplete.Missing)
	}
}

func TestAMemberThatDiesInsideIsMissingInEveryVerdict(t *testing.T) {
	for name, kill := range map[string]func(w *zktest.World, c *coord.Client, m *doublebarrier.Member){
		"session": func(w *zktest.World, c *coord.Client, _ *doublebarrier.Member) { w.ExpireSession(c.Info().SessionID) },
		"node":    func(w *zktest.World, _ *coord.Client, m *doublebarrier.Member) { _ = w.Admin().Delete(m.Node(), -1) },
		"process": func(_ *zktest.World, c *coord.Client, _ *doublebarrier.Member) { _ = c.Close(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, w *zktest.World) {
				victim := open(t, w.ConnectString())
				early := entering(t.Context(), barrier(t, victim, w.Path("b"), 3))
				others := several(t, w, 3)[:2]
				waiting(t, others[0], 1)
				members := entered(t, early, entering(t.Context(), others[0]), entering(t.Context(), others[1]))
				require.Zero(t, members[0].Index())
				kill(w, victim, members[0])
				zktest.Receive(t, coordtest.Soon, members[0].Done(), "the victim knows")
				require.ErrorIs(t, members[0].Leave(t.Context()), coord.ErrLost)
				requireMissing(t, []int{0}, leaveAll(t, members[1:]...)...)
				empty(t, others[0])
				if name != "process" {
					leave(t, round(t, others[0], others[1], barrier(t, victim, w.Path("b"), 3))...)
				}
			})
		})
	}
}

func TestWhenTheMonitorDiesTheNextTakesOver(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		const n = 5
		members := round(t, several(t, w, n)...)
		// All but the last are done, and the first is the monitor.
		var left []<-chan error
		for _, m := range members[:n-1] {
			left = append(left, leaving(t.Context(), m))
		}
		finished(t, w, members[:n-1]...)
		for monitor := range 2 {
			w.ExpireSession(members[monitor].Session())
			require.ErrorIs(t, zktest.Receive(t, coordtest.Soon, left[monitor], "the monitor ends"), coord.ErrLost)
		}
		pending(t, "left before the last had finished", left[2:]...)
		requireMissing(t, []int{0, 1}, append(leaveAll(t, members[n-1]), told(t, left[2:]...)...)...)
	})
}

func TestACrashedRoundLetsNoMemberThrough(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		crash(t, w, 2)
		bs := several(t, w, 2)
		first := entering(t.Context(), bs[0])
		waiting(t, bs[1], 1)
		pending(t, "entered by a stale ready", first)
		members := entered(t, first, entering(t.Context(), bs[1]))
		require.EqualValues(t, 2, members[0].Round())
		leave(t, members...)
	})
}

// crash lets a round begin whose members all die.
func crash(t *testing.T, w *zktest.World, n int) {
	t.Helper()
	c := open(t, w.ConnectString())
	b := barrier(t, c, w.Path("b"), n)
	members := round(t, slices.Repeat([]*doublebarrier.Barrier{b}, n)...)
	w.ExpireSession(c.Info().SessionID)
	for _, m := range members {
		zktest.Receive(t, coordtest.Soon, m.Done(), "it is dead")
	}
}

func TestThoseWhoWaitGoOnWhenAllMembersOfTheRoundCrash(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		doomed := round(t, several(t, w, 2)...)
		bs := several(t, w, 2, doublebarrier.WaitForNextRound())
		first, second := entering(t.Context(), bs[0]), entering(t.Context(), bs[1])
		waiting(t, bs[0], 2)
		w.ExpireSession(doomed[1].Session())
		zktest.Receive(t, coordtest.Soon, doomed[1].Done(), "it is dead")
		pending(t, "entered while a member is inside", first, second)
		w.ExpireSession(doomed[0].Session())
		through(t, first, second)
	})
}

func TestALeaveThatTimesOutDoesNotHoldTheOthersUp(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		members := round(t, several(t, w, 3)...)
		err := members[0].Leave(coordtest.Within(t, 50*time.Millisecond))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, err, members[0].Leave(t.Context()), "the answer stays")
		requireMissing(t, []int{0}, leaveAll(t, members[1:]...)...)
	})
}

func TestAMemberThatIsAskedToGiveUpIsStillSeenToHaveFinished(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		bs := several(t, w, 3)
		members := round(t, bs...)
		asker := open(t, w.ConnectString())
		require.NoError(t, inspect.Revoke(t.Context(), asker, members[2].Node()), "before it finishes")
		left := []<-chan error{leaving(t.Context(), members[1]), leaving(t.Context(), members[2])}
		for range 3 {
			finished(t, w, members[1:]...)
			for _, m := range members[1:] {
				require.NoError(t, inspect.Revoke(t.Context(), asker, m.Node()))
				_, err := asker.Set(t.Context(), m.Node(), []byte("__REVOKE__"), -1) // as other programs ask
				require.NoError(t, err)
			}
		}
		leave(t, members[0])
		for _, l := range left {
			require.NoError(t, zktest.Receive(t, coordtest.Soon, l, "a member leaves that was asked to give up"))
		}
	})
}

func TestAMemberThatAbandonsItsPlaceIsMissing(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		members := round(t, several(t, w, 3)...)
		require.NoError(t, members[1].GiveUp(t.Context(), nil))
		requireMissing(t, []int{1}, leaveAll(t, members[0], members[2])...)
		require.ErrorIs(t, members[1].Leave(t.Context()), coord.ErrReleased)
	})
}

func TestWorkInsideHearsWhenTheMembershipIsLost(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := open(t, w.ConnectString())
		b := barrier(t, c, w.Path("b"), 1)
		var lost error
		err := b.Do(t.Context(), func(ctx context.Context, m *doublebarrier.Member) error {
			w.ExpireSession(c.Info().SessionID)
			zktest.Receive(t, coordtest.Soon, ctx.Done(), "the context ends")
			lost = context.Cause(ctx)
			require.ErrorIs(t, lost, coord.ErrLost)
			return ctx.Err()
		})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, lost)
		// A client that comes back before the session is closed may hear of its
		// node's end before its session's.
		require.True(t, errors.Is(lost, coord.ErrSessionExpired) || errors.Is(lost, coord.ErrNodeDeleted), "%v", lost)
	})
}

var schedules = flag.Int("schedules", 150, "how many random schedules to try")

// chance decides by the seed and the identity of a request: the same seed gives
// the same schedule except for events of the same instant.
type chance struct{ seed uint64 }

func (c chance) of(percent int, salt string, parts ...int64) bool {
	h := fnv.New64a()
	fmt.Fprint(h, c.seed, salt, parts)
	return h.Sum64()%100 < uint64(percent)
}

// shake makes the server a bad one: every request may be late, its reply and
// its events too, and some are lost before or after they were carried out. All
// of it depends on the seed, as does the order in which things happen.
func (c chance) shake(srv *zkembed.Server) (lost []*zkembed.Fault) {
	strike := func(percent int, salt string, a zkembed.Action, ops ...zkembed.Op) *zkembed.Fault {
		return srv.Inject(zkembed.Match{Ops: ops, Func: func(r zkembed.Request) bool {
			return c.of(percent, salt, r.Session, int64(r.Xid), int64(r.Op))
		}}, a)
	}
	writes := []zkembed.Op{zkembed.OpCreate, zkembed.OpMulti, zkembed.OpSetData, zkembed.OpDelete}
	lost = append(lost,
		strike(1, "drop", zkembed.Drop(), writes...),
		strike(1, "lose", zkembed.LoseReply(), writes...))
	for _, d := range []time.Duration{3, 11, 37, 90} {
		d *= time.Millisecond
		strike(12, fmt.Sprint("request", d), zkembed.Delay(d),
			append(writes, zkembed.OpGetData, zkembed.OpExists, zkembed.OpGetChildren2)...)
		strike(8, fmt.Sprint("reply", d), zkembed.DelayReply(d), append(writes, zkembed.OpGetData)...)
	}
	srv.Inject(zkembed.Match{Func: func(r zkembed.Request) bool {
		return c.of(25, "event", r.Session, time.Now().UnixMilli())
	}}, zkembed.DelayEvents(60*time.Millisecond))
	return lost
}

// TestProofEveryScheduleKeepsThePromises plays small barriers under all kinds
// of schedules: replies, events and requests come in another order with each
// seed, some servers lag behind, replies are lost, and members die, give up and
// come back all the time.
func TestProofEveryScheduleKeepsThePromises(t *testing.T) {
	var struck [fates]int
	lost := 0
	for seed := range uint64(*schedules) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b bubble) {
				c, r := chance{seed}, rand.New(rand.NewPCG(seed, 0))
				n := 1 + r.IntN(5)
				w := &workers{bubble: b, n: n, rounds: 8, pace: 80 * time.Millisecond}
				for f := diesWaiting; f < fates; f++ {
					w.odds[f] = r.IntN(60)
				}
				w.joins = func(client *coord.Client) {
					if id := client.Info().SessionID; c.of(30, "lag", id) {
						b.Server.AddFollower(time.Duration(id%97)*time.Millisecond, id)
					}
				}
				w.apart = func(client *coord.Client) bool { return c.of(50, "apart", client.Info().SessionID) }
				switch seed % 3 {
				case 1:
					w.brings = true
				case 2:
					w.least = 1 + n/2
				}
				faults := c.shake(b.Server)
				w.run(n+r.IntN(n+3), seed)
				w.check(t, n, cmp.Or(w.least, n))
				for f, times := range w.struck {
					struck[f] += times
				}
				for _, f := range faults {
					lost += f.Fired()
				}
			})
		})
	}
	t.Log(struck, lost)
	for f, times := range struck {
		require.NotZero(t, times, "no worker that %s", fateNames[f])
	}
	require.NotZero(t, lost)
}
