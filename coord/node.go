package coord

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/calls"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// Stat is what ZooKeeper keeps about a node.
type Stat struct {
	Czxid, Mzxid, Pzxid int64 // the changes that created it, set its data, changed its children
	Created, Modified   time.Time
	Version             int32 // changes of the data
	Cversion            int32 // changes of the list of children
	Aversion            int32 // changes of the ACL
	Owner               int64 // the session of an ephemeral node, else 0
	DataLength          int32
	Children            int32
}

// statOf is zero of a zero Stat: of a node that was not read, or is not there.
func statOf(s wire.Stat) Stat {
	if s == (wire.Stat{}) {
		return Stat{}
	}
	return Stat{
		s.Czxid, s.Mzxid, s.Pzxid, time.UnixMilli(s.Created), time.UnixMilli(s.Modified),
		s.Version, s.Cversion, s.Aversion, s.Owner, s.DataLength, s.Children,
	}
}

// read repeats a read over lost connections and lost sessions until it is
// answered or ctx ends.
func read[T any](
	ctx context.Context, c *Client, op, path string, f func(*session.Session, string) (T, error),
) (value T, err error) {
	if err = wire.CheckPath(path); err == nil {
		err = c.retry(ctx, func(ctx context.Context) error {
			s, err := c.keeper.Session(ctx)
			if err == nil {
				err = c.catchUp(ctx, s)
			}
			if err == nil {
				value, err = f(s, c.full(path))
			}
			return err
		})
	}
	return value, c.failure(op, path, err)
}

// Synced returns a client for one caller, for reads that are up to date. A
// server may lag behind the ensemble, and after a change of session the next
// one may lag behind the last. The reads of the returned client show all that
// was committed before its first read, and never go back in time. That costs
// one empty write in each session. In all else it is c itself.
func (c *Client) Synced() *Client { return newClient(c.shared, new(atomic.Int64)) }

// catchUp has the session's server learn all earlier commits, once in each
// session of a fresh client.
func (c *Client) catchUp(ctx context.Context, s *session.Session) error {
	if c.hasCaughtUp(s) {
		return nil
	}
	err := s.Flush(ctx)
	if err == nil {
		c.flushed.Store(s.ID())
	}
	return err
}

func (c *Client) hasCaughtUp(s *session.Session) bool {
	return c.flushed == nil || c.flushed.Load() == s.ID()
}

// transient reports whether the same request can get another answer later.
func transient(err error) bool {
	return errors.Is(err, ErrDisconnected) || errors.Is(err, ErrSessionExpired) || errors.Is(err, ErrThrottled)
}

// repeatable reports whether to repeat a call that failed with err, and returns
// the failure if not.
func repeatable(ctx context.Context, err error) (failure error, again bool) {
	switch {
	case !transient(err):
		return err, false
	case ctx.Err() != nil:
		return calls.Ended(ctx, err), false
	}
	return err, true
}

var errNoFunction = wire.Invalid("the function is nil")

// Retry is recipe.Retry.
func (s *clientSteps) Retry(ctx context.Context, f func(context.Context) error) error {
	return (*Client)(s).retry(ctx, f)
}

func (c *Client) retry(ctx context.Context, f func(context.Context) error) error {
	if f == nil {
		return c.failure("retry", "", errNoFunction)
	}
	for {
		err := f(ctx)
		if err == nil || errors.Is(err, ErrLost) {
			return err
		}
		if err, again := repeatable(ctx, err); !again {
			return err
		}
		if errors.Is(err, ErrThrottled) {
			znode.Pause(ctx, c.keeper.Current())
		}
	}
}

// Get reads a node: one request.
func (c *Client) Get(ctx context.Context, path string) ([]byte, Stat, error) {
	n, err := read(ctx, c, "get", path, func(s *session.Session, full string) (session.Node, error) {
		return s.Get(ctx, full)
	})
	return n.Data, statOf(n.Stat), err
}

// Exists reports whether a node exists: one request. It needs no permission to
// read the node.
func (c *Client) Exists(ctx context.Context, path string) (Stat, bool, error) {
	n, err := read(ctx, c, "exists", path, func(s *session.Session, full string) (session.Node, error) {
		return s.Exists(ctx, full)
	})
	return statOf(n.Stat), n.Exists, err
}

// Children lists the names of a node's children in no particular order: one
// request.
func (c *Client) Children(ctx context.Context, path string) ([]string, error) {
	return read(ctx, c, "list", path, func(s *session.Session, full string) ([]string, error) {
		return s.Children(ctx, full)
	})
}

// EnsureDir creates a directory and its parents where they are missing, as
// container nodes, which the server removes some time after their last child
// went, or as persistent ones where the server has no containers: two requests
// for each missing level, one for each other.
func (c *Client) EnsureDir(ctx context.Context, path string) error {
	_, err := read(ctx, c, "create", path, func(s *session.Session, full string) (struct{}, error) {
		return struct{}{}, s.EnsurePath(ctx, full, c.opts.acl)
	})
	return err
}
