package layout

import (
	"strings"

	"github.com/zkcoord/zkcoord/coord"
)

// SemaphoreNodes is where a dialect keeps a semaphore's nodes.
type SemaphoreNodes struct {
	Queue  coord.Line // of the clients that want leases: a mutex
	Leases coord.Line // every child counts
	Limit  string     // the node whose data are the limit
	Path   string     // of the semaphore
	Kazoo  bool       // the dialect is Kazoo's
}

// Lease is the kind of a lease.
const Lease = "lease"

// SemaphoreAt returns the nodes of Curator's InterProcessSemaphoreV2, which
// stores no limit, with ours where its SharedCount can read it; or those of
// Kazoo's Semaphore.
func SemaphoreAt(d coord.Dialect, path string) SemaphoreNodes {
	lock, lease := []string{"lock"}, []string{Lease}
	if d == coord.Kazoo {
		return SemaphoreNodes{
			coord.Line{Dir: path + "-__lock__", Kinds: lock}, coord.Line{Dir: path, Kinds: lease}, path, path, true,
		}
	}
	return SemaphoreNodes{
		coord.Line{Dir: path + "/locks", Kinds: lock},
		coord.Line{Dir: path + "/leases", Kinds: lease},
		path + "/limit", path, false,
	}
}

// GUIDBytes is the length of the GUID that names a lease of Kazoo's.
const GUIDBytes = 16

// Order picks the leases out of the names of the children of Leases.Dir: in
// order of age for Curator, whose names have a number; Kazoo's do not.
func (s SemaphoreNodes) Order(names []string) (leases []coord.Contender) {
	if !s.Kazoo {
		return s.Leases.Order(names, coord.Curator)
	}
	for _, name := range names {
		if len(name) == 2*GUIDBytes && strings.Trim(name, "0123456789abcdef") == "" {
			leases = append(leases, coord.Contender{Name: name, Kind: Lease, Dialect: coord.Kazoo})
		}
	}
	return leases
}
