package doublebarrier_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/internal/coordtest"
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
		require.NoError(t, zktest.Receive(t, coordtest.Soon, gone, "the first leaves"))
		require.NoError(t, zktest.Receive(t, coordtest.Soon, next, "the second leaves"))
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
		zktest.Eventually(t, coordtest.Soon, func() bool {
			data, _, err := w.Admin().Get(m.Node())
			return err == nil && strings.HasSuffix(string(data), "\ndone")
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

// owns reports whether a member belongs to a client. crash lets a round begin
// whose members all die. there reports whether a member's node is.
func TestLeaveMayBeCalledAgainAndTogether(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		members := round(t, several(t, w, 2)...)
		once, twice := leaving(t.Context(), members[0]), leaving(t.Context(), members[0])
		finished(t, w, members[0])
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, members[0].Leave(ctx), context.Canceled, "the second in line gives up, not the member")
		require.Equal(t, []error{nil}, leaveAll(t, members[1]))
		require.NoError(t, zktest.Receive(t, coordtest.Soon, once, "it leaves"))
		require.NoError(t, zktest.Receive(t, coordtest.Soon, twice, "it leaves"))
		require.NoError(t, members[0].Leave(t.Context()))
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

func TestALockAtThePathKeepsNoMemberOut(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(2, 2)
		_, err := cs[0].Acquire(b.Context(), coord.Spec{Line: coord.LockLine("/b"), Kind: "lock"}, coord.First)
		require.NoError(t, err)
		b.leaveAll(nil, b.enter(bs...)...)
		b.Close(cs...)
	})
}

func TestAMembersTransactionsStopWithItsMembership(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		members := round(t, several(t, w, 2)...)
		_, err := members[0].Txn(t.Context(), coord.CreateOp(w.Path("result"), []byte("42")))
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
			all = append(all, zktest.Receive(t, coordtest.Soon, told, "Do returns").Error())
		}
		require.Contains(t, all, "bad")
		require.Contains(t, all, "panicked")
		require.Contains(t, strings.Join(all, "\n"), "2 of 3 members missing")
		empty(t, bs[0])
	})
}
