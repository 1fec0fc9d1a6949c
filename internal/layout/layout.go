// Package layout says where the recipes have their nodes: for the recipes, and
// for the command, which finds recipes by what stands at a path.
package layout

import "github.com/zkcoord/zkcoord/coord"

// The names of the nodes below a recipe's path. The first of them is there as
// soon as the recipe has been used.
var (
	Once          = []string{"keys", "log", "guards"}
	Cron          = []string{"keys", "log", "guards", "mark", "runners"}
	DoubleBarrier = []string{"ready"}
	Slots         = []string{"numbers", "held", "line"}
	Queue         = []string{
		"entries", "taken", "consumers", "waiting", "waiting-kazoo", "producers", "dead", "records", "acknowledged",
	}
	Semaphore = []string{"leases", "locks", "limit"}
	Shards    = []string{"plan", "members", "keys"}
)

// MemberSuffix is what the names of the nodes of a group's members end with.
func MemberSuffix(d coord.Dialect) string {
	if d == coord.Kazoo {
		return "__party__"
	}
	return ""
}
