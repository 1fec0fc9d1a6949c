// Package slots gives each holder a number of its own.
//
// # What
//
// [Slots] are the numbers from 0 to n-1. [Slots.Acquire] waits for the lowest
// that is free, [Slots.TryAcquire] does not wait, [Slots.Do] runs a function
// with it. A [Slot] is a number and a [coord.Held]: for the GPUs of a host, the
// worker's part of unique IDs (Snowflake), ports, partitions; for at most n at
// a time who need to know which they are.
//
//	s, err := slots.New(client, "/ids/billing", 1024)
//	err = s.Do(ctx, func(ctx context.Context, slot *slots.Slot) error {
//		return serve(ctx, slot.Number)
//	})
//
// With [Durable], an owner has a name, and keeps its number: it is given the
// same one after a restart. Others are given that number only after its owner
// has been away for a cooldown, and only if no other number is free.
//
// # Guarantees
//
//   - No two hold the same number at any instant, under the conditions that
//     package coord states, even if their n differ. The tokens of a number grow
//     from holder to holder.
//   - A client is given numbers below its own n. Who holds a larger one keeps
//     it; so n can be changed while programs run.
//   - Those who wait are given numbers in the order of their arrival, but for
//     owners that wait for the number they had.
//   - An owner has one number. If two processes use one name, or the owner's
//     former session still lives, one waits until the other has gone, even if
//     numbers are free; it blocks nobody else.
//   - Nobody is given the number of another owner earlier than its cooldown
//     after it was released or lost.
//   - After an error nothing is held.
//
// # Not guaranteed
//
//   - That at most n hold at a time, unless all have the same n. A client that
//     finds another n than its own among the holders reports that, once
//     ([event.Differs]).
//   - The cooldown may take longer: it begins when any client that acquires
//     finds the number free, not when it became so. It is measured by the
//     leader's clock alone, in the nodes' times, so it is wrong by as much as
//     that clock is set, or another leader's differs. No clock has a part in
//     who holds a number.
//   - TryAcquire does not queue: it can take a number before those who wait. An
//     owner without a number is refused ([coord.ErrBusy]) while others queue.
//   - An owner whose number is beyond n is given another. The number stays its
//     own until [Slots.Forget].
//
// # When the session or connection fails
//
// A number is held until the trust window ends, as any hold. A waiter keeps
// waiting across a lost connection, and queues again, at the end, if its
// session is over. An owner that comes back with a new session waits for the
// end of the former one, for up to the session timeout, or some 0.3 s with an
// attendant.
//
// # Znodes
//
//	/ids/billing/held/7              ephemeral: has the number 7
//	/ids/billing/numbers/7           persistent: whose it is, and its versions
//	/ids/billing/line                container: who waits, a mutex
//	  _c_<uuid>-lock-0000000012      ephemeral
//
// A number's node is written by the transaction that makes its holder's node,
// and otherwise only by one that proves that nobody holds the number. So a late
// deletion of a former holder's node finds another version, and does no harm.
//
// [Slots.Remove] deletes all of it.
//
// # Cost
//
// Acquire: 6 requests in 4 round trips where numbers are free, and one more of
// each where another number has been used for the first time since this process
// looked; one more beside the last if another holds, to compare n, and two for
// an owner's own number; release: one. Only the first in line watches the
// holders, and is woken when one goes. An owner also writes once in each call,
// and reads the nodes of all numbers, the first time; with its number known it
// takes no place in the line. Where only other owners' numbers are free, the
// first in line writes once for each of them, and at each look. A watch on the
// directories stays behind in each process that has acquired, and fires once.
package slots
