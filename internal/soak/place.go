package soak

import (
	"time"

	"github.com/zkcoord/zkcoord/internal/history"
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
	only   func(client string) bool // who has such a worker; nil for everybody
	start  func(w *worker) (cycle, error)
}

var (
	short = [2]time.Duration{5 * time.Millisecond, 45 * time.Millisecond}
	// long holds are those in which a double hold would show.
	long = [2]time.Duration{300 * time.Millisecond, 2500 * time.Millisecond}
)

// leases is the limit of the semaphore, party the size of the double barrier.
const leases, party = 3, 3

var places = []place{
	{"lock", short, []role{{"", nil, lockWorker}}, one(history.Mutex)},
	{"lock-long", long, []role{{"", some, lockWorker}}, one(history.Mutex)},
	{"shared", short, []role{{".r", nil, readWorker}, {".w", some, writeWorker}}, one(history.ReadersWriter)},
	{"shared-long", long, []role{{".r", some, readWorker}, {".w", few, writeWorker}}, one(history.ReadersWriter)},
	{"election", long, []role{{"", some, electionWorker}}, one(history.Election)},
	{"leases", short, []role{{"", nil, leaseWorker}}, counted},
	{"leases-long", long, []role{{"", some, leaseWorker}}, counted},
	{"queue", short, []role{{".receive", nil, receiveWorker}}, drained},
	{"queue-take", short, []role{{".take", nil, takeWorker}}, drained},
	{"meeting", short, []role{{"", nil, meetWorker}}, func(key string) []history.Rule { return []history.Rule{history.Rounds(key, party)} }},
	{"gate", long, []role{{".keep", first, keepWorker}, {".pass", nil, passWorker}}, func(string) []history.Rule { return nil }},
}

// some and few tell which clients work at places where everybody would make for
// too long a line.
func some(client string) bool { return client[len(client)-1]%2 == 0 }
func few(client string) bool  { return client[len(client)-1]%4 == 0 }

// first is the client, in the soak's own process, that keeps the gate.
func first(client string) bool { return client == "c0" }

func counted(key string) []history.Rule { return []history.Rule{history.Leases(key, leases)} }
func drained(key string) []history.Rule { return []history.Rule{history.Queue(key, true)} }

func one(rule func(string) history.Rule) func(string) []history.Rule {
	return func(key string) []history.Rule { return []history.Rule{rule(key)} }
}
