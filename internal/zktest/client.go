package zktest

import (
	"io"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// Connect returns a plain go-zookeeper client with a session, closed at the test's end if not before.
func Connect(t testing.TB, connectString string, timeout time.Duration) *zk.Conn {
	t.Helper()
	conn, err := connect(connectString, timeout, func(zk.Event) {})
	if err != nil {
		t.Fatalf("connecting to %s: %v", connectString, err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// connect returns when the client has a session. It calls callback at every event; callback must not block.
func connect(connectString string, timeout time.Duration, callback zk.EventCallback) (*zk.Conn, error) {
	quiet := log.New(io.Discard, "", 0)
	conn, _, err := zk.Connect(strings.Split(connectString, ","), timeout,
		zk.WithLogger(quiet), zk.WithLogInfo(false), zk.WithEventCallback(callback))
	if err != nil {
		return nil, err
	}
	if !poll(readyWithin, func() bool { return conn.State() == zk.StateHasSession }) {
		conn.Close()
		return nil, zk.ErrNoServer
	}
	return conn, nil
}
