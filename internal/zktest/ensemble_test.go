package zktest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnEnsembleElectsAnotherLeaderWhenTheLeaderDies(t *testing.T) {
	t.Parallel()
	e := RequireEnsemble(t)
	old, err := e.Leader()
	require.NoError(t, err)
	require.Len(t, e.Followers(), 2)
	create(t, Connect(t, e.ConnectString(), patient), "/kept", 0)

	require.NoError(t, old.Kill())
	leader, err := e.Leader()
	require.NoError(t, err)
	require.NotSame(t, old, leader)
	exists, _, err := Connect(t, leader.Addr(), patient).Exists("/kept")
	require.NoError(t, err)
	require.True(t, exists)

	require.NoError(t, old.Restart())
	require.Equal(t, "follower", old.Mode())
}

func TestALeaderThatWasStoppedIsNotTakenForItsSuccessor(t *testing.T) {
	t.Parallel()
	e := RequireEnsemble(t, WithSyncLimit(5))
	old, err := e.Leader()
	require.NoError(t, err)
	require.NoError(t, old.Stop())
	next, err := e.Leader(old)
	require.NoError(t, err)
	require.NotSame(t, old, next)
	require.NoError(t, old.Continue())
	Eventually(t, readyWithin, func() bool { return old.Mode() == "follower" }, "the old leader gives in")
	same, err := e.Leader()
	require.NoError(t, err)
	require.Same(t, next, same)
}

func TestAnIsolatedFollowerServesOldDataUntilItGivesUp(t *testing.T) {
	t.Parallel()
	e := RequireEnsemble(t, WithQuorumLinks())
	leader, err := e.Leader()
	require.NoError(t, err)
	follower := e.Followers()[0]
	ahead, behind := Connect(t, leader.Addr(), patient), Connect(t, follower.Addr(), patient)
	link := e.Link(follower)

	link.Isolate()
	create(t, ahead, "/new", 0)
	exists, _, err := behind.Exists("/new")
	require.NoError(t, err, "the follower has not noticed yet")
	require.False(t, exists)
	require.Positive(t, link.Stats().Held)
	Eventually(t, 30*time.Second, func() bool { return follower.Mode() == "" }, "the follower gives up")

	link.Heal()
	Eventually(t, 30*time.Second, func() bool { return follower.Mode() == "follower" }, "the follower is back")
	_, err = behind.Sync("/new")
	for err != nil { // until the client is connected again
		_, err = behind.Sync("/new")
	}
	exists, _, err = behind.Exists("/new")
	require.NoError(t, err)
	require.True(t, exists)
}

func TestALaggingFollowerHearsOfAWriteLater(t *testing.T) {
	t.Parallel()
	const lag = 400 * time.Millisecond
	e := RequireEnsemble(t, WithQuorumLinks())
	leader, err := e.Leader()
	require.NoError(t, err)
	follower := e.Followers()[0]
	ahead, behind := Connect(t, leader.Addr(), patient), Connect(t, follower.Addr(), patient)

	e.Link(follower).Delay(lag)
	var late string
	Eventually(t, readyWithin, func() bool { // a process that stands still meanwhile sees nothing of it
		late += "/late"
		create(t, ahead, late, 0)
		exists, _, err := behind.Exists(late)
		require.NoError(t, err)
		return !exists
	}, "the follower lags")

	begin := time.Now()
	_, err = behind.Sync(late)
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(begin), lag, "a sync goes to the leader and back")
	exists, _, err := behind.Exists(late)
	require.NoError(t, err)
	require.True(t, exists)
}
