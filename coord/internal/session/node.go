package session

import (
	"context"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// Stat is what ZooKeeper keeps about a node.
type Stat struct {
	Czxid, Mzxid, Pzxid int64
	Created, Modified   time.Time
	Version             int32
	Cversion            int32
	Aversion            int32
	Owner               int64
	DataLength          int32
	Children            int32
}

func statOf(s *zk.Stat) Stat {
	if s == nil {
		return Stat{}
	}
	return Stat{
		Czxid: s.Czxid, Mzxid: s.Mzxid, Pzxid: s.Pzxid,
		Created: time.UnixMilli(s.Ctime), Modified: time.UnixMilli(s.Mtime),
		Version: s.Version, Cversion: s.Cversion, Aversion: s.Aversion,
		Owner: s.EphemeralOwner, DataLength: s.DataLength, Children: s.NumChildren,
	}
}

// ACL grants permissions to an identity.
type ACL struct {
	Perms  int32
	Scheme string
	ID     string
}

func zkACL(acl []ACL) []zk.ACL {
	out := make([]zk.ACL, len(acl))
	for i, a := range acl {
		out[i] = zk.ACL{Perms: a.Perms, Scheme: a.Scheme, ID: a.ID}
	}
	return out
}

// OpKind is the kind of an operation in a transaction.
type OpKind int

// The operations a transaction can have.
const (
	OpCreate OpKind = iota + 1
	OpSet
	OpDelete
	OpCheck
)

// Op is one operation of a transaction.
type Op struct {
	Kind    OpKind
	Path    string
	Data    []byte
	Version int32
	Flags   int32
	ACL     []ACL
}

func (op Op) request() any {
	switch op.Kind {
	case OpCreate:
		return &zk.CreateRequest{Path: op.Path, Data: op.Data, Acl: zkACL(op.ACL), Flags: op.Flags}
	case OpSet:
		return &zk.SetDataRequest{Path: op.Path, Data: op.Data, Version: op.Version}
	case OpDelete:
		return &zk.DeleteRequest{Path: op.Path, Version: op.Version}
	default:
		return &zk.CheckVersionRequest{Path: op.Path, Version: op.Version}
	}
}

// Result is what one operation of a transaction did, or why not.
type Result struct {
	Path string
	Stat Stat
	Err  error
}

// Txn carries out all the operations or none. When the ensemble refused it,
// the results tell which operation failed.
func (s *Session) Txn(ctx context.Context, ops []Op) ([]Result, error) {
	return Call(ctx, s, func(c *zk.Conn) ([]Result, error) {
		answered, err := s.cfg.packets.admit(txnSize(ops), s.Done())
		if err != nil {
			return nil, err
		}
		defer answered()
		requests := make([]any, len(ops))
		for i, op := range ops {
			requests[i] = op.request()
		}
		replies, err := c.Multi(requests...)
		results := make([]Result, len(replies))
		for i, r := range replies {
			results[i] = Result{Path: r.String, Stat: statOf(r.Stat), Err: translate(r.Error)}
		}
		return results, err
	})
}

// Node is a node as it was read.
type Node struct {
	Exists bool
	Data   []byte
	Stat   Stat
}

// Get reads a node.
func (s *Session) Get(ctx context.Context, path string) (Node, error) {
	return roundTrip(ctx, s, request{op: opGetData}, reading(path, false), nodeOf)
}

func nodeOf(a answer) Node {
	data, end := bufferAt(a.body, 0)
	return Node{true, data, statAt(a.body, end)}
}

// Exists looks whether a node exists; it needs no permission to read it.
func (s *Session) Exists(ctx context.Context, path string) (Node, error) {
	node, err := roundTrip(ctx, s, request{op: opExists}, reading(path, false), func(a answer) Node {
		return Node{true, nil, statAt(a.body, 0)}
	})
	if err == ErrNoNode {
		err = nil
	}
	return node, err
}

// Refused returns the index of the operation that the ensemble refused, or -1.
func Refused(replies []Result) int {
	return slices.IndexFunc(replies, func(r Result) bool { return r.Err != nil })
}
