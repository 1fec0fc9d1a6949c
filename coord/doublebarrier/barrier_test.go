package doublebarrier_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// several opens n clients and returns each one's view of a barrier for n.
func several(t *testing.T, w *zktest.World, n int, opts ...doublebarrier.Option) []*doublebarrier.Barrier {
	t.Helper()
	var all []*doublebarrier.Barrier
	for range n {
		all = append(all, barrier(t, open(t, w.ConnectString()), w.Path("b"), n, opts...))
	}
	return all
}

// empty requires that nobody is in the barrier or waits for it.
func empty(t *testing.T, b *doublebarrier.Barrier) {
	t.Helper()
	s, err := b.Status(t.Context())
	require.NoError(t, err)
	require.Empty(t, s.Waiting)
	require.Empty(t, s.Inside)
	require.False(t, s.Open)
}

func TestMembersEnterTogetherAndLeaveTogether(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		bs := several(t, w, 3)
		first := entering(t.Context(), bs[0])
		second := entering(t.Context(), bs[1])
		waiting(t, bs[2], 2)
		pending(t, first, "entered without the third")
		pending(t, second, "entered without the third")
		third := entering(t.Context(), bs[2])
		members := []*doublebarrier.Member{entered(t, first), entered(t, second), entered(t, third)}
		indexes := []int{}
		for _, m := range members {
			require.EqualValues(t, 1, m.Round())
			require.Equal(t, 3, m.Count())
			require.NoError(t, m.Err())
			indexes = append(indexes, m.Index())
		}
		slices.Sort(indexes)
		require.Equal(t, []int{0, 1, 2}, indexes)

		gone := leaving(t.Context(), members[2])
		next := leaving(t.Context(), members[0])
		finished(t, w, members[2], members[0])
		pending(t, gone, "left before the others")
		pending(t, next, "left before the others")
		require.Equal(t, []error{nil}, leaveAll(t, members[1]))
		require.NoError(t, zktest.Receive(t, soon, gone, "the first leaves"))
		require.NoError(t, zktest.Receive(t, soon, next, "the second leaves"))
		for _, m := range members {
			require.ErrorIs(t, m.Err(), coord.ErrReleased)
		}
		empty(t, bs[0])
	})
}

// finished waits until the members have told that they are.
func finished(t *testing.T, w *zktest.World, members ...*doublebarrier.Member) {
	t.Helper()
	for _, m := range members {
		zktest.Eventually(t, soon, func() bool {
			_, stat, err := w.Admin().Get(m.Node())
			return err == nil && stat.Version > 0
		}, "%s has finished", m.Node())
	}
}

func TestABarrierServesRoundAfterRound(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		same, other := several(t, w, 3), several(t, w, 3)
		for r, bs := range [][]*doublebarrier.Barrier{same, same, other, same, {same[0], other[1], same[2]}} {
			members := round(t, bs...)
			for _, m := range members {
				require.EqualValues(t, r+1, m.Round())
			}
			require.Equal(t, []error{nil, nil, nil}, leaveAll(t, members...))
		}
		empty(t, same[0])
	})
}

func TestOneProcessCanBeSeveralMembers(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		b := barrier(t, open(t, w.ConnectString()), w.Path("b"), 4)
		for range 3 {
			require.Equal(t, make([]error, 4), leaveAll(t, round(t, b, b, b, b)...))
		}
	})
}

func TestABarrierForOneLetsItThrough(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		bs := several(t, w, 1)
		for range 3 {
			require.Equal(t, []error{nil}, leaveAll(t, round(t, bs...)...))
		}
	})
}

func TestALateComerIsRefusedAndLeavesNothing(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		bs := several(t, w, 2)
		members := round(t, bs...)
		_, err := barrier(t, open(t, w.ConnectString()), w.Path("b"), 2).Enter(t.Context())
		require.ErrorIs(t, err, doublebarrier.ErrLate)
		require.ErrorContains(t, err, "round 1")
		s, err := bs[0].Status(t.Context())
		require.NoError(t, err)
		require.Empty(t, s.Waiting)
		require.ElementsMatch(t, []string{members[0].Node(), members[1].Node()}, s.Inside)
		require.Equal(t, []error{nil, nil}, leaveAll(t, members...))
	})
}

func TestALateComerThatWaitsIsInTheNextRound(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		bs := several(t, w, 2, doublebarrier.WaitForNextRound())
		members := round(t, bs...)
		late := entering(t.Context(), barrier(t, open(t, w.ConnectString()), w.Path("b"), 2, doublebarrier.WaitForNextRound()))
		waiting(t, bs[0], 1)
		require.Equal(t, []error{nil, nil}, leaveAll(t, members...))
		pending(t, late, "entered alone")
		again := entering(t.Context(), bs[0])
		next := []*doublebarrier.Member{entered(t, late), entered(t, again)}
		require.EqualValues(t, 2, next[0].Round())
		require.Equal(t, 0, next[0].Index(), "it came first")
		require.Equal(t, []error{nil, nil}, leaveAll(t, next...))
	})
}

func TestAMemberThatGivesUpWaitingLeavesNothingAndIsNotCounted(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		bs := several(t, w, 2)
		ctx, cancel := context.WithCancelCause(t.Context())
		first := entering(ctx, bs[0])
		waiting(t, bs[1], 1)
		why := errors.New("no patience")
		cancel(why)
		require.ErrorIs(t, zktest.Receive(t, soon, first, "Enter ends").err, why)
		waiting(t, bs[1], 0)
		second := entering(t.Context(), bs[1])
		waiting(t, bs[0], 1)
		pending(t, second, "entered with one that has given up")
		again := entering(t.Context(), bs[0])
		require.Equal(t, []error{nil, nil}, leaveAll(t, entered(t, second), entered(t, again)))
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
		zktest.Eventually(t, soon, came, "it comes again after its node was deleted")
		s, err = second.Status(t.Context())
		require.NoError(t, err)
		w.ExpireSession(a.SessionID())
		zktest.Eventually(t, soon, came, "it comes again after its session expired")
		late := entering(t.Context(), second)
		require.Equal(t, []error{nil, nil}, leaveAll(t, entered(t, early), entered(t, late)))
	})
}

func requireMissing(t *testing.T, err error, missing ...int) {
	t.Helper()
	require.ErrorIs(t, err, doublebarrier.ErrIncomplete)
	var incomplete *doublebarrier.IncompleteError
	require.ErrorAs(t, err, &incomplete)
	require.Equal(t, missing, incomplete.Missing)
}

func TestAMemberThatDiesInsideIsMissingInEverybodysVerdict(t *testing.T) {
	for name, kill := range map[string]func(w *zktest.World, c *coord.Client, m *doublebarrier.Member){
		"session": func(w *zktest.World, c *coord.Client, _ *doublebarrier.Member) { w.ExpireSession(c.SessionID()) },
		"node":    func(w *zktest.World, _ *coord.Client, m *doublebarrier.Member) { _ = w.Admin().Delete(m.Node(), -1) },
		"process": func(_ *zktest.World, c *coord.Client, _ *doublebarrier.Member) { _ = c.Close(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, w *zktest.World) {
				victim := open(t, w.ConnectString())
				early := entering(t.Context(), barrier(t, victim, w.Path("b"), 3))
				others := several(t, w, 3)[:2]
				waiting(t, others[0], 1)
				a, b := entering(t.Context(), others[0]), entering(t.Context(), others[1])
				members := []*doublebarrier.Member{entered(t, early), entered(t, a), entered(t, b)}
				require.Zero(t, members[0].Index())
				kill(w, victim, members[0])
				zktest.Receive(t, soon, members[0].Done(), "the victim knows")
				require.ErrorIs(t, members[0].Leave(t.Context()), coord.ErrLost)
				for _, told := range leaveAll(t, members[1:]...) {
					requireMissing(t, told, 0)
				}
				empty(t, others[0])
				if name != "process" {
					again := entering(t.Context(), barrier(t, victim, w.Path("b"), 3))
					a, b := entering(t.Context(), others[0]), entering(t.Context(), others[1])
					require.Equal(t, make([]error, 3), leaveAll(t, entered(t, again), entered(t, a), entered(t, b)))
				}
			})
		})
	}
}

func TestWhenTheMonitorDiesTheNextTakesOver(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		const n = 5
		var clients []*coord.Client
		var bs []*doublebarrier.Barrier
		for i := range n {
			clients = append(clients, open(t, w.ConnectString()))
			bs = append(bs, barrier(t, clients[i], w.Path("b"), n))
		}
		members := round(t, bs...)
		byIndex := make([]*coord.Client, n)
		for i, m := range members {
			at := slices.IndexFunc(clients, func(c *coord.Client) bool { return owns(t, w, c, m) })
			byIndex[i] = clients[at]
		}
		// All but the last are done, and the first looks after the others.
		var left []<-chan error
		for _, m := range members[:n-1] {
			left = append(left, leaving(t.Context(), m))
		}
		finished(t, w, members[:n-1]...)
		w.ExpireSession(byIndex[0].SessionID())
		require.ErrorIs(t, zktest.Receive(t, soon, left[0], "the first monitor ends"), coord.ErrLost)
		w.ExpireSession(byIndex[1].SessionID())
		require.ErrorIs(t, zktest.Receive(t, soon, left[1], "the second monitor ends"), coord.ErrLost)
		pending(t, left[2], "left before the last had finished")
		pending(t, left[3], "left before the last had finished")
		for _, told := range append(leaveAll(t, members[n-1]),
			zktest.Receive(t, soon, left[2], "the third leaves"), zktest.Receive(t, soon, left[3], "the fourth leaves")) {
			requireMissing(t, told, 0, 1)
		}
	})
}

// owns tells whether a member belongs to a client.
func owns(t *testing.T, w *zktest.World, c *coord.Client, m *doublebarrier.Member) bool {
	t.Helper()
	_, stat, err := w.Admin().Exists(m.Node())
	require.NoError(t, err)
	return stat.EphemeralOwner == c.SessionID()
}

func TestACrashedRoundLetsNobodyThrough(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		crash(t, w, 2)
		bs := several(t, w, 2)
		first := entering(t.Context(), bs[0])
		waiting(t, bs[1], 1)
		pending(t, first, "entered by a stale ready")
		second := entering(t.Context(), bs[1])
		members := []*doublebarrier.Member{entered(t, first), entered(t, second)}
		require.EqualValues(t, 2, members[0].Round())
		require.Equal(t, []error{nil, nil}, leaveAll(t, members...))
	})
}

// crash lets a round begin whose members all die.
func crash(t *testing.T, w *zktest.World, n int) {
	t.Helper()
	c := open(t, w.ConnectString())
	b := barrier(t, c, w.Path("b"), n)
	members := round(t, slices.Repeat([]*doublebarrier.Barrier{b}, n)...)
	w.ExpireSession(c.SessionID())
	for _, m := range members {
		zktest.Receive(t, soon, m.Done(), "it is dead")
	}
}

func TestThoseWhoWaitGoOnWhenAllMembersOfTheRoundCrash(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		doomed := []*coord.Client{open(t, w.ConnectString()), open(t, w.ConnectString())}
		a, b := barrier(t, doomed[0], w.Path("b"), 2), barrier(t, doomed[1], w.Path("b"), 2)
		members := round(t, a, b)
		bs := several(t, w, 2, doublebarrier.WaitForNextRound())
		first, second := entering(t.Context(), bs[0]), entering(t.Context(), bs[1])
		waiting(t, bs[0], 2)
		w.ExpireSession(doomed[1].SessionID())
		for _, m := range members {
			if !there(w, m) {
				zktest.Receive(t, soon, m.Done(), "it is dead")
			}
		}
		pending(t, first, "entered while a member is inside")
		pending(t, second, "entered while a member is inside")
		w.ExpireSession(doomed[0].SessionID())
		require.Equal(t, []error{nil, nil}, leaveAll(t, entered(t, first), entered(t, second)))
	})
}

// there tells whether a member's node is.
func there(w *zktest.World, m *doublebarrier.Member) bool {
	is, _, err := w.Admin().Exists(m.Node())
	return err == nil && is
}

func TestALeaveThatTimesOutDoesNotHoldTheOthersUp(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		members := round(t, several(t, w, 3)...)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err := members[0].Leave(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, err, members[0].Leave(t.Context()), "the answer stays")
		for _, told := range leaveAll(t, members[1:]...) {
			requireMissing(t, told, 0)
		}
	})
}

func TestAMemberThatAbandonsItsPlaceIsMissing(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		members := round(t, several(t, w, 3)...)
		require.NoError(t, members[1].Abandon(t.Context()))
		for _, told := range leaveAll(t, members[0], members[2]) {
			requireMissing(t, told, 1)
		}
		require.ErrorIs(t, members[1].Leave(t.Context()), coord.ErrReleased)
	})
}

func TestLeaveMayBeCalledAgainAndTogether(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		members := round(t, several(t, w, 2)...)
		once, twice := leaving(t.Context(), members[0]), leaving(t.Context(), members[0])
		finished(t, w, members[0])
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, members[0].Leave(ctx), context.Canceled, "the second in line gives up, not the member")
		require.Equal(t, []error{nil}, leaveAll(t, members[1]))
		require.NoError(t, zktest.Receive(t, soon, once, "it leaves"))
		require.NoError(t, zktest.Receive(t, soon, twice, "it leaves"))
		require.NoError(t, members[0].Leave(t.Context()))
	})
}

func TestTheNumberOfMembersCanOnlyBeChangedWhileNobodyIsThere(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := open(t, w.ConnectString())
		two, three := barrier(t, c, w.Path("b"), 2), barrier(t, c, w.Path("b"), 3)
		first := entering(t.Context(), two)
		waiting(t, two, 1)
		_, err := three.Enter(t.Context())
		require.ErrorIs(t, err, doublebarrier.ErrSize)
		require.ErrorContains(t, err, "2, not 3")
		second := entering(t.Context(), two)
		members := []*doublebarrier.Member{entered(t, first), entered(t, second)}
		_, err = three.Enter(t.Context())
		require.ErrorIs(t, err, doublebarrier.ErrSize)
		require.Equal(t, []error{nil, nil}, leaveAll(t, members...))
		members = round(t, three, three, three)
		require.EqualValues(t, 2, members[0].Round(), "rounds go on")
		require.Equal(t, make([]error, 3), leaveAll(t, members...))
		crash(t, w, 3)
		require.Equal(t, []error{nil, nil}, leaveAll(t, round(t, two, two)...))
	})
}

func TestABarrierOfAnotherProgramIsRefused(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		b := barrier(t, open(t, w.ConnectString()), w.Path("b"), 2)
		for _, node := range []string{w.Path(""), w.Path("b"), w.Path("b/ready")} {
			_, err := w.Admin().Create(node, nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
		}
		for _, data := range []string{"", "127.0.0.1", "{}", `{"format":2,"size":2}`, `{"format":1,"size":0}`, `{"format":1,"size":2,"round":1,"open":true}`} {
			_, err := w.Admin().Set(w.Path("b/ready"), []byte(data), -1)
			require.NoError(t, err)
			_, err = b.Enter(t.Context())
			require.ErrorIs(t, err, coord.ErrForeign, "%q", data)
			_, err = b.Status(t.Context())
			require.ErrorIs(t, err, coord.ErrForeign, "%q", data)
		}
		children, _, err := w.Admin().Children(w.Path("b"))
		require.NoError(t, err)
		require.Equal(t, []string{"ready"}, children)
	})
}

func TestForeignNodesInTheDirectoryAreNotCounted(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		bs := several(t, w, 2)
		require.Equal(t, []error{nil, nil}, leaveAll(t, round(t, bs...)...))
		for _, name := range []string{"garbage", "_c_short", "0123456789abcdef0123456789abcdef", "_c_0123456789abcdef0123456789abcdef-lock-0000000099", "ünïcode"} {
			_, err := w.Admin().Create(w.Path("b/"+name), nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
		}
		first := entering(t.Context(), bs[0])
		waiting(t, bs[1], 1)
		pending(t, first, "entered with a foreign node")
		second := entering(t.Context(), bs[1])
		require.Equal(t, []error{nil, nil}, leaveAll(t, entered(t, first), entered(t, second)))
	})
}

func TestClientsOfBothDialectsMeet(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		kazoo := barrier(t, open(t, w.ConnectString(), coord.WithDialect(coord.Kazoo)), w.Path("b"), 2)
		curator := barrier(t, open(t, w.ConnectString()), w.Path("b"), 2)
		for range 2 {
			require.Equal(t, []error{nil, nil}, leaveAll(t, round(t, kazoo, curator)...))
		}
	})
}

func TestInsideTheDeletionOfReadyIsNoticed(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		members := round(t, several(t, w, 3)...)
		early := leaving(t.Context(), members[0])
		finished(t, w, members[0])
		require.NoError(t, w.Admin().Delete(w.Path("b/ready"), -1))
		require.ErrorIs(t, zktest.Receive(t, soon, early, "it ends"), doublebarrier.ErrBroken)
		require.ErrorIs(t, members[1].Leave(t.Context()), doublebarrier.ErrBroken)
		other := barrier(t, open(t, w.ConnectString()), w.Path("b"), 2)
		ctx, cancel := context.WithCancel(t.Context())
		entry := entering(ctx, other)
		zktest.Eventually(t, soon, func() bool { _, err := other.Status(t.Context()); return err == nil }, "the barrier is made again")
		require.ErrorIs(t, members[2].Leave(t.Context()), doublebarrier.ErrBroken)
		cancel()
		<-entry
		// What others left there is not overwritten.
		_, err := w.Admin().Set(w.Path("b/ready"), []byte("mine"), -1)
		require.NoError(t, err)
		_, err = other.Enter(t.Context())
		require.ErrorIs(t, err, coord.ErrForeign)
	})
}

func TestRemoveDeletesABarrierThatNobodyUses(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		bs := several(t, w, 2)
		require.NoError(t, bs[0].Remove(t.Context()), "there is none")
		first := entering(t.Context(), bs[0])
		waiting(t, bs[1], 1)
		require.ErrorIs(t, bs[1].Remove(t.Context()), coord.ErrBusy)
		second := entering(t.Context(), bs[1])
		members := []*doublebarrier.Member{entered(t, first), entered(t, second)}
		require.ErrorIs(t, bs[0].Remove(t.Context()), coord.ErrBusy)
		require.Equal(t, []error{nil, nil}, leaveAll(t, members...))
		require.NoError(t, bs[0].Remove(t.Context()))
		_, err := bs[0].Status(t.Context())
		require.ErrorIs(t, err, coord.ErrNoNode)
		members = round(t, bs...)
		require.EqualValues(t, 1, members[0].Round())
		require.Equal(t, []error{nil, nil}, leaveAll(t, members...))
	})
}

func TestAMembersTransactionsStopWithItsMembership(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		members := round(t, several(t, w, 2)...)
		_, err := members[0].Txn(t.Context(), coord.CreateOp(w.Path("result"), []byte("42"), coord.Persistent))
		require.NoError(t, err)
		require.NoError(t, members[0].Abandon(t.Context()))
		_, err = members[0].Txn(t.Context(), coord.SetOp(w.Path("result"), []byte("43"), -1))
		require.ErrorIs(t, err, coord.ErrReleased)
		requireMissing(t, members[1].Leave(t.Context()), 0)
	})
}

func TestDoLeavesWithWhatItsFunctionCameTo(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		bs := several(t, w, 3)
		bad := errors.New("bad")
		told := make(chan error, 3)
		for i, b := range bs {
			go func() {
				defer func() {
					if p := recover(); p != nil {
						told <- p.(error)
					}
				}()
				told <- b.Do(t.Context(), func(_ context.Context, m *doublebarrier.Member) error {
					switch i {
					case 1:
						return bad
					case 2:
						panic(errors.New("panicked"))
					}
					return nil
				})
			}()
		}
		var all []string
		for range 3 {
			all = append(all, zktest.Receive(t, soon, told, "Do returns").Error())
		}
		require.Contains(t, all, "bad")
		require.Contains(t, all, "panicked")
		require.Contains(t, strings.Join(all, "\n"), "2 of 3 members missing")
		empty(t, bs[0])
	})
}

func TestWorkInsideHearsWhenTheMembershipIsLost(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := open(t, w.ConnectString())
		b := barrier(t, c, w.Path("b"), 1)
		err := b.Do(t.Context(), func(ctx context.Context, m *doublebarrier.Member) error {
			w.ExpireSession(c.SessionID())
			zktest.Receive(t, soon, ctx.Done(), "the context ends")
			require.ErrorIs(t, context.Cause(ctx), coord.ErrLost)
			return ctx.Err()
		})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, coord.ErrSessionExpired)
	})
}

func TestWhatCannotBeRightIsRefusedWithoutAskingAServer(t *testing.T) {
	c := new(coord.Client)
	for says, f := range map[string]func() (*doublebarrier.Barrier, error){
		"client":                func() (*doublebarrier.Barrier, error) { return doublebarrier.New(nil, "/b", 1) },
		"must start with /":     func() (*doublebarrier.Barrier, error) { return doublebarrier.New(c, "b", 1) },
		"root":                  func() (*doublebarrier.Barrier, error) { return doublebarrier.New(c, "/", 1) },
		"0 members: it must be": func() (*doublebarrier.Barrier, error) { return doublebarrier.New(c, "/b", 0) },
		"-1 members":            func() (*doublebarrier.Barrier, error) { return doublebarrier.New(c, "/b", -1) },
		"4001 members":          func() (*doublebarrier.Barrier, error) { return doublebarrier.New(c, "/b", 4001) },
		"path of 201 bytes": func() (*doublebarrier.Barrier, error) {
			return doublebarrier.New(c, "/"+strings.Repeat("b", 200), 4000)
		},
	} {
		_, err := f()
		require.ErrorIs(t, err, coord.ErrInvalid, says)
		require.ErrorContains(t, err, says)
	}
}
