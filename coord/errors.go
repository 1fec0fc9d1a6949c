package coord

import (
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// The errors of this module, for errors.Is. A call that asks the servers
// returns an [*OpError] that wraps one of them, a context's error, or both; any
// other answer of the server comes as text, by ZooKeeper's name for it. The
// error matches [errors.ErrUnsupported] for an impossible call: an operation
// that the server does not know, or does not permit in its local sessions, and
// a request to a claim that cannot be asked (see inspect.Revoke). Several
// failures that have nothing to do with each other are one *multierror.Error
// (hashicorp/go-multierror).
var (
	// ErrBusy: a try found the turn taken.
	ErrBusy = errors.New("held by another")
	// ErrLost: a hold ended before it was released. The error also matches its
	// cause: [ErrSessionExpired], [ErrNodeDeleted], [ErrClosed],
	// [ErrWindowOver], [ErrDisconnected] or [ErrAuthFailed].
	ErrLost = errors.New("hold lost")
	// ErrWindowOver: no write was acknowledged in time, and the servers may
	// have given the session up by now.
	ErrWindowOver = errors.New("trust window over")
	// ErrNodeDeleted: the claim's node was deleted, by another client or with
	// its session: the servers end a session with its nodes, and may report
	// those first.
	ErrNodeDeleted = errors.New("our node was deleted")
	// ErrReleased: the hold was released by its owner.
	ErrReleased = znode.ErrReleased
	// ErrForeign: the directory holds a contender of another dialect or recipe,
	// perhaps of an unknown one ([Unknown]), that came first. The two kinds
	// cannot exclude each other.
	ErrForeign = errors.New("contender of another dialect or recipe")
	// ErrDisagree: clients that use the same path must agree on something, such
	// as a limit, a number of members or a list of keys, and this one does not.
	// The message has what each wants; the recipe says how it is changed.
	ErrDisagree = errors.New("the clients disagree")
	// ErrSequenceExhausted: the directory's 31-bit sequence counter is near its
	// end, beyond which order is lost. Delete the directory while it is not in
	// use; the counter then starts anew.
	ErrSequenceExhausted = errors.New("sequence counter of the directory is used up")
	// ErrUnconfirmed: whether the request took effect is not known (yet).
	ErrUnconfirmed = znode.ErrUnconfirmed
	// ErrTooLarge: a request exceeds what a server accepts in one packet
	// ([WithMaxPacket]), or what the link has lately carried in a quarter of
	// the session timeout: the session's probes would wait behind it. It was
	// not sent, or servers have closed the connection on it a few times.
	ErrTooLarge = wire.ErrTooLarge
	// ErrInvalid: an argument is invalid; the message says which and why. An
	// acquire with a context that carries a hold for which it would wait for
	// ever is invalid, too, such as a write inside of a read of the same line.
	ErrInvalid = wire.ErrInvalid

	// ErrSessionExpired: the session is over; its ephemeral nodes are gone or
	// will be. The client opens a new session by itself.
	ErrSessionExpired = wire.ErrExpired
	// ErrClosed: the client was closed.
	ErrClosed = wire.ErrClosed
	// ErrDisconnected: the connection failed before the reply came.
	ErrDisconnected = wire.ErrConnection
	// ErrThrottled: the server refused the request for now.
	ErrThrottled = wire.ErrThrottled

	// Answers of the server, which are the errors of go-zookeeper/zk.
	ErrNoNode     = zk.ErrNoNode
	ErrNodeExists = zk.ErrNodeExists
	ErrNotEmpty   = zk.ErrNotEmpty
	ErrBadVersion = zk.ErrBadVersion
	ErrNoAuth     = zk.ErrNoAuth
	ErrAuthFailed = zk.ErrAuthFailed
)

// OpError says which operation on which path failed with Err.
type OpError struct {
	Op   string // "acquire", "release", "get"…
	Path string
	Err  error
}

func (e *OpError) Error() string {
	if e.Path == "" {
		return e.Op + ": " + e.Err.Error()
	}
	return e.Op + " " + e.Path + ": " + e.Err.Error()
}

func (e *OpError) Unwrap() error { return e.Err }

// WaitError says what a wait was for when its deadline ended it. Its text is
// that of Err, a semicolon, and For.
type WaitError struct {
	Err error
	For string // `held by "owner"`, "2 of 3 have come"…
}

func (e *WaitError) Error() string { return e.Err.Error() + "; " + e.For }

func (e *WaitError) Unwrap() error { return e.Err }

// opError wraps err, unless it is nil or already says what was being done.
func opError(op, path string, err error) error {
	if err == nil || errors.As(err, new(*OpError)) {
		return err
	}
	return &OpError{Op: op, Path: path, Err: err}
}
