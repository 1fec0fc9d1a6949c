package session

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/attend"
	"github.com/zkcoord/zkcoord/coord/internal/servers"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// Config says how to reach the servers and what session to ask for.
type Config struct {
	servers.Config
	Timeout time.Duration // the session time-out to ask for
	Tick    time.Duration // the servers' tickTime; 0 = unknown
	// MaxPacket is the largest packet that the servers accept.
	MaxPacket int
	sizes     *wire.Sizes
	// NoContainers: directories are persistent nodes.
	NoContainers bool
	Auth         []attend.Credential
	Log          *slog.Logger
	Waiting      *slog.Logger // hears that there is no connection before there was one

	// Suspended returns how long the machine has been suspended so far; nil
	// means this machine's time.
	Suspended func() time.Duration

	// Attendant is the path of the socket of an attendant, or ""; see
	// [attend.NewClient].
	Attendant string
	Share     []func(*os.File)
	Attended  func(session int64, err error)
	attendant *attend.Client

	// Notify hears of the sessions' lives. It must not block.
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

// Bounds derived from the session time-out T. Together they leave time for two
// hung servers in a row within one T: T/2 to notice the first, T/6 for the
// handshake of the second, and a third of T to connect to another.
const (
	handshakeShare = 6 // T/6 for the reply to a handshake, in the first round through the servers
	// How long the client waits for a server's answer to the closing of a
	// session, at most.
	closeLimit = time.Second
)

// errGivenUp: this client has ended the session, which servers may still have.
var errGivenUp = errors.New("given up by this client")

// closeFormer closes a session that this client has given up, as soon as the
// next one is up: others need not wait until the servers expire it. Nothing
// trusts the session any more: its holds have ended before.
func (k *Keeper) closeFormer(s *Session) {
	account, _ := s.Account() // TLS is as this process has it
	if !errors.Is(s.Err(), errGivenUp) || len(account.Password) == 0 {
		return
	}
	if _, err := k.Session(k.stop); err != nil {
		return
	}
	closer := attend.Closer{
		Config: k.cfg.Config,
		Run: func(attempt func()) error {
			k.running.Go(attempt)
			return nil
		},
		Try: func(at func() error) error { return at() },
		Failed: func(server string, err error) {
			k.cfg.Log.Debug("cannot close the former session yet", "server", server, "err", err)
		},
	}
	_ = closer.Close(k.stop, account)
}

// Account returns what another process needs to close the session. It fails if
// the session has never been up, or if the TLS configuration cannot be passed
// on.
func (s *Session) Account() (account attend.Session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	account = attend.Session{Servers: s.cfg.Servers, ID: s.id, Password: s.passwd, Timeout: s.timeout, Auth: s.cfg.Auth}
	if s.wire == nil || s.passwd == nil {
		return account, wire.ErrConnection
	}
	account.TLS, err = attend.TLSOf(s.cfg.TLS, s.wire.Conn)
	return account, err
}

// beAttended tells the attendant of the session, once it has a password.
func (s tap) beAttended() {
	if account, err := s.Account(); err != nil {
		s.cfg.attendant.Refuse(account.ID, err)
	} else {
		s.cfg.attendant.Attend(account)
	}
}

// Txn carries out all the operations or none. When the ensemble refused it, the
// results say which operation failed.
func (s *Session) Txn(ctx context.Context, ops []wire.Op) ([]wire.Result, error) {
	results, err := roundTrip(ctx, s, wire.Request{Op: wire.OpMulti}, wire.Transaction(ops), func(d *wire.Decoder) []wire.Result { return d.Results(ops) })
	if at := Refused(results); at >= 0 {
		err = results[at].Err
	}
	return results, err
}

// Node is a node as it was read.
type Node struct {
	Exists bool
	Data   []byte
	Stat   wire.Stat
}

// Get reads a node.
func (s *Session) Get(ctx context.Context, path string) (Node, error) {
	return roundTrip(ctx, s, wire.Request{Op: wire.OpGetData}, wire.Reading(path, false), nodeOf)
}

func nodeOf(d *wire.Decoder) Node { return Node{true, d.Buffer(), d.Stat()} }

// Exists looks whether a node exists; it needs no permission to read it.
func (s *Session) Exists(ctx context.Context, path string) (Node, error) {
	node, err := roundTrip(ctx, s, wire.Request{Op: wire.OpExists}, wire.Reading(path, false), func(d *wire.Decoder) Node {
		return Node{true, nil, d.Stat()}
	})
	if err == wire.ErrNoNode {
		err = nil
	}
	return node, err
}

// Refused returns the index of the operation that the ensemble refused, or -1.
func Refused(replies []wire.Result) int {
	return slices.IndexFunc(replies, func(r wire.Result) bool { return r.Err != nil })
}
