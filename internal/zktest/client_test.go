package zktest

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

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
