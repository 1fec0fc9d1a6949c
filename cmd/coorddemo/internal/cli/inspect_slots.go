package cli

import (
	"context"
	"slices"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/semaphore"
)

// slotsKind is the kind of a path whose lock has slots.
const slotsKind = "semaphore"

// slotsOf lists who has or wants a slot at path, in this client's dialect. The leases that a path of Curator's layout
// has below it tell that it is one, too.
func slotsOf(ctx context.Context, client *coord.Client, path nodePath) ([]coord.ContenderInfo, error) {
	sem, err := semaphore.New(client, string(path), semaphore.Stored)
	if err != nil {
		return nil, err
	}
	line, err := sem.Contenders(ctx)
	// Kazoo's leases have no names that tell; but they belong to a session.
	return slices.DeleteFunc(line, func(c coord.ContenderInfo) bool { return c.Session == 0 }), err
}
