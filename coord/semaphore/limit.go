package semaphore

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/zkcoord/zkcoord/coord"
)

// ErrLimit: the limit stored in ZooKeeper is not the one that the program asks
// for, or there is none. The message has both. Two programs that disagree about
// the limit would break each other's; let one of them be changed, or the limit
// by [Semaphore.SetLimit], or let programs follow the stored one ([Stored]).
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
// another number are refused from then on ([ErrLimit]), waiters when their turn
// comes; programs that follow the stored one ([Stored]) follow immediately,
// also while they wait. Leases that are held stay held: after lowering the
// limit, no acquire succeeds until enough have been released. It repeats itself
// over lost connections until ctx ends: when a reply is lost while another
// program sets another limit, the repetition comes after that.
func (s *Semaphore) SetLimit(ctx context.Context, limit int) error {
	if limit < 1 || limit > math.MaxInt32 {
		return s.client.Failure("set limit", s.path, fmt.Errorf("%w: limit %d: it must be at least 1", coord.ErrInvalid, limit))
	}
	return s.client.Retry(ctx, func(ctx context.Context) error {
		return s.record().Change(ctx, s.client.Txn, func([]byte, coord.Stat) ([]byte, error) { return s.layout.encode(limit), nil })
	})
}

// record is where the limit stands.
func (s *Semaphore) record() coord.Record { return s.client.Record(s.layout.Limit) }

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
	var own []byte
	if s.limit != Stored {
		own = s.layout.encode(s.limit)
	}
	for {
		data, _, err := s.record().Look(v, own)
		if err != nil {
			return 0, err
		}
		limit, err := s.layout.decode(data)
		switch {
		case err != nil:
			return 0, err
		case limit == 0 && s.limit == Stored:
			return 0, fmt.Errorf("%w: none is stored in %s yet; SetLimit stores one", ErrLimit, s.layout.Limit)
		case limit == 0: // Kazoo has made the node and left it empty
			err = s.record().Change(ctx, s.client.Txn, func(data []byte, _ coord.Stat) ([]byte, error) {
				if len(data) > 0 {
					return data, nil // another program was faster
				}
				return own, nil
			})
			if err != nil {
				return 0, err
			}
		case s.limit != Stored && s.limit != limit:
			return 0, fmt.Errorf("%w: %s says %d, this program %d", ErrLimit, s.layout.Limit, limit, s.limit)
		case want > limit:
			return 0, fmt.Errorf("%w: %d leases at once, of a semaphore of %d", coord.ErrInvalid, want, limit)
		default:
			return limit, nil
		}
	}
}
