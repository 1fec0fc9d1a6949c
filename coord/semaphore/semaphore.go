package semaphore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

// Stored as the limit given to [New] stands for the limit that is stored in
// ZooKeeper, and follows it. A limit that was forgotten, 0, is refused.
const Stored = math.MinInt

// Semaphore is a semaphore at a path. It is configuration, not state: what is
// held is what the acquiring methods return. It is safe for concurrent use.
type Semaphore struct {
	client *coord.Client
	path   string
	limit  int
	layout Layout
}

// New returns the semaphore at path, of which at most limit leases are held at
// a time; [Stored] follows the limit that is stored. It does no I/O: whether
// the limit is the stored one is looked up when a lease is wanted. Invalid
// arguments fail with [coord.ErrInvalid].
func New(client *coord.Client, path string, limit int) (*Semaphore, error) {
	if err := coord.Check(client, path); err != nil {
		return nil, err
	}
	if limit != Stored && (limit < 1 || limit > math.MaxInt32) {
		err := fmt.Errorf("%w: limit %d: it must be at least 1, or semaphore.Stored", coord.ErrInvalid, limit)
		return nil, &coord.OpError{Op: "new", Path: path, Err: err}
	}
	return &Semaphore{client, path, limit, LayoutOf(client.Dialect(), path)}, nil
}

// Acquire waits for a lease until ctx ends. ctx bounds the waiting, not the
// hold. When it returns an error, nothing is left behind: what could not be
// deleted yet is deleted in the background. The hold has a token only if the
// limit is 1.
func (s *Semaphore) Acquire(ctx context.Context) (*coord.Hold, error) {
	return first(s.acquire(ctx, "acquire", 1, false))
}

// TryAcquire takes a lease if one is free and fails with [coord.ErrBusy] if
// none is, which costs one read and no write, once the process knows the limit.
// While no server can be reached, it waits for one until ctx ends.
func (s *Semaphore) TryAcquire(ctx context.Context) (*coord.Hold, error) {
	return first(s.acquire(ctx, "try", 1, true))
}

// AcquireN is [Semaphore.Acquire] for n leases together, all or none. The group
// ends when any of them does. More than the limit fail with [coord.ErrInvalid].
func (s *Semaphore) AcquireN(ctx context.Context, n int) (*coord.Group, error) {
	return group(s.acquire(ctx, "acquire", n, false))
}

// TryAcquireN is [Semaphore.TryAcquire] for n leases together, all or none.
func (s *Semaphore) TryAcquireN(ctx context.Context, n int) (*coord.Group, error) {
	return group(s.acquire(ctx, "try", n, true))
}

func first(holds []*coord.Hold, err error) (*coord.Hold, error) {
	if err != nil {
		return nil, err
	}
	return holds[0], nil
}

func group(holds []*coord.Hold, err error) (*coord.Group, error) {
	if err != nil {
		return nil, err
	}
	return coord.NewGroup(holds[0], holds[1:]...), nil
}

// Do acquires a lease, runs f, and releases; see [coord.Do] for what it
// returns.
func (s *Semaphore) Do(ctx context.Context, f func(ctx context.Context, h *coord.Hold) error) error {
	return coord.Do(ctx, s.Acquire, f)
}

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
