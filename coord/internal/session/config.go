package session

import (
	"log/slog"
	"os"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/attend"
	"github.com/zkcoord/zkcoord/coord/internal/servers"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// Config says how to reach the servers and what session to ask for.
type Config struct {
	servers.Config
	Timeout time.Duration // the session timeout to ask for
	Tick    time.Duration // the servers' tickTime; 0 = unknown
	// MaxPacket is the largest packet that the servers accept.
	MaxPacket int
	sizes     *wire.Sizes
	// NoContainers: directories are persistent nodes.
	NoContainers bool
	Auth         []attend.Credential
	Log          *slog.Logger
	Waiting      *slog.Logger // gets the warnings that there is no connection, until there was one

	// Suspended returns how long the machine has been suspended so far; nil
	// means this machine's time.
	Suspended func() time.Duration

	// Attendant is the path of the socket of an attendant, or ""; see
	// [attend.NewClient].
	Attendant string
	Share     []func(*os.File)
	Attended  func(session int64, err error)
	attendant *attend.Client

	// Notify is called for each [Change] of a session. It must not block.
	Notify func(Change, *Session)
}

// Change is what happens to a session.
type Change int

// The changes of a session's life. Up and Down alternate; Over comes once, and
// takes the place of the last Down. WindowClosed comes when the trust window
// ends with no write acknowledged in time, and again and again until it is
// open. Holding comes about every tenth of T while the window is kept open and
// there is a connection.
const (
	Up Change = iota
	Down
	WindowClosed
	Holding
	Over
)

// Bounds derived from the session timeout T. Together they leave time for two
// hung servers in a row within one T: T/2 to notice the first, T/6 for the
// handshake of the second, and a third of T to connect to another.
const (
	handshakeShare = 6 // T/6 for the reply to a handshake, in the first round through the servers
	// How long the client waits for a server's answer to the closing of a
	// session, at most.
	closeLimit = time.Second
)
