package barrier

import (
	"context"
	"errors"

	"github.com/zkcoord/zkcoord/coord"
)

// Barrier is a barrier at a path: closed while the node exists, open while it
// does not. It is configuration, not state, and safe for concurrent use.
type Barrier struct {
	client *coord.Client
	path   string
}

// New returns the barrier at path. It does no I/O. An argument that cannot be
// right fails with [coord.ErrInvalid].
func New(client *coord.Client, path string) (*Barrier, error) {
	if err := coord.Check(client, path); err != nil {
		return nil, err
	}
	return &Barrier{client, path}, nil
}

// Set closes the barrier; one that is closed stays so. When it has returned
// nil, every [Barrier.Wait] that begins afterwards waits, whatever server it
// asks. The node's data name who closed it, and missing parents are made. Set
// repeats itself over lost connections and sessions until ctx ends.
func (b *Barrier) Set(ctx context.Context) error {
	return b.client.Retry(ctx, func(ctx context.Context) error {
		err := b.client.CreateAll(ctx, b.path, []byte(b.client.Identity()))
		if errors.Is(err, coord.ErrNodeExists) {
			return nil
		}
		return err
	})
}

// Closed tells whether the barrier is closed, as the server that is asked knows
// it: for people to look at. Whoever depends on it waits. One request.
func (b *Barrier) Closed(ctx context.Context) (bool, error) {
	_, closed, err := b.client.Exists(ctx, b.path)
	return closed, err
}

// Remove opens the barrier; one that is open stays so. Everybody who waits goes
// on. It repeats itself over lost connections and sessions until ctx ends.
func (b *Barrier) Remove(ctx context.Context) error {
	return b.client.Retry(ctx, func(ctx context.Context) error {
		err := b.client.Delete(ctx, b.path, -1)
		if errors.Is(err, coord.ErrNoNode) {
			return nil
		}
		return err
	})
}

// Wait returns nil when the barrier has been open at some moment since the
// call, and ctx's error when ctx ends first. It does not miss an opening while
// it is disconnected, not even when the barrier has been closed again by then.
func (b *Barrier) Wait(ctx context.Context) error {
	fresh, closed := b.client.Fresh(), int64(0) // the node waited for, by its czxid
	for {
		var stat coord.Stat
		var changed <-chan struct{}
		err := fresh.Read(ctx, func(ctx context.Context) (err error) {
			_, stat, changed, err = b.client.Watch(ctx, b.path)
			return err
		})
		switch {
		case errors.Is(err, coord.ErrNoNode):
			return nil
		case err != nil:
			return err
		case closed != 0 && closed != stat.Czxid:
			return nil // opened, and closed again
		}
		closed = stat.Czxid
		select {
		case <-changed:
		case <-ctx.Done():
			return b.client.Failure("wait", b.path, coord.Ended(ctx))
		}
	}
}
