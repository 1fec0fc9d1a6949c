package main

import "slices"

// The packages whose tests kill mutants.
const (
	coord   = "./coord"
	inside  = "./coord/internal/session"
	znodes  = "./coord/internal/znode"
	witness = "./coord/internal/witness"
	network = "./coord/internal/wire"
	reached = "./coord/internal/servers"
	trusted = "./coord/internal/window"
	lock    = "./coord/lock"
	rwlock  = "./coord/rwlock"
	gate    = "./coord/barrier"
	barrier = "./coord/doublebarrier"
	sema    = "./coord/semaphore"
	items   = "./coord/queue"
	elect   = "./coord/election"
	ledger  = "./coord/once"
	crons   = "./coord/cron"
	groups  = "./coord/group"
	values  = "./coord/value"
	counts  = "./coord/counter"
	numbers = "./coord/slots"
	parts   = "./coord/shards"
	shared  = "./coord/recipe"
	looking = "./coord/inspect"
	fences  = "./coord/fence"
	tables  = "./internal/fencetest"
	gocron  = "./contrib/gocron"
	crontab = "./contrib/cron"
	keeper  = "./cmd/internal/guard"
	shown   = "./cmd/internal/see"
	runs    = "./cmd/internal/run"
	page    = "./cmd/internal/ui"
	past    = "./cmd/internal/history"
	looks   = "./cmd/internal/look"
	faults  = "./zkembed/control"
	wires   = "./zkembed/internal/contract"

	attended = "./coord/attend"
	told     = "./coord/internal/attend"
	service  = "./cmd/internal/attend"

	simulation = "./internal/proofs/simulate"
)

// mutants is every guard with the tests that need it.
var mutants = slices.Concat(recovery, window, holds, guards, line, connection, once, locks, gates, doubleBarrier,
	leaving, semaphore, queue, election, jobs, schedules, members, slots, shardsOff, remove, fencing, waits, calls, judges,
	pages, attendance)
