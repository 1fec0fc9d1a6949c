// Package semaphore lets at most N holders act at a time.
//
// # What
//
// A [Semaphore] has a limit of N leases. [Semaphore.Acquire] waits for one,
// [Semaphore.AcquireN] for several together, all or none, and the TryAcquire
// forms do not wait. A lease is a [coord.Hold], several are a [hold.Set].
//
//	s, err := semaphore.New(client, "/limits/licence", 5)
//	err = s.Do(ctx, func(ctx context.Context, h *coord.Hold) error {
//		return compile(ctx) // at most five at a time, wherever they run
//	})
//
// The first to come stores the limit in ZooKeeper. A program that asks for
// another number is refused; one that asks for [Stored] takes the stored limit.
// [Semaphore.SetLimit] changes it, and [Semaphore.Remove] deletes what is left
// when nobody uses the semaphore any more.
//
// # Guarantees
//
//   - At most N leases can be trusted at a time, under the conditions that
//     package coord states.
//   - Leases are granted in the order of the queue, for any number of them: an
//     acquire of many is not overtaken by acquires of few.
//   - No wake-up is lost, in any order in which holders leave.
//   - An acquire that is given up, or whose session ends, leaves no lease
//     behind. A lease ends with its holder's session.
//   - Acquiring several leases cannot deadlock with others that do the same:
//     only the first in the queue makes leases that are not granted yet.
//   - Two programs never act on different limits, except that a program learns
//     of a change from its server.
//
// # Not guaranteed
//
//   - TryAcquire does not queue: it takes a lease that is free at that moment,
//     perhaps ahead of a program that is about to take it. It may fail because
//     of another try that fails as well. It does not pass the first in the
//     queue, which has made its leases already.
//   - A hold has a [coord.Hold.Token] only if the limit was 1 when the lease
//     was made. With more than one holder, no number identifies the newest.
//   - SetLimit takes no lease back.
//   - The first in the queue loses its place when its connection fails for
//     longer than the trust window.
//
// # When the session or connection fails
//
// A lease lasts until the trust window ends, as any hold. A waiter waits on
// over a lost connection, and queues again, at the end, if its session is over
// or its node was deleted.
//
// # Znodes
//
// In the Curator dialect, as InterProcessSemaphoreV2:
//
//	/limits/licence                      container
//	  limit                              persistent; data: N, 4 bytes, big-endian
//	  locks                              container: the queue, a mutex
//	    _c_<uuid>-lock-0000000012        the first in the queue, ephemeral
//	  leases                             container: every child counts
//	    _c_<uuid>-lease-0000000010       a holder, ephemeral
//	    _c_<uuid>-lease-0000000011       what the first in the queue waits for
//
// Java programs share the path, with a number of their own or, to share ours,
// with new SharedCount(client, path + "/limit", n). Java's older
// InterProcessSemaphore has another layout; do not mix them.
//
// In the Kazoo dialect, as Kazoo's Semaphore: the queue is a Kazoo lock at
// <path>-__lock__, the leases are the children of the path, and its data are N
// in digits, which Kazoo checks, too. The two layouts do not see each other:
// use a path in one dialect only.
//
// # Cost
//
// An acquire without waiting: 5 requests in 2 round trips (in Kazoo's layout 6
// in 4). Each further lease adds a create; together they add one round trip.
// The first acquire of a process also reads and watches the limit. Release: one
// delete for each lease, all in one round trip. A waiter in the queue watches
// two nodes; only the first in the queue watches the leases, and lists them
// when one goes. TryAcquire: one listing if there is no room, else a create and
// a listing more.
package semaphore
