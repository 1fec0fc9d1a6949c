package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Node is a lock that is one ephemeral node at a fixed path: whoever makes the
// node holds, and the others watch it. It shares the path with programs that
// lock so; for a lock of your own use a [Mutex]. There is no order: at each
// release all who wait wake at once, each tries, and one of them, not the one
// that has waited longest, gets it. A node that belongs to no session is waited
// for until somebody deletes it.
//
// Its [coord.Hold] is a Mutex's, with token, trust window and Txn. Programs
// that delete the node without looking whose it is take the hold away.
type Node struct {
	client *coord.Client
	path   string
	data   func() []byte
}

// NodeOption sets something about a [Node].
type NodeOption func(*Node) error

// NodeData has data called for the data of each node, by default the client's
// identity and a random line. It is for a node whose data others read. No two
// calls of one client may return the same: after a lost reply the data say
// whose the node is.
func NodeData(data func() []byte) NodeOption {
	return func(n *Node) error {
		n.data = data
		if data == nil {
			return fmt.Errorf("%w: the function is nil", coord.ErrInvalid)
		}
		return nil
	}
}

// NewNode returns the lock that is the node at path. It does no I/O. An invalid
// argument fails with [coord.ErrInvalid].
func NewNode(client *coord.Client, path string, opts ...NodeOption) (*Node, error) {
	if err := recipe.Check(client, path); err != nil {
		return nil, err
	}
	n := &Node{client: client, path: path, data: func() []byte {
		return inspect.Note([]byte(client.Info().Identity), "CLAIM", rand.Text())
	}}
	if err := recipe.Configure(n, path, opts); err != nil {
		return nil, err
	}
	return n, nil
}

// Acquire waits for the lock until ctx ends, which bounds the waiting, not the
// hold. When it returns an error, nothing is left behind. One request if the
// lock is free; a failed request and a read for each time that it is not.
func (n *Node) Acquire(ctx context.Context) (*coord.Hold, error) {
	for {
		h, err := n.make(ctx)
		if !errors.Is(err, coord.ErrNodeExists) {
			return h, err
		}
		if err := n.awaitFree(ctx); err != nil {
			return nil, recipe.Failure(n.client, "acquire", n.path, err)
		}
	}
}

// TryAcquire takes the lock if it is free and fails with [coord.ErrBusy] if it
// is not: one request.
func (n *Node) TryAcquire(ctx context.Context) (*coord.Hold, error) {
	h, err := n.make(ctx)
	if errors.Is(err, coord.ErrNodeExists) {
		err = recipe.Failure(n.client, "try", n.path, coord.ErrBusy)
	}
	return h, err
}

// Do runs f while holding the lock; see [hold.Do] for what it returns.
func (n *Node) Do(ctx context.Context, f func(ctx context.Context, h *coord.Hold) error) error {
	return hold.Do(ctx, n.Acquire, f)
}

// Client returns the client the lock was made with.
func (n *Node) Client() *coord.Client { return n.client }

// Path returns the path of the node.
func (n *Node) Path() string { return n.path }

func (n *Node) make(ctx context.Context) (*coord.Hold, error) {
	return recipe.AcquireName(ctx, n.client, coord.NameSpec{Path: n.path, Data: n.data(), Recipe: n.path, Exclusive: true})
}

// awaitFree waits until there is no node. It reads the node, since a watch on
// one that is gone would stay.
func (n *Node) awaitFree(ctx context.Context) error {
	return n.client.Wait(ctx, func(v *coord.View) (free bool, err error) {
		_, _, err = v.Get(n.path)
		switch {
		case errors.Is(err, coord.ErrNoNode):
			return true, nil
		case errors.Is(err, coord.ErrNoAuth):
			_, there, err := v.Exists(n.path)
			return err == nil && !there, err
		}
		return false, err
	})
}
