package semaphore

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
)

// Contenders lists the leases, the oldest first, and then those that queue for
// one, in order. As many of the oldest leases as the limit allows are said to
// hold; a lease beyond that belongs to the first in the queue, which waits for
// room. Two listings, a read of the limit, and one of each.
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
	queue, err := s.client.Inspect(ctx, s.layout.queue.Dir, s.layout.queue.Kinds...)
	if err != nil {
		return nil, err
	}
	for i := range queue {
		queue[i].Holds = false // it holds the right to make leases, and no lease
	}
	return append(leases, queue...), nil
}

// describe reads the leases and sorts them by age, which the names of Kazoo's
// do not tell.
func (s *Semaphore) describe(ctx context.Context, names []string) ([]coord.ContenderInfo, error) {
	leases := s.layout.leases.Order(names, s.client.Dialect())
	for _, name := range names {
		if !slices.ContainsFunc(leases, func(c coord.Contender) bool { return c.Name == name }) {
			leases = append(leases, coord.Contender{Name: name, Kind: "lease", Dialect: s.client.Dialect()})
		}
	}
	infos, err := s.client.Describe(ctx, s.layout.leases.Dir, leases)
	slices.SortFunc(infos, func(a, b coord.ContenderInfo) int { return cmp.Compare(a.Token, b.Token) })
	return infos, err
}
