package zktest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// inner is a test within a test: its failures are noted and its clean-ups run
// by finish.
type inner struct {
	testing.TB
	errors   []string
	cleanups []func()
}

func (i *inner) Helper()          {}
func (i *inner) Failed() bool     { return len(i.errors) > 0 }
func (i *inner) Cleanup(f func()) { i.cleanups = append(i.cleanups, f) }
func (i *inner) Errorf(format string, args ...any) {
	i.errors = append(i.errors, fmt.Sprintf(format, args...))
}

func (i *inner) finish() {
	for len(i.cleanups) > 0 {
		last := i.cleanups[len(i.cleanups)-1]
		i.cleanups = i.cleanups[:len(i.cleanups)-1]
		last()
	}
}

func TestAWorldRemovesWhatIsInItsNamespace(t *testing.T) {
	t.Parallel()
	Each(t, func(t *testing.T, w *World) {
		if w.Backend() == Embedded {
			t.Skip("an embedded server goes with its world")
		}
		in := &inner{TB: t}
		world := New(in, w.Backend())
		admin := world.Admin()
		create(t, admin, world.Path(""), 0)
		for i := range 600 {
			create(t, admin, world.Path(fmt.Sprint("child", i)), 0)
		}
		mine := zk.DigestACL(zk.PermAll, "somebody", "else")
		_, err := admin.Create(world.Path("locked"), nil, 0, mine)
		require.NoError(t, err)

		in.finish()

		require.Empty(t, in.errors)
		exists, _, err := w.Admin().Exists(world.Path(""))
		require.NoError(t, err)
		require.False(t, exists)
	}, Real, Ensemble)
}

func TestAWorldFailsItsTestIfAnEphemeralNodeOrAWatchIsLeft(t *testing.T) {
	t.Parallel()
	Each(t, func(t *testing.T, w *World) {
		in := &inner{TB: t}
		world := New(in, w.Backend())
		world.SetTimeout(200 * time.Millisecond)
		create(t, world.Admin(), world.Path(""), 0)
		leaky, err := connect(world.ConnectString(), patient, func(zk.Event) {})
		require.NoError(t, err)
		defer leaky.Close()
		create(t, leaky, world.Path("left"), zk.FlagEphemeral)
		_, _, _, err = leaky.ExistsW(world.Path("watched"))
		require.NoError(t, err)
		require.Equal(t, []string{world.Path("watched")}, world.Watched())

		in.finish()

		require.Len(t, in.errors, 2)
		require.Contains(t, in.errors[0], world.Path("left"))
		require.Contains(t, in.errors[1], world.Path("watched"))
	})
}

func TestAWorldGivesADeadClientsNodesTimeToExpire(t *testing.T) {
	t.Parallel()
	Each(t, func(t *testing.T, w *World) {
		in := &inner{TB: t}
		world := New(in, w.Backend())
		world.SetTimeout(2 * SessionTimeout)
		create(t, world.Admin(), world.Path(""), 0)
		dead := Connect(t, world.Proxy().Addr(), 2*SessionTimeout)
		create(t, dead, world.Path("expires"), zk.FlagEphemeral)
		world.Proxy().Close() // no farewell reaches the server
		in.finish()
		require.Empty(t, in.errors)
	})
}

func TestWorldsDoNotMeet(t *testing.T) {
	t.Parallel()
	Each(t, func(t *testing.T, w *World) {
		other := New(t, w.Backend())
		require.NotEqual(t, w.Path("x"), other.Path("x"))
		require.True(t, strings.HasPrefix(w.Path("x"), "/t-TestWorldsDoNotMeet-"), w.Path("x"))
		require.Equal(t, w.Path("")+"/a/b", w.Path("/a/b/"))
	}, Embedded, Real, Ensemble)
}

func TestSharedServersCannotBeHurt(t *testing.T) {
	t.Parallel()
	s := New(t, Real)
	in := &fatal{TB: t}
	s.t = in
	for _, hurt := range []func(){s.Crash, s.Recover, s.Freeze, s.Thaw} {
		require.Panics(t, hurt)
		require.Contains(t, in.said, "EachPrivate")
	}
	s.t = t
}

// fatal turns Fatalf into a panic.
type fatal struct {
	testing.TB
	said string
}

func (f *fatal) Helper() {}
func (f *fatal) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f.said)
}

func TestServersComeBackFromACrashAndFromAFreeze(t *testing.T) {
	t.Parallel()
	EachPrivate(t, func(t *testing.T, w *World) {
		create(t, w.Admin(), w.Path(""), 0)
		conn, states := watched(t, w.ConnectString(), 2*SessionTimeout)
		create(t, conn, w.Path("mine"), zk.FlagEphemeral)

		w.Crash()
		awaitState(t, states, zk.StateDisconnected)
		w.Recover()
		awaitState(t, states, zk.StateHasSession)
		Eventually(t, readyWithin, func() bool {
			_, _, err := conn.Exists(w.Path("mine"))
			return err == nil
		}, "the client is served")

		w.Freeze()
		awaitState(t, states, zk.StateDisconnected)
		w.Thaw()
		awaitState(t, states, zk.StateConnected)
	}, Embedded, Real, Ensemble)
}
