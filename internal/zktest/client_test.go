package zktest

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// patient is a session time-out by which a client does not give a connection
// up because the machine is busy.
const patient = 30 * time.Second

func TestAClientDoesNotWaitForAnAnswerThatWasLost(t *testing.T) {
	t.Parallel()
	w := New(t, Embedded)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	var accepted atomic.Int32
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			if accepted.Add(1) == 1 { // silent for as long as the client waits
				go func() { _, _ = io.Copy(io.Discard, client); _ = client.Close() }()
				continue
			}
			server, err := net.Dial("tcp", w.ConnectString())
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			go func() { _, _ = io.Copy(client, server); _ = client.Close() }()
		}
	}()

	Connect(t, l.Addr().String(), readyWithin) // the client library alone would wait for 400 s

	require.EqualValues(t, 2, accepted.Load())
}

func TestAnExpiredSessionLosesItsNodesAndItsClientHearsOfIt(t *testing.T) {
	t.Parallel()
	Each(t, func(t *testing.T, w *World) {
		create(t, w.Admin(), w.Path(""), 0)
		conn, events := watched(t, w.ConnectString(), patient)
		create(t, conn, w.Path("mine"), zk.FlagEphemeral)

		w.ExpireSession(conn.SessionID())

		_, err := w.Admin().Sync(w.Path("")) // its server may not know of it yet
		require.NoError(t, err)
		exists, _, err := w.Admin().Exists(w.Path("mine"))
		require.NoError(t, err)
		require.False(t, exists)
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
	t.Parallel()
	Each(t, func(t *testing.T, w *World) {
		create(t, w.Admin(), w.Path(""), 0)
		conn, events := watched(t, w.ConnectString(), patient)
		id := conn.SessionID()
		create(t, conn, w.Path("mine"), zk.FlagEphemeral)

		w.DropConn(id)

		awaitState(t, events, zk.StateDisconnected)
		awaitState(t, events, zk.StateHasSession)
		require.Equal(t, id, conn.SessionID())
		exists, _, err := w.Admin().Exists(w.Path("mine"))
		require.NoError(t, err)
		require.True(t, exists)
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
		&zk.SetDataRequest{Path: "/two", Data: []byte("data"), Version: -1}, &zk.CheckVersionRequest{Path: "/three", Version: -1},
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
}
