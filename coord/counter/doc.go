// Package counter is a number that clients share, and add to exactly once.
//
// # What
//
// [Counter.Add] adds, and returns the sum, which nobody else gets: for numbers
// of orders, for how often something happened. [Counter.Get] reads the number,
// [Counter.Observe] follows it, [Counter.Set] sets it.
//
//	c, err := counter.New(client, "/counters/orders")
//	order, err := c.Add(ctx, 1)
//
// # Guarantees
//
//   - An Add that returns nil was carried out once, and one that fails with
//     anything but [coord.ErrUnconfirmed] was not, nor will be, also when
//     replies are lost.
//   - The sum that Add returns is the number right after it. Adds of 1 return
//     different numbers, in the order of the changes.
//   - A number that would not fit is refused ([ErrRange]): none wraps around.
//
// # Not guaranteed
//
//   - What Get and Observe return is as new as the server that answers, which
//     may lag behind. Only what Add returns is certain.
//   - Numbers without gaps: the number of an Add whose caller dies, or does not
//     learn of it (coord.ErrUnconfirmed), is used up.
//   - Speed: every Add is a write of the whole ensemble, and those of several
//     clients at the same time are tried again. Count in memory, and add now
//     and then, where a crash may cost the difference.
//
// # When the session or connection fails
//
// As with package value, of which it is made.
//
// # Znodes
//
// In the Curator dialect, as its SharedCount and DistributedAtomicInteger, a
// number of four bytes, big-endian; or as its DistributedAtomicLong, one of
// eight, if it was made by that or with [Int64]:
//
//	/counters/orders                  persistent
//	/counters/orders-guards/_c_<uuid> ephemeral, one for each Add under way; idle ones are deleted
//
// In the Kazoo dialect, as its Counter, the number in digits. (Kazoo's counters
// with support_curator=True share those of the Curator dialect.)
//
// [Counter.Remove] deletes all of it.
//
// # Cost
//
// Get: one read. Add: a read and a transaction, more where several clients add
// at the same time; the read less in a process that observes.
package counter
