package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord/internal/calls"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// awaitUp waits until requests can be sent.
func (s *Session) awaitUp(ctx context.Context) error {
	s.mu.Lock()
	up := s.up
	s.mu.Unlock()
	switch { // for select takes any of several
	case s.ending.Err() != nil:
		return s.Err()
	case ctx.Err() != nil:
		return calls.Ended(ctx)
	}
	return await(ctx, s, up)
}

// Go runs task in a goroutine that the session's end waits for. It returns an
// error when the session is over.
func (s *Session) Go(task func()) error { return s.tasks.begin(task) }

// Enqueue is [Session.Go] for tasks that may come in large numbers: they run in
// the order of the calls, in a bounded number of goroutines.
func (s *Session) Enqueue(task func()) error { return s.chores.enqueue(task) }

// Create makes a node and returns its path and czxid. It blocks until the
// server has answered or the session is over, so a caller with a context calls
// it in a goroutine; and the caller must find out the outcome if it is unknown
// ([wire.ErrConnection]).
func (s *Session) Create(path string, data []byte, flags int32, acl []zk.ACL) (made string, czxid int64, err error) {
	c := creation(path)
	made, err = answer(context.Background(), s, c, wire.Request{Op: wire.OpCreate}, creating(path, data, flags, acl))
	return made, c.Zxid, err
}

// Creation is a create that was sent.
type Creation struct {
	sess *Session
	call *wire.Call[string]
}

// Done is closed when the outcome is there.
func (c *Creation) Done() <-chan struct{} { return c.call.Done }

// Outcome waits for the answer and returns what [Session.Create] does.
func (c *Creation) Outcome() (path string, czxid int64, err error) {
	<-c.call.Done
	return c.call.Value, c.call.Zxid, c.sess.translate(c.call.Err)
}

// BeginCreate is Create that does not block. It returns nil if the request
// cannot be sent immediately. The next requests travel with the create, and are
// answered after it.
func (s *Session) BeginCreate(path string, data []byte, flags int32, acl []zk.ACL) *Creation {
	c := creation(path)
	c.Done = make(chan struct{})
	if s.ask(wire.Request{Op: wire.OpCreate, Caller: c, Yields: true}, creating(path, data, flags, acl)) != nil {
		return nil
	}
	return &Creation{s, c}
}

func creation(path string) *wire.Call[string] {
	return &wire.Call[string]{Fields: func(d *wire.Decoder) string { return d.Created(path) }}
}

// creating appends the fields of a request that creates a node.
func creating(path string, data []byte, flags int32, acl []zk.ACL) func(b []byte) []byte {
	return wire.Op{Kind: wire.OpCreate, Path: path, Data: data, Flags: flags, ACL: acl}.Append
}

// Txn carries out all the operations or none. When the ensemble refused it, the
// results say which operation failed.
func (s *Session) Txn(ctx context.Context, ops []wire.Op) ([]wire.Result, error) {
	results, err := roundTrip(ctx, s, wire.Request{Op: wire.OpMulti}, wire.Transaction(ops),
		func(d *wire.Decoder) []wire.Result { return d.Results(ops) })
	at := Refused(results)
	if at < 0 {
		return results, err
	}
	if results[at].Err == wire.ErrExpired {
		results[at].Err = s.whyExpired(ctx, ops[at])
	}
	return results, results[at].Err
}

// whyExpired finds out why the leader calls the session expired in an operation
// of a transaction. The leader also does so if a session that is local to
// another server creates an ephemeral node.
func (s *Session) whyExpired(ctx context.Context, op wire.Op) error {
	isEphemeral := op.Kind == wire.OpCreate && (op.Flags == zk.FlagEphemeral || op.Flags == zk.FlagEphemeralSequential)
	if isEphemeral && s.Flush(ctx) == nil {
		return wire.ErrLocalSession
	}
	if ctx.Err() == nil {
		s.over(fmt.Errorf("%w: the server has expired it", wire.ErrExpired))
	}
	return wire.ErrExpired
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
	if err == zk.ErrNoNode {
		err = nil
	}
	return node, err
}

// Refused returns the index of the operation that the ensemble refused, or -1.
func Refused(replies []wire.Result) int {
	return slices.IndexFunc(replies, func(r wire.Result) bool { return r.Err != nil })
}

// Children lists a node's children.
func (s *Session) Children(ctx context.Context, path string) ([]string, error) {
	return roundTrip(ctx, s, wire.Request{Op: wire.OpGetChildren2}, wire.Reading(path, false),
		func(d *wire.Decoder) []string {
			names := d.Names()
			d.Stat()
			return names
		})
}

// Delete deletes a node that has this version; -1 matches any.
func (s *Session) Delete(ctx context.Context, path string, version int32) error {
	_, err := roundTrip[any](ctx, s, wire.Request{Op: wire.OpDelete}, deleting(path, version), nil)
	return err
}

// BeginDelete is Delete that does not block. tell, which must not block, is
// called once: when the answer comes or, with [wire.ErrConnection], immediately
// if the request cannot be sent.
func (s *Session) BeginDelete(path string, version int32, tell func(error)) {
	c := &wire.Call[any]{Told: func(err error) { tell(s.translate(err)) }}
	if err := s.ask(wire.Request{Op: wire.OpDelete, Caller: c}, deleting(path, version)); err != nil {
		c.Told(err)
	}
}

// deleting appends the fields of a request that deletes a node.
func deleting(path string, version int32) func(b []byte) []byte {
	return wire.Op{Kind: wire.OpDelete, Path: path, Version: version}.Append
}

// Flush is a write that changes nothing: a transaction of one check, on which
// the ensemble must agree. When it has returned nil, the server this session is
// connected to has applied everything committed before the call, and a
// following read shows it. A sync is not enough: a superseded leader
// acknowledges one. The check's own result does not matter, as long as it is
// the ensemble's.
func (s *Session) Flush(ctx context.Context) error {
	_, err := s.Txn(ctx, changesNothing)
	switch err {
	case zk.ErrNoAuth, zk.ErrNoNode, zk.ErrBadVersion:
		return nil
	}
	return err
}

var changesNothing = []wire.Op{{Kind: wire.OpCheck, Path: "/", Version: -1}}

// EnsurePath creates path and its parents as container nodes, which the server
// removes some time after their last child went, or as persistent ones where
// the server has no containers. A server without containers says so once in a
// session: by an error, or (before ZooKeeper 3.5) by closing the connection,
// and the next one as well.
func (s *Session) EnsurePath(ctx context.Context, path string, acl []zk.ACL) error {
	var emptied Repeats
	for at := 1; at <= len(path); at++ {
		if at < len(path) && path[at] != '/' || path == "/" {
			continue
		}
		switch err := s.ensure(ctx, path[:at], acl); {
		case errors.Is(err, zk.ErrNoNode):
			at = 0 // the server has just removed an empty container above: begin again
			emptied.Pause(ctx, s)
			if ctx.Err() != nil {
				return calls.Ended(ctx, err)
			}
		case err != nil && ctx.Err() != nil:
			return err // no node is at fault
		case err != nil:
			return fmt.Errorf("create %s: %w", path[:at], err)
		}
	}
	return nil
}

func (s *Session) ensure(ctx context.Context, path string, acl []zk.ACL) error {
	node, err := s.Exists(ctx, path)
	if err != nil || node.Exists {
		return err
	}
	create := func(op wire.OpCode, flags int32) error {
		_, err := roundTrip[any](ctx, s, wire.Request{Op: op}, creating(path, nil, flags, acl), nil)
		return err
	}
	for tries := 0; tries < 2 && !s.noContainers.Load(); tries++ {
		err = create(wire.OpCreateContainer, zk.FlagContainer)
		hungUp := errors.Is(err, wire.ErrHungUp)
		if err == wire.ErrUnsupported || hungUp && tries > 0 {
			s.noContainers.Store(true)
		} else if !hungUp {
			break
		}
	}
	if s.noContainers.Load() {
		err = create(wire.OpCreate, zk.FlagPersistent)
	}
	if err == zk.ErrNodeExists {
		return nil
	}
	return err
}

// Parent returns the path above path.
func Parent(path string) string {
	if at := strings.LastIndexByte(path, '/'); at > 0 {
		return path[:at]
	}
	return "/"
}
