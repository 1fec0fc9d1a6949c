package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/semaphore"
)

// slots returns the lock of which several may hold a slot. It stores the number
// of slots first, if that is wanted, and says what to do when it is another.
func (v *LockVerb) slots(client *coord.Client, path conn.NodePath) (acquirer, error) {
	sem, err := semaphore.New(client, string(path), *v.Slots)
	return apart(client, path, foreignAt, unlessNested(client, path, look.SlotsDir(client, path), *v.Slots, func(ctx context.Context, try bool) (*coord.Hold, error) {
		if v.Resize {
			if err := sem.SetLimit(ctx, *v.Slots); err != nil {
				return nil, err
			}
		}
		h, err := acquirerOf(sem)(ctx, try)
		if errors.Is(err, semaphore.ErrLimit) {
			if stored, unknown := sem.Limit(ctx); unknown == nil {
				err = fmt.Errorf("%s has %d slots; say --slots %d, or --slots %d --resize to change that for all clients: %w",
					path, stored, stored, *v.Slots, err)
			}
		}
		return h, err
	})), err
}

// finder finds a contender that must not be at a path.
type finder func(ctx context.Context, client *coord.Client, path string) (node string, err error)

// apart keeps locks with and without slots from being used at one path, since
// they do not exclude each other. It looks before it joins the line, and again
// when it holds: of two that come at the same time, one sees the other.
func apart(client *coord.Client, path conn.NodePath, others finder, acquire acquirer) acquirer {
	check := func(ctx context.Context) error {
		node, err := others(ctx, client, string(path))
		if err != nil || node == "" {
			return err
		}
		return fmt.Errorf("%w: %s is there; a path is used either with --slots or without, and in one dialect", coord.ErrForeign, node)
	}
	return func(ctx context.Context, try bool) (*coord.Hold, error) {
		if err := check(ctx); err != nil {
			return nil, err
		}
		h, err := acquire(ctx, try)
		if err != nil {
			return nil, err
		}
		if err := check(ctx); err != nil {
			h.Abandon()
			return nil, err
		}
		return h, nil
	}
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

// foreignAt finds a contender that holders of slots in this client's dialect do
// not see.
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

// kazooSlotAt finds one of Kazoo's, which are children of the path without a
// number.
func kazooSlotAt(ctx context.Context, client *coord.Client, path string) (string, error) {
	names, err := look.Children(ctx, client, path)
	if i := slices.IndexFunc(names, look.IsKazooLease); i >= 0 {
		return path + "/" + names[i], nil
	}
	return "", err
}

// standing finds a claim of some kind in a directory, in either dialect.
func standing(ctx context.Context, client *coord.Client, dir string, kinds ...string) (string, error) {
	names, err := look.Children(ctx, client, dir)
	line := coord.Line{Dir: dir, Kinds: kinds, AnyDialect: true}
	if found := line.Order(names, client.Dialect()); len(found) > 0 {
		return dir + "/" + found[0].Name, err
	}
	return "", err
}
