package doublebarrier_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// with calls EnterWith in the background.
func with(t *testing.T, b *doublebarrier.Barrier, data string) arrival {
	return coordtest.Begin(t.Context(),
		func(ctx context.Context) (*doublebarrier.Member, error) { return b.EnterWith(ctx, []byte(data)) })
}

// gathering calls Gather in the background.
func gathering(t *testing.T, m *doublebarrier.Member, result []byte) <-chan coordtest.Outcome[[][]byte] {
	return coordtest.Begin(t.Context(), func(ctx context.Context) ([][]byte, error) { return m.Gather(ctx, result) })
}

// names returns the nodes below the barrier /b.
func (b bubble) names(c *coord.Client) []string {
	b.Helper()
	names, err := c.Children(b.Context(), "/b")
	require.NoError(b, err)
	return names
}

func TestEveryMemberGetsTheDataAndTheResultsOfAll(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		bs := several(t, w, 3)
		odd := "\ndone\ndata\x00\xff" // may look like anything
		for round := range 3 {
			var all []arrival
			for i, b := range bs {
				all = append(all, with(t, b, fmt.Sprint(i, odd)))
			}
			members := make([]*doublebarrier.Member, len(bs))
			for i, m := range entered(t, all...) {
				members[m.Index()] = m
				require.Equal(t, fmt.Sprint(i, odd), string(m.Data()[m.Index()]))
			}
			results := [][]byte{[]byte(odd), {}, nil} // the last brings none
			var ends []<-chan coordtest.Outcome[[][]byte]
			for i, m := range members {
				require.Equal(t, members[0].Data(), m.Data())
				ends = append(ends, gathering(t, m, results[i]))
			}
			for i, end := range ends {
				got := zktest.Receive(t, coordtest.Soon, end, "a member leaves")
				require.NoError(t, got.Err)
				require.Equal(t, results, got.Value)
				again, err := members[i].Gather(t.Context(), []byte("more"))
				require.NoError(t, err)
				require.Equal(t, results, again, "the answer stays")
			}
			names, _, err := w.Admin().Children(w.Path("b"))
			require.NoError(t, err)
			slices.Sort(names)
			require.Equal(t, []string{fmt.Sprint("data-", round+1), "ready", fmt.Sprint("results-", round+1)}, names,
				"only the last round's are left")
		}
		require.NoError(t, bs[0].Remove(t.Context()))
		_, _, err := w.Admin().Children(w.Path("b"))
		require.ErrorIs(t, err, zk.ErrNoNode)
	})
}

func TestARoundWithoutDataAndResultsHasNone(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, members := b.begun(2)
		require.Nil(t, members[0].Data())
		left := leaving(t.Context(), members[1])
		results, err := members[0].Gather(t.Context(), nil)
		require.NoError(t, err)
		require.Nil(t, results)
		require.NoError(t, <-left)
		require.Equal(t, []string{"ready"}, b.names(cs[0]))
	})
}

// The first to finish dies, and so does the first monitor: the next has to
// gather again.
func TestTheResultsThereAreComeWithTheMembersThatAreMissing(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, members := b.begun(4)
		var ends []<-chan coordtest.Outcome[[][]byte]
		for _, i := range []int{0, 2, 3} {
			ends = append(ends, gathering(t, members[i], []byte(fmt.Sprint("result ", i))))
		}
		time.Sleep(time.Second)
		absent, err := barrier(t, cs[0], "/b", 4).Absent(t.Context())
		require.NoError(t, err)
		require.Equal(t, []doublebarrier.Absentee{{Index: 1, Node: members[1].Node(), Owner: cs[1].Info().Identity}}, absent)
		b.kill(cs[0])
		b.kill(cs[1])
		require.Error(t, (<-ends[0]).Err)
		for _, end := range ends[1:] {
			got := <-end
			requireMissing(t, []int{0, 1}, got.Err)
			require.Equal(t, [][]byte{nil, nil, []byte("result 2"), []byte("result 3")}, got.Value)
		}
	})
}

func TestTheResultsAreKeptForAMemberThatIsSlowToReadThem(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(3, 2)
		b.Server.AddFollower(0, cs[0].Info().SessionID)
		members := entered(t, b.enter(bs[:2]...)...)
		slow := gathering(t, members[0], []byte("slow"))
		synctest.Wait()
		fault := b.Server.Inject(zkembed.Match{PathPrefix: "/b/results-1", Ops: []zkembed.Op{zkembed.OpGetData}, Times: 1},
			zkembed.Delay(5*time.Second))
		quick, err := members[1].Gather(t.Context(), []byte("quick"))
		require.NoError(t, err)
		require.Equal(t, 1, fault.Fired())
		for range 2 { // rounds of others pass meanwhile, unless the quick one was delayed
			through(t, entering(b.Context(), bs[1]), entering(b.Context(), bs[2]))
		}
		got := <-slow
		require.NoError(t, got.Err)
		require.Equal(t, quick, got.Value)
		through(t, entering(b.Context(), bs[1]), entering(b.Context(), bs[2]))
		require.Equal(t, []string{"ready"}, b.names(cs[1]), "nobody is left to read them")
	})
}

func TestMoreThanAShareIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		b := barrier(t, open(t, w.ConnectString()), w.Path("b"), 2)
		share := bytes.Repeat([]byte("x"), b.MaxShare())
		require.Greater(t, len(share), 300_000)
		ended, end := context.WithCancel(t.Context())
		end()
		_, err := b.EnterWith(ended, append(share, 'x'))
		require.ErrorIs(t, err, coord.ErrTooLarge)
		var ends []<-chan coordtest.Outcome[[][]byte]
		for _, m := range entered(t, with(t, b, string(share)), with(t, b, string(share))) {
			require.Equal(t, [][]byte{share, share}, m.Data())
			_, err := m.Gather(t.Context(), append(share, 'x'))
			require.ErrorIs(t, err, coord.ErrTooLarge)
			require.NoError(t, m.Err(), "it has still to leave")
			ends = append(ends, gathering(t, m, share))
		}
		for _, end := range ends {
			got := zktest.Receive(t, coordtest.Soon, end, "a member leaves")
			require.NoError(t, got.Err)
			require.Equal(t, [][]byte{share, share}, got.Value)
		}
	})
}

func TestAMemberThatIsAskedToGiveUpKeepsWhatItHasBrought(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(2, 2)
		asked := with(t, bs[0], "data")
		time.Sleep(time.Second)
		status, err := bs[0].Status(t.Context())
		require.NoError(t, err)
		require.NoError(t, inspect.Revoke(t.Context(), cs[1], status.Waiting[0]))
		members := entered(t, asked, with(t, bs[1], "too"))
		require.Equal(t, "data too", string(bytes.Join(members[0].Data(), []byte(" "))))
		first := gathering(t, members[1], []byte("kept"))
		time.Sleep(time.Second)
		require.NoError(t, inspect.Revoke(t.Context(), cs[0], members[1].Node()))
		results, err := members[0].Gather(t.Context(), []byte("too"))
		require.NoError(t, err)
		require.Equal(t, "too kept", string(bytes.Join(results, []byte(" "))))
		require.NoError(t, (<-first).Err)
	})
}

func TestResultsThatSomebodyHasChangedAreNotBelieved(t *testing.T) {
	for what, change := range map[string]coord.Op{
		"deleted": coord.DeleteOp("/b/results-1", -1),
		"changed": coord.SetOp("/b/results-1", []byte("[9,9]\nx"), -1),
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b bubble) {
				cs, bs := b.pool(3, 2)
				members := entered(t, b.enter(bs[:2]...)...)
				b.Server.Inject(zkembed.Match{PathPrefix: "/b/results-1", Ops: []zkembed.Op{zkembed.OpGetData}},
					zkembed.Delay(time.Second))
				ends := []<-chan coordtest.Outcome[[][]byte]{
					gathering(t, members[0], []byte("a")), gathering(t, members[1], []byte("b")),
				}
				time.Sleep(500 * time.Millisecond)
				require.NoError(t, coordtest.Err(cs[2].Txn(t.Context(), change)))
				for _, end := range ends {
					require.ErrorIs(t, (<-end).Err, doublebarrier.ErrBroken)
				}
			})
		})
	}
}

func TestARoundBeginsWithTheLeastNumberAfterTheLastCall(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		const lastCall = 10 * time.Second
		_, bs := b.pool(5, 5, doublebarrier.AtLeast(3, lastCall))
		all := b.enter(bs[:2]...)
		time.Sleep(time.Hour)
		pending(t, "fewer than three have begun", all[0])
		began := time.Now()
		for _, late := range bs[2:4] {
			all = append(all, entering(b.Context(), late))
			time.Sleep(time.Second)
		}
		for _, e := range all {
			require.Equal(t, 4, entered(t, e)[0].Count())
			require.GreaterOrEqual(t, time.Since(began), lastCall)
		}
		require.Less(t, time.Since(began), lastCall+time.Second)
		require.ErrorIs(t, (<-entering(b.Context(), bs[4])).Err, doublebarrier.ErrLate)
	})
}

// One who has given up has left a gap in the numbers.
func TestAllNDoNotWaitForTheLastCall(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		_, bs := b.pool(4, 3, doublebarrier.AtLeast(1, time.Hour))
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		_, err := bs[3].Enter(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		began := time.Now()
		leave(t, round(t, bs[:3]...)...)
		require.Less(t, time.Since(began), time.Minute)
	})
}

// The member whose arrival completed the least number has died: the next one to
// come makes the last call.
func TestTheLastCallOfAMemberThatDiesIsMadeByTheNext(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(3, 4, doublebarrier.AtLeast(2, 10*time.Second))
		all := b.enter(bs[:2]...)
		b.kill(cs[1])
		require.Error(t, (<-all[1]).Err)
		time.Sleep(time.Minute)
		pending(t, "it is alone", all[0])
		members := entered(t, all[0], entering(b.Context(), bs[2]))
		require.Equal(t, 2, members[0].Count())
	})
}

// All members of a round die, and fewer come afterwards.
func TestAfterARoundThatCrashedTheLeastNumberIsEnough(t *testing.T) {
	const lastCall = 10 * time.Second
	for name, before := range map[string]bool{"who come afterwards": false, "who have waited": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b bubble) {
				opts := []doublebarrier.Option{doublebarrier.AtLeast(3, lastCall)}
				if before {
					opts = append(opts, doublebarrier.WaitForNextRound())
				}
				cs, bs := b.pool(8, 5, opts...)
				entered(t, b.enter(bs[:5]...)...)
				var all []arrival
				if before {
					all = b.enter(bs[5:]...)
				}
				for _, c := range cs[:5] {
					b.kill(c)
				}
				if !before {
					all = b.enter(bs[5:7]...)
					time.Sleep(lastCall)
					all = append(all, entering(b.Context(), bs[7]))
				}
				began := time.Now() // the last call
				for _, m := range entered(t, all...) {
					require.Equal(t, 3, m.Count())
				}
				require.GreaterOrEqual(t, time.Since(began), lastCall)
				require.Less(t, time.Since(began), lastCall+time.Second)
			})
		})
	}
}

// A round begins and ends while a member that is not in it waits for an answer.
func TestALastCallIsForOneRound(t *testing.T) {
	const lastCall, slow = 2 * time.Second, 2500 * time.Millisecond
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(3, 2, doublebarrier.AtLeast(1, lastCall), doublebarrier.WaitForNextRound())
		for i, by := range map[int]time.Duration{1: lasts / 2, 2: slow} {
			b.Server.Inject(
				zkembed.Match{
					Session: cs[i].Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/b/ready", Times: 1,
				}, zkembed.Delay(by))
		}
		all := []arrival{entering(b.Context(), bs[0])}
		time.Sleep(lastCall / 4)
		all = append(all, entering(b.Context(), bs[1]))
		time.Sleep(lasts / 4)
		began := time.Now()
		all = append(all, entering(b.Context(), bs[2]))
		leave(t, entered(t, all[:2]...)...)
		require.Equal(t, 1, entered(t, all[2])[0].Count())
		require.GreaterOrEqual(t, time.Since(began), slow+lastCall)
	})
}
