package wire

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// The errors of requests. What a server answers is the client library's error
// where it has one: [zk.ErrNoNode], [zk.ErrNodeExists]…
var (
	ErrQuota       = errors.New("quota exceeded")
	ErrThrottled   = errors.New("the server throttles requests")
	ErrUnsupported = fmt.Errorf("%w: the server does not know it", errors.ErrUnsupported)
	ErrInvalid     = errors.New("invalid argument")
	// ErrTooLarge: a request is larger than the servers accept.
	ErrTooLarge = errors.New("too large for a packet")

	// ErrConnection: the connection failed before the reply came. Whether the
	// request was carried out is unknown.
	ErrConnection = errors.New("connection to ZooKeeper lost")
	// ErrHungUp is an ErrConnection: the server closed the connection.
	ErrHungUp = fmt.Errorf("%w: the server closed it", ErrConnection)
	// ErrExpired: the session is over, for any reason.
	ErrExpired = errors.New("session is over")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("client is closed")
)

// ErrLocalSession: ephemeral nodes are refused to the session.
var ErrLocalSession = fmt.Errorf("%w: the server's sessions are local, and are not upgraded for ephemeral nodes "+
	"(localSessionsEnabled without localSessionsUpgradingEnabled)", errors.ErrUnsupported)

// codes are all of KeeperException.Code as of ZooKeeper 3.9, by their names
// there. An error is final, unless it says that the connection or the session
// is of no more use, or that the server is busy ([ErrThrottled]).
var codes = map[int32]struct {
	name string
	err  error // nil: the name says it all
	away bool  // the connection is given up: this server does not serve the session
}{
	-1:   {name: "SystemError"},
	-2:   {name: "RuntimeInconsistency"},
	-3:   {name: "DataInconsistency"},
	-4:   {"ConnectionLoss", ErrConnection, true},
	-5:   {name: "MarshallingError"},
	-6:   {"Unimplemented", ErrUnsupported, false},
	-7:   {"OperationTimeout", ErrConnection, true},
	-8:   {"BadArguments", ErrInvalid, false},
	-12:  {"UnknownSession", ErrExpired, false}, // a single server has ended it as the request came
	-13:  {name: "NewConfigNoQuorum"},
	-14:  {name: "ReconfigInProgress"},
	-100: {"APIError", ErrUnsupported, false},
	-101: {"NoNode", zk.ErrNoNode, false},
	-102: {"NoAuth", fmt.Errorf("%w: not permitted by the node's ACL", zk.ErrNoAuth), false},
	-103: {"BadVersion", zk.ErrBadVersion, false},
	-108: {"NoChildrenForEphemerals", zk.ErrNoChildrenForEphemerals, false},
	-110: {"NodeExists", zk.ErrNodeExists, false},
	-111: {"NotEmpty", zk.ErrNotEmpty, false},
	-112: {"SessionExpired", ErrExpired, false},
	-113: {name: "InvalidCallback"},
	-114: {"InvalidACL", fmt.Errorf("%w: the server refuses this ACL: %w", ErrInvalid, zk.ErrInvalidACL), false},
	-115: {"AuthFailed", zk.ErrAuthFailed, false},
	-118: {"SessionMoved", ErrConnection, true},
	-119: {"NotReadOnly", ErrConnection, true}, // the server has no quorum
	-120: {"EphemeralOnLocalSession", ErrLocalSession, false},
	-121: {name: "NoWatcher"},
	-122: {"RequestTimeout", ErrConnection, true},
	-123: {name: "ReconfigDisabled"},
	-124: {
		"SessionClosedRequireSaslAuth",
		fmt.Errorf("%w: it serves only sessions with an authentication that this one lacks "+
			"(enforce.auth.enabled)", zk.ErrAuthFailed), true,
	},
	-125: {"QuotaExceeded", ErrQuota, false},
	-127: {"ThrottledOp", ErrThrottled, false},
}

func errorOf(number int32) error {
	c, known := codes[number]
	switch {
	case number == 0:
		return nil
	case !known:
		return fmt.Errorf("the server answers with error %d, which is not known here", number)
	case c.err == nil:
		return fmt.Errorf("the server answers with %s (%d)", c.name, number)
	case c.away && c.err == ErrConnection:
		return fmt.Errorf("%w: the server answers with %s (%d)", c.err, c.name, number)
	}
	return c.err
}

// Refusal is the end of a connection to a server that does not serve the
// session, although it has opened it.
type Refusal struct{ error }

// Unwrap returns the error of the server's answer.
func (r Refusal) Unwrap() error { return r.error }

// Invalid returns an [ErrInvalid] that says what is wrong.
func Invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}
