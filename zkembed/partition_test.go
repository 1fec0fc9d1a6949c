package zkembed_test

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/zkembed"
)

func TestASessionLivesByItsPingsAndEndsInAPartition(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		create(t, c, "/e", zk.FlagEphemeral)
		time.Sleep(10 * time.Minute)
		require.Len(t, s.Nodes(), 1)
		p := s.Partition(zkembed.Cut{})
		require.False(t, p.Struck())
		time.Sleep(T + 2*time.Second)
		require.True(t, p.Struck())
		require.Empty(t, s.Nodes())
		require.Empty(t, s.Sessions())
		p.Heal()
		awaitQuiet(c)
		create(t, c, "/e", zk.FlagEphemeral) // in a new session
		require.Len(t, s.Sessions(), 1)
	})
}

func TestAPartitionShorterThanTheTimeoutKeepsTheSession(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		id := c.SessionID()
		create(t, c, "/e", zk.FlagEphemeral)
		other := s.Partition(zkembed.Cut{Sessions: []int64{id + 1}})
		s.Partition(zkembed.Cut{})
		time.Sleep(T / 3)
		s.Heal()
		require.False(t, other.Struck(), "it cuts no client off")
		_, stat, err := c.Exists("/e")
		require.NoError(t, err)
		require.Equal(t, id, stat.EphemeralOwner)
	})
}

func TestWithTheWayBackCutWritesAreAppliedUnheard(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		p := s.Partition(zkembed.Cut{Direction: zkembed.ToClient})
		_, err := c.Create("/a", nil, 0, open)
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		require.Equal(t, []string{"/a"}, paths(s))
		p.Heal()
	})
}

func TestWithTheWayThereCutWritesArriveAfterTheHealing(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		p := s.Partition(zkembed.Cut{Direction: zkembed.ToServer})
		go create(t, c, "/a", 0)
		time.Sleep(time.Second)
		require.Empty(t, s.Nodes())
		p.Heal()
		synctest.Wait()
		require.Len(t, s.Nodes(), 1)
	})
}

// A client that gives up its connection in the partition cannot take back
// what it had sent.
func TestAWriteOfAClientThatHasGoneArrivesAfterTheHealing(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c := client(t, s)
		p := s.Partition(zkembed.Cut{Sessions: []int64{c.SessionID()}})
		_, err := c.Create("/late", nil, 0, open)
		require.ErrorIs(t, err, zk.ErrConnectionClosed)
		require.Empty(t, s.Nodes())
		p.Heal()
		synctest.Wait()
		require.Equal(t, []string{"/late"}, paths(s))
	})
}

func TestAPartitionOfOneSessionFollowsItToNewConnections(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		c, other := client(t, s), client(t, s)
		id := c.SessionID()
		p := s.Partition(zkembed.Cut{Sessions: []int64{id}})
		time.Sleep(2 * T)
		require.NotContains(t, sessionIDs(s), id)
		require.Contains(t, sessionIDs(s), other.SessionID())
		create(t, other, "/a", 0)
		p.Heal()
	})
}

func sessionIDs(s *zkembed.Server) []int64 {
	var ids []int64
	for _, i := range s.Sessions() {
		ids = append(ids, i.ID)
	}
	return ids
}

func TestADialThatHangsIsRefusedWhenThePartitionTurnsToRefusing(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		s.Partition(zkembed.Cut{})
		begun := time.Now()
		time.AfterFunc(time.Second, func() { s.Partition(zkembed.Cut{NewConns: zkembed.RefuseDial}) })
		_, err := s.Dial("tcp", s.Addr(), time.Minute)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.Equal(t, time.Second, time.Since(begun))
	})
}

func TestNewConnectionsHangOrAreRefusedOrMeetSilence(t *testing.T) {
	virtual(t, func(t *testing.T, s *zkembed.Server) {
		p := s.Partition(zkembed.Cut{})
		begun := time.Now()
		_, err := s.Dial("tcp", s.Addr(), 3*time.Second)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(begun))
		p.Heal()

		p = s.Partition(zkembed.Cut{NewConns: zkembed.RefuseDial})
		_, err = s.Dial("tcp", s.Addr(), 3*time.Second)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		p.Heal()

		p = s.Partition(zkembed.Cut{NewConns: zkembed.AcceptDial})
		nc, err := s.Dial("tcp", s.Addr(), 3*time.Second)
		require.NoError(t, err)
		_, err = nc.Write([]byte("ruok"))
		require.NoError(t, err)
		require.NoError(t, nc.SetReadDeadline(time.Now().Add(time.Hour)))
		_, err = nc.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		p.Heal()
		require.NoError(t, nc.SetReadDeadline(time.Time{}))
		answer := make([]byte, 4)
		_, err = nc.Read(answer)
		require.NoError(t, err)
		require.Equal(t, "imok", string(answer))
		require.NoError(t, nc.Close())
	})
}
