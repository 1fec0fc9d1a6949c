package look

import (
	"context"
	"slices"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/layout"
)

// SlotsKind is the kind of a path whose lock has slots.
const SlotsKind = "semaphore"

// inSlots finds out whether there is a semaphore at path, of either dialect,
// and who has or wants a slot. A Curator semaphore that no client uses is known
// by its limit; a Kazoo semaphore then looks like any other node.
func (r *Report) inSlots(
	ctx context.Context, client *coord.Client, path conn.NodePath, names []string,
) ([]inspect.Contender, error) {
	isPart := func(name string) bool { return slices.Contains(parts[SlotsKind], name) }
	for _, d := range dialects {
		if r.Kind != "" && (d == coord.Kazoo || !slices.ContainsFunc(names, isPart)) {
			continue
		}
		seen, err := semaphore.Look(ctx, client, d, string(path))
		if err != nil {
			return nil, err
		}
		// A node without a GUID in its name may be anything, unless it belongs
		// to a session, as leases do.
		line := slices.DeleteFunc(seen.Contenders, func(c inspect.Contender) bool { return c.Session == 0 && c.GUID == "" })
		idle := seen.Limit > 0 && (len(line) > 0 || d == coord.Curator && (seen.Exists || len(names) == 1))
		if idle || slices.ContainsFunc(line, func(c inspect.Contender) bool { return c.Kind == semaphore.Kind }) {
			r.is(SlotsKind)
			r.Limit = seen.Limit
			return line, nil
		}
	}
	return nil, nil
}

func isKazooLease(name string) bool {
	return len(layout.SemaphoreAt(coord.Kazoo, "").Order([]string{name})) > 0
}
