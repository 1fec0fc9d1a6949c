package session

import (
	"context"
	"log/slog"
	"net"
	"time"
)

// Auth is a credential that every new connection presents before anything
// else.
type Auth struct {
	Scheme     string
	Credential []byte
}

// Config says how to reach the servers and what session to ask for.
type Config struct {
	Servers []string      // host:port each, tried in this order from a random start
	Timeout time.Duration // the session time-out to ask for
	Tick    time.Duration // the servers' tickTime; 0 = unknown
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	Auth    []Auth
	Log     *slog.Logger

	// Notify hears of the sessions' lives. It must not block.
	Notify func(Change, *Session)
}

// Change is what happens to a session.
type Change int

// The changes of a session's life. Up and Down alternate; Over comes once, and
// takes the place of the last Down.
// WindowClosed comes when the trust window ends with no write acknowledged in
// time, and again and again until it is open.
const (
	Up Change = iota
	Down
	WindowClosed
	Over
)

// Bounds derived from the session time-out T. Together they leave time for two
// hung servers in a row within one T: T/2 to notice the first, T/6 for the
// handshake of the second, and a third of T to connect to another.
const (
	handshakeShare = 6 // T/6 for the reply to a handshake, in the first round through the servers
	stallShare     = 2 // T/2 for the reply to any other request
	// Probes go out a tenth more than T/8 apart: two of them span the T/4 that
	// half an unknown tick may last and the time of a round trip (up to T/40),
	// so that a window is renewed before less than T/2 of it is left.
	probeShare = 8
	// How often to look at a window that is closed: half of the margin that the
	// window leaves for acting on its end.
	lapsedShare = 100
	dialLimit   = time.Second
	// Unless servers are told otherwise (minSessionTimeout), a session cannot last
	// less than two ticks, so a tick nobody told is taken for half the session
	// time-out.
	unknownTickShare = 2
)

func probeInterval(timeout time.Duration) time.Duration {
	return timeout/probeShare + timeout/80
}
