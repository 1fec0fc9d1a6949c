package contract

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAWatchFiresOnceAndBeforeTheReplyThatShowsItsCause(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c, other := s.connect(), s.connect()
		a := s.path("a")
		require.EqualValues(t, errNoNode, c.code(t, opExists, watched(a, true)))
		c.must(t, opGetChildren, watched(s.root, true))
		other.create(t, a, persistent)
		c.must(t, opGetData, watched(a, true))
		require.Equal(t, []event{{created, a}, {childrenChanged, s.root}}, c.takeEvents())
		other.set(t, a, nil)
		other.set(t, a, nil)
		require.EqualValues(t, 2, c.stat(t, a).version)
		require.Equal(t, []event{{changed, a}}, c.takeEvents())
	})
}

func TestAClientHearsOfItsOwnWriteBeforeTheReply(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c := s.connect()
		c.must(t, opGetChildren, watched(s.root, true))
		c.create(t, s.path("a"), persistent)
		require.Equal(t, []event{{childrenChanged, s.root}}, c.takeEvents())
	})
}

func TestADeletionIsReportedOnceToAWatcherOfDataAndChildren(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c, other := s.connect(), s.connect()
		a := s.path("a")
		other.create(t, a, persistent)
		c.must(t, opGetData, watched(a, true))
		c.must(t, opGetChildren, watched(a, true))
		c.must(t, opGetChildren2, watched(s.root, true))
		other.delete(t, a)
		require.Equal(t, []event{{deleted, a}, {childrenChanged, s.root}}, c.flush(t))
		other.create(t, a, persistent)
		require.Empty(t, c.flush(t))
	})
}

func TestOnlyExistsWatchesANodeThatIsNotThere(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c, other := s.connect(), s.connect()
		a := s.path("a")
		require.EqualValues(t, errNoNode, c.code(t, opGetData, watched(a, true)))
		require.EqualValues(t, errNoNode, c.code(t, opGetChildren, watched(a, true)))
		other.create(t, a, persistent)
		other.set(t, a, nil)
		other.delete(t, a)
		require.Empty(t, c.flush(t))
	})
}

func TestWatchesGoWithTheirConnection(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c, other := s.connect(), s.connect()
		c.must(t, opGetChildren, watched(s.root, true))
		c = c.again(t)
		other.create(t, s.path("a"), persistent)
		require.Empty(t, c.flush(t))
		c.must(t, opClose, nil)
	})
}

func TestSetWatchesReportsWhatWasMissedAndArmsTheRest(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c, other := s.connect(), s.connect()
		for _, n := range []string{"same", "set", "gone", "grown"} {
			c.create(t, s.path(n), persistent)
		}
		seen := c.zxid
		other.set(t, s.path("set"), nil)
		other.delete(t, s.path("gone"))
		other.create(t, s.path("grown/child"), persistent)
		other.create(t, s.path("new"), persistent)
		c.must(t, opSetWatches, enc{}.i64(seen).
			strs([]string{s.path("same"), s.path("set"), s.path("gone"), s.path("grown")}).
			strs([]string{s.path("new"), s.path("never")}).
			strs([]string{s.path("same"), s.path("grown"), s.path("gone")}))
		require.Equal(t, []event{
			{changed, s.path("set")},
			{deleted, s.path("gone")},
			{created, s.path("new")},
			{childrenChanged, s.path("grown")},
			{deleted, s.path("gone")},
		}, c.takeEvents())
		other.set(t, s.path("same"), nil)
		other.set(t, s.path("grown"), nil)
		other.create(t, s.path("same/child"), persistent)
		other.create(t, s.path("never"), persistent)
		require.Equal(t, []event{
			{changed, s.path("same")},
			{changed, s.path("grown")},
			{childrenChanged, s.path("same")},
			{created, s.path("never")},
		}, c.flush(t))
	})
}

func TestAPersistentWatchStaysAndARecursiveOneCoversWhatIsBelow(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c, deep, other := s.connect(), s.connect(), s.connect()
		a := s.path("a")
		c.must(t, opAddWatch, enc{}.str(a).i32(0))
		deep.must(t, opAddWatch, enc{}.str(a).i32(1))
		for range 2 {
			other.create(t, a, persistent)
			other.create(t, a+"/b", persistent)
			other.set(t, a+"/b", nil)
			other.delete(t, a+"/b")
			other.delete(t, a)
			require.Equal(t, []event{{created, a}, {childrenChanged, a}, {childrenChanged, a}, {deleted, a}}, c.flush(t))
			require.Equal(t, []event{
				{created, a}, {created, a + "/b"}, {changed, a + "/b"}, {deleted, a + "/b"}, {deleted, a},
			}, deep.flush(t))
		}
	})
}

func TestARemovedWatchIsSilent(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c, other := s.connect(), s.connect()
		a := s.path("a")
		other.create(t, a, persistent)
		require.EqualValues(t, errNoWatcher, c.code(t, opCheckWatches, versioned(a, 2)))
		c.must(t, opGetData, watched(a, true))
		c.must(t, opGetChildren, watched(a, true))
		c.must(t, opCheckWatches, versioned(a, 2))
		c.must(t, opRemoveWatches, versioned(a, 2))
		require.EqualValues(t, errNoWatcher, c.code(t, opRemoveWatches, versioned(a, 2)))
		other.set(t, a, nil)
		other.create(t, a+"/b", persistent)
		require.Equal(t, []event{{childrenChanged, a}}, c.flush(t))
		c.must(t, opAddWatch, enc{}.str(a).i32(1))
		c.must(t, opRemoveWatches, versioned(a, 3))
		other.set(t, a, nil)
		require.Empty(t, c.flush(t))
	})
}

// The fix of CVE-2024-23944 (3.8.4, 3.9.2, Debian's 3.8.0) reaches further
// than persistent watches.
func TestAClientThatMayNotReadANodeGetsNoEventOfIt(t *testing.T) {
	each(t, func(t *testing.T, s target) {
		c, other := s.connect(), s.connect()
		hidden := s.path("hidden")
		c.must(t, opExists, watched(s.root, true))
		require.EqualValues(t, errNoNode, c.code(t, opExists, watched(hidden, true)))
		other.must(t, opCreate, create(hidden, nil, []acl{{30, "world", "anyone"}}, persistent))
		c.must(t, opExists, watched(hidden, true))
		other.set(t, hidden, nil)
		c.must(t, opExists, watched(hidden, true))
		other.delete(t, hidden)
		require.Empty(t, c.flush(t))
	})
}
