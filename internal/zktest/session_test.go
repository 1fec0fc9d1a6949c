package zktest

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

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
