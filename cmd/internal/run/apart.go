package run

import (
	"context"
	"fmt"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/layout"
)

// finder finds a contender that must not be at a path.
type finder func(ctx context.Context, client *coord.Client, path string) (node string, err error)

// apart keeps locks with and without slots from being used at one path, since
// they do not exclude each other. It looks before it joins the line, and again
// when it holds: of two that come at the same time, one sees the other.
func apart(
	client *coord.Client, path conn.NodePath, others finder, acquire acquirer[*coord.Hold],
) acquirer[*coord.Hold] {
	check := func(ctx context.Context) error {
		node, err := others(ctx, client, string(path))
		if err != nil || node == "" {
			return err
		}
		return fmt.Errorf("%w: %s is there; a path is used either with --slots or without, and in one dialect",
			coord.ErrForeign, node)
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
	kinds := inspect.LockLine(path).Kinds
	return firstOf(ctx, client, path, func(names []string) []coord.Contender { return inspect.Among(names, kinds...) })
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
	case client.Info().Dialect == coord.Kazoo:
		return slotAt(ctx, client, path, coord.Curator)
	}
	return slotAt(ctx, client, path, coord.Kazoo)
}

func slotAt(ctx context.Context, client *coord.Client, path string, d coord.Dialect) (string, error) {
	at := layout.SemaphoreAt(d, path)
	return firstOf(ctx, client, at.Leases.Dir, at.Order)
}

// firstOf finds the first contender in a directory.
func firstOf(
	ctx context.Context, client *coord.Client, dir string, order func(names []string) []coord.Contender,
) (string, error) {
	names, err := look.Children(ctx, client, dir)
	if found := order(names); len(found) > 0 {
		return dir + "/" + found[0].Name, err
	}
	return "", err
}
