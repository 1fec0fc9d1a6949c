package semaphore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// acquire attempts until it succeeds, fails for good, or ctx ends. An attempt
// that loses its place in the queue, or a lease, is followed by another.
func (s *Semaphore) acquire(ctx context.Context, op string, n int, try bool) (holds []*coord.Hold, err error) {
	if n < 1 {
		return nil, recipe.Failure(s.client, op, s.path,
			fmt.Errorf("%w: %d leases: it must be at least 1", coord.ErrInvalid, n))
	}
	err = recipe.Retry(ctx, s.client, func(ctx context.Context) (err error) {
		for {
			holds, err = s.attempt(ctx, n, try)
			lost := errors.Is(err, coord.ErrLost) || errors.Is(err, coord.ErrNodeDeleted)
			switch {
			case !lost:
				return err
			case ctx.Err() != nil:
				return recipe.Ended(ctx, err)
			}
			ctx = recipe.Patient(ctx)
		}
	})
	if err != nil {
		return nil, recipe.Failure(s.client, op, s.path, recipe.InVain(ctx, s.client, err, s.holders))
	}
	for _, h := range holds {
		s.bound.Granted(ctx, s.client, h)
	}
	return holds, nil
}

// holders says who has the leases, in an error: two requests, and one for each
// lease that it reads.
func (s *Semaphore) holders(ctx context.Context) (string, error) {
	limit, err := s.agree(ctx, 1)
	if err != nil {
		return "", err
	}
	names, err := s.leases(ctx)
	if err != nil {
		return "", err
	}
	line := s.nodes.Order(names)
	held := min(limit, len(line))
	first, err := inspect.Describe(ctx, s.client, s.nodes.Leases.Dir, line[:min(held, recipe.MostNamed)])
	return recipe.HeldBy(first, held), err
}

// attempt queues, makes the leases when it is first in the queue, waits until
// there is room for them, and leaves the queue. A try looks for room first, and
// makes its leases without the queue (but see take for Kazoo).
func (s *Semaphore) attempt(ctx context.Context, n int, try bool) ([]*coord.Hold, error) {
	limit, err := s.agree(ctx, n)
	if err != nil {
		return nil, err
	}
	enter := recipe.Acquire
	if try {
		enter = recipe.TryAcquire
		if names, err := s.leases(ctx); err != nil {
			return nil, err
		} else if len(names)+n > limit {
			return nil, coord.ErrBusy
		}
	}
	var queue *coord.Hold
	if !try || s.nodes.Kazoo {
		queue, err = enter(ctx, s.client, &coord.Spec{Line: s.nodes.Queue, Kind: "lock", Recipe: s.path}, coord.First)
		if err != nil {
			return nil, err
		}
		// The caller need not wait for the deletion: the next in the queue sees
		// it.
		defer queue.Abandon()
	}
	for {
		holds, err := s.take(ctx, n, queue, try)
		if err != errRaised {
			return holds, err
		}
	}
}

// errRaised: the lease was made for a limit of 1, which has been raised since.
var errRaised = errors.New("the limit was raised")

// take makes n leases, waits for room, and turns them into holds; or leaves
// none behind.
func (s *Semaphore) take(ctx context.Context, n int, queue *coord.Hold, try bool) (holds []*coord.Hold, err error) {
	limit, err := s.agree(ctx, n)
	if err != nil {
		return nil, err
	}
	holds, names, err := s.stand(ctx, n, limit == 1)
	if err == nil {
		err = s.await(ctx, queue, holds, names, limit, try)
	}
	// Kazoo counts the leases before it makes its own, and not again. So the
	// place in the queue must have lasted until our lease was counted: no
	// other lease was made in between. (Curator counts afterwards, as room
	// does.)
	if err == nil && s.nodes.Kazoo {
		_, err = queue.Txn(ctx)
	}
	for _, h := range holds {
		err = cmp.Or(err, h.Err())
	}
	if err != nil {
		for _, h := range holds {
			h.Abandon()
		}
		return nil, err
	}
	return holds, nil
}

// stand makes n leases: all but the last together, and then the last, with a
// listing that shows them all. It returns the leases that were made.
func (s *Semaphore) stand(ctx context.Context, n int, exclusive bool) (made []*coord.Hold, names []string, err error) {
	holds, failures := make([]*coord.Hold, n), make([]error, n)
	var standing sync.WaitGroup
	for i := range n - 1 {
		standing.Go(func() {
			holds[i], _, failures[i] = s.makeLease(ctx, exclusive, false)
		})
	}
	standing.Wait()
	if err = recipe.JoinedWithin(ctx, failures...); err == nil {
		holds[n-1], names, err = s.makeLease(ctx, exclusive, true)
	}
	return slices.DeleteFunc(holds, func(h *coord.Hold) bool { return h == nil }), names, err
}

// await waits until there is room for our leases; a try does not wait. made
// is the limit that the leases were made for: a lease made for 1 has a token,
// and must be granted by that limit.
func (s *Semaphore) await(
	ctx context.Context, queue *coord.Hold, leases []*coord.Hold, names []string, made int, try bool,
) error {
	return s.client.Wait(ctx, func(v *coord.View) (bool, error) {
		limit, err := s.look(ctx, v, len(leases))
		if err == nil && made == 1 && limit > 1 {
			err = errRaised
		}
		if err != nil {
			return false, err
		}
		// An old listing will do: a lease made after it has counted ours.
		if room, err := s.room(leases, names, limit); room || err != nil {
			return room, err
		}
		if try {
			return false, coord.ErrBusy
		}
		v.RecheckOn(queue.Done())
		if names, err = v.ChildrenIfAny(s.nodes.Leases.Dir); err != nil {
			return false, err
		}
		if room, err := s.room(leases, names, limit); room || err != nil {
			return room, err
		}
		return false, queue.Err()
	})
}

// room reports whether our leases are among the oldest limit children, which
// only older leases can prevent. Every child counts, and one that cannot be
// ordered counts as older. So there are never more granted leases than the
// limit, whether or not all of them queued: the youngest of any set of them was
// granted when it saw all the others.
func (s *Semaphore) room(leases []*coord.Hold, names []string, limit int) (bool, error) {
	var own string // the youngest in the end: it was made last
	for _, h := range leases {
		own = path.Base(h.Node())
		if !slices.Contains(names, own) {
			return false, fmt.Errorf("lease %s: %w", own, coord.ErrNodeDeleted)
		}
	}
	line, younger := s.nodes.Leases.Order(names, s.client.Info().Dialect), 0
	if i := slices.IndexFunc(line, func(c coord.Contender) bool { return c.Name == own }); i >= 0 {
		younger = len(line) - 1 - i // Kazoo's leases have no order
	}
	return len(names)-younger <= limit, nil
}
