package coord

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// WithSuspended has f return how long the machine has been suspended so far.
func WithSuspended(f func() time.Duration) Option {
	return func(o *options) error {
		o.Suspended = f
		return nil
	}
}

// Claim is what an acquire makes first: the steps of an acquire are tested one
// by one.
type Claim = claim

// Join is the first step of recipe.Acquire.
func (c *Client) JoinLine(ctx context.Context, spec Spec) (*Claim, error) {
	complete, err := spec.complete(ctx, c)
	if err != nil {
		return nil, c.failure("join", spec.Line.Dir, err)
	}
	own := *complete // Turn changes it
	cl, err := c.join(ctx, &own)
	return c.joined(ctx, cl, err, spec.Line.Dir)
}

// JoinName is the first step of recipe.AcquireName.
func (c *Client) JoinName(ctx context.Context, spec NameSpec) (*Claim, error) {
	cl, err := c.joinName(ctx, spec)
	return c.joined(ctx, cl, err, spec.Path)
}

func (c *Client) joined(ctx context.Context, cl *Claim, err error, path string) (*Claim, error) {
	if err, _ = repeatable(ctx, err); err != nil {
		return nil, c.failure("join", path, err)
	}
	return cl, nil
}

// JoinNames is the first step of recipe.AcquireNames.
func (c *Client) JoinNames(ctx context.Context, specs ...NameSpec) ([]*Claim, error) {
	claims, err := c.joinNames(ctx, specs)
	if err, _ = repeatable(ctx, err); err != nil {
		return nil, c.failure("join", specs[0].Path, err)
	}
	return claims, nil
}

// Turn is the second step; a nil rule grants immediately.
func (cl *claim) Turn(ctx context.Context, rule Rule) (*Hold, error) {
	if rule == nil {
		cl.mu.Lock()
		cl.spec.Unlisted = true
		cl.mu.Unlock()
	}
	w, err := cl.beginTurn(ctx, rule, false)
	if w != nil {
		err = w.await(ctx)
	}
	var h *Hold
	if err == nil {
		h, err = cl.grant(ctx)
	}
	return h, cl.client.failure("wait", cl.spec.Line.Dir, err)
}

func (cl *claim) Node() string { return cl.path() }

// Leave gives the claim up and waits for the deletion of its node.
func (cl *claim) Leave(ctx context.Context) error {
	return opError("leave", cl.path(), cl.abandoned().wait(ctx, cl.sess.Timeout()))
}

// Abandon is Leave without the wait.
func (cl *claim) Abandon() { cl.abandoned() }

func (cl *claim) abandoned() *removal {
	cl.mu.Lock()
	released := cl.endAll(ErrReleased)
	cl.mu.Unlock()
	for _, h := range released {
		h.tellReleased()
	}
	return cl.leave(cl.atOnce)
}

// Listed returns the names that were listed along with the create.
func (cl *claim) Listed(ctx context.Context) ([]string, error) {
	err := cl.list(ctx, func(names *session.Listing) bool { return slices.Contains(names.Names, cl.node.Name()) })
	if err != nil {
		return nil, cl.client.failure("list", cl.spec.Line.Dir, err)
	}
	return slices.Clone(cl.view.Names), nil
}

// Sharers returns the names of n claims in a line that share listings, or nil
// if there are not so many.
func (c *Client) Sharers(dir string, n int) []string {
	return c.keeper.Current().Listings.SharersBefore(dir, math.MaxInt32, n)
}
