package soak

import (
	"time"

	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
)

// place is a path, the recipe used there, and what its history must obey.
type place struct {
	name  string
	hold  [2]time.Duration // how long to hold, least and most
	roles []role
	rules func(key string) []history.Rule
}

// role is what a worker does at a place.
type role struct {
	suffix string
	only   func(client string) bool       // clients that have such a worker; nil stands for all
	use    func(root string) workload.Use // nil for a queue's workers
}

var (
	short = [2]time.Duration{5 * time.Millisecond, 45 * time.Millisecond}
	// long holds are long enough for a double hold to show.
	long = [2]time.Duration{300 * time.Millisecond, 2500 * time.Millisecond}
)

// leases is the limit of the semaphore, party the size of the double barrier.
const leases, party = 3, 3

// crowd shares a mutex among the workers of a client.
var crowd = &workload.Crowd{Opts: []lock.Option{lock.LocalQueue(5, time.Second), lock.Linger(100 * time.Millisecond)}}

var places = []place{
	{"lock", short, []role{{"", nil, plain(workload.Lock)}}, one(history.Mutex)},
	{"lock-long", long, []role{{"", some, plain(workload.Lock)}, {".several", few, several}}, one(history.Mutex)},
	{"crowd", short, []role{{".a", nil, plain(crowd.Lock)}, {".b", nil, plain(crowd.Lock)}, {".c", few, plain(workload.Lock)}}, one(history.Turns)},
	{"shared", short, []role{{".r", nil, plain(workload.Share(0))}, {".w", some, plain(workload.Share(1))}}, one(history.ReadersWriter)},
	{"shared-long", long, []role{{".r", some, plain(workload.Share(0))}, {".w", few, plain(workload.Share(1))}}, one(history.ReadersWriter)},
	{"election", long, []role{{"", some, plain(workload.Campaign)}, {".run", few, plain(workload.Lead)}, {".observe", few, plain(workload.Observe)}}, one(history.Election)},
	{"leases", short, []role{{"", nil, plain(workload.Lease(leases))}}, counted},
	{"leases-long", long, []role{{"", some, plain(workload.Lease(leases))}}, counted},
	{"queue", short, []role{{".receive", nil, nil}}, drained},
	{"queue-take", short, []role{{".take", nil, nil}}, drained},
	{"meeting", short, []role{{"", nil, plain(workload.Meet(party))}}, func(key string) []history.Rule { return []history.Rule{history.Rounds(key, party)} }},
	{"gate", long, []role{{".keep", first, plain(workload.Keep)}, {".pass", nil, plain(workload.Pass)}}, func(string) []history.Rule { return nil }}, // see judge
}

func plain(use workload.Use) func(string) workload.Use {
	return func(string) workload.Use { return use }
}

func several(root string) workload.Use {
	return workload.Several(root+"/lock-long", root+"/shared-long")
}

// shop is the queue of a worker at the place, whose items are received, or
// taken.
func (p place) shop() *workload.Shop {
	shop := &workload.Shop{Full: 60}
	if p.name == "queue-take" {
		shop.Takes = 1
	}
	return shop
}

// some and few choose the clients that work at places where the line of all
// clients would be too long.
func some(client string) bool { return client[len(client)-1]%2 == 0 }
func few(client string) bool  { return client[len(client)-1]%4 == 0 }

// first is the client, in the soak's own process, that keeps the gate.
func first(client string) bool { return client == "c0" }

func counted(key string) []history.Rule { return []history.Rule{history.Leases(key, leases)} }
func drained(key string) []history.Rule { return []history.Rule{history.Queue(key, true)} }

func one(rule func(string) history.Rule) func(string) []history.Rule {
	return func(key string) []history.Rule { return []history.Rule{rule(key)} }
}
