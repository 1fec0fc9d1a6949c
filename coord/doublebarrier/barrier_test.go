package doublebarrier_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
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
		first, second := entering(t.Context(), bs[0]), entering(t.Context(), bs[1])
		waiting(t, bs[2], 2)
		pending(t, "entered without the third", first, second)
		third := entering(t.Context(), bs[2])
		members := entered(t, first, second, third)
		indexes := []int{}
		for _, m := range members {
			require.EqualValues(t, 1, m.Round())
			require.Equal(t, 3, m.Count())
			require.NoError(t, m.Err())
			indexes = append(indexes, m.Index())
		}
		require.ElementsMatch(t, []int{0, 1, 2}, indexes)

		gone, next := leaving(t.Context(), members[2]), leaving(t.Context(), members[0])
		finished(t, w, members[2], members[0])
		pending(t, "left before the others", gone, next)
		leave(t, members[1])
		require.Equal(t, []error{nil, nil}, told(t, gone, next))
		for _, m := range members {
			require.ErrorIs(t, m.Err(), coord.ErrReleased)
		}
		empty(t, bs[0])
	})
}

// finished waits until the members' nodes show that they have finished.
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
			leave(t, members...)
		}
		empty(t, same[0])
	})
}

func TestOneProcessCanBeSeveralMembers(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		b := barrier(t, open(t, w.ConnectString()), w.Path("b"), 4)
		for range 3 {
			leave(t, round(t, b, b, b, b)...)
		}
	})
}

func TestABarrierForOneLetsItThrough(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		bs := several(t, w, 1)
		for range 3 {
			leave(t, round(t, bs...)...)
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
		leave(t, members...)
	})
}

func TestALateComerThatWaitsIsInTheNextRound(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		bs := several(t, w, 2, doublebarrier.WaitForNextRound())
		members := round(t, bs...)
		late := entering(t.Context(),
			barrier(t, open(t, w.ConnectString()), w.Path("b"), 2, doublebarrier.WaitForNextRound()))
		waiting(t, bs[0], 1)
		leave(t, members...)
		pending(t, "entered alone", late)
		next := entered(t, late, entering(t.Context(), bs[0]))
		require.EqualValues(t, 2, next[0].Round())
		require.Equal(t, 0, next[0].Index(), "it came first")
		leave(t, next...)
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
		leave(t, members[1])
		require.Equal(t, []error{nil, nil}, told(t, once, twice))
		require.NoError(t, members[0].Leave(t.Context()))
	})
}

func TestClientsOfBothDialectsMeet(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		kazoo := barrier(t, open(t, w.ConnectString(), coord.WithDialect(coord.Kazoo)), w.Path("b"), 2)
		curator := barrier(t, open(t, w.ConnectString()), w.Path("b"), 2)
		for range 2 {
			leave(t, round(t, kazoo, curator)...)
		}
	})
}

func TestMembersAreRefusedAtThePathOfALock(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(2, 2)
		require.NoError(t,
			coordtest.Err(
				recipe.Acquire(b.Context(), cs[0], &coord.Spec{Line: inspect.LockLine("/b"), Kind: "lock"}, coord.First)))
		for _, barrier := range bs {
			require.ErrorIs(t, coordtest.Err(barrier.Enter(b.Context())), coord.ErrForeign)
		}
	})
}

func TestAMembersTransactionsStopWithItsMembership(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		members := round(t, several(t, w, 2)...)
		require.NoError(t, coordtest.Err(members[0].Txn(t.Context(), coord.CreateOp(w.Path("result"), []byte("42")))))
		require.NoError(t, members[0].GiveUp(t.Context(), nil))
		require.ErrorIs(t, coordtest.Err(members[0].Txn(t.Context(), coord.SetOp(w.Path("result"), []byte("43"), -1))),
			coord.ErrReleased)
		requireMissing(t, []int{0}, members[1].Leave(t.Context()))
	})
}

func TestDoLeavesWithWhatItsFunctionCameTo(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		bs := several(t, w, 3)
		var done []<-chan error
		for i, b := range bs {
			done = append(done, coordtest.Go(func() (err error) {
				defer func() {
					if p := recover(); p != nil {
						err = p.(error)
					}
				}()
				return b.Do(t.Context(), func(context.Context, *doublebarrier.Member) error {
					switch i {
					case 1:
						return errors.New("bad")
					case 2:
						panic(errors.New("panicked"))
					}
					return nil
				})
			}))
		}
		all := told(t, done...)
		require.ErrorContains(t, all[0], "2 of 3 members missing")
		require.EqualError(t, all[1], "bad")
		require.EqualError(t, all[2], "panicked")
		empty(t, bs[0])
	})
}

func TestTheNumberOfMembersCanOnlyBeChangedWhileNoMemberIsThere(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := open(t, w.ConnectString())
		two, three := barrier(t, c, w.Path("b"), 2), barrier(t, c, w.Path("b"), 3)
		first := entering(t.Context(), two)
		waiting(t, two, 1)
		_, err := three.Enter(t.Context())
		require.ErrorIs(t, err, coord.ErrDisagree)
		require.ErrorContains(t, err, "2, not 3")
		members := entered(t, first, entering(t.Context(), two))
		require.ErrorIs(t, coordtest.Err(three.Enter(t.Context())), coord.ErrDisagree)
		leave(t, members...)
		members = round(t, three, three, three)
		require.EqualValues(t, 2, members[0].Round(), "rounds go on")
		leave(t, members...)
		crash(t, w, 3)
		leave(t, round(t, two, two)...)
	})
}

func TestThoseWhoAgreeOnAnotherNumberDoNotRefuseEachOther(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		chance{}.shake(b.Server)
		clients := []*coord.Client{b.Open(), b.Open(), b.Open()}
		for r := range 60 {
			n := 2 + r%2
			leave(t, round(t, b.views(clients[:n], n)...)...)
		}
	})
}

func TestABarrierOfAnotherProgramIsRefused(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		b := barrier(t, open(t, w.ConnectString()), w.Path("b"), 2)
		for _, node := range []string{w.Path(""), w.Path("b"), w.Path("b/ready")} {
			require.NoError(t, coordtest.Err(w.Admin().Create(node, nil, 0, zk.WorldACL(zk.PermAll))))
		}
		for _, data := range []string{
			"", "127.0.0.1", "{}", `{"format":2,"size":2}`, `{"format":1,"size":0}`,
			`{"format":1,"size":2,"round":1,"open":true}`,
		} {
			require.NoError(t, coordtest.Err(w.Admin().Set(w.Path("b/ready"), []byte(data), -1)))
			require.ErrorIs(t, coordtest.Err(b.Enter(t.Context())), coord.ErrForeign, "%q", data)
			require.ErrorIs(t, coordtest.Err(b.Status(t.Context())), coord.ErrForeign, "%q", data)
		}
		children, _, err := w.Admin().Children(w.Path("b"))
		require.NoError(t, err)
		require.Equal(t, []string{"ready"}, children)
	})
}

func TestForeignNodesInTheDirectoryAreNotCounted(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		bs := several(t, w, 2)
		leave(t, round(t, bs...)...)
		for _, name := range []string{
			"garbage", "_c_short", "0123456789abcdef0123456789abcdef", "_c_0123456789abcdef0123456789abcdef-lock-0000000099",
			"ünïcode",
		} {
			require.NoError(t, coordtest.Err(w.Admin().Create(w.Path("b/"+name), nil, 0, zk.WorldACL(zk.PermAll))))
		}
		first := entering(t.Context(), bs[0])
		waiting(t, bs[1], 1)
		pending(t, "entered with a foreign node", first)
		through(t, first, entering(t.Context(), bs[1]))
	})
}

func TestInsideTheDeletionOfReadyIsNoticed(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		members := round(t, several(t, w, 3)...)
		early := leaving(t.Context(), members[0])
		finished(t, w, members[0])
		require.NoError(t, w.Admin().Delete(w.Path("b/ready"), -1))
		require.ErrorIs(t, zktest.Receive(t, coordtest.Soon, early, "it ends"), doublebarrier.ErrBroken)
		require.ErrorIs(t, members[1].Leave(t.Context()), doublebarrier.ErrBroken)
		other := barrier(t, open(t, w.ConnectString()), w.Path("b"), 2)
		ctx, cancel := context.WithCancel(t.Context())
		entry := entering(ctx, other)
		zktest.Eventually(t, coordtest.Soon, func() bool { _, err := other.Status(t.Context()); return err == nil },
			"the barrier is made again")
		require.ErrorIs(t, members[2].Leave(t.Context()), doublebarrier.ErrBroken)
		cancel()
		<-entry
		// A foreign node there is not overwritten.
		require.NoError(t, coordtest.Err(w.Admin().Set(w.Path("b/ready"), []byte("mine"), -1)))
		require.ErrorIs(t, coordtest.Err(other.Enter(t.Context())), coord.ErrForeign)
	})
}

func TestF56AMemberIsNotRefusedForAContenderOfTheOtherDialect(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		_, bs := b.pool(2, 2)
		first := b.enter(bs[0])
		defer b.Foreign("/b")()
		entered(t, append(first, b.enter(bs[1])...)...)

		other := barrier(b, b.Open(), "/overwritten", 2)
		waits := b.enter(other)[0]
		_, err := b.Open().Set(b.Context(), "/overwritten/ready", []byte("mine"), -1)
		require.NoError(t, err)
		require.ErrorIs(t, (<-waits).Err, coord.ErrForeign, "which is no contender")
	})
}

// The barrier is made, and a stranger comes, while a member looks whether it
// may make it.
func TestAMemberIsNotRefusedAtABarrierThatWasMadeMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(2, 2)
		listing := b.Server.Inject(zkembed.Match{
			Ops: []zkembed.Op{zkembed.OpGetChildren2}, PathPrefix: "/b", Session: cs[0].Info().SessionID, Times: 1,
		}, zkembed.Delay(3*lasts))
		both := b.enter(bs...)
		require.Equal(t, 1, listing.Fired())
		defer b.Foreign("/b")()
		entered(t, both...)
	})
}

func TestRemoveDeletesABarrierThatIsNotInUse(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		bs := several(t, w, 2)
		require.NoError(t, bs[0].Remove(t.Context()), "there is none")
		first := entering(t.Context(), bs[0])
		waiting(t, bs[1], 1)
		require.ErrorIs(t, bs[1].Remove(t.Context()), coord.ErrBusy)
		members := entered(t, first, entering(t.Context(), bs[1]))
		require.ErrorIs(t, bs[0].Remove(t.Context()), coord.ErrBusy)
		leave(t, members...)
		require.NoError(t, bs[0].Remove(t.Context()))
		require.ErrorIs(t, coordtest.Err(bs[0].Status(t.Context())), coord.ErrNoNode)
		members = round(t, bs...)
		require.EqualValues(t, 1, members[0].Round())
		leave(t, members...)
	})
}

func TestWhatCannotBeRightIsRefusedWithoutAskingAServer(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		c := b.Open()
		atLeast := func(least int, lastCall time.Duration) error {
			return coordtest.Err(doublebarrier.New(c, "/b", 3, doublebarrier.AtLeast(least, lastCall)))
		}
		for says, err := range map[string]error{
			"client":                    coordtest.Err(doublebarrier.New(nil, "/b", 1)),
			"option":                    coordtest.Err(doublebarrier.New(c, "/b", 1, nil)),
			"must start with /":         coordtest.Err(doublebarrier.New(c, "b", 1)),
			"root":                      coordtest.Err(doublebarrier.New(c, "/", 1)),
			"0 members: it must be":     coordtest.Err(doublebarrier.New(c, "/b", 0)),
			"-1 members":                coordtest.Err(doublebarrier.New(c, "/b", -1)),
			"4001 members":              coordtest.Err(doublebarrier.New(c, "/b", 4001)),
			"path of 201 bytes":         coordtest.Err(doublebarrier.New(c, "/"+strings.Repeat("b", 200), 4000)),
			"at least 0 of 3 members":   atLeast(0, time.Second),
			"at least 4 of 3 members":   atLeast(4, time.Second),
			"of 3 members, after -1ns:": atLeast(2, -1),
		} {
			require.ErrorIs(t, err, coord.ErrInvalid, says)
			require.ErrorContains(t, err, says)
		}
	})
}

func TestALeaveWithADeadContextGivesUpThePlace(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		_, bs := b.pool(2, 2)
		dead, cancel := context.WithCancel(b.Context())
		cancel()
		for range 10 {
			members := round(t, bs...)
			require.ErrorIs(t, members[0].Leave(dead), context.Canceled)
			require.ErrorIs(t, members[0].Leave(b.Context()), context.Canceled, "the answer stays")
			require.ErrorIs(t, members[0].Err(), coord.ErrReleased)
			require.ErrorIs(t, members[1].Leave(b.Context()), doublebarrier.ErrIncomplete)
		}
	})
}

// The client has given its session up, the server has not: it was down, and the
// request to close the session is late.
func TestAMemberThatComesAgainIsNotCountedBesideItsFormerSelf(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(2, 2)
		first := b.enter(bs[0])[0]
		before := cs[0].Info().SessionID
		closing := zkembed.Match{Session: before, Ops: []zkembed.Op{zkembed.OpCloseSession}}
		late := b.Server.Inject(closing, zkembed.Delay(2*lasts))
		b.Server.Restart(2 * time.Minute)
		time.Sleep(lasts)
		require.NotEqual(t, before, cs[0].Info().SessionID)
		pending(t, "entered with nobody but its former self", first)
		require.NotZero(t, late.Fired())
		through(t, first, b.enter(bs[1])[0])
	})
}

func TestProofNoMemberHangsAndNoRoundsMixWhileMembersDieAtRandom(t *testing.T) {
	for _, n := range []int{3, 32, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b bubble) {
				w := &workers{bubble: b, n: n, rounds: 50, pace: 100 * time.Millisecond}
				// For any n, about every round loses a member.
				for f := diesWaiting; f < fates; f++ {
					w.odds[f] = max(1, 200/n)
				}
				w.run(n+5, 1)
				w.check(t, n, n)
				t.Log(w.struck)
				require.Greater(t, w.struck[diesInside]+w.struck[diesWaiting]+w.struck[diesLeaving], 10)
				require.GreaterOrEqual(t, len(w.history.rounds), 45, "rounds of which a member lived to tell")
			})
		})
	}
}

// Between a removal's listing and its transaction, others begin and end a
// round, which deletes what was listed.
func TestABarrierThatIsSaidToBeRemovedIs(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(3, 2)
		leave(t, entered(t, with(t, bs[0], "x"), with(t, bs[1], "y"))...)
		require.Contains(t, b.names(cs[0]), "data-1")
		deletions := zkembed.Match{
			Session: cs[2].Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/b", Times: 1,
		}
		slow := b.Server.Inject(deletions, zkembed.Delay(time.Second))
		removed := coordtest.Go(func() error { return bs[2].Remove(b.Context()) })
		<-slow.Struck()
		through(t, entering(b.Context(), bs[0]), entering(b.Context(), bs[1]))
		err := <-removed
		_, _, there := cs[0].Get(b.Context(), "/b/ready")
		require.Equal(t, err == nil, errors.Is(there, coord.ErrNoNode), "%v, %v", err, there)
	})
}
