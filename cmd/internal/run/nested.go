package run

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

// heldWith is the variable for a command that runs under these holds, too.
func heldWith(holds []*coord.Hold) string {
	nodes := conn.HeldAround()
	for _, h := range holds {
		nodes = append(nodes, path.Base(h.Node()))
	}
	return conn.HeldVariable + "=" + strings.Join(nodes, " ")
}

// ownAt lists the nodes in a directory that stand for what this process runs
// under. That costs a request only where there are such nodes at all.
func ownAt(ctx context.Context, client *coord.Client, dir string) ([]string, error) {
	held := conn.HeldAround()
	if len(held) == 0 {
		return nil, nil
	}
	names, err := look.Children(ctx, client, dir)
	return slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(held, name) }), err
}

// underItself refuses to wait for what this process runs under.
func underItself(path conn.NodePath, own string) error {
	return term.ExitWith(term.ExitOwnFault, "this process runs under %s already (%s), and would wait for itself for ever", path, own)
}

// unlessNested waits only if fewer than room of the claims in dir are held by
// processes that this one runs under. A try does not wait.
func unlessNested(client *coord.Client, path conn.NodePath, dir string, room int, acquire acquirer) acquirer {
	return func(ctx context.Context, try bool) (*coord.Hold, error) {
		own, err := ownAt(ctx, client, dir)
		switch {
		case err != nil:
			return nil, err
		case len(own) >= room && !try:
			return nil, underItself(path, own[0])
		}
		return acquire(ctx, try)
	}
}

// sharedUnlessNested is unlessNested for a shared lock: inside of itself it is
// granted immediately, or waits for a plain one that waits for the outer one.
func sharedUnlessNested(client *coord.Client, path conn.NodePath, acquire acquirer) acquirer {
	return func(ctx context.Context, try bool) (*coord.Hold, error) {
		own, err := ownAt(ctx, client, string(path))
		if err != nil {
			return nil, err
		}
		h, err := acquire(ctx, try || len(own) > 0)
		if errors.Is(err, coord.ErrBusy) && !try {
			err = underItself(path, own[0])
		}
		return h, err
	}
}
