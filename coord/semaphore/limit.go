package semaphore

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/zkcoord/zkcoord/coord"
)

// ErrLimit: the limit stored in ZooKeeper is not the one that the program asks
// for, or there is none. The message tells both. Two programs that disagree
// about the limit would break each other's; let one of them be changed, or the
// limit by [Semaphore.SetLimit], or let programs follow the stored one
// ([Stored]).
var ErrLimit = errors.New("semaphore limits disagree")

// Limit returns the stored limit. One request, or none when this process
// watches the limit already.
func (s *Semaphore) Limit(ctx context.Context) (int, error) {
	stored := *s
	stored.limit = Stored
	limit, err := stored.agree(ctx, 1)
	return limit, s.client.Failure("limit", s.path, err)
}

// SetLimit changes the limit, or stores the first. Programs that ask for
// another number are refused from then on ([ErrLimit]), those that queue
// already when their turn comes; those that follow the stored one ([Stored])
// follow at once, also while they wait. Leases that are held stay held: after
// lowering the limit, no acquire succeeds until enough have been released. It
// repeats itself over lost connections until ctx ends: when a reply is lost
// while another program sets another limit, the repetition comes after that.
func (s *Semaphore) SetLimit(ctx context.Context, limit int) error {
	if limit < 1 || limit > math.MaxInt32 {
		return s.client.Failure("set limit", s.path, fmt.Errorf("%w: limit %d: it must be at least 1", coord.ErrInvalid, limit))
	}
	return s.client.Retry(ctx, func(ctx context.Context) error {
		for {
			_, err := s.client.Set(ctx, s.layout.limit, s.layout.encode(limit), -1)
			if errors.Is(err, coord.ErrNoNode) {
				err = s.client.Create(ctx, s.layout.limit, s.layout.encode(limit))
			}
			if !errors.Is(err, coord.ErrNodeExists) {
				return err
			}
		}
	})
}

// agree returns the limit in force for a claim to so many leases. The first
// program stores its own.
func (s *Semaphore) agree(ctx context.Context, want int) (limit int, err error) {
	err = s.client.Wait(ctx, func(v *coord.View) (bool, error) {
		limit, err = s.look(ctx, v, want)
		return true, err
	})
	return limit, err
}

func (s *Semaphore) look(ctx context.Context, v *coord.View, want int) (int, error) {
	for {
		data, stat, err := v.Get(s.layout.limit)
		missing := errors.Is(err, coord.ErrNoNode)
		if err != nil && !missing {
			return 0, err
		}
		limit, err := s.layout.decode(data)
		switch {
		case err != nil:
			return 0, err
		case limit == 0 && s.limit == Stored:
			return 0, fmt.Errorf("%w: none is stored in %s yet; SetLimit stores one", ErrLimit, s.layout.limit)
		case missing:
			err = s.client.Create(ctx, s.layout.limit, s.layout.encode(s.limit))
		case limit == 0: // Kazoo has made the node and left it empty
			_, err = s.client.Set(ctx, s.layout.limit, s.layout.encode(s.limit), stat.Version)
		case s.limit != Stored && s.limit != limit:
			return 0, fmt.Errorf("%w: %s says %d, this program %d", ErrLimit, s.layout.limit, limit, s.limit)
		case want > limit:
			return 0, fmt.Errorf("%w: %d leases at once, of a semaphore of %d", coord.ErrInvalid, want, limit)
		default:
			return limit, nil
		}
		if err != nil && !errors.Is(err, coord.ErrNodeExists) && !errors.Is(err, coord.ErrBadVersion) {
			return 0, err
		}
	}
}
