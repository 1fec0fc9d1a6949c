package semaphore

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
)

// Contenders lists the leases, the oldest first, and then those who queue for
// one, in order. As many of the oldest leases as the limit allows are said to
// hold; a lease beyond that belongs to the first in the queue, which waits for
// room. Two listings and one read for each.
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

// describe reads the leases and sorts them by age, which the names of Kazoo's do
// not tell.
func (s *Semaphore) describe(ctx context.Context, names []string) ([]coord.ContenderInfo, error) {
	known := map[string]coord.Contender{}
	for _, c := range s.layout.leases.Order(names, s.client.Dialect()) {
		known[c.Name] = c
	}
	var infos []coord.ContenderInfo
	for _, name := range names {
		lease, ordered := known[name]
		if !ordered {
			lease = coord.Contender{Name: name, Kind: coord.Lease, Dialect: s.client.Dialect()}
		}
		node := s.layout.leases.Dir + "/" + name
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
	slices.SortFunc(infos, func(a, b coord.ContenderInfo) int { return cmp.Compare(a.Token, b.Token) })
	return infos, nil
}
