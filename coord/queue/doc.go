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
//   - An Ack or Nack whose claim has ended, or whose item another has by now,
//     fails with [ErrStale] and removes nothing: the transaction names the
//     version of the entry that this delivery made, and that of the claim, which
//     is 1 where Kazoo's is 0.
//   - An item that this client has no permission to read or to write is passed
//     over, and tried again after 10 s; it does not keep those behind it waiting.
//     A try that finds nothing else matches both [ErrEmpty] and coord.ErrNoAuth.
//   - A consumer alone receives by priority, then by age. Consumers beside each
//     other share the first items of the highest priority, eight for each
//     consumer or a sixteenth of the queue, and receive in order but for that.
//   - An item of higher priority is not overtaken by those that are put later,
//     but may have to wait for some that were listed before it: see Cost.
//   - Every call ends with its context; what it leaves half-way is cleared up in
//     the background.
//
// # Not guaranteed
//
//   - That an item is processed once only. A receiver may die, or be paused
//     beyond its session, after the work and before the Ack. Make the work
//     idempotent.
//   - Fairness between consumers.
//   - That an item is received at once when the first two in the line of the
//     idle (see Cost) are both stopped or cut off: the others then hear of it
//     when a session of those two ends, within the session time-out.
//   - That [Item.Deliveries] counts deliveries to Kazoo, or of items that fill a
//     packet (coord.WithMaxPacket) so that a claim has no room beside them; such
//     an item becomes no dead letter either. A Receive that was given up half-way
//     may have counted.
//   - That a delay is kept over the end of the process that asked for it, or of
//     its session.
//
// # When the session or connection fails
//
// A waiting Receive waits on, in the next session if need be. A claim lasts as a
// coord.Hold does: through an outage of T/3, and no longer than the session. A
// Put, Take or Ack whose reply was lost is found out on the next connection;
// when ctx or the session ends before, the error matches coord.ErrUnconfirmed.
//
// # Znodes
//
//	/q/entries/entry-100-0000000042   persistent, the item; its version counts deliveries
//	/q/taken/entry-100-0000000042     ephemeral, its receiver's claim
//	/q/producers/<guid>               ephemeral, its version tells whether a Put took effect
//	/q/consumers/<guid>               ephemeral, counts those who consume beside each other
//	/q/waiting/_c_<guid>-wait-…       ephemeral, the line of those who have nothing to do
//	/q/dead/entries, /q/dead/taken    the dead letters, a queue like any other
//
// The first two are the layout of Kazoo's LockingQueue: Python and Go share a
// queue.
//
// # Cost
//
// Put: 1 request for any number of items. Receive and Ack: 3 requests (read,
// claim, ack), in 2 round trips when one follows the other, because the next
// item is read along with the claim. Take: 2, in 1. An item that takes longer
// than 20 ms costs one more, for the watch on the claim. The claim carries the
// item's data, to count the delivery, so that they are written twice.
//
// Beside that there are the listings, of 24 bytes for each item in the queue. A
// consumer alone lists the entries; those beside each other also the claims. One
// listing serves for all its items as long as the queue does not change, and
// otherwise for eight, or a sixteenth of the queue: so many items at most can
// one of higher priority have to wait for, but for those on the way. After a
// pause, and on a queue of up to 256, the first four of its changes are each
// looked at at once.
//
// A Receive with nothing to do costs, alone, a listing and its watch. Beside
// others it stands in a line, of which only the first two watch the queue: a put
// wakes those two, and the second leaves it to the first. So a put to N idle
// consumers costs no more than one to three of them.
package queue
