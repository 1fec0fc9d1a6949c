package znode_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/internal/znode"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestANodeThatIsMadeAfterItsCallerHasGivenUpIsDeleted(t *testing.T) {
	each(t, func(s *scene, n *znode.Node) {
		s.givenUp(n, T)
		require.Empty(s, s.there(), "it is not made yet")
		time.Sleep(2 * T)
		require.Empty(s, s.there())
		require.Equal(s, 1, s.counts(znode.RemovedLate))
	})
}

func TestOfANodeThatIsMadeTwiceOneStays(t *testing.T) {
	each(t, func(s *scene, n *znode.Node) {
		if n.Plain != nil {
			return // the late create finds the name taken
		}
		late := s.creates(1, zkembed.CarryOutLate(T/4))
		require.NoError(s, s.create(s.Context(), n))
		require.Equal(s, 1, late.Fired())
		time.Sleep(T)
		require.Equal(s, []string{n.Path()}, s.there())
		require.Equal(s, 1, s.counts(znode.RemovedLate))
	})
}

// By then the name belongs to another node of the session.
func TestANodeThatHasTheNameOfALateOneIsLeftAlone(t *testing.T) {
	inBubble(t, func(s *scene) {
		n := nodes["name and data"]()
		lost := s.creates(1, zkembed.Drop())
		require.NoError(s, s.create(s.Context(), n))
		require.Equal(s, 1, lost.Fired())
		require.NoError(s, n.Delete(nil))
		next := nodes["name and data"]()
		require.NoError(s, s.create(s.Context(), next))
		require.NoError(s, s.Server.DropConn(s.ID())) // late nodes are looked for
		time.Sleep(T)
		require.Equal(s, []string{next.Path()}, s.there())
	})
}

func TestTheSearchForLateNodesOutlastsOddAnswers(t *testing.T) {
	for _, ops := range [][]zkembed.Op{
		{zkembed.OpDelete}, {zkembed.OpGetData, zkembed.OpExists}, {zkembed.OpGetChildren2},
	} {
		each(t, func(s *scene, n *znode.Node) {
			s.givenUp(n, T/2)
			time.Sleep(T / 4)
			odd := s.Server.Inject(
				zkembed.Match{Session: s.ID(), Ops: ops, PathPrefix: "/d", Times: 3}, zkembed.ReplyError(zkembed.CodeThrottledOp))
			time.Sleep(2 * T)
			require.Equal(s, 3, odd.Fired(), ops)
			require.Empty(s, s.there())
			require.Equal(s, 1, s.counts(znode.RemovedLate))
		})
	}
}

// After ten session timeouts nobody looks any more, and nobody probes.
func TestTheSearchForLateNodesEnds(t *testing.T) {
	each(t, func(s *scene, n *znode.Node) {
		s.creates(1, zkembed.Drop())
		require.NoError(s, s.create(s.Context(), n))
		require.NoError(s, n.Delete(nil))
		requests := func() (n int) {
			counted := s.Server.Inject(zkembed.Match{Session: s.ID()}, zkembed.DelayReply(0))
			time.Sleep(T)
			counted.Remove()
			return counted.Fired()
		}
		time.Sleep(T)
		require.NotZero(s, requests(), "without a write nobody would see that the session has moved")
		time.Sleep(10 * T)
		require.Zero(s, requests())
	})
}

// A doubt lasts from the last attempt on.
func TestALaterAttemptProlongsTheSearchForLateNodes(t *testing.T) {
	each(t, func(s *scene, n *znode.Node) {
		if n.Plain != nil {
			return // the late create finds the name taken
		}
		s.creates(1, zkembed.Drop())
		throttled := s.creates(0, zkembed.ReplyError(zkembed.CodeThrottledOp))
		made := make(chan error)
		go func() { made <- s.create(s.Context(), n) }()
		time.Sleep(9*T + T/2)
		late := s.creates(1, zkembed.CarryOutLate(T))
		throttled.Remove()
		require.NoError(s, <-made)
		require.Equal(s, 1, late.Fired())
		time.Sleep(3 * T)
		require.Equal(s, []string{n.Path()}, s.there())
		require.Equal(s, 1, s.counts(znode.RemovedLate))
	})
}
