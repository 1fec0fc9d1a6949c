package coord

import (
	"context"
	"errors"
	"time"
)

// IsRevocation tells whether a claim's data are a request to give up what it
// holds, in either dialect. No claim of your own may have such data.
func IsRevocation(data []byte) bool {
	return string(data) == revokeCurator || string(data) == revokePlain
}

// Revoke asks the claim at node to give up what it holds, or the turn it waits
// for: it writes the dialect's request into the node, which closes the
// holder's [Hold.Revoked]. Whether and when the holder obeys is its business.
// A node that is gone already is no error. The node's data, which named the
// owner, are lost. One request.
func Revoke(ctx context.Context, c *Client, node string) error {
	request := revokeCurator
	if c.opts.dialect == Kazoo {
		request = revokePlain
	}
	err := c.Retry(ctx, func(ctx context.Context) error { // to ask twice is to ask once
		_, err := c.Set(ctx, node, []byte(request), -1)
		return err
	})
	return unlessGone("revoke", node, err)
}

// RevokeAndWait asks as [Revoke] does and waits until the node is gone. When
// forceAfter is positive and the node is still there after that time, it
// deletes it by force ([Break]): the holder then loses its hold, but may go on
// acting on it for as long as the news takes to reach it.
func RevokeAndWait(ctx context.Context, c *Client, node string, forceAfter time.Duration) error {
	if err := Revoke(ctx, c, node); err != nil {
		return err
	}
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if forceAfter > 0 {
		waiting, cancel = context.WithTimeout(ctx, forceAfter)
	}
	defer cancel()
	err := AwaitDeleted(waiting, c, node)
	if err == nil || ctx.Err() != nil || waiting.Err() == nil {
		return opError("revoke", node, err)
	}
	return Break(ctx, c, node)
}

// Break deletes a claim's node by force. Whoever is next gets its turn; the
// former holder sees its loss as soon as the news reaches it, and may have
// acted on the hold until then.
func Break(ctx context.Context, c *Client, node string) error {
	err := c.Retry(ctx, func(ctx context.Context) error { return c.Delete(ctx, node, -1) })
	return unlessGone("break", node, err)
}

func unlessGone(op, node string, err error) error {
	if errors.Is(err, ErrNoNode) {
		return nil
	}
	return opError(op, node, err)
}

// AwaitDeleted waits until a node is gone.
func AwaitDeleted(ctx context.Context, c *Client, node string) error {
	for {
		_, _, changed, err := c.Watch(ctx, node)
		if errors.Is(err, ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return c.Failure("wait", node, Ended(ctx))
		}
	}
}
