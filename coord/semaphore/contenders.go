package semaphore

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

// Contenders lists the leases, the oldest first, and then the queue for them,
// in order. As many of the oldest leases as the limit allows are said to hold;
// a lease beyond that belongs to the first in the queue, which waits for room.
// Two listings, a read of the limit, and one of each.
func (s *Semaphore) Contenders(ctx context.Context) ([]inspect.Contender, error) {
	limit, err := s.Limit(ctx)
	if err != nil && !errors.Is(err, ErrLimit) {
		return nil, err
	}
	names, err := s.leases(ctx)
	if err != nil {
		return nil, err
	}
	line := s.layout.leases.Order(names, s.client.Dialect())
	for _, name := range names {
		if !slices.ContainsFunc(line, func(c coord.Contender) bool { return c.Name == name }) {
			line = append(line, coord.Contender{Name: name, Kind: "lease", Dialect: s.client.Dialect()})
		}
	}
	leases, err := inspect.Describe(ctx, s.client, s.layout.leases.Dir, line)
	if err != nil {
		return nil, err
	}
	// The names of Kazoo's leases do not show their age.
	slices.SortFunc(leases, func(a, b inspect.Contender) int { return cmp.Compare(a.Token, b.Token) })
	queue, err := inspect.Contenders(ctx, s.client, s.layout.queue.Dir, s.layout.queue.Kinds...)
	if err != nil {
		return nil, err
	}
	all := append(leases, queue...)
	for i := range all { // the first in the queue holds the right to make leases, and no lease
		all[i].Holds = i < min(limit, len(leases))
	}
	return all, nil
}

// leases lists the names of the leases.
func (s *Semaphore) leases(ctx context.Context) ([]string, error) {
	names, err := s.client.Children(ctx, s.layout.leases.Dir)
	if errors.Is(err, coord.ErrNoNode) {
		return nil, nil
	}
	return names, err
}
