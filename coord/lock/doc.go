// Package lock is a mutex on a ZooKeeper path, and several of them as one.
//
// # What
//
// A [Mutex] is held by at most one at a time, of all processes and goroutines
// that use the same path. The first to come gets it first. [Mutex.Acquire]
// returns a [coord.Hold]; [Mutex.Do] is the recommended way in:
//
//	err := m.Do(ctx, func(ctx context.Context, h *coord.Hold) error {
//		return publish(ctx, h.Token())
//	})
//
// It is not re-entrant, unless made so ([Reentrant]): with a context that
// carries its own hold, Acquire is refused ([coord.ErrInvalid]), since it would
// wait for itself. Any goroutine that has the hold may release it. There is no
// condition variable: to wait for others use a barrier or a queue.
//
// If many goroutines of a process want the same lock, or one wants it again and
// again, [LocalQueue] and [Linger] let the goroutines that share the Mutex hand
// it on in memory. [MaxHold] bounds how long the lock is held, and [Delay]
// keeps it from the next one for a while after a holder's unclean end.
//
// # Guarantees
//
// Those of package coord. In short: the hold ends before another can be granted
// the lock; the order is the order of arrival at the server; after a crash of
// the holder the next in line is granted the lock when the servers expire its
// session, and only one more contender is woken; after an error nothing is left
// behind.
//
// # Not guaranteed
//
// A holder that is paused beyond the session timeout may go on for a moment
// after it wakes, while another holds. Pass [coord.Hold.Token] to the resource,
// or write by [coord.Hold.Txn]. With a local queue, arrival decides the order
// only within a process: a process has several turns in a row, a bounded number
// while others wait.
//
// # When the session or connection fails
//
// A waiter waits on and, if its session is over, joins again at the end of the
// line. A holder keeps the lock over short outages and sees [coord.Hold.Done]
// when it can no longer be trusted.
//
// # Znodes
//
//	/locks/report                                   container
//	/locks/report/_c_<uuid>-lock-0000000007         ephemeral, holds
//	/locks/report/_c_<uuid>-lock-0000000008         ephemeral, waits for …07
//
// Curator's InterProcessMutex and go-zookeeper's Lock use the same names, and
// exclude and are excluded (dialect [coord.Curator], the default). With
// [coord.Kazoo] it is Kazoo's Lock. Nodes of a read/write lock in the same
// directory are honoured: the mutex counts as a writer. Curator's own mutex
// does not see those. [Dialect] has it stand in any other line, and [Node] is a
// lock that is one node at a fixed path. With [Delay] there is a further node,
// /holder, from a grant to the release.
//
// # Cost
//
// Uncontended: create and list together, then delete: 3 requests in 2 round
// trips (4 requests when held for more than 20 ms). A waiter: 1 or 2 reads in
// one more round trip, one of its node when the wait lasts for more than 20 ms
// (250 ms if 16 or more are before it), and usually one listing while its
// predecessor still holds; it then holds as soon as it is told of the
// predecessor's deletion. A release wakes the next, which is granted, and the
// one after it, which lists. Try on a busy lock: 1 read. A turn of a local
// queue costs no request; a node for which goroutines wait, or which lingers,
// costs two reads, which watch it and the line.
package lock
