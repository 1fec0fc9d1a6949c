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
	if !v.Shared {
		return lock.New(client, string(v.Path))
	}
	l, err := rwlock.New(client, string(v.Path))
	if err != nil {
		return nil, err
	}
	return l.ReadSide(), nil
}
