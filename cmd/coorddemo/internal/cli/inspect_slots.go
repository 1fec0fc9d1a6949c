package cli

import (
	"context"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/semaphore"
)

// slotsKind is the kind of a path whose lock has slots.
const slotsKind = "semaphore"

// contendersAt lists who stands in the line at path, or, if nobody does, who has or wants a slot there, in this
// client's dialect.
func contendersAt(ctx context.Context, client *coord.Client, path nodePath) (line []coord.ContenderInfo, slots bool, err error) {
	line, err = coord.Inspect(ctx, client, string(path))
	if err != nil || len(line) > 0 {
		return line, false, err
	}
	sem, err := semaphore.New(client, string(path), semaphore.Stored)
	if err != nil {
		return nil, false, err
	}
	line, err = sem.Contenders(ctx)
	return line, len(line) > 0, err
}
