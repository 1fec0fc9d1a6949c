package coord

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// Op is one operation of a transaction, made by [CreateOp],
// [AppendOp], [EphemeralOp], [SetOp], [DeleteOp] or [CheckOp].
type Op struct {
	kind    wire.OpCode
	path    string
	data    []byte
	version int32
	mode    int32
}

// CreateOp creates a persistent node. Its parent must exist.
func CreateOp(path string, data []byte) Op {
	return Op{kind: wire.OpCreate, path: path, data: data}
}

// AppendOp is [CreateOp] with a number of ten digits that the server appends to
// the name, and that grows from node to node of the directory.
func AppendOp(path string, data []byte) Op {
	return Op{kind: wire.OpCreate, path: path, data: data, mode: zk.FlagSequence}
}

// EphemeralOp is CreateOp of a node that is deleted at the end of the session.
func EphemeralOp(path string, data []byte) Op {
	return Op{kind: wire.OpCreate, path: path, data: data, mode: zk.FlagEphemeral}
}

// SetOp replaces a node's data if the node has this version; -1 matches any.
func SetOp(path string, data []byte, version int32) Op {
	return Op{kind: wire.OpSet, path: path, data: data, version: version}
}

// DeleteOp deletes a node if it has this version; -1 matches any.
func DeleteOp(path string, version int32) Op {
	return Op{kind: wire.OpDelete, path: path, version: version}
}

// CheckOp requires that a node has this version; -1 matches any.
func CheckOp(path string, version int32) Op {
	return Op{kind: wire.OpCheck, path: path, version: version}
}

// Result is what an operation of a transaction did.
type Result struct {
	Path string // of the node a CreateOp made, with its sequence number
	Stat Stat   // after a SetOp
}

// TxnError says which operation kept a transaction from happening.
type TxnError struct {
	Index int // of the operation, from 0
	Op    string
	Path  string
	Err   error
}

func (e *TxnError) Error() string {
	return fmt.Sprintf("operation %d (%s %s): %v", e.Index, e.Op, e.Path, e.Err)
}

// callersOwn counts a refused transaction's operations from the caller's first.
// Our operations before it were added by this package: the refusal of one
// of them is no [*TxnError] to the caller.
func callersOwn(err error, own int) error {
	var refused *TxnError
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.Index < own:
		return fmt.Errorf("own node: %s %s: %w", refused.Op, refused.Path, refused.Err)
	}
	refused.Index -= own
	return err
}

func (e *TxnError) Unwrap() error { return e.Err }

// Txn carries out all the operations or none: one request. Txn repeats nothing:
// when the connection fails before the reply comes, the error matches
// [ErrUnconfirmed], and the caller must find out. When the ensemble refused the
// transaction, the error wraps a [*TxnError]. On a slow link, transactions side
// by side wait for each other, and one that is too large for the link fails
// with [ErrTooLarge]: the session's own traffic costs it no hold.
func (c *Client) Txn(ctx context.Context, ops ...Op) ([]Result, error) {
	results, err := c.txn(ctx, nil, ops)
	return results, c.failure("transaction", "", err)
}

// txn runs a transaction in session s, or if that is nil, in the current one.
func (c *Client) txn(ctx context.Context, s *session.Session, ops []Op) ([]Result, error) {
	requests, err := c.requests(ops)
	if err != nil {
		return nil, err
	}
	if s == nil {
		if s, err = c.keeper.Session(ctx); err != nil {
			return nil, err
		}
	}
	replies, err := znode.Txn(ctx, s, requests)
	return c.results(ops, replies, err)
}

// results turns the answer to a transaction into the caller's terms.
func (c *Client) results(ops []Op, replies []wire.Result, err error) ([]Result, error) {
	if i := session.Refused(replies); i >= 0 && !errors.Is(err, ErrUnconfirmed) {
		if ops[i].kind == wire.OpCreate && errors.Is(err, ErrNoNode) {
			err = fmt.Errorf("parent %s: %w", session.Parent(ops[i].path), err)
		}
		return nil, &TxnError{Index: i, Op: opNames[ops[i].kind], Path: ops[i].path, Err: err}
	}
	if err != nil || replies == nil { // nil: it took effect, and the reply was lost
		return nil, err
	}
	results := make([]Result, len(replies))
	for i, r := range replies {
		results[i] = Result{Path: c.relative(r.Path), Stat: statOf(r.Stat)}
		if ops[i].kind == wire.OpSet {
			c.clock.hear(results[i].Stat)
		}
	}
	return results, nil
}

var opNames = map[wire.OpCode]string{
	wire.OpCreate: "create", wire.OpSet: "set", wire.OpDelete: "delete", wire.OpCheck: "check",
}

// requests checks the operations and completes them.
func (c *Client) requests(ops []Op) ([]wire.Op, error) {
	if len(ops) == 0 {
		return nil, wire.Invalid("a transaction needs at least one operation")
	}
	requests := make([]wire.Op, len(ops))
	for i, op := range ops {
		path := op.path
		if op.mode&zk.FlagSequence != 0 {
			path += "0" // the name may be nothing but the sequence number
		}
		if err := wire.CheckPath(path); err != nil {
			return nil, err
		}
		if opNames[op.kind] == "" {
			return nil, wire.Invalid("operation %d was not made by one of the Op functions", i)
		}
		full := c.full(path) // the server appends what was added
		requests[i] = wire.Op{
			Kind: op.kind, Path: full[:len(full)-len(path)+len(op.path)], Data: op.data,
			Version: op.version, Flags: op.mode, ACL: c.opts.acl,
		}
	}
	return requests, nil
}

// Create makes a persistent node, and its parents where they are missing; see
// [Client.EnsureDir]. One request when the parent is there. When the connection
// fails before the reply, the error matches [ErrUnconfirmed].
func (c *Client) Create(ctx context.Context, path string, data []byte) error {
	for missing := session.Repeats(0); ; missing.Pause(ctx, c.keeper.Current()) {
		_, err := c.one(ctx, CreateOp(path, data))
		if !errors.Is(err, ErrNoNode) {
			return err
		}
		// The parent is missing, or its container was just reaped.
		if err := c.EnsureDir(ctx, session.Parent(path)); err != nil {
			return err
		}
	}
}

// Set replaces the data of a node that has this version; -1 matches any. One
// request. When the connection fails before the reply, the error matches
// [ErrUnconfirmed].
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32) (Stat, error) {
	set, err := c.one(ctx, SetOp(path, data, version))
	return set.Stat, err
}

// Delete deletes a node that has this version; -1 matches any. One request.
// When the connection fails before the reply, the error matches
// [ErrUnconfirmed].
func (c *Client) Delete(ctx context.Context, path string, version int32) error {
	_, err := c.one(ctx, DeleteOp(path, version))
	return err
}

// one carries out a single operation, and returns that operation's error.
func (c *Client) one(ctx context.Context, op Op) (result Result, err error) {
	results, err := c.txn(ctx, nil, []Op{op})
	if refused := (*TxnError)(nil); errors.As(err, &refused) {
		err = refused.Err
	}
	if err == nil {
		result = results[0]
	}
	return result, c.failure(opNames[op.kind], op.path, err)
}
