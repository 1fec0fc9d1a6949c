// Package simulate runs many clients, all recipes, the real client library and
// an embedded server in one testing/synctest bubble, lets a seed decide what
// goes wrong, and has package history judge what the clients saw.
//
// # A seed
//
// Each seed makes a server, a few clients (stations) and a few dozen workers,
// each with a recipe and a random source of its own. For some session timeouts
// the driver makes trouble: partitions of both directions or one, requests lost
// before and replies lost after they were carried out, late requests, replies
// and events, restarts shorter and longer than the session timeout, lagging
// and isolated followers, links of followers that fall silent one way and
// break, expired and moved sessions, slow, closed and crashed clients, deleted
// nodes, foreign children, reaped containers, revocations, forgotten owners, a
// client's wall clock that jumps by hours and years.
// The workers themselves cancel contexts, let deadlines pass, hold longer than
// the session timeout and use a lost hold's token. Then everything is
// repaired, and every worker must get its turn once more.
//
// # What is checked
//
// While it runs: a hold that says it can be trusted has its node in the
// server's tree; no grant is returned whose trust window is over; a fenced
// resource never turns a trusted holder away; no two transactions of a hold
// write the same value into a counter; a call returns when its context ends;
// every error is a documented one. After the last fault: the first grant on
// each path within the session timeout and a little, every worker's turn
// within a limit, and nothing left of nodes, watches, sessions and goroutines.
// Afterwards: the rules of package history. Over a run: every kind of fault has
// really struck.
//
// # Running
//
//	make simulate                      until stopped, or SEEDS=1000 FROM=1
//	make simulate SEED=4711            one seed again
//	go test ./internal/proofs/simulate        a few seeds
//
// A seed decides the random choices of the driver, the workers and the network,
// but not the scheduling of goroutines nor the random numbers inside the
// library (GUIDs, pauses between connection attempts): the same seed takes the
// same course for a while, and may then take another. To see a violation again,
// repeat the seed (REPEAT=50).
//
// A process cannot be paused in a bubble, since all share one clock and one
// process. A slow client is one whose connection is slow.
package simulate
