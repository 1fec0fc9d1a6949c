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
)

// acquire attempts until it succeeds, fails for good, or ctx ends.
func (s *Semaphore) acquire(ctx context.Context, op string, n int, attempt func(context.Context, int) ([]*coord.Hold, error)) ([]*coord.Hold, error) {
	if n < 1 {
		return nil, s.client.Failure(op, s.path, fmt.Errorf("%w: %d leases: it must be at least 1", coord.ErrInvalid, n))
	}
	for {
		holds, err := attempt(ctx, n)
		if err == nil || ctx.Err() != nil || !again(err) {
			return holds, s.client.Failure(op, s.path, err)
		}
	}
}

// again tells the failures that concern this attempt only: an own node was
// deleted, or the session is over, or the connection failed.
func again(err error) bool {
	for _, passing := range []error{
		coord.ErrLost, coord.ErrNodeDeleted, coord.ErrSessionExpired, coord.ErrDisconnected, coord.ErrThrottled,
	} {
		if errors.Is(err, passing) {
			return !errors.Is(err, coord.ErrClosed)
		}
	}
	return false
}

// attempt queues, makes the leases when it is first in the queue, waits until
// there is room for them, and leaves the queue.
func (s *Semaphore) attempt(ctx context.Context, n int) ([]*coord.Hold, error) {
	if _, err := s.agree(ctx, n); err != nil {
		return nil, err
	}
	queue, err := s.client.Acquire(ctx, coord.Spec{Line: s.layout.queue, Kind: "lock"}, coord.First)
	if err != nil {
		return nil, err
	}
	// The caller need not wait for the deletion: the next in the queue sees it.
	defer queue.Abandon()
	for {
		holds, err := s.take(ctx, n, func(claims []*coord.Claim, names []string, made int) error {
			if err := s.await(ctx, queue, claims, names, made); err != nil {
				return err
			}
			return s.stillFirst(ctx, queue)
		})
		if err != errRaised {
			return holds, err
		}
	}
}

// errRaised: the lease was made to be the only one, and is no longer.
var errRaised = errors.New("the limit was raised")

// try makes the leases if there is room, without queueing, and takes them back
// if there is none after all.
func (s *Semaphore) try(ctx context.Context, n int) ([]*coord.Hold, error) {
	limit, err := s.agree(ctx, n)
	if err != nil {
		return nil, err
	}
	names, err := s.client.Children(ctx, s.layout.leases.Dir)
	if err != nil && !errors.Is(err, coord.ErrNoNode) {
		return nil, err
	}
	if len(names)+n > limit {
		return nil, coord.ErrBusy
	}
	var queue *coord.Hold
	if s.layout.kazoo { // see stillFirst
		queue, err = s.client.TryAcquire(ctx, coord.Spec{Line: s.layout.queue, Kind: "lock"}, coord.First)
		if err != nil {
			return nil, err
		}
		defer queue.Abandon()
	}
	return s.take(ctx, n, func(claims []*coord.Claim, names []string, limit int) error {
		if room, err := s.room(claims, names, limit); err != nil {
			return err
		} else if !room {
			return coord.ErrBusy
		}
		return s.stillFirst(ctx, queue)
	})
}

// stillFirst is for Kazoo, which counts the leases before it makes its own, and
// not again. So no other may make one in between, and the place in the queue
// must have lasted from before the own lease was made until it was counted.
// Curator counts afterwards, as room does.
func (s *Semaphore) stillFirst(ctx context.Context, queue *coord.Hold) error {
	if !s.layout.kazoo {
		return nil
	}
	_, err := queue.Txn(ctx)
	return err
}

// take makes n leases, has admit wait for room or refuse, and turns them into
// holds; or leaves none behind. admit gets the limit that they were made for:
// a lease made for 1 has a token, and must be granted by that limit.
func (s *Semaphore) take(ctx context.Context, n int, admit func(claims []*coord.Claim, names []string, limit int) error) (holds []*coord.Hold, err error) {
	limit, err := s.agree(ctx, n)
	if err != nil {
		return nil, err
	}
	claims, err := s.join(ctx, n, limit == 1)
	defer func() {
		if err != nil {
			for _, cl := range claims {
				cl.Abandon()
			}
		}
	}()
	if err != nil {
		return nil, err
	}
	names, err := claims[n-1].Listed(ctx)
	if err != nil {
		return nil, err
	}
	if err = admit(claims, names, limit); err != nil {
		return nil, err
	}
	for _, cl := range claims {
		h, err := cl.Turn(ctx, coord.Alone)
		if err != nil {
			return nil, err
		}
		holds = append(holds, h)
	}
	return holds, nil
}

// join makes n leases: all but the last together, and then the last, with a
// listing that shows them all. It returns those that were made.
func (s *Semaphore) join(ctx context.Context, n int, exclusive bool) ([]*coord.Claim, error) {
	claims, failures := make([]*coord.Claim, n), make([]error, n)
	var joining sync.WaitGroup
	for i := range n - 1 {
		joining.Go(func() {
			spec := s.layout.claim(exclusive)
			spec.Unlisted = spec.Name == ""
			claims[i], failures[i] = s.client.Join(ctx, spec)
		})
	}
	joining.Wait()
	err := cmp.Or(failures...)
	if err == nil {
		claims[n-1], err = s.client.Join(ctx, s.layout.claim(exclusive))
	}
	if err != nil {
		return slices.DeleteFunc(claims, func(cl *coord.Claim) bool { return cl == nil }), err
	}
	return claims, nil
}

// await waits until there is room for the own leases. names are the children of
// the directory as listed along with the last create, made is the limit then.
func (s *Semaphore) await(ctx context.Context, queue *coord.Hold, claims []*coord.Claim, names []string, made int) error {
	return s.client.Wait(ctx, func(v *coord.View) (room bool, err error) {
		limit, err := s.look(ctx, len(claims), v.Get)
		if err == nil && made == 1 && limit > 1 {
			err = errRaised
		}
		if err == nil && names != nil {
			room, err = s.room(claims, names, limit)
			names = nil
		}
		if err == nil && !room {
			var left []string
			left, _, err = v.Children(s.layout.leases.Dir)
			if err == nil || errors.Is(err, coord.ErrNoNode) { // without the directory there is no own lease either
				room, err = s.room(claims, left, limit)
			}
		}
		if room || err != nil {
			return room, err
		}
		v.Until(queue.Done())
		return false, queue.Err()
	})
}

// room reports whether the own leases are among the oldest limit children,
// which only older leases can prevent. Every child counts, and one that cannot
// be ordered counts as older. So the leases that are granted are never more
// than the limit, whether all of them queued or not: of any set of them the
// youngest was granted when it saw all the others.
func (s *Semaphore) room(claims []*coord.Claim, names []string, limit int) (bool, error) {
	own := make([]string, len(claims))
	for i, cl := range claims {
		own[i] = path.Base(cl.Node())
		if !slices.Contains(names, own[i]) {
			return false, fmt.Errorf("lease %s: %w", own[i], coord.ErrNodeDeleted)
		}
	}
	line, younger := s.layout.leases.Order(names, s.client.Dialect()), 0
	for _, c := range slices.Backward(line) {
		if slices.Contains(own, c.Name) {
			return len(names)-younger <= limit, nil
		}
		younger++
	}
	return len(names) <= limit, nil // Kazoo's leases have no order
}
