package doublebarrier_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestTheNumberOfMembersCanOnlyBeChangedWhileNoMemberIsThere(t *testing.T) {
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

func TestThoseWhoAgreeOnAnotherNumberDoNotRefuseEachOther(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		chance{}.shake(b.Server)
		clients := []*coord.Client{b.Open(), b.Open(), b.Open()}
		for r := range 60 {
			n := 2 + r%2
			var members []<-chan outcome[*doublebarrier.Member]
			for i := range n {
				members = append(members, entering(b.Context(), barrier(t, clients[i], "/b", n)))
			}
			var left []<-chan error
			for _, entering := range members {
				o := <-entering
				require.NoError(t, o.err, "round %d", r)
				left = append(left, leaving(b.Context(), o.value))
			}
			for _, l := range left {
				require.NoError(t, <-l)
			}
		}
		b.Close(clients...)
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
		zktest.Eventually(t, coordtest.Soon, func() bool { _, err := other.Status(t.Context()); return err == nil }, "the barrier is made again")
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

func TestRemoveDeletesABarrierThatIsNotInUse(t *testing.T) {
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

func TestWhatCannotBeRightIsRefusedWithoutAskingAServer(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) { cannotBeRight(t, b.Open()) })
}

func cannotBeRight(t *testing.T, c *coord.Client) {
	for says, f := range map[string]func() (*doublebarrier.Barrier, error){
		"client":                func() (*doublebarrier.Barrier, error) { return doublebarrier.New(nil, "/b", 1) },
		"option":                func() (*doublebarrier.Barrier, error) { return doublebarrier.New(c, "/b", 1, nil) },
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
