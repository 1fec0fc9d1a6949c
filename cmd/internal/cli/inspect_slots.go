package cli

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/semaphore"
)

// slotsKind is the kind of a path whose lock has slots.
const slotsKind = "semaphore"

// slotsOf lists who has or wants a slot at path, in either dialect.
func slotsOf(ctx context.Context, client *coord.Client, path nodePath) ([]coord.ContenderInfo, error) {
	sem, err := semaphore.New(client, string(path), semaphore.Stored)
	if err != nil {
		return nil, err
	}
	line, err := sem.Contenders(ctx)
	// Kazoo's leases have no names that tell; but they belong to a session.
	line = slices.DeleteFunc(line, func(c coord.ContenderInfo) bool { return c.Session == 0 })
	if err != nil || len(line) > 0 {
		return line, err
	}
	if client.Dialect() == coord.Kazoo {
		return curatorSlots(ctx, client, string(path))
	}
	return kazooSlots(ctx, client, string(path))
}

// curatorSlots lists them as a Curator client would.
func curatorSlots(ctx context.Context, client *coord.Client, path string) ([]coord.ContenderInfo, error) {
	leases, err := client.Inspect(ctx, path+"/leases")
	if err != nil || len(leases) == 0 {
		return nil, err
	}
	limit := 0
	if data, _, err := client.Get(ctx, path+"/limit"); err == nil && len(data) == 4 {
		limit = int(binary.BigEndian.Uint32(data))
	}
	return withQueue(ctx, client, leases, limit, path+"/locks")
}

// kazooSlots lists them as a Kazoo client would.
func kazooSlots(ctx context.Context, client *coord.Client, path string) ([]coord.ContenderInfo, error) {
	names, err := children(ctx, client, path)
	if err != nil {
		return nil, err
	}
	var members []coord.Contender
	for _, name := range names {
		if isKazooLease(name) {
			members = append(members, coord.Contender{Name: name, Kind: "lease", Dialect: coord.Kazoo})
		}
	}
	leases, err := client.Describe(ctx, path, members)
	if err != nil {
		return nil, err
	}
	leases = slices.DeleteFunc(leases, func(lease coord.ContenderInfo) bool { return lease.Session == 0 })
	if len(leases) == 0 {
		return nil, nil
	}
	slices.SortFunc(leases, func(a, b coord.ContenderInfo) int { return cmp.Compare(a.Token, b.Token) })
	limit := 0
	if data, _, err := client.Get(ctx, path); err == nil {
		limit, _ = strconv.Atoi(strings.TrimSpace(string(data)))
	}
	return withQueue(ctx, client, leases, limit, path+"-__lock__")
}

// isKazooLease reports whether a node's name is that of a lease of Kazoo's: a
// GUID without a number.
func isKazooLease(name string) bool {
	return len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}

// withQueue marks those leases that the limit allows, and adds who queues for
// one.
func withQueue(ctx context.Context, client *coord.Client, leases []coord.ContenderInfo, limit int, queue string) ([]coord.ContenderInfo, error) {
	for i := range leases {
		leases[i].Holds = i < limit
	}
	waiting, err := client.Inspect(ctx, queue)
	for i := range waiting {
		waiting[i].Holds = false // it holds the right to make leases, and no lease
	}
	return append(leases, waiting...), err
}
