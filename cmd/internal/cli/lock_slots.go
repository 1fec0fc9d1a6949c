package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/semaphore"
)

// slots returns the lock of which several may hold a slot.
func (v *lockVerb) slots(client *coord.Client) (locker, error) {
	sem, err := semaphore.New(client, string(v.Path), *v.Slots)
	if err != nil {
		return nil, err
	}
	return apart{resized{sem, v}, client, v.Path, foreignAt}, nil
}

// resized stores the number of slots first, if that is wanted, and says what to do when it is another.
type resized struct {
	*semaphore.Semaphore
	verb *lockVerb
}

func (r resized) Acquire(ctx context.Context) (*coord.Hold, error) {
	return r.attempt(ctx, r.Semaphore.Acquire)
}

func (r resized) TryAcquire(ctx context.Context) (*coord.Hold, error) {
	return r.attempt(ctx, r.Semaphore.TryAcquire)
}

func (r resized) attempt(ctx context.Context, acquire func(context.Context) (*coord.Hold, error)) (*coord.Hold, error) {
	if r.verb.Resize {
		if err := r.SetLimit(ctx, *r.verb.Slots); err != nil {
			return nil, err
		}
	}
	h, err := acquire(ctx)
	if errors.Is(err, semaphore.ErrLimit) {
		if stored, unknown := r.Limit(ctx); unknown == nil {
			err = fmt.Errorf("%s has %d slots; say --slots %d, or --slots %d --resize to change that for everybody: %w",
				r.verb.Path, stored, stored, *r.verb.Slots, err)
		}
	}
	return h, err
}

// apart keeps locks with and without slots from being used at one path, since they do not exclude each other. It looks
// before it joins the line, and again when it holds: of two that come at the same time, one sees the other.
type apart struct {
	locker
	client *coord.Client
	path   nodePath
	others func(ctx context.Context, client *coord.Client, path string) (node string, err error)
}

func (a apart) Acquire(ctx context.Context) (*coord.Hold, error) {
	return a.attempt(ctx, a.locker.Acquire)
}

func (a apart) TryAcquire(ctx context.Context) (*coord.Hold, error) {
	return a.attempt(ctx, a.locker.TryAcquire)
}

func (a apart) attempt(ctx context.Context, acquire func(context.Context) (*coord.Hold, error)) (*coord.Hold, error) {
	if err := a.check(ctx); err != nil {
		return nil, err
	}
	h, err := acquire(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.check(ctx); err != nil {
		h.Abandon()
		return nil, err
	}
	return h, nil
}

func (a apart) check(ctx context.Context) error {
	node, err := a.others(ctx, a.client, string(a.path))
	if err != nil || node == "" {
		return err
	}
	return fmt.Errorf("%w: %s is there; a path is used either with --slots or without, and in one dialect", coord.ErrForeign, node)
}

// locksAt finds a contender in the line of a lock without slots.
func locksAt(ctx context.Context, client *coord.Client, path string) (string, error) {
	return standing(ctx, client, path, "lock", "read", "write")
}

// slotsAt finds a slot that is held, or waited for, in either dialect.
func slotsAt(ctx context.Context, client *coord.Client, path string) (string, error) {
	node, err := curatorSlotAt(ctx, client, path)
	if err != nil || node != "" {
		return node, err
	}
	return kazooSlotAt(ctx, client, path)
}

// foreignAt finds a contender that those who hold slots in this client's dialect do not see.
func foreignAt(ctx context.Context, client *coord.Client, path string) (string, error) {
	node, err := locksAt(ctx, client, path)
	switch {
	case err != nil || node != "":
		return node, err
	case client.Dialect() == coord.Kazoo:
		return curatorSlotAt(ctx, client, path)
	}
	return kazooSlotAt(ctx, client, path)
}

func curatorSlotAt(ctx context.Context, client *coord.Client, path string) (string, error) {
	return standing(ctx, client, path+"/leases", "lease")
}

// kazooSlotAt finds one of Kazoo's, which are children of the path without a number.
func kazooSlotAt(ctx context.Context, client *coord.Client, path string) (string, error) {
	names, err := children(ctx, client, path)
	if i := slices.IndexFunc(names, isKazooLease); i >= 0 {
		return path + "/" + names[i], nil
	}
	return "", err
}

// standing finds a claim of some kind in a directory, in either dialect.
func standing(ctx context.Context, client *coord.Client, dir string, kinds ...string) (string, error) {
	names, err := children(ctx, client, dir)
	line := coord.Line{Dir: dir, Kinds: kinds}
	for _, d := range []coord.Dialect{coord.Curator, coord.Kazoo} {
		if found := line.Order(names, d); len(found) > 0 {
			return dir + "/" + found[0].Name, err
		}
	}
	return "", err
}

func children(ctx context.Context, client *coord.Client, path string) ([]string, error) {
	names, err := client.Children(ctx, path)
	if errors.Is(err, coord.ErrNoNode) || errors.Is(err, coord.ErrNoAuth) {
		return nil, nil
	}
	return names, err
}
