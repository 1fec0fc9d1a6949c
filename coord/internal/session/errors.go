package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"
)

// The answers of a server, and the ends of a session, in this module's own
// words: the client library's error values are no contract.
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

	// ErrConnection: the connection failed before the reply came. Whether the
	// request was carried out is unknown.
	ErrConnection = errors.New("connection to ZooKeeper lost")
	// ErrExpired: the session is over, whatever ended it.
	ErrExpired = errors.New("session is over")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("client is closed")
	// ErrAuth: the server refused the credentials.
	ErrAuth = errors.New("the server refused the credentials")
)

var translations = map[error]error{
	zk.ErrNoNode:                  ErrNoNode,
	zk.ErrNodeExists:              ErrNodeExists,
	zk.ErrNotEmpty:                ErrNotEmpty,
	zk.ErrBadVersion:              ErrBadVersion,
	zk.ErrNoAuth:                  ErrNoAuth,
	zk.ErrInvalidACL:              fmt.Errorf("%w: the server refuses this ACL", ErrInvalid),
	zk.ErrNoChildrenForEphemerals: ErrEphemeral,
	zk.ErrInvalidPath:             ErrInvalid,
	zk.ErrBadArguments:            ErrInvalid,
	zk.ErrSessionExpired:          ErrExpired,
	zk.ErrAuthFailed:              ErrAuth,
	zk.ErrConnectionClosed:        ErrConnection,
	zk.ErrNoServer:                ErrConnection,
	zk.ErrClosing:                 ErrConnection,
	zk.ErrSessionMoved:            ErrConnection,
}

// Codes for which the client library has no value of its own; it shows them
// only in the text of the error.
var untyped = map[string]error{
	"unknown error: -4":   ErrConnection,
	"unknown error: -6":   ErrUnsupported,
	"unknown error: -125": ErrQuota,
	"unknown error: -127": ErrThrottled,
}

// codes are the errors of the replies to the session's own requests.
var codes = map[int32]error{
	-4: ErrConnection, -6: ErrUnsupported, -8: ErrInvalid,
	codeNoNode: ErrNoNode, -102: ErrNoAuth, -103: ErrBadVersion, -108: ErrEphemeral, -110: ErrNodeExists, -111: ErrNotEmpty,
	codeExpired: ErrExpired, -114: translations[zk.ErrInvalidACL], -115: ErrAuth, -118: ErrConnection,
	-125: ErrQuota,
}

func errorOf(code int32) error {
	if err, known := codes[code]; known || code == 0 {
		return err
	}
	return fmt.Errorf("zk: unknown error: %d", code)
}

func translate(err error) error {
	if err == nil {
		return nil
	}
	for theirs, ours := range translations {
		if err == theirs { // no lookup: an error of a user's own may not be hashable
			return ours
		}
	}
	if known, ok := untyped[strings.TrimPrefix(err.Error(), "zk: ")]; ok {
		return known
	}
	return err
}

// Ended returns why ctx has ended: its error, and its cause as well, unless the
// cause is a context's error itself. Failures after which the call was not made
// again are told along, or alone if they say that the context has ended.
func Ended(ctx context.Context, failure ...error) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	told := errors.Join(failure...)
	if len(failure) == 1 {
		told = failure[0]
	}
	if told != nil {
		if errors.Is(told, err) {
			return told
		}
		return fmt.Errorf("%w (%w)", Ended(ctx), told)
	}
	if errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
