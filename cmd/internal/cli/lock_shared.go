package cli

import (
	"context"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/rwlock"
)

// locker is any kind of lock.
type locker interface {
	Acquire(ctx context.Context) (*coord.Hold, error)
	TryAcquire(ctx context.Context) (*coord.Hold, error)
}

// locker returns the lock that the options ask for. Plain and shared ones stand in one line.
func (v *lockVerb) locker(client *coord.Client) (locker, error) {
	switch {
	case v.stand != nil:
		return v.stand(client)
	case v.Slots != nil:
		return v.slots(client)
	case !v.Shared:
		m, err := lock.New(client, string(v.Path))
		return apart{m, client, v.Path, slotsAt}, err
	}
	l, err := rwlock.New(client, string(v.Path))
	if err != nil {
		return nil, err
	}
	return apart{l.ReadSide(), client, v.Path, slotsAt}, nil
}
