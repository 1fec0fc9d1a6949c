package main

import "slices"

// The packages whose tests kill mutants.
const (
	coord   = "./coord"
	inside  = "./coord/internal/session"
	trusted = "./coord/internal/window"
	lock    = "./coord/lock"
	rwlock  = "./coord/rwlock"
	gate    = "./coord/barrier"
	barrier = "./coord/doublebarrier"
	sema    = "./coord/semaphore"
	items   = "./coord/queue"
	elect   = "./coord/election"
	keeper  = "./cmd/internal/guard"
	verbs   = "./cmd/internal/cli"
	page    = "./cmd/internal/ui"

	simulation = "./internal/simulate"
)

// mutants is every guard with the tests that need it.
var mutants = slices.Concat(recovery, window, holds, guards, line, connection, once, locks, gates, doubleBarrier, leaving, semaphore, queue, election, waits, calls, judges, pages)
