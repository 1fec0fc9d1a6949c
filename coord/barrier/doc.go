// Package barrier lets processes wait until one of them opens the way.
//
// # What
//
// A [Barrier] is a node: while it exists, everyone who comes to the barrier
// waits; when it is deleted, all go on. Any process may call [Barrier.Set] and
// [Barrier.Open], any number of times. For processes that start and finish
// together, and know how many they are, see package doublebarrier.
//
//	b, err := barrier.New(client, "/jobs/2024-06-01/input-complete")
//	err = b.Set(ctx)     // before the workers start
//	err = b.Wait(ctx)    // in each worker
//	err = b.Open(ctx)    // when the input is complete
//
// # Guarantees
//
//   - When Set has returned nil, no Wait that begins afterwards passes before a
//     Open, on any server of the ensemble, however far it lags behind.
//   - Wait returns after every Open, also when it was disconnected or lost
//     its session at that time, and when the barrier has been set again
//     meanwhile; and never without one.
//   - Set and Open are idempotent: no process needs to know which was first.
//   - Set and Wait do not take another recipe's node for a barrier: one that
//     belongs to a session, or that is or was the parent of others, is refused
//     with [ErrNoBarrier].
//   - The barrier outlives the process and the session that set it.
//   - Every call ends with its context, also when no server answers.
//
// # Not guaranteed
//
//   - Nothing holds a barrier shut. Between Wait's return and the next
//     statement it may have been set again; use a read/write lock if the
//     processes that passed must keep others out.
//   - A barrier stays shut until it is opened. One that was never set lets
//     everyone through: set it before you start the waiters.
//   - A barrier's path must not be the parent of anything. Missing parents are
//     made as containers, which the servers delete some time after their last
//     child went. Set refuses a container that has or had children. It cannot
//     recognise one that never had any, nor a node with a time to live.
//   - Set and Open are carried out at least once. If a reply is lost and
//     another process does the opposite meanwhile, the retry undoes that: let
//     one process decide. Even then a server that was cut off from the others
//     can carry out a request late (see package coord), and so open the
//     barrier, or close it, once more. If that must not happen, use another
//     path each time.
//
// # When the session or connection fails
//
// All three calls wait for the next connection or session and go on, until
// their context ends. Wait reads again after each reconnect; in a new session
// it first makes sure, by a write, that the server it came to is not behind the
// last one.
//
// # Znodes
//
// The barrier is the node at the path itself: persistent, with the identity of
// the client that set it as data. Curator's DistributedBarrier and Kazoo's
// Barrier use the same: in either dialect, all three share a path.
//
// # Cost
//
// Set: one request, two when there is a node already; the missing parents come
// on top. Open: one. Wait: an empty write and a read, which leaves a watch
// that the removal fires. All waiters of a process share one watch. A removal
// wakes every waiter, as it should.
package barrier
