package znode_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/internal/znode"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestANodeWhoseReplyIsLostIsFoundAgain(t *testing.T) {
	each(t, func(s *scene, n *znode.Node) {
		lost := s.creates(1, zkembed.LoseReply())
		require.NoError(s, s.create(s.Context(), n))
		require.Equal(s, 1, lost.Fired())
		require.Equal(s, []string{n.Path()}, s.there())
		require.Equal(s, 1, s.counts(znode.Recovered))
		for _, made := range s.Server.Nodes() {
			if made.Path == n.Path() {
				require.Equal(s, made.Stat.Czxid, n.Czxid())
			}
		}
		require.NoError(s, n.Delete(nil))
		require.Empty(s, s.there())
	})
}

// Another node of the session has a name that begins alike.
func TestANodeThatWasNotMadeIsMadeByTheNextAttempt(t *testing.T) {
	each(t, func(s *scene, n *znode.Node) {
		other := &znode.Node{Dir: "/d", Stem: "_c_00000000-0000-8000-8000-000000000000-lock-"}
		switch {
		case n.Nameless:
			other.Stem, other.Nameless = n.Stem, true
		case n.Plain != nil:
			other.Stem, other.Plain = "one and another", &znode.Plain{Data: n.Plain.Data}
		}
		require.NoError(s, s.create(s.Context(), other))
		lost := s.creates(3, zkembed.Drop())
		require.NoError(s, s.create(s.Context(), n))
		require.Equal(s, 3, lost.Fired())
		require.NotEqual(s, other.Path(), n.Path())
		require.Len(s, s.there(), 2)
		require.Zero(s, s.counts(znode.Recovered))
	})
}

// A server throttles a request instead of carrying it out.
func TestAThrottledCreateIsSentAgainAndNothingIsLookedFor(t *testing.T) {
	each(t, func(s *scene, n *znode.Node) {
		refused := s.creates(3, zkembed.ReplyError(zkembed.CodeThrottledOp))
		before := s.Server.SessionCounts(s.ID())
		require.NoError(s, s.create(s.Context(), n))
		require.Equal(s, 3, refused.Fired())
		asked := s.Server.SessionCounts(s.ID()).Since(before)
		require.Equal(s, 4, asked[zkembed.OpCreate]+asked[zkembed.OpCreate2])
		require.Zero(s, asked[zkembed.OpGetChildren]+asked[zkembed.OpGetChildren2])
		require.Equal(s, []string{n.Path()}, s.there())
	})
}

// A program that starts again may meet the node of its former session.
func TestTheSameNodeOfAnotherSessionIsNotTakenForOurs(t *testing.T) {
	inBubble(t, func(s *scene) {
		other := s.Open()
		require.NoError(s, other.Create(s.Context(), "/d/one", []byte("mine")))
		lost := s.creates(1, zkembed.LoseReply())
		require.ErrorIs(s, s.create(s.Context(), nodes["name and data"]()), zk.ErrNodeExists)
		require.Equal(s, 1, lost.Fired())
	})
}

// The data were replaced while the create was in doubt.
func TestANodeThatWasAskedForBeforeItIsFoundIsOurs(t *testing.T) {
	inBubble(t, func(s *scene) {
		n, other := nodes["name and data"](), s.Open()
		lost := s.creates(1, zkembed.LoseReply())
		late := s.Server.Inject(zkembed.Match{Session: s.ID(), Ops: []zkembed.Op{zkembed.OpGetData}, Times: 1},
			zkembed.Delay(time.Second))
		go func() {
			<-late.Struck()
			if _, err := other.Set(s.Context(), "/d/one", []byte("give it up"), -1); err != nil {
				s.Error(err)
			}
		}()
		require.NoError(s, s.create(s.Context(), n))
		require.Equal(s, [2]int{1, 1}, [2]int{lost.Fired(), late.Fired()})
		require.Equal(s, 1, s.counts(znode.Recovered))
	})
}

// A node with other data is another claim's.
func TestANodeOfOtherDataIsNotTakenForOurs(t *testing.T) {
	inBubble(t, func(s *scene) {
		n, other := nodes["name and data"](), nodes["name and data"]()
		other.Plain.Data = []byte("another's")
		require.NoError(s, s.create(s.Context(), other))
		lost := s.creates(1, zkembed.LoseReply())
		require.ErrorIs(s, s.create(s.Context(), n), zk.ErrNodeExists)
		require.Equal(s, 1, lost.Fired())
		require.Zero(s, s.counts(znode.Recovered))
	})
}

// A create whose caller has gone returns only once its outcome is known.
func TestNoAttemptBeginsWhenTheCallerHasGone(t *testing.T) {
	each(t, func(s *scene, n *znode.Node) {
		ctx, cancel := context.WithCancel(s.Context())
		lost := s.creates(0, zkembed.Drop())
		go func() {
			<-lost.Struck()
			cancel()
		}()
		require.ErrorIs(s, s.create(ctx, n), context.Canceled)
		require.Equal(s, 1, lost.Fired())
		require.Empty(s, s.there())
	})
}
