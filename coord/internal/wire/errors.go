package wire

import (
	"errors"
	"fmt"
)

// The answers of a server, and the ends of a session.
var (
	ErrNoNode      = errors.New("node does not exist")
	ErrNodeExists  = errors.New("node exists already")
	ErrNotEmpty    = errors.New("node has children")
	ErrBadVersion  = errors.New("node has another version")
	ErrNoAuth      = errors.New("not permitted by the node's ACL")
	ErrEphemeral   = errors.New("ephemeral nodes cannot have children")
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
	// ErrAuth: the server refused the credentials.
	ErrAuth = errors.New("the server refused the credentials")
)

// codes are the errors of replies.
var codes = map[int32]error{
	-4: ErrConnection, -6: ErrUnsupported, -8: ErrInvalid, -100: ErrUnsupported,
	-12:  ErrExpired, // unknown session: a single server has ended it as the request came
	-101: ErrNoNode, -102: ErrNoAuth, -103: ErrBadVersion, -108: ErrEphemeral, -110: ErrNodeExists, -111: ErrNotEmpty,
	-112: ErrExpired, -114: fmt.Errorf("%w: the server refuses this ACL", ErrInvalid), -115: ErrAuth, -118: ErrConnection,
	-125: ErrQuota, -127: ErrThrottled,
}

func errorOf(code int32) error {
	if err, known := codes[code]; known || code == 0 {
		return err
	}
	return fmt.Errorf("zk: unknown error: %d", code)
}

// Invalid returns an [ErrInvalid] that says what is wrong.
func Invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}
