// Package queue is a first-in-first-out and priority queue on a ZooKeeper path,
// for work that must be done at least once, or handed out at most once.
//
// # What
//
// [Queue.Put] adds an item, with a priority from 0 (first) to 999. Consumers
// choose:
//
//   - [Queue.Receive] claims an item until [Item.Ack], [Item.Nack], or the end
//     of the receiver's session: at least once.
//   - [Queue.Take] removes an item at once: at most once.
//
// ZooKeeper keeps every item in the memory of every server, agrees on every
// change, and lists a queue as a whole. It is the right place for some hundred
// items a second and some thousand in the queue, when there is a ZooKeeper
// anyway; for more, for large items, or for many who each get every item, use a
// message broker.
//
// # Guarantees
//
//   - An item that was put is in the queue until it is acknowledged, taken or
//     moved to the dead letters. A lost reply neither loses nor doubles it.
//   - Nobody else receives an item while its receiver's claim lasts. The claim
//     ends ([Item.Done]) before another can have it, as any coord.Hold does.
//   - An Ack removes the item only if the claim is this receiver's still: it
//     names the version of the entry that this delivery made. Otherwise it fails
//     with [ErrStale] and removes nothing.
//   - A consumer alone receives by priority, then by age. Consumers beside each
//     other receive nearly so: each takes one of the first items, as many as
//     there are consumers busy. An item of higher priority waits for at most 32
//     that were listed before it.
//   - Every call ends with its context; what it leaves half-way is cleared up in
//     the background.
//
// # Not guaranteed
//
//   - That an item is processed once only. A receiver may die, or be paused
//     beyond its session, after the work and before the Ack. Make the work
//     idempotent, or do it in the transaction of the Ack's kind: through
//     coord.Hold.Txn, on what is in ZooKeeper.
//   - Fairness between consumers.
//   - A claim that was broken by hand and then taken by a Kazoo consumer is not
//     told from the own one in the moment before the news arrives, because Kazoo
//     does not count deliveries.
//
// # When the session or connection fails
//
// A waiting Receive waits on. A claim lasts as a coord.Hold does: through an
// outage of 0.4 T, and no longer than the session. A Put, Take or Ack whose reply
// was lost is found out on the next connection; when ctx or the session ends
// before, the error matches coord.ErrUnconfirmed.
//
// # Znodes
//
//	/q/entries/entry-100-0000000042   persistent, the item; its version counts deliveries
//	/q/taken/entry-100-0000000042     ephemeral, its receiver's claim
//	/q/producers/<guid>               ephemeral, tells whether a Put took effect
//	/q/dead/entries, /q/dead/taken    the dead letters, a queue like any other
//
// That is the layout of Kazoo's LockingQueue: Python and Go share a queue.
// Deliveries to Kazoo are not counted.
//
// # Cost
//
// Put: 1 request for any number of items. Receive and Ack: 3 (read, claim, ack).
// Take: 2. Beside that, a listing of entries and claims, 2 requests, for every 32
// items, or whenever the queue was empty. A Receive that waits has one watch on
// each of the two lists, per process, however many goroutines wait; each change
// of the queue wakes them, and each process lists once. 24 bytes for each item
// in the queue travel with a listing.
package queue
