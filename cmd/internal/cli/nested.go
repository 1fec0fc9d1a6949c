package cli

import (
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/zkcoord/zkcoord/coord"
)

// heldVariable tells a command the names of the nodes that stand for what it
// runs under, the outermost first. They are like no others, on any servers.
const heldVariable = "COORD_HELD"

// heldWith is the variable for a command that runs under these holds, too.
func heldWith(holds []*coord.Hold) string {
	nodes := strings.Fields(os.Getenv(heldVariable))
	for _, h := range holds {
		nodes = append(nodes, path.Base(h.Node()))
	}
	return heldVariable + "=" + strings.Join(nodes, " ")
}

// ownAt lists the nodes in a directory that stand for what this process runs
// under. That costs a request only where there are such nodes at all.
func ownAt(ctx context.Context, client *coord.Client, dir string) ([]string, error) {
	held := strings.Fields(os.Getenv(heldVariable))
	if len(held) == 0 {
		return nil, nil
	}
	names, err := children(ctx, client, dir)
	return slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(held, name) }), err
}

// underItself refuses to wait for what this process runs under.
func underItself(path nodePath, own string) error {
	return exitWith(exitOwnFault, "this process runs under %s already (%s), and would wait for itself for ever", path, own)
}

// unlessNested waits only if fewer than room of the claims in dir are held by
// processes that this one runs under. A try does not wait.
func unlessNested(client *coord.Client, path nodePath, dir string, room int, acquire acquirer) acquirer {
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
// granted at once, or waits for a plain one that waits for the outer one.
func sharedUnlessNested(client *coord.Client, path nodePath, acquire acquirer) acquirer {
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
