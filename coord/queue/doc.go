// Package queue is a first-in-first-out and priority queue on a ZooKeeper path,
// for work that must be done at least once, or handed out at most once.
//
// # What
//
// [Queue.Put] adds an item, with a priority from 0 (first) to 999. Consumers
// choose between two ways to obtain one:
//
//   - [Queue.Receive] claims an item until [Item.Ack], [Item.Nack], or the end
//     of the receiver's session: at least once. [Queue.Run] calls a function
//     with one item after the other, and finishes the last when it is stopped.
//   - [Queue.Take] removes an item: at most once.
//
// [Queue.ReceiveBatch] and [Queue.AckBatch] do it for many items together.
//
// It is made for a few hundred items a second and a few thousand in the queue.
// ZooKeeper keeps every item in the memory of every server, agrees on every
// change, and lists a queue as a whole: for more, for large items, or for many
// consumers that each get every item, use a message broker.
//
// # Guarantees
//
//   - An item that was put stays until it is acknowledged, taken, or moved to
//     the dead letters. A lost reply neither loses nor doubles it.
//   - No other consumer receives an item while its claim lasts. The claim ends
//     ([Item.Done]) before another can have it, as any coord.Hold does.
//   - An Ack or Nack of an item whose claim has ended, or that another consumer
//     has, fails with [ErrStale] and removes nothing.
//   - A dead letter and its story ([DeadLetter]) are made along with the item's
//     removal. The story does not name a last consumer that died with the item.
//   - A letter that was acknowledged ([Queue.Acknowledge]) stays so until it is
//     gone; another one of the same name is not acknowledged by that.
//   - A consumer alone receives by priority, then by age. Several consumers
//     share the first items of the highest priority, eight for each consumer or
//     a sixteenth of the queue; otherwise they receive in order.
//   - No later item overtakes one of higher priority that does not wait to be
//     delivered again. That one itself may have to wait for items that were
//     listed before it: see Cost.
//   - An item that was delivered in vain, given back or left by a consumer that
//     ended, waits before it is delivered again, and those behind it come first:
//     for a second, then two, and so on ([Backoff]). An item that always
//     fails holds up no other.
//   - An item that this client may not read or write is passed over for 10 s. A
//     try that finds nothing else matches both [ErrEmpty] and coord.ErrNoAuth.
//   - Every call ends with its context, or 50 ms later if it has a delivery to
//     end, and Run when its function has returned. Unfinished work is cleared up
//     in the background.
//
// # Not guaranteed
//
//   - That an item is processed only once. A receiver may die, or be paused
//     beyond its session, after the work and before the Ack. Make the work
//     idempotent.
//   - Fairness between consumers. While some are idle, an item goes to the one
//     that is the first to claim it: a consumer over a slow network may get
//     none as long as others have nothing to do.
//   - That an item is received immediately when the first two idle consumers
//     (see Cost) are both stopped or cut off. The others are told when one of
//     these sessions ends, within the session timeout.
//   - That [Item.Deliveries] counts every delivery. It misses those to Kazoo,
//     and those of items that fill a packet (coord.WithMaxPacket), which never
//     become dead letters either, and do not wait to be delivered again. It may count a Receive that was given up
//     half-way, or whose claim ended before it could return the item.
//   - That the delay of a Nack lasts longer than the process that asked for it,
//     or its session. The back-off does.
//   - That Kazoo's consumers leave an item alone that is to be delivered again
//     later.
//
// # When the session or connection fails
//
// A waiting Receive waits on, in the next session if need be. A claim lasts as
// a coord.Hold does: through an outage of T/3 (T is the session timeout), and
// no longer than the session. Whether a Put, Take or Ack was carried out whose
// reply was lost is found out on the next connection; if the context or the
// session ends before, the error matches coord.ErrUnconfirmed.
//
// # Znodes
//
//	/q/entries/entry-100-0000000042   persistent: the item; half its version, rounded up, counts deliveries
//	/q/taken/entry-100-0000000042     ephemeral: its receiver's claim
//	/q/producers/<guid>               ephemeral: its version shows whether a Put, Take or Ack took effect
//	/q/consumers/<guid>-with-…        ephemeral: counts concurrent consumers, and says their options
//	/q/waiting/_c_<guid>-wait-…       ephemeral: the line of the idle
//	/q/dead/entries, /q/dead/taken    the dead letters, a queue like any other
//	/q/dead/records/0000000007        persistent: the story of a letter, same czxid
//	/q/dead/acknowledged/entry-…-in-… persistent, in a container: the letter was acknowledged, and by whom
//
// The first two are the layout of Kazoo's LockingQueue: Python and Go share a
// queue.
//
// [Queue.Remove] deletes all of it.
//
// # Cost
//
// Put: 1 request for any number of items. Receive and Ack: 3 requests (read,
// claim, ack), in 2 round trips when one receive follows another, since the
// next item is read along with the claim. Nack: 2. An item that waits to be
// delivered again costs each consumer a read, and once a minute a request that
// tells the ensemble's time. A queue object makes a node in producers, 1
// request, for its first Put, Take or Ack, and others for as many as it has
// under way, up to 32. The items of a batch share the claim, and those of an
// AckBatch the ack: with batches of 16, 18 requests for 16 items. Take: 2, in
// 1. An item that takes longer than 20 ms costs one more, for the watch on the
// claim. A claim writes the item's data again, to count the delivery.
//
// A listing has 24 bytes for each item in the queue. A consumer alone lists the
// entries; several consumers also the claims. A listing serves for all its
// items until the queue changes, and then for eight, or a sixteenth of the
// queue: an item of higher priority waits for no more than these, and those on
// the way. After a pause, and on a queue of up to 256, each of the first four
// changes is looked at immediately.
//
// An idle Receive costs a listing and its watch for a consumer alone. Idle
// consumers stand in a line, of which only the first two watch the queue; the
// second leaves a change to the first for 30 ms, or four times what a listing
// takes if that is longer. So a put to N idle consumers costs as much as a put
// to three.
package queue
