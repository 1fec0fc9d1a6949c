package shards

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Router tells the owners of keys to senders of requests. It watches the plan,
// and remembers owners for as long as the plan does not change for them. It is
// safe for concurrent use, and needs no end.
type Router struct {
	shards *Shards

	mu     sync.Mutex
	plan   *Plan
	seen   int64 // the change that made it
	owners map[string]Owner
}

// Router returns a router. It does no I/O.
func (s *Shards) Router() *Router { return &Router{shards: s, owners: map[string]Owner{}} }

// Owner is [Shards.Owner] from memory, if the plan still names the owner that
// is remembered: without a request then. It may be late: the member may have
// lost the key, and even have another hold of it. But Member and Token always
// belong together: this member had the key with this token. Send the token
// along; when the receiver refuses it, call [Router.Forget].
func (r *Router) Owner(ctx context.Context, key string) (Owner, error) {
	o, err := r.owner(ctx, key)
	return o, recipe.Failure(r.shards.client, "owner of "+nodeName(key), r.shards.path, err)
}

func (r *Router) owner(ctx context.Context, key string) (Owner, error) {
	p, err := r.follow(ctx)
	if err != nil {
		return Owner{}, err
	}
	planned, named := p.Owner(p.Place(key))
	r.mu.Lock()
	o, known := r.owners[key]
	r.mu.Unlock()
	if known && named && o.Member.Node == planned.Node {
		return o, nil
	}
	o, err = r.shards.owner(ctx, r.shards.client, p, key)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.owners, key)
	if err == nil && named && o.Member.Node == planned.Node {
		r.owners[key] = o
	}
	return o, err
}

// follow returns the plan, which is decoded once.
func (r *Router) follow(ctx context.Context) (p *Plan, err error) {
	s := r.shards
	err = s.client.Wait(ctx, func(v *coord.View) (bool, error) {
		data, stat, err := v.Get(s.planNode())
		r.mu.Lock()
		defer r.mu.Unlock()
		if err == nil && (r.plan == nil || r.seen != stat.Mzxid) {
			r.plan, err = decode(data)
			r.seen = stat.Mzxid
		}
		p = r.plan
		return true, err
	})
	if errors.Is(err, coord.ErrNoNode) {
		err = fmt.Errorf("%w: there is no plan", ErrNoOwner)
	}
	return p, err
}

// Forget has the router ask for the owner of a key at its next call.
func (r *Router) Forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.owners, key)
}
