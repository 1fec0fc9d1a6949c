package look

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

// SlotsKind is the kind of a path whose lock has slots.
const SlotsKind = "semaphore"

// inSlots finds out whether there is a semaphore at path, of either dialect,
// and who has or wants a slot.
func (r *Report) inSlots(ctx context.Context, client *coord.Client, path conn.NodePath) (line []inspect.Contender, err error) {
	for _, d := range []coord.Dialect{coord.Curator, coord.Kazoo} {
		if line, err = r.slotsOf(ctx, client, string(path), d); err != nil || r.Kind != "" {
			return line, err
		}
	}
	return nil, nil
}

// slotsOf lists the leases, the oldest first, and then the ones that queue for
// one. A semaphore of Curator's that nobody uses is known by its limit. One of
// Kazoo's has no node then that tells.
func (r *Report) slotsOf(ctx context.Context, client *coord.Client, path string, d coord.Dialect) ([]inspect.Contender, error) {
	dir, at, queue := path+"/leases", path+"/limit", path+"/locks"
	if d == coord.Kazoo {
		dir, at, queue = path, path, path+"-__lock__"
	}
	names, err := client.Children(ctx, dir)
	missing := errors.Is(err, coord.ErrNoNode)
	if err != nil && !missing {
		return nil, err
	}
	leases, err := inspect.Describe(ctx, client, dir, leasesOf(names, d))
	if err != nil {
		return nil, err
	}
	// A name that does not tell may be of anything; but a lease belongs to a
	// session.
	leases = slices.DeleteFunc(leases, func(c inspect.Contender) bool { return c.Session == 0 && c.GUID == "" })
	slices.SortFunc(leases, func(a, b inspect.Contender) int { return cmp.Compare(a.Token, b.Token) })
	limit, err := limitAt(ctx, client, at, d)
	if err != nil {
		return nil, err
	}
	waiting, err := inspect.Contenders(ctx, client, queue)
	idle := limit > 0 && (len(waiting) > 0 || d == coord.Curator && !missing)
	if err != nil || len(leases) == 0 && !idle {
		return nil, err
	}
	r.Kind, r.Limit = SlotsKind, limit
	if limit == 0 { // the first in the queue may have made a lease that it waits for
		limit = len(leases) - min(1, len(waiting))
	}
	for i := range leases {
		leases[i].Holds = i < limit
	}
	for i := range waiting {
		waiting[i].Holds = false // it holds the right to make leases, and no lease
	}
	return append(leases, waiting...), nil
}

// leasesOf picks the leases out of a listing: in Curator's dialect whatever is
// there counts, also by a name that is not known.
func leasesOf(names []string, d coord.Dialect) []coord.Contender {
	var leases []coord.Contender
	if d == coord.Curator {
		leases = LineOf(names)
	}
	for _, name := range names {
		known := slices.ContainsFunc(leases, func(c coord.Contender) bool { return c.Name == name })
		if !known && (d == coord.Curator || IsKazooLease(name)) {
			leases = append(leases, coord.Contender{Name: name, Kind: "lease", Dialect: d})
		}
	}
	return leases
}

// limitAt reads a semaphore's limit, 0 if none is stored, or it may not be
// read.
func limitAt(ctx context.Context, client *coord.Client, at string, d coord.Dialect) (limit int, err error) {
	data, _, err := client.Get(ctx, at)
	switch {
	case errors.Is(err, coord.ErrNoNode), errors.Is(err, coord.ErrNoAuth):
		return 0, nil
	case d == coord.Curator && len(data) == 4:
		limit = int(int32(binary.BigEndian.Uint32(data)))
	case d == coord.Kazoo:
		limit, _ = strconv.Atoi(strings.TrimSpace(string(data)))
	}
	return max(0, limit), err
}

// IsKazooLease reports whether a node's name is that of a lease of Kazoo's: a
// GUID without a number.
func IsKazooLease(name string) bool {
	return len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}

// SlotsDir is where the nodes of those are that hold a slot.
func SlotsDir(client *coord.Client, path conn.NodePath) string {
	if client.Dialect() == coord.Kazoo {
		return string(path)
	}
	return string(path) + "/leases"
}
