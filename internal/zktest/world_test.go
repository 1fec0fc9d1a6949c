package zktest

import (
	"cmp"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

func (i *inner) Fatalf(format string, args ...any) {
	i.Errorf(format, args...)
	panic("the end of a test within a test")
}

func (i *inner) finish() {
	for len(i.cleanups) > 0 {
		last := i.cleanups[len(i.cleanups)-1]
		i.cleanups = i.cleanups[:len(i.cleanups)-1]
		last()
	}
}

func TestAWorldRemovesWhatIsInItsNamespace(t *testing.T) {
	EachBeside(t, func(t *testing.T, w *World) {
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
		require.False(t, exists(t, w.Admin(), world.Path("")))
	}, Real, Ensemble)
}

func TestAWorldFailsItsTestIfAnEphemeralNodeOrAWatchIsLeft(t *testing.T) {
	EachBeside(t, func(t *testing.T, w *World) {
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
	EachBeside(t, func(t *testing.T, w *World) {
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
	EachBeside(t, func(t *testing.T, w *World) {
		other := New(t, w.Backend())
		require.NotEqual(t, w.Path("x"), other.Path("x"))
		require.True(t, strings.HasPrefix(w.Path("x"), "/t-TestWorldsDoNotMeet-"), w.Path("x"))
		require.Equal(t, w.Path("")+"/a/b", w.Path("/a/b/"))
	}, Embedded, Real, Ensemble)
}

func TestSharedServersCannotBeHurt(t *testing.T) {
	t.Parallel()
	s := New(t, Real)
	for _, hurt := range []func(){s.Crash, s.Recover, s.Freeze, s.Thaw} {
		in := &inner{TB: t}
		s.t = in
		require.Panics(t, hurt)
		require.Contains(t, in.errors[0], "EachPrivate")
	}
	s.t = t
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

func TestAKilledServerComesBackOnItsAddressWithItsDataThoughItHadJustBegunALog(t *testing.T) {
	t.Parallel()
	s := RequireReal(t)
	addr, pid := s.Addr(), s.PID()
	create(t, Connect(t, s.Addr(), patient), "/kept", 0)

	require.NoError(t, s.Kill())
	require.False(t, s.Alive())
	_, err := net.Dial("tcp", s.Addr())
	require.Error(t, err, "nothing listens while the server is dead")
	require.Error(t, s.Kill(), "a dead server cannot be killed again")
	begun := filepath.Join(s.DataDir(), "version-2", "log.7fffffff")
	require.NoError(t, os.WriteFile(begun, nil, 0o600))
	require.NoError(t, s.Restart())

	require.Equal(t, addr, s.Addr())
	require.NotEqual(t, pid, s.PID())
	require.True(t, exists(t, Connect(t, s.Addr(), patient), "/kept"))
}

func TestAStoppedServerAcceptsConnectionsAndAnswersNothingUntilContinued(t *testing.T) {
	t.Parallel()
	s := RequireReal(t)
	require.NoError(t, s.Stop())
	require.True(t, s.Alive())

	conn, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("ruok"))
	require.NoError(t, err)
	answer := make([]byte, 4)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(300*time.Millisecond)))
	_, err = conn.Read(answer)
	require.Error(t, err, "a stopped server answers nothing")

	require.NoError(t, s.Continue())
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	n, err := conn.Read(answer)
	require.NoError(t, err)
	require.Equal(t, "imok", string(answer[:n]))
}

func TestAServerTellsItsConfigurationItsVersionAndItsNumbers(t *testing.T) {
	t.Parallel()
	s := RequireReal(t, WithTick(150*time.Millisecond))
	conf, err := s.FourLetter("conf")
	require.NoError(t, err)
	require.Contains(t, conf, "tickTime=150\n")
	require.Regexp(t, `^\d+\.\d+\.\d+$`, s.Version())
	conn := Connect(t, s.Addr(), patient)
	_, _, _, err = conn.ExistsW("/watched")
	require.NoError(t, err)
	watches, err := s.Mntr("zk_watch_count")
	require.NoError(t, err)
	require.EqualValues(t, 1, watches)
	_, err = s.Mntr("zk_no_such_key")
	require.ErrorContains(t, err, "zk_no_such_key", "a key that is unknown is named")
}

func create(t testing.TB, conn *zk.Conn, path string, flags int32) {
	t.Helper()
	_, err := conn.Create(path, nil, flags, zk.WorldACL(zk.PermAll))
	require.NoError(t, err, "creating %s", path)
}

func exists(t testing.TB, conn *zk.Conn, path string) bool {
	t.Helper()
	found, _, err := conn.Exists(path)
	require.NoError(t, err)
	return found
}

// classes is the archive that the next test makes, for EnvClasses.
var classes = flag.String("classes", "", "make an archive of a server's classes: `file`")

func TestAServerStartsFromAnArchiveOfItsClasses(t *testing.T) {
	archive := cmp.Or(*classes, filepath.Join(t.TempDir(), "classes.jsa"))
	t.Setenv(EnvClasses, "")
	s := RequireEnsemble(t).Followers()[0] // most servers are members of ensembles
	s.config.jvm = append(s.config.jvm, "-XX:ArchiveClassesAtExit="+archive)
	require.NoError(t, s.Restart())
	require.NoError(t, syscall.Kill(s.PID(), syscall.SIGTERM))
	Eventually(t, readyWithin, func() bool { return !s.proc.alive() }, "the end of the server")
	t.Setenv(EnvClasses, archive)
	RequireReal(t, WithJVM("-Xshare:on")) // ends at once where the archive does not fit
}

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
	require.True(t, exists(t, Connect(t, leader.Addr(), patient), "/kept"))

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
	require.False(t, exists(t, behind, "/new"), "the follower has not noticed yet")
	require.Positive(t, link.Stats().Held)
	Eventually(t, 30*time.Second, func() bool { return follower.Mode() == "" }, "the follower gives up")

	link.Heal()
	Eventually(t, 30*time.Second, func() bool { return follower.Mode() == "follower" }, "the follower is back")
	Eventually(t, patience, func() bool { _, err = behind.Sync("/new"); return err == nil }, "the client is back")
	require.True(t, exists(t, behind, "/new"))
}
