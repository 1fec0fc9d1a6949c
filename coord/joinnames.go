package coord

import (
	"context"

	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// AcquireNames is [Client.AcquireName] for several names that others may want,
// too: one transaction makes all the claims, with the operations of each, or
// none. They are of one session. A lost reply is found out about, and the
// transaction repeated if it must. When the ensemble refused it, the error
// wraps a [*TxnError], whose Index counts two operations for each name, and
// those With it. When AcquireNames returns an error, nothing is left behind:
// what could not be deleted yet is deleted in the background.
func (c *Client) AcquireNames(ctx context.Context, specs ...NameSpec) ([]*Hold, error) {
	if len(specs) == 0 {
		return nil, nil
	}
	claims, err := c.joinNames(ctx, specs)
	holds := make([]*Hold, len(claims))
	for i, cl := range claims {
		if err == nil {
			holds[i], err = cl.grant(ctx)
		}
	}
	if err, _ = repeatable(ctx, err); err != nil {
		for _, cl := range claims {
			cl.leave(cl.atOnce)
		}
		return nil, c.Failure("acquire", specs[0].Path, err)
	}
	return holds, nil
}

func (c *Client) joinNames(ctx context.Context, specs []NameSpec) ([]*claim, error) {
	s, err := c.keeper.Session(ctx)
	if err != nil {
		return nil, err
	}
	claims := make(together, len(specs))
	for i, spec := range specs {
		shape, err := spec.shape(ctx, c)
		if err == nil && !shape.isShared() {
			err = invalid("%s: a claim that is made with others needs operations or a proof", spec.Path)
		}
		var node znode.Spec
		if err == nil {
			node, err = shape.node(c)
		}
		if err != nil {
			return nil, err
		}
		claims[i] = c.newClaim(s, shape, node)
	}
	for _, cl := range claims {
		c.register(cl)
	}
	made := make(chan error, 1)
	if err := s.Go(func() { made <- claims.create(ctx) }); err != nil {
		claims.forget()
		return nil, err
	}
	select {
	case err := <-made:
		if err = claims.created(err); err != nil {
			return nil, err
		}
		return claims, nil
	case <-ctx.Done():
		if s.Go(func() { claims.abandon(<-made) }) != nil {
			claims.forget() // the session took the nodes with it
		}
		return nil, Ended(ctx)
	}
}

// together are claims that one transaction makes.
type together []*claim

func (t together) create(ctx context.Context) error {
	var ops []Op
	nodes := make([]*znode.Node, len(t))
	for i, cl := range t {
		nodes[i] = &cl.node
		path := cl.client.relative(znode.Join(cl.node.Spec.Dir, cl.node.Spec.Name))
		ops = append(ops, CreateOp(path, cl.shape.Data, Mode(wire.Ephemeral)), SetOp(path, cl.shape.Data, 0))
		ops = append(ops, cl.shape.with...)
	}
	return znode.CreateAll(ctx, nodes, func() (int64, error) {
		results, err := t[0].client.txn(context.Background(), t[0].sess, ops) // ends with the session
		if err != nil {
			return 0, err
		}
		return results[1].Stat.Czxid, nil
	})
}

func (t together) created(err error) error {
	if err != nil {
		t.abandon(err)
		return err
	}
	for _, cl := range t {
		cl.node.WatchSoon()
		cl.emit(ClaimJoined, cl.joined, nil)
	}
	return nil
}

// abandon deletes the nodes that were made, all of them unless err reports that
// the transaction failed.
func (t together) abandon(err error) {
	for _, cl := range t {
		if err == nil || cl.node.Path() != "" {
			cl.leave(cl.atOnce)
		} else {
			cl.client.unregister(cl)
		}
	}
}

func (t together) forget() {
	for _, cl := range t {
		cl.client.unregister(cl)
	}
}
