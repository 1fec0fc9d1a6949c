package semaphore

import (
	"context"
	"errors"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
)

// Contenders lists the leases, the oldest first, and then those who queue for
// one, in order. As many of the oldest leases as the limit allows are said to
// hold; a lease beyond that belongs to the first in the queue, which waits for
// room. Kazoo's leases tell no order. Two listings and one read for each.
func (s *Semaphore) Contenders(ctx context.Context) ([]coord.ContenderInfo, error) {
	limit, err := s.Limit(ctx)
	if err != nil && !errors.Is(err, ErrLimit) {
		return nil, err
	}
	names, err := s.client.Children(ctx, s.layout.leases.Dir)
	if err != nil && !errors.Is(err, coord.ErrNoNode) {
		return nil, err
	}
	leases, err := s.describe(ctx, names)
	if err != nil {
		return nil, err
	}
	for i := range leases {
		leases[i].Holds = i < limit
	}
	queue, err := s.client.Contenders(ctx, s.layout.queue)
	if err != nil {
		return nil, err
	}
	for i := range queue {
		queue[i].Holds = false // it holds the right to make leases, and no lease
	}
	return append(leases, queue...), nil
}

// describe reads the leases, those first that tell no order.
func (s *Semaphore) describe(ctx context.Context, names []string) ([]coord.ContenderInfo, error) {
	ordered := s.layout.leases.Order(names, s.client.Dialect())
	var all []coord.Contender
	for _, name := range slices.Sorted(slices.Values(names)) {
		if !slices.ContainsFunc(ordered, func(c coord.Contender) bool { return c.Name == name }) {
			all = append(all, coord.Contender{Name: name, Kind: coord.Lease, Dialect: s.client.Dialect()})
		}
	}
	var infos []coord.ContenderInfo
	for _, lease := range append(all, ordered...) {
		node := s.layout.leases.Dir + "/" + lease.Name
		data, stat, err := s.client.Get(ctx, node)
		if errors.Is(err, coord.ErrNoNode) {
			continue
		}
		if err != nil && !errors.Is(err, coord.ErrNoAuth) {
			return nil, err
		}
		info := coord.ContenderInfo{
			Contender: lease, Node: node, Owner: string(data), Session: stat.Owner,
			Since: stat.Created, Token: stat.Czxid, Revoked: coord.IsRevocation(data),
		}
		if info.Revoked {
			info.Owner = ""
		}
		infos = append(infos, info)
	}
	return infos, nil
}
