package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/semaphore"
)

// slots returns the lock of which several may hold a slot. It stores the number
// of slots first, if that is wanted, and says what to do when it is another.
func (v *LockVerb) slots(client *coord.Client, path conn.NodePath) (acquirer, error) {
	sem, err := semaphore.New(client, string(path), *v.Slots)
	return apart(client, path, foreignAt, unlessNested(client, path, semaphore.LayoutOf(client.Dialect(), string(path)).Leases.Dir, *v.Slots, func(ctx context.Context, try bool) (*coord.Hold, error) {
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
	line := inspect.LockLine(path)
	line.AnyDialect = true
	return firstOf(ctx, client, path, func(names []string) []coord.Contender { return line.Order(names, client.Dialect()) })
}

// slotsAt finds a slot that is held, or waited for, in either dialect.
func slotsAt(ctx context.Context, client *coord.Client, path string) (string, error) {
	node, err := slotAt(ctx, client, path, coord.Curator)
	if err != nil || node != "" {
		return node, err
	}
	return slotAt(ctx, client, path, coord.Kazoo)
}

// foreignAt finds a contender that holders of slots in this client's dialect do
// not see.
func foreignAt(ctx context.Context, client *coord.Client, path string) (string, error) {
	node, err := locksAt(ctx, client, path)
	switch {
	case err != nil || node != "":
		return node, err
	case client.Dialect() == coord.Kazoo:
		return slotAt(ctx, client, path, coord.Curator)
	}
	return slotAt(ctx, client, path, coord.Kazoo)
}

func slotAt(ctx context.Context, client *coord.Client, path string, d coord.Dialect) (string, error) {
	at := semaphore.LayoutOf(d, path)
	return firstOf(ctx, client, at.Leases.Dir, at.Order)
}

// firstOf finds the first contender in a directory.
func firstOf(ctx context.Context, client *coord.Client, dir string, order func(names []string) []coord.Contender) (string, error) {
	names, err := look.Children(ctx, client, dir)
	if found := order(names); len(found) > 0 {
		return dir + "/" + found[0].Name, err
	}
	return "", err
}
