package zktest

import (
	"io"
	"log"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// Connect returns a plain go-zookeeper client with a session, closed at the
// test's end if not before.
func Connect(t testing.TB, connectString string, timeout time.Duration) *zk.Conn {
	t.Helper()
	conn, err := connect(connectString, timeout, func(zk.Event) {})
	if err != nil {
		t.Fatalf("connecting to %s: %v", connectString, err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// connect returns when the client has a session. It calls callback at every
// event; callback must not block.
func connect(connectString string, timeout time.Duration, callback zk.EventCallback) (*zk.Conn, error) {
	quiet := log.New(io.Discard, "", 0)
	conn, _, err := zk.Connect(strings.Split(connectString, ","), timeout,
		zk.WithLogger(quiet), zk.WithLogInfo(false), zk.WithEventCallback(callback), zk.WithDialer(dial))
	if err != nil {
		return nil, err
	}
	if !poll(readyWithin, func() bool { return conn.State() == zk.StateHasSession }) {
		conn.Close()
		return nil, zk.ErrNoServer
	}
	return conn, nil
}

// answersWithin bounds the wait for the answer to a client's first packet. The
// client library waits 6.7 time-outs for it, which is longer than a test waits
// for a server that starts and lost the packet.
const answersWithin = 5 * time.Second

func dial(network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	return &greeting{Conn: conn}, nil
}

// greeting is a connection with a shorter deadline for its first answer.
type greeting struct {
	net.Conn
	begun bool
}

func (g *greeting) SetReadDeadline(t time.Time) error {
	if soon := time.Now().Add(answersWithin); !g.begun && soon.Before(t) {
		t = soon
	}
	g.begun = true
	return g.Conn.SetReadDeadline(t)
}
