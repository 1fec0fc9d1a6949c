package coord

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// AcquireName is recipe.AcquireName.
func (s *clientSteps) AcquireName(ctx context.Context, spec NameSpec) (*Hold, error) {
	c := (*Client)(s)
	h, err := c.acquire(ctx, func(ctx context.Context) (*claim, error) { return c.joinName(ctx, spec) }, nil, false)
	return h, c.failure("acquire", spec.Path, err)
}

// AcquireNames is recipe.AcquireNames.
func (s *clientSteps) AcquireNames(ctx context.Context, specs []NameSpec) ([]*Hold, error) {
	c := (*Client)(s)
	if len(specs) == 0 {
		return nil, nil
	}
	var holds []*Hold
	claims, err := c.joinNames(ctx, specs)
	if err == nil {
		holds, err = claims.grant(ctx)
	}
	if err, _ = repeatable(ctx, err); err != nil {
		for _, cl := range claims {
			cl.leave(cl.atOnce)
		}
	}
	return holds, c.failure("acquire", specs[0].Path, err)
}

func (c *Client) joinNames(ctx context.Context, specs []NameSpec) (batch, error) {
	claims, err := c.enterNames(ctx, specs...)
	if err != nil {
		return nil, err
	}
	if err := claims.join(ctx, claims.create, nil); err != nil {
		return nil, err
	}
	return claims, nil
}

// enterNames prepares claims of names, of one session.
func (c *Client) enterNames(ctx context.Context, specs ...NameSpec) (claims batch, err error) {
	claims = make(batch, len(specs))
	for i, spec := range specs {
		if claims[i], err = spec.claim(ctx, c); err != nil {
			return nil, err
		}
	}
	s, err := c.keeper.Session(ctx)
	if err != nil {
		return nil, err
	}
	for _, cl := range claims {
		cl.enter(s)
	}
	return claims, nil
}

// create sends the transaction that makes the nodes. To set the data of a new
// node makes its version 1.
func (t batch) create() error {
	c, ops := t[0].client, []Op(nil)
	for _, cl := range t {
		path := c.relative(cl.wanted())
		ops = append(ops, EphemeralOp(path, cl.spec.Data), SetOp(path, cl.spec.Data, 0))
		ops = append(ops, cl.named.With...)
	}
	results, err := c.txn(context.Background(), t[0].sess, ops) // ends with the session
	if err != nil {
		return err
	}
	for _, cl := range t {
		cl.node.Made(cl.wanted(), results[1].Stat.Czxid)
	}
	return nil
}

// joinName joins one, and makes its directory unless it has operations. A node
// that is retained is there already.
func (c *Client) joinName(ctx context.Context, spec NameSpec) (*claim, error) {
	if spec.Retain {
		if spec.Data == nil {
			spec.Data = c.dataWithin(ctx)
		}
		if cl := c.claims.takeBack(c.keeper.Current(), spec.Path, spec.Data); cl != nil {
			return cl, nil
		}
	}
	claims, err := c.enterNames(ctx, spec)
	if err != nil {
		return nil, err
	}
	cl := claims[0]
	return cl, claims.join(ctx, cl.createName, func(err error) error {
		if len(spec.With) > 0 {
			return err
		}
		return cl.ensureDir(ctx)
	})
}

// createName sends the create once. Where the ACL forbids this client to write
// into its own node, the node's version stays 0, and does not distinguish the
// node from another client's.
func (cl *claim) createName() error {
	if cl.node.Plain.Shared {
		err := batch{cl}.create()
		var refused *TxnError
		switch isRefused := errors.As(err, &refused); {
		case isRefused && refused.Index == 1 && errors.Is(err, ErrNoAuth) && len(cl.named.With) == 0:
			cl.node.Plain.Shared = false
		case isRefused && refused.Index == 0:
			return refused.Err
		default:
			return callersOwn(err, 2)
		}
	}
	return cl.made(cl.sess.Create(cl.wanted(), cl.spec.Data, zk.FlagEphemeral, cl.client.opts.acl))
}
