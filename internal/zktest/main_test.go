package zktest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

func TestMain(m *testing.M) { Main(m) }

func TestTheSwitchDecidesWhatRunsWhatIsSkippedAndWhatFails(t *testing.T) {
	const run, skip, fail = "run", "skip", "fail"
	absent := errors.New("no java")
	for _, c := range []struct {
		choice        string
		ci            bool
		missing       error
		embeddedWants string
		realWants     string
	}{
		{"", false, nil, run, run},
		{"", false, absent, run, skip},
		{"", true, absent, run, fail},
		{"embedded", true, absent, run, skip},
		{"embedded", false, nil, run, skip},
		{"real", false, nil, skip, run},
		{"real", false, absent, skip, fail},
		{"all", true, nil, run, run},
		{"all", false, absent, run, fail},
		{"sometimes", false, nil, fail, fail},
	} {
		for backend, want := range map[Backend]string{Embedded: c.embeddedWants, Real: c.realWants, Ensemble: c.realWants} {
			reason, err := decide(backend, c.choice, c.ci, c.missing)
			got := run
			if err != nil {
				got = fail
			} else if reason != "" {
				got = skip
			}
			require.Equal(t, want, got, "%v with %+v: %v %v", backend, c, reason, err)
		}
	}
}

func TestWhatIsLeftOutIsNamed(t *testing.T) {
	reason, err := decide(Real, "", false, errors.New("no java command found"))
	require.NoError(t, err)
	require.Contains(t, reason, "no java command found")
	_, err = decide(Embedded, "sometimes", false, nil)
	require.ErrorContains(t, err, `ZKTEST_SERVERS="sometimes"`)
}

func TestAFolderWithoutZooKeeperIsNamed(t *testing.T) {
	folder := t.TempDir()
	_, err := findJars(folder)
	require.ErrorContains(t, err, folder+"/zookeeper-jute.jar")
	require.ErrorContains(t, err, "make zookeeper")

	_, err = findJars("artefacts/zookeeper")
	require.ErrorContains(t, err, "absolute")
}

const patience = 20 * time.Second

func init() {
	RegisterChild("echo", func(args []string) {
		fmt.Println("hello", strings.Join(args, " "))
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Println(in.Text())
		}
		os.Exit(7)
	})
	RegisterChild("server", func([]string) {
		s, err := startAlone(nil)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(s.PID(), s.dir)
		select {}
	})
}

func TestAChildTalksWithItsTestLineByLine(t *testing.T) {
	t.Parallel()
	c := Child(t, "echo", "from", "here")
	require.Equal(t, "hello from here", c.Line(patience))
	c.Send("one")
	require.Equal(t, "one", c.Line(patience))
	c.CloseStdin()
	require.Equal(t, 7, c.ExitCode(patience))
	_, open := <-c.Lines()
	require.False(t, open)
}

func TestAStoppedChildIsSilentAndAKilledOneIsGone(t *testing.T) {
	t.Parallel()
	c := Child(t, "echo")
	c.Line(patience)
	require.NoError(t, c.Stop())
	c.Send("asleep")
	require.Empty(t, c.Lines())
	require.NoError(t, c.Continue())
	require.Equal(t, "asleep", c.Line(patience))
	c.Kill()
	require.Equal(t, -1, c.ExitCode(patience))
	require.Error(t, c.Stop())
}

func TestAnUnknownChildIsNamed(t *testing.T) {
	t.Parallel()
	c := Child(t, "nobody")
	require.Equal(t, 64, c.ExitCode(patience))
	require.Contains(t, c.errs.String(), `no child "nobody"`)
}

// A test binary that is killed takes its servers with it, and its files go too.
func TestAKilledTestBinaryLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	Require(t, Real)
	c := Child(t, "server")
	pidText, dir, ok := strings.Cut(c.Line(readyWithin), " ")
	require.True(t, ok, pidText)
	pid, err := strconv.Atoi(pidText)
	require.NoError(t, err)
	require.DirExists(t, dir)

	c.Kill()

	Eventually(t, patience, func() bool { return !onDisk(fmt.Sprintf("/proc/%d", pid)) }, "the server dies")
	Eventually(t, patience, func() bool { return !onDisk(dir) }, "its folder is removed")
}

func onDisk(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// patient is a session timeout by which a client does not give a connection
// up because the machine is busy.
const patient = 30 * time.Second

func TestAClientDoesNotWaitForAnAnswerThatWasLost(t *testing.T) {
	t.Parallel()
	w := New(t, Embedded)
	lost := w.Proxy().Inject(proxy.Fault{On: []int32{proxy.OpConnect}, Do: proxy.Drop})

	Connect(t, w.Proxy().Addr(), readyWithin) // the client library alone would wait for 400 s

	require.Equal(t, 1, lost.Fired())
	require.Equal(t, 1, w.Proxy().Stats().Conns, "the next attempt is answered")
}

func TestAnExpiredSessionLosesItsNodesAndItsClientHearsOfIt(t *testing.T) {
	EachBeside(t, func(t *testing.T, w *World) {
		create(t, w.Admin(), w.Path(""), 0)
		conn, events := watched(t, w.ConnectString(), patient)
		create(t, conn, w.Path("mine"), zk.FlagEphemeral)

		w.ExpireSession(conn.SessionID())

		_, err := w.Admin().Sync(w.Path("")) // its server may not know of it yet
		require.NoError(t, err)
		require.False(t, exists(t, w.Admin(), w.Path("mine")))
		awaitState(t, events, zk.StateExpired)
	}, Embedded, Real, Ensemble)
}

func TestASessionEndsHoweverFastItsClientComesBack(t *testing.T) {
	t.Parallel()
	w := New(t, Real)
	for range 10 {
		conn := Connect(t, w.ConnectString(), patient)
		id := conn.SessionID()
		back := make(chan error, 1)
		go func() { // a client that connects again without a pause
			for {
				c, err := takeOver(w.ConnectString(), id, patient, nil)
				if errors.Is(err, errUnknownSession) {
					back <- nil
					return
				}
				if err == nil {
					_, _ = c.Read(make([]byte, 1)) // until it is taken over
					_ = c.Close()
				}
			}
		}()
		w.ExpireSession(id)
		require.NoError(t, Receive(t, 20*time.Second, back, "the client hears of the end"))
	}
	require.ErrorIs(t, w.Real().ExpireSession(1), errUnknownSession)
}

func TestADroppedConnectionLeavesTheSessionAlive(t *testing.T) {
	EachBeside(t, func(t *testing.T, w *World) {
		create(t, w.Admin(), w.Path(""), 0)
		conn, events := watched(t, w.ConnectString(), patient)
		id := conn.SessionID()
		create(t, conn, w.Path("mine"), zk.FlagEphemeral)

		w.DropConn(id)

		awaitState(t, events, zk.StateDisconnected)
		awaitState(t, events, zk.StateHasSession)
		require.Equal(t, id, conn.SessionID())
		require.True(t, exists(t, w.Admin(), w.Path("mine")))
	}, Embedded, Real, Ensemble)
}

// watched returns a client with a session, and the states it goes through from
// then on.
func watched(t *testing.T, connectString string, timeout time.Duration) (*zk.Conn, <-chan zk.State) {
	t.Helper()
	states := make(chan zk.State, 1000)
	conn, err := connect(connectString, timeout, func(e zk.Event) {
		if e.Type == zk.EventSession {
			states <- e.State
		}
	})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	awaitState(t, states, zk.StateHasSession)
	return conn, states
}

func awaitState(t *testing.T, states <-chan zk.State, want zk.State) {
	t.Helper()
	for Receive(t, 20*time.Second, states, "state %v", want) != want {
	}
}

func TestTheLogsOfAnEnsembleTellWhatItCarriedOut(t *testing.T) {
	t.Parallel()
	ens := RequireEnsemble(t)
	conn := Connect(t, ens.ConnectString(), patient)
	for _, path := range []string{"/one", "/two", "/three"} {
		create(t, conn, path, 0)
	}
	require.NoError(t, conn.Delete("/one", -1))
	_, err := conn.Multi(
		&zk.SetDataRequest{Path: "/two", Data: []byte("data"), Version: -1},
		&zk.CheckVersionRequest{Path: "/three", Version: -1},
		&zk.DeleteRequest{Path: "/three", Version: -1}, &zk.DeleteRequest{Path: "/two", Version: -1})
	require.NoError(t, err)

	all, err := ens.Transactions()
	require.NoError(t, err)
	var own []Transaction
	for i, tx := range all {
		require.True(t, i == 0 || tx.Zxid > all[i-1].Zxid)
		if tx.Session == conn.SessionID() && tx.Type > 0 {
			own = append(own, tx)
		}
	}
	require.Len(t, own, 5)
	require.Equal(t, []string{"/one"}, own[3].Deleted)
	require.Equal(t, []string{"/three", "/two"}, own[4].Deleted)
	require.Greater(t, own[4].Xid, own[3].Xid)
	require.False(t, own[4].Time.Before(own[0].Time))
	lost, err := ens.Lost(all)
	require.NoError(t, err)
	require.Empty(t, lost)
}

func TestAHoleInAServersLogIsFound(t *testing.T) {
	var all []Transaction
	log := func(left ...int64) map[int64]Transaction {
		own := map[int64]Transaction{}
		for _, tx := range all {
			if !slices.Contains(left, tx.Zxid) {
				own[tx.Zxid] = tx
			}
		}
		return own
	}
	const one, two = 1 << 32, 2 << 32 // before the first of each epoch
	for _, zxid := range []int64{one + 1, one + 2, one + 3, one + 4, two + 1, two + 2} {
		all = append(all, Transaction{Zxid: zxid})
	}
	require.Empty(t, holes(all, log(), nil))
	require.Equal(t, [][]int64{{one + 2, one + 3}}, holes(all, log(one+2, one+3), []int64{one + 1, one + 4}))
	require.Empty(t, holes(all, log(one+2, one+3), []int64{one + 3}), "learned by a snapshot")
	require.Empty(t, holes(all, log(one+3, one+4), nil), "proposed at the end of an epoch")
	require.Empty(t, holes(all, log(one+1, two+2), nil), "not there at the time")
}
