package znode_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/internal/znode"
	"github.com/zkcoord/zkcoord/zkembed"
)

// calm is an owner whose node nobody touches.
type calm struct{ leaving bool }

func (*calm) Deleted()        {}
func (*calm) Replaced(int64)  {}
func (*calm) Written([]byte)  {}
func (c *calm) Leaving() bool { return c.leaving }

// watchedNode returns a node that is to be watched soon, and its owner.
func (s *scene) watchedNode(n int) (*znode.Node, *calm) {
	s.Helper()
	node, owner := &znode.Node{Dir: "/d", Stem: fmt.Sprintf("_c_%d-lock-", n)}, &calm{}
	require.NoError(s, s.create(s.Context(), node))
	node.Init(&s.host, s.Session, owner)
	node.WatchSoon()
	return node, owner
}

// reads counts the reads that set watches.
func (s *scene) reads() int {
	synctest.Wait()
	return s.Server.SessionCounts(s.ID())[zkembed.OpGetData]
}

// A few thousand nodes share one timer.
func TestEachNodeGetsItsFirstWatchInItsTime(t *testing.T) {
	inBubble(t, func(s *scene) {
		far, _ := s.watchedNode(1)
		far.WatchLater()
		time.Sleep(50 * time.Millisecond) // the timer waits for this node now
		s.watchedNode(2)
		gone, owner := s.watchedNode(3)
		owner.leaving = true
		gone.WatchNoMore()
		time.Sleep(19 * time.Millisecond)
		require.Zero(t, s.reads())
		time.Sleep(2 * time.Millisecond)
		require.Equal(t, 1, s.reads(), "the second node")
		time.Sleep(170 * time.Millisecond)
		require.Equal(t, 1, s.reads())
		time.Sleep(30 * time.Millisecond)
		require.Equal(t, 2, s.reads(), "the first one, later")
		time.Sleep(time.Second)
		require.Equal(t, 2, s.reads())
	})
}

func TestANodeThatNearsItsTurnOrWasSeenAgainIsWatchedSooner(t *testing.T) {
	for name, sooner := range map[string]func(*znode.Node){"near": (*znode.Node).WatchSooner, "seen": (*znode.Node).Seen} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *scene) {
				n, _ := s.watchedNode(1)
				n.WatchLater()
				time.Sleep(100 * time.Millisecond)
				require.Zero(t, s.reads())
				sooner(n)
				time.Sleep(22 * time.Millisecond)
				require.Equal(t, 1, s.reads())
				time.Sleep(time.Second)
				require.Equal(t, 1, s.reads(), "once")
			})
		})
	}
}
