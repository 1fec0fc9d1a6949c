package coord

import (
	"bytes"
	"context"
	"errors"
	"slices"
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

// read repeats a read over lost connections and lost sessions until it is
// answered or ctx ends.
func read[T any](ctx context.Context, c *Client, op, path string, f func(*session.Session, string) (T, error)) (T, error) {
	var zero T
	if err := wire.CheckPath(path); err != nil {
		return zero, opError(op, path, err)
	}
	for {
		s, err := c.keeper.Session(ctx)
		if err != nil {
			return zero, c.Failure(op, path, err)
		}
		value := zero
		if err = c.catchUp(ctx, s); err == nil {
			value, err = f(s, c.full(path))
		}
		if err == nil {
			return value, nil
		}
		if err, again := repeatable(ctx, err); !again {
			return zero, c.Failure(op, path, err)
		}
		if errors.Is(err, ErrThrottled) {
			znode.Pause(ctx, s)
		}
	}
}

// Fresh returns a client for one caller, for reads that are up to date. A
// server may lag behind the ensemble, and after a change of session the next
// one may lag behind the last. The fresh client's reads show all that was
// committed before its first read, and never go back in time. That costs one
// empty write in each session. In all else it is c itself.
func (c *Client) Fresh() *Client { return &Client{c.shared, new(atomic.Int64)} }

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

// repeatable reports whether a call that failed with err is to be made again,
// and otherwise returns the error that says why not.
func repeatable(ctx context.Context, err error) (failure error, again bool) {
	switch {
	case !transient(err):
		return err, false
	case ctx.Err() != nil:
		return calls.Ended(ctx, err), false
	}
	return err, true
}

// Retry calls f again for as long as the same call can end otherwise the next
// time: when the connection or the session failed before the reply came, or the
// server throttled it. It is for requests that do no harm when they are carried
// out twice; f notices the differences of the second time. When ctx ends it
// returns its error with f's last one. A hold that is lost
// ([ErrLost]) does not come back.
func (c *Client) Retry(ctx context.Context, f func(context.Context) error) error {
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
	return n.Data, Stat(n.Stat), err
}

// Exists reports whether a node exists: one request. It needs no permission to
// read the node.
func (c *Client) Exists(ctx context.Context, path string) (Stat, bool, error) {
	n, err := read(ctx, c, "exists", path, func(s *session.Session, full string) (session.Node, error) {
		return s.Exists(ctx, full)
	})
	return Stat(n.Stat), n.Exists, err
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

// Record is the data of a node that clients agree on. Each of them changes it
// in one way only: it reads, decides, and writes for the version that it has
// read. When several decide at the same time, one succeeds, and the others read
// again. It is configuration, not state, and safe for concurrent use.
type Record struct {
	client *Client
	path   string
}

// Record returns the record at path, which need not exist.
func (c *Client) Record(path string) Record { return Record{c, path} }

// Look reads the record for a look of [Client.Wait], which is called again when
// the record changes. A missing record is made with the initial data, and so
// are its parents; without these, Look answers no data and a zero Stat, and the
// look is called again when somebody makes the record. One request, two more
// for a missing record.
func (r Record) Look(v *View, initial []byte) ([]byte, Stat, error) {
	for {
		if initial == nil {
			if _, there, err := v.Exists(r.path); !there {
				return nil, Stat{}, err
			}
		}
		data, stat, err := v.Get(r.path)
		if !errors.Is(err, ErrNoNode) {
			return data, stat, err
		}
		if initial != nil {
			err = r.client.Retry(v.ctx, func(ctx context.Context) error { return r.client.Create(ctx, r.path, initial) })
			if err != nil && !errors.Is(err, ErrNodeExists) {
				return nil, Stat{}, err
			}
		}
	}
}

// Change replaces the data by the result of decide. decide is given the data as
// they are (the Stat is zero while there is no record, which is made then, with
// its parents), and is asked again when another client was faster. When decide
// fails, or returns the data that it was given, nothing is written. Two
// requests, one less if this process watches the record, and two more for each
// time that another was faster.
//
// write is [Client.Txn], or [Hold.Txn] for a change that only the holder makes,
// or [ExactlyOnce.Txn]. The first two answer [ErrUnconfirmed] when the
// connection fails before the reply: where deciding again after one's own
// change does no harm, call Change by [Client.Retry]. Where it does harm, as in
// a counter, take the third. A hold that is lost answers [ErrLost].
func (r Record) Change(
	ctx context.Context, write func(ctx context.Context, ops ...Op) ([]Result, error),
	decide func(data []byte, stat Stat) ([]byte, error),
) error {
	for known := r.watched(); ; known = nil {
		data, stat, err := r.read(ctx, known)
		missing := errors.Is(err, ErrNoNode)
		if err != nil && !missing {
			return err
		}
		next, err := decide(data, stat)
		if err != nil || !missing && bytes.Equal(next, data) {
			if known != nil {
				continue // the watch may have yet to hear of a change
			}
			return err
		}
		op := SetOp(r.path, next, stat.Version)
		if missing {
			op = CreateOp(r.path, next)
		}
		_, err = write(ctx, op)
		if err == nil || errors.Is(err, ErrLost) {
			return err
		}
		switch {
		case missing && errors.Is(err, ErrNoNode):
			if err := r.client.EnsureDir(ctx, session.Parent(r.path)); err != nil {
				return err
			}
		case !errors.Is(err, ErrBadVersion) && !errors.Is(err, ErrNoNode) && !errors.Is(err, ErrNodeExists):
			return err
		}
	}
}

// watched returns the watch of the record that this process has, or nil.
func (r Record) watched() *session.Watch {
	s := r.client.keeper.Current()
	if s == nil {
		return nil
	}
	return s.Watches.Get(session.Data, r.client.full(r.path))
}

func (r Record) read(ctx context.Context, known *session.Watch) ([]byte, Stat, error) {
	if known != nil {
		return slices.Clone(known.Data), Stat(known.Stat), nil
	}
	return r.client.Get(ctx, r.path)
}
