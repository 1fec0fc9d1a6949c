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
	seen, err := s.layout.Look(ctx, s.client)
	return seen.Contenders, err
}

// Sight is a semaphore as one look shows it.
type Sight struct {
	Exists     bool                // the directory of the leases does
	Limit      int                 // 0: none is stored, or it is not for this client to read
	Contenders []inspect.Contender // as [Semaphore.Contenders] lists them
}

// Look reads a semaphore of either dialect: two listings, a read of the limit,
// and one of each contender. Without a limit, all leases are said to hold but
// one, which the first in the queue may have made and waits for.
func (l Layout) Look(ctx context.Context, c *coord.Client) (seen Sight, err error) {
	names, err := c.Children(ctx, l.Leases.Dir)
	seen.Exists = err == nil
	if err != nil && !errors.Is(err, coord.ErrNoNode) {
		return seen, err
	}
	line := l.Order(names)
	for _, name := range names {
		if !l.kazoo && !slices.ContainsFunc(line, func(c coord.Contender) bool { return c.Name == name }) {
			line = append(line, coord.Contender{Name: name, Kind: Kind, Dialect: coord.Curator})
		}
	}
	leases, err := inspect.Describe(ctx, c, l.Leases.Dir, line)
	if err != nil {
		return seen, err
	}
	slices.SortFunc(leases, func(a, b inspect.Contender) int { return cmp.Compare(a.Token, b.Token) })
	data, _, err := c.Get(ctx, l.Limit)
	if err != nil && !errors.Is(err, coord.ErrNoNode) && !errors.Is(err, coord.ErrNoAuth) {
		return seen, err
	}
	seen.Limit, _ = l.decode(data)
	queue, err := inspect.Contenders(ctx, c, l.Queue.Dir, l.Queue.Kinds...)
	holding := seen.Limit
	if holding == 0 {
		holding = len(leases) - min(1, len(queue))
	}
	seen.Contenders = append(leases, queue...)
	for i := range seen.Contenders { // the first in the queue holds the right to make leases, and no lease
		seen.Contenders[i].Holds = i < min(holding, len(leases))
	}
	return seen, err
}

// leases lists the names of the leases.
func (s *Semaphore) leases(ctx context.Context) ([]string, error) {
	names, err := s.client.Children(ctx, s.layout.Leases.Dir)
	if errors.Is(err, coord.ErrNoNode) {
		return nil, nil
	}
	return names, err
}
